//! What the commands share of the command line.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use gpufeed::source::{Damaged, Decoder, Fit, ImageOptions, NpyOptions, OpenOptions, open_path};
use gpufeed::{Source, Strategy};
use serde::{Deserialize, Serialize};

use crate::data;
use crate::units::{self, HxW};

/// What a folder's images become.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Images of a folder or of tar shards")]
pub struct DataArgs {
    /// Height and width of a sample [default: 224x224]
    #[arg(long, value_name = "HxW", value_parser = units::parse_size)]
    pub size: Option<HxW>,
    /// How an image of another shape becomes a sample [default: crop]
    #[arg(long, value_name = "HOW")]
    pub fit: Option<FitArg>,
    /// Channels of a sample: 1 (grey), 3 (RGB) or 4 (RGBA) [default: 3]
    #[arg(long, value_name = "N", value_parser = channels())]
    pub channels: Option<usize>,
    /// The classes by label, whatever folders there are: a file with a name a line, or labels.classes.json of --save. Other
    /// folders are left out, other labels of tar shards make bad samples [default: the folders with images, in the order of
    /// their names]
    #[arg(long, value_name = "FILE")]
    pub classes: Option<PathBuf>,
    /// Of tar shards: which member of a sample is its image, as in left.png [default: the first there is of jpg, jpeg, jpe,
    /// jfif, jif, png, apng and webp]
    #[arg(long, value_name = "SUFFIX")]
    pub image: Option<String>,
    /// Of tar shards: which member of a sample holds its label, as in cls, or json:KEY for an integer in an object; none for no
    /// labels [default: what is found beside the first image, of cls, json and txt]
    #[arg(long, value_name = "SUFFIX")]
    pub labels: Option<String>,
    /// What decodes JPEG and WebP files [default: auto]
    #[arg(long, value_name = "NAME")]
    pub decoder: Option<DecoderArg>,
    /// Decode large JPEG files at their full size, not at a half, a quarter or an eighth of it that is still twice the sample's size:
    /// slower, and closer to what Pillow gives
    #[arg(long)]
    pub full_decode: bool,
    /// Count JPEG files that are damaged inside as bad samples; otherwise they are decoded as far as possible, with a warning
    #[arg(long)]
    pub refuse_damaged: bool,
    /// The most bytes of one image, as a file and when decoded at its own size, as in 2GiB [default: 512MiB]
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    pub max_image_bytes: Option<u64>,
    /// Of a .npy file of u8: its images have their channels first, (N, C, H, W) [default: last; other arrays are delivered as they are]
    #[arg(long)]
    pub channels_first: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum DecoderArg {
    /// What is fastest: the system's libjpeg-turbo and libwebp where they are installed; for quarters and eighths of a JPEG's size, and
    /// without the libraries, as rust
    Auto,
    /// The system's libjpeg-turbo and libwebp
    System,
    /// The system's libjpeg-turbo; WebP as by rust
    #[value(name = "turbojpeg")]
    TurboJpeg,
    /// The system's libwebp; JPEG as by rust
    #[value(name = "libwebp")]
    LibWebp,
    /// What gpufeed has built in, the same everywhere
    Rust,
}

impl From<DecoderArg> for Decoder {
    fn from(decoder: DecoderArg) -> Self {
        match decoder {
            DecoderArg::Auto => Self::Auto,
            DecoderArg::System => Self::System,
            DecoderArg::TurboJpeg => Self::TurboJpeg,
            DecoderArg::LibWebp => Self::LibWebp,
            DecoderArg::Rust => Self::Rust,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum FitArg {
    /// The whole image, whatever its proportions
    Stretch,
    /// The largest centred part with the sample's proportions
    Crop,
}

impl DataArgs {
    fn image_options(&self) -> ImageOptions {
        let mut options = ImageOptions::default();
        if let Some(HxW { height, width }) = self.size {
            (options.height, options.width) = (height, width);
        }
        if let Some(fit) = self.fit {
            options.fit = match fit {
                FitArg::Stretch => Fit::Stretch,
                FitArg::Crop => Fit::Crop,
            };
        }
        options.channels = self.channels.unwrap_or(options.channels);
        options.decode.decoder = self.decoder.map_or(Decoder::Auto, Decoder::from);
        options.decode.full_size = self.full_decode;
        options.decode.damaged = if self.refuse_damaged { Damaged::Refuse } else { Damaged::Recover };
        options.max_decoded_bytes = self.max_image_bytes.unwrap_or(options.max_decoded_bytes);
        options
    }

    /// The options for images of folders and shards that were given, as they are spelled.
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--size", self.size.is_some()),
            ("--fit", self.fit.is_some()),
            ("--channels", self.channels.is_some()),
            ("--classes", self.classes.is_some()),
            ("--image", self.image.is_some()),
            ("--labels", self.labels.is_some()),
            ("--decoder", self.decoder.is_some()),
            ("--full-decode", self.full_decode),
            ("--refuse-damaged", self.refuse_damaged),
            ("--max-image-bytes", self.max_image_bytes.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

/// Opens a folder of images, tar shards or a `.npy` file.
pub fn open_source(path: &Path, args: &DataArgs) -> Result<Arc<dyn Source>> {
    let mut options = OpenOptions::default();
    options.folder.images = args.image_options();
    options.folder.classes = args.classes.as_deref().map(data::read_classes).transpose()?;
    options.tar.images = options.folder.images.clone();
    options.tar.classes = options.folder.classes.clone();
    options.tar.image = args.image.clone();
    options.tar.labels = args.labels.as_deref().map(str::parse).transpose()?.unwrap_or_default();
    if args.channels_first {
        options.npy = NpyOptions::channels_first();
    }
    let for_shards = args.given().into_iter().filter(|name| path.is_dir() && ["--image", "--labels"].contains(name));
    let for_shards: Vec<_> = for_shards.collect();
    ensure!(
        for_shards.is_empty(),
        "{}: {} only for tar shards; a folder's classes are its labels",
        path.display(),
        options_are(&for_shards)
    );
    let source = open_path(path, &options)?;
    let given = args.given();
    let decoded = source.summary().decoder.is_some();
    ensure!(!(decoded && args.channels_first), "{}: --channels-first is only for .npy files", path.display());
    // Only images have a shape to be chosen; ignoring the wish would look like fulfilling it.
    ensure!(
        decoded || given.is_empty(),
        "{}: {} only for folders of images and tar shards; this file has {}",
        path.display(),
        options_are(&given),
        source.layout().first()
    );
    Ok(source)
}

/// An error of usage that the parser does not find by itself.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct UsageError {
    /// Of which command.
    pub command: &'static str,
    message: String,
}

pub fn usage_error(command: &'static str, message: impl Display) -> UsageError {
    UsageError { command, message: message.to_string() }
}

/// `--mean is`, `--mean and --std are`.
pub fn options_are(names: &[&str]) -> String {
    format!("{} {}", names.join(" and "), if names.len() == 1 { "is" } else { "are" })
}

/// A parser of strategies that lists them in the help.
pub fn strategy() -> impl TypedValueParser<Value = Strategy> {
    let named = |&strategy: &Strategy| PossibleValue::new(strategy.key()).help(strategy.describe());
    PossibleValuesParser::new(Strategy::ALL.iter().map(named)).try_map(|name| name.parse::<Strategy>())
}

fn channels() -> impl TypedValueParser<Value = usize> {
    PossibleValuesParser::new(["1", "3", "4"]).try_map(|count| count.parse::<usize>())
}

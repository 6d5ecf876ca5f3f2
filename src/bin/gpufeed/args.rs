//! What the commands share of the command line.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use gpufeed::source::{Damaged, Decoder, Fit, ImageOptions, NpyOptions, OpenOptions, open_path};
use gpufeed::{Element, FloatType, Normalize, Preprocess, SampleLayout, Source, Strategy, TensorLayout};

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

/// What the device makes of the samples.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Tensor, of u8 images only")]
pub struct FeedArgs {
    /// Mean of each channel, of pixels in [0, 1] [default: ImageNet's for 3 channels, else 0]
    #[arg(long, value_name = "M,..", value_delimiter = ',', allow_hyphen_values = true, requires = "std")]
    pub mean: Vec<f64>,
    /// Standard deviation of each channel [default: ImageNet's for 3 channels, else 1]
    #[arg(long, value_name = "S,..", value_delimiter = ',', allow_hyphen_values = true, requires = "mean")]
    pub std: Vec<f64>,
    /// Order of the dimensions [default: nchw]
    #[arg(long, value_name = "ORDER")]
    pub layout: Option<LayoutArg>,
    /// Element type [default: f32]
    #[arg(long, value_name = "TYPE")]
    pub dtype: Option<DTypeArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayoutArg {
    /// Sample, channel, row, column
    Nchw,
    /// Sample, row, column, channel
    Nhwc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DTypeArg {
    /// 32-bit floats, normalised
    F32,
    /// 16-bit floats, normalised
    F16,
    /// The pixels as they are, in NHWC order
    U8,
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

impl FeedArgs {
    /// What happens to samples of this layout: images are normalised unless `u8` is asked for, anything else passes through.
    pub fn preprocess(&self, sample: &SampleLayout) -> Result<Preprocess> {
        Ok(self.normalize(sample)?.map_or(Preprocess::Raw, Preprocess::from))
    }

    /// How samples of this layout are normalised; `None` where they pass through.
    pub fn normalize(&self, sample: &SampleLayout) -> Result<Option<Normalize>> {
        let Some(image) = sample.as_image() else { return self.pass_through(sample).map(|()| None) };
        let dtype = match self.dtype {
            Some(DTypeArg::U8) => {
                let given = self.given();
                ensure!(
                    given.is_empty(),
                    "--dtype u8 delivers the pixels as they are: {} not for it",
                    options_are(&given)
                );
                return Ok(None);
            }
            Some(DTypeArg::F16) => FloatType::F16,
            Some(DTypeArg::F32) | None => FloatType::F32,
        };
        let layout = match self.layout {
            Some(LayoutArg::Nhwc) => TensorLayout::Nhwc,
            Some(LayoutArg::Nchw) | None => TensorLayout::Nchw,
        };
        let normalize = match image.channels() {
            // Both are given, or none: the parser sees to it.
            _ if !self.mean.is_empty() => Normalize::new(&self.mean, &self.std),
            3 => Normalize::imagenet(),
            channels => Normalize::unit(channels),
        };
        let normalize = normalize.with_layout(layout).with_dtype(dtype);
        normalize.validate(sample.first())?;
        Ok(Some(normalize))
    }

    /// Refuses what is for images only.
    fn pass_through(&self, sample: &SampleLayout) -> Result<()> {
        let (given, sample) = (self.given(), sample.first());
        let hint = match (sample.element(), sample.dims()) {
            (Element::U8, [1 | 3 | 4, _, _]) => " (--channels-first makes images of them)",
            _ => "",
        };
        ensure!(
            given.is_empty(),
            "{} only for u8 images; this source has {sample}, which pass through as they are{hint}",
            options_are(&given)
        );
        let has = match sample.element() {
            Element::U8 => Some(DTypeArg::U8),
            Element::F16 => Some(DTypeArg::F16),
            Element::F32 => Some(DTypeArg::F32),
            _ => None,
        };
        match self.dtype {
            wanted @ Some(_) if wanted != has => {
                bail!("--dtype changes u8 images only; this source has {sample}, which pass through as they are{hint}")
            }
            _ => Ok(()),
        }
    }

    fn given(&self) -> Vec<&'static str> {
        let all =
            [("--mean", !self.mean.is_empty()), ("--std", !self.std.is_empty()), ("--layout", self.layout.is_some())];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn image(channels: usize) -> SampleLayout {
        SampleLayout::image(4, 4, channels).expect("an image")
    }

    fn refused(args: &FeedArgs, sample: &SampleLayout) -> String {
        args.preprocess(sample).expect_err("refused").to_string()
    }

    #[test]
    fn images_are_normalised_by_their_channels() {
        let default = FeedArgs::default();
        assert_eq!(default.preprocess(&image(3)).expect("rgb"), Normalize::imagenet().into());
        assert_eq!(default.preprocess(&image(1)).expect("grey"), Normalize::unit(1).into());
        let half = FeedArgs { dtype: Some(DTypeArg::F16), layout: Some(LayoutArg::Nhwc), ..FeedArgs::default() };
        let expected = Normalize::unit(4).with_dtype(FloatType::F16).with_layout(TensorLayout::Nhwc);
        assert_eq!(half.preprocess(&image(4)).expect("rgba"), expected.into());
        let raw = FeedArgs { dtype: Some(DTypeArg::U8), ..FeedArgs::default() };
        assert_eq!(raw.preprocess(&image(3)).expect("raw"), Preprocess::Raw);
    }

    #[test]
    fn wishes_that_cannot_be_fulfilled_are_refused() {
        let floats = SampleLayout::f32(&[5]).expect("floats");
        let means = FeedArgs { mean: vec![0.5], std: vec![0.5], ..FeedArgs::default() };
        assert!(
            refused(&means, &floats).starts_with("--mean and --std are only for u8 images"),
            "{}",
            refused(&means, &floats)
        );
        assert!(refused(&means, &image(3)).contains("mean has 1 values for 3 channels"));
        let raw = FeedArgs { dtype: Some(DTypeArg::U8), layout: Some(LayoutArg::Nchw), ..FeedArgs::default() };
        assert!(refused(&raw, &image(3)).contains("--layout is not for it"), "{}", refused(&raw, &image(3)));
        let half = FeedArgs { dtype: Some(DTypeArg::F16), ..FeedArgs::default() };
        assert!(refused(&half, &floats).contains("f32 arrays of [5]"));
        let same = FeedArgs { dtype: Some(DTypeArg::F32), ..FeedArgs::default() };
        assert_eq!(same.preprocess(&floats).expect("as they are"), Preprocess::Raw);
    }
}

//! Which decoders read image files, and how.

use std::fmt;
use std::str::FromStr;

use super::jpeg::turbo::{self, Library};
use super::webp::libwebp;

/// What decodes JPEG and WebP files. PNG files are always decoded by the same decoder.
///
/// All give the same bytes for all that they decode; which were used is part of what identifies a data set, since versions of
/// a library may differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decoder {
    /// What is fastest: the system's libjpeg-turbo and libwebp where they are installed, but for quarters and eighths of a JPEG's size
    /// and without the libraries the decoders that are built in.
    #[default]
    Auto,
    /// The system's libjpeg-turbo and libwebp: [`TurboJpeg`](Self::TurboJpeg) and [`LibWebp`](Self::LibWebp).
    System,
    /// The system's libjpeg-turbo (2.0 or later), loaded at run time. It decodes arithmetic-coded files as well. WebP is decoded
    /// as by [`Rust`](Self::Rust).
    TurboJpeg,
    /// The system's libwebp, loaded at run time. JPEG is decoded as by [`Rust`](Self::Rust).
    LibWebp,
    /// The decoders that are built in, in Rust. The same everywhere.
    Rust,
}

impl Decoder {
    /// All choices.
    pub const ALL: [Self; 5] = [Self::Auto, Self::System, Self::TurboJpeg, Self::LibWebp, Self::Rust];

    /// Its name in options.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::System => "system",
            Self::TurboJpeg => "turbojpeg",
            Self::LibWebp => "libwebp",
            Self::Rust => "rust",
        }
    }

    /// The decoders that this choice means here.
    ///
    /// # Errors
    /// [`DecoderUnavailable`] where a library is asked for and cannot be loaded.
    pub(super) fn resolve(self) -> Result<Decoders, DecoderUnavailable> {
        let unavailable =
            |library, package, reason: &String| Err(DecoderUnavailable { library, package, reason: reason.clone() });
        let jpeg = match (self, turbo::library()) {
            (Self::Auto, Ok(library)) => Chosen::Fastest(library),
            (Self::System | Self::TurboJpeg, Ok(library)) => Chosen::Turbo(library),
            (Self::System | Self::TurboJpeg, Err(reason)) => {
                return unavailable("libjpeg-turbo", "libturbojpeg0", reason);
            }
            (Self::Auto, Err(_)) | (Self::LibWebp | Self::Rust, _) => Chosen::Rust,
        };
        let webp = match (self, libwebp::library()) {
            (Self::Auto | Self::System | Self::LibWebp, Ok(library)) => Some(library),
            (Self::System | Self::LibWebp, Err(reason)) => return unavailable("libwebp", "libwebp7", reason),
            (Self::Auto, Err(_)) | (Self::TurboJpeg | Self::Rust, _) => None,
        };
        Ok(Decoders { jpeg, webp })
    }
}

impl fmt::Display for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl FromStr for Decoder {
    type Err = UnknownDecoder;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|decoder| decoder.key() == name).ok_or_else(|| UnknownDecoder(name.to_owned()))
    }
}

/// No decoder has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no decoder is called {0:?}; there are auto, system, turbojpeg, libwebp and rust")]
pub struct UnknownDecoder(String);

/// The decoder that was asked for cannot be used here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{library} cannot be loaded ({reason}); install it (Debian: {package}), or decode with `rust`")]
pub struct DecoderUnavailable {
    library: &'static str,
    package: &'static str,
    /// What the system said.
    reason: String,
}

/// The decoders in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decoders {
    pub(super) jpeg: Chosen,
    /// `None` for the one that is built in.
    pub(super) webp: Option<&'static libwebp::Library>,
}

impl Decoders {
    /// What decodes WebP, with its version.
    pub(super) fn webp_name(self) -> String {
        self.webp.map_or_else(
            || format!("gpufeed {}", env!("CARGO_PKG_VERSION")),
            |library| format!("libwebp {}", library.version()),
        )
    }
}

/// The decoder of JPEG in use.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chosen {
    Turbo(&'static Library),
    Rust,
    /// Each where it is faster.
    Fastest(&'static Library),
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turbo(library) => write!(f, "libjpeg-turbo {}", library.version()),
            Self::Rust => write!(f, "gpufeed {}", env!("CARGO_PKG_VERSION")),
            Self::Fastest(library) => {
                write!(f, "libjpeg-turbo {} and gpufeed {}", library.version(), env!("CARGO_PKG_VERSION"))
            }
        }
    }
}

/// How image files are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DecodeOptions {
    /// What decodes JPEG and WebP files. Default [`Decoder::Auto`].
    pub decoder: Decoder,
    /// What becomes of images that are damaged inside. Default [`Damaged::Recover`].
    pub damaged: Damaged,
    /// Whether JPEG files are decoded at their full size even where a half, a quarter or an eighth of it would still be at least
    /// twice the sample's size each way. Default no: large photos are decoded several times faster so, and the values of a sample
    /// differ from those made of the full size by less than 1 of 255 on average, and by at most 8 on the photo-like images of this
    /// crate's tests.
    pub full_size: bool,
}

/// What becomes of a JPEG file whose data is damaged inside. A file that ends early is always an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Damaged {
    /// It is decoded as far as possible, as libjpeg does, and counted; an error where more than half of it is lost.
    #[default]
    Recover,
    /// It is an error.
    Refuse,
}

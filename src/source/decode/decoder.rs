//! Which decoder reads JPEG files, and how.

use std::fmt;
use std::str::FromStr;

use super::jpeg::turbo::{self, Library};

/// What decodes JPEG files.
///
/// Both give the same bytes for all that both decode; which one was used is part of what identifies a data set, since versions of
/// libjpeg-turbo may differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decoder {
    /// The system's libjpeg-turbo where it is installed, otherwise the one of this crate.
    #[default]
    Auto,
    /// The system's libjpeg-turbo (2.0 or later), loaded at run time. It decodes arithmetic-coded files as well.
    TurboJpeg,
    /// The decoder of this crate, in Rust. The same everywhere.
    Rust,
}

impl Decoder {
    /// All choices.
    pub const ALL: [Self; 3] = [Self::Auto, Self::TurboJpeg, Self::Rust];

    /// Its name in options.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::TurboJpeg => "turbojpeg",
            Self::Rust => "rust",
        }
    }

    /// The decoder that this choice means here.
    ///
    /// # Errors
    /// [`DecoderUnavailable`] where libjpeg-turbo is asked for and cannot be loaded.
    pub(super) fn resolve(self) -> Result<Chosen, DecoderUnavailable> {
        match (self, turbo::library()) {
            (Self::Auto | Self::TurboJpeg, Ok(library)) => Ok(Chosen::Turbo(library)),
            (Self::TurboJpeg, Err(reason)) => Err(DecoderUnavailable { reason: reason.clone() }),
            (Self::Auto, Err(_)) | (Self::Rust, _) => Ok(Chosen::Rust),
        }
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
#[error("no decoder is called {0:?}; there are auto, turbojpeg and rust")]
pub struct UnknownDecoder(String);

/// The decoder that was asked for cannot be used here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("libjpeg-turbo cannot be loaded ({reason}); install it (Debian: libturbojpeg0), or decode with `rust`")]
pub struct DecoderUnavailable {
    /// What the system said.
    reason: String,
}

/// The decoder in use.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chosen {
    Turbo(&'static Library),
    Rust,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turbo(library) => write!(f, "libjpeg-turbo {}", library.version()),
            Self::Rust => write!(f, "gpufeed {}", env!("CARGO_PKG_VERSION")),
        }
    }
}

/// How image files are decoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct DecodeOptions {
    /// What decodes JPEG files. Default [`Decoder::Auto`].
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

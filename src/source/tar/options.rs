//! What tar shards become.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::source::decode::ImageOptions;

/// What a [`TarSource`](super::TarSource) makes of its shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TarOptions {
    /// What the images become.
    pub images: ImageOptions,
    /// Which member of a sample is its image, by all that follows the first dot of its name, as in `jpg` or `left.png`.
    /// Default `None`: the first there is of `jpg`, `jpeg`, `jpe`, `jfif`, `jif`, `png`, `apng` and `webp`.
    pub image: Option<String>,
    /// Where labels are.
    pub labels: TarLabels,
    /// The names of the classes by label. A label that is none of theirs makes a bad sample. Default `None`: labels have no
    /// names, and any integer is one.
    pub classes: Option<Vec<String>>,
}

impl From<ImageOptions> for TarOptions {
    fn from(images: ImageOptions) -> Self {
        Self { images, ..Self::default() }
    }
}

/// Which member beside an image holds its label. The text that it is parsed from stands in quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TarLabels {
    /// What is found beside the first image of the first shard that has any of them (`"auto"`): `.cls`; `.json` with an
    /// integer `label` or `cls`; `.txt` if there is an integer in it. If there is none of them there are no labels.
    #[default]
    Auto,
    /// There are no labels (`"none"`).
    None,
    /// Members with this suffix, whose content is an integer in decimal digits (the suffix itself, as in `"cls"`).
    Text {
        /// All that follows the first dot of the member's name.
        suffix: String,
    },
    /// Members with the suffix `json`: an object with an integer under this key (`"json:KEY"`; `"json"` for `label`).
    Json {
        /// The key.
        key: String,
    },
}

impl FromStr for TarLabels {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once(':') {
            Some(("json", key)) => Self::Json { key: key.to_owned() },
            _ => match text {
                "auto" => Self::Auto,
                "none" => Self::None,
                "json" => Self::Json { key: "label".to_owned() },
                suffix => Self::Text { suffix: suffix.trim_start_matches('.').to_owned() },
            },
        })
    }
}

impl fmt::Display for TarLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::None => f.write_str("none"),
            Self::Text { suffix } => f.write_str(suffix),
            Self::Json { key } => write!(f, "json:{key}"),
        }
    }
}

//! What a folder becomes.

use crate::source::decode::ImageOptions;

/// What a [`FolderSource`](super::FolderSource) makes of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderOptions {
    /// What its images become.
    pub images: ImageOptions,
    /// The classes, each once: a class's position is its label, whatever folders there are. Sub-folders of other names
    /// are left out, and [told](crate::Source::summary). Default `None`: the sub-folders that hold images, in the order of
    /// their names.
    pub classes: Option<Vec<String>>,
}

impl From<ImageOptions> for FolderOptions {
    fn from(images: ImageOptions) -> Self {
        Self { images, ..Self::default() }
    }
}

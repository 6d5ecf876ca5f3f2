//! Why a buffer or a texture of an application's cannot be used.

use crate::error::DeviceError;

/// Why a buffer or a texture of an application's cannot be used. Nothing was sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// It was created without usages that this takes.
    #[error("{what} lacks the usages {missing}")]
    Usage {
        /// Which buffer or texture.
        what: &'static str,
        /// The usages that it lacks, by their names.
        missing: String,
    },
    /// The offset cannot be bound or copied to.
    #[error("offset {offset} of {what} is no multiple of {align}")]
    Alignment {
        /// Which buffer.
        what: &'static str,
        /// The offset in bytes.
        offset: u64,
        /// What it has to be a multiple of, in bytes.
        align: u64,
    },
    /// The buffer ends too early.
    #[error("{what} has {size} bytes, and {needed} are needed from {offset} on")]
    Size {
        /// Which buffer.
        what: &'static str,
        /// Its bytes.
        size: u64,
        /// The offset in bytes.
        offset: u64,
        /// How many are needed behind the offset, those that fill the last vector or word included.
        needed: u64,
    },
    /// Frames that lie on the GPU have one field, on the device.
    #[error("frames on the GPU have one field, on the device, and these have {fields}")]
    Fields {
        /// How many fields the feeder's frames have.
        fields: usize,
    },
    /// A texture that is no picture of the frames' size.
    #[error("the texture is {width}x{height}, and the frames are {frame_width}x{frame_height}")]
    TextureSize {
        /// Texels of a row.
        width: u32,
        /// Rows.
        height: u32,
        /// The frames' pixels of a row.
        frame_width: usize,
        /// The frames' rows.
        frame_height: usize,
    },
    /// A texture whose texels cannot become the frames' pixels.
    #[error("a texture of format {format:?} cannot be read: {reason}")]
    TextureFormat {
        /// The texture's format.
        format: wgpu::TextureFormat,
        /// What speaks against it.
        reason: String,
    },
    /// A texture that is not one picture.
    #[error("the texture {problem}")]
    Texture {
        /// What is wrong with it.
        problem: String,
    },
    /// wgpu refused it: it is of another device, destroyed, or mapped, or it is read and written at once.
    #[error("the application's buffer or texture was refused: {message}")]
    Refused {
        /// What wgpu said.
        message: String,
    },
}

/// Why work on an application's resources was not submitted.
#[derive(Debug)]
pub(crate) enum SubmitError {
    Resource(ResourceError),
    Device(DeviceError),
}

impl From<ResourceError> for SubmitError {
    fn from(error: ResourceError) -> Self {
        Self::Resource(error)
    }
}

impl From<DeviceError> for SubmitError {
    /// What is refused of such work is refused because of the resource: gpufeed's own part of it is valid.
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Refused { message } => Self::Resource(ResourceError::Refused { message }),
            other => Self::Device(other),
        }
    }
}

/// Checks a range of a buffer.
pub(super) fn check_buffer(
    what: &'static str,
    buffer: &wgpu::Buffer,
    usages: wgpu::BufferUsages,
    (offset, align): (u64, u64),
    needed: u64,
) -> Result<(), ResourceError> {
    let missing = usages - buffer.usage();
    if !missing.is_empty() {
        return Err(ResourceError::Usage { what, missing: names(missing.iter_names()) });
    }
    if !offset.is_multiple_of(align) {
        return Err(ResourceError::Alignment { what, offset, align });
    }
    match buffer.size() {
        size if offset.checked_add(needed).is_none_or(|end| end > size) => {
            Err(ResourceError::Size { what, size, offset, needed })
        }
        _ => Ok(()),
    }
}

/// Names of flags, in a list.
pub(super) fn names<F>(flags: impl Iterator<Item = (&'static str, F)>) -> String {
    flags.map(|(name, _)| name).collect::<Vec<_>>().join(" and ")
}

//! What a lane has for frames that are in no slot.

use super::super::kernel::UnpackKernel;

/// What a lane has for frames that are in no slot, once there were any.
#[derive(Default)]
pub(in super::super) struct Slotless {
    pub(super) textures: Option<TextureReader>,
    /// The records of a pipeline, which others find in their slot.
    pub(super) records: Option<wgpu::Buffer>,
}

/// Turns the textures of one lane into bytes.
pub(super) struct TextureReader {
    pub(super) kernel: UnpackKernel,
    /// Where the bytes go, where the lane has no place for them between staging and kernel.
    pub(super) bytes: Option<wgpu::Buffer>,
}

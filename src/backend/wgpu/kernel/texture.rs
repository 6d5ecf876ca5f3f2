//! The kernel of `shaders/unpack_texture.wgsl`: texels become the bytes of a frame.

use super::program::{At, Grid, Part, Program, StorageEntry};
use crate::error::OpenError;

const UNPACK: &str = include_str!("../../../../shaders/unpack_texture.wgsl");

/// A frame as the kernel writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Texels {
    pub height: usize,
    pub width: usize,
    /// Bytes of a pixel: 1, 3 or 4.
    pub channels: usize,
    /// Bytes of a row.
    pub pitch: usize,
    /// Whether blue comes first.
    pub bgr: bool,
}

impl Texels {
    /// Bytes of the frame.
    pub fn bytes(self) -> usize {
        self.pitch.saturating_mul(self.height)
    }
}

/// Turns textures into frames of one kind.
#[derive(Debug)]
pub(crate) struct UnpackKernel {
    program: Program,
    texels: Texels,
    most_groups: u32,
}

impl UnpackKernel {
    /// # Errors
    /// [`OpenError::Device`] where the device refuses the shader.
    pub fn new(device: &wgpu::Device, texels: Texels) -> Result<Self, OpenError> {
        let Texels { height, width, channels, pitch, bgr } = texels;
        let constants = [
            ("height", height as f64),
            ("width", width as f64),
            ("channels", channels as f64),
            ("pitch", pitch as f64),
            ("bgr", if bgr { 1.0 } else { 0.0 }),
        ];
        let entries: &[StorageEntry] = &[StorageEntry::Texture, StorageEntry::ReadWrite];
        let program = Program::new(device, UNPACK, "unpack", &constants, &[entries])?;
        Ok(Self { program, texels, most_groups: device.limits().max_compute_workgroups_per_dimension })
    }

    /// Records the writing of a texture's bytes to `to`.
    pub fn encode(
        &self,
        device: &wgpu::Device,
        encoder: &mut wgpu::CommandEncoder,
        texture: &wgpu::TextureView,
        to: At<'_>,
    ) {
        let words = self.texels.bytes().div_ceil(4);
        let bytes = to.range(&(0..4 * words as u64));
        let part = Part { samples: 0..1, group: self.program.bind_texture(device, texture, (to.buffer, &bytes)) };
        let desc = wgpu::ComputePassDescriptor { label: Some("gpufeed texture"), timestamp_writes: None };
        let mut pass = encoder.begin_compute_pass(&desc);
        pass.set_pipeline(&self.program.pipeline);
        part.dispatch(&mut pass, Grid::linear(words, self.most_groups));
    }
}

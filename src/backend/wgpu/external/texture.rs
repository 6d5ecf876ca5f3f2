//! Textures as frames.

use super::super::buffers::device_buffer;
use super::super::device::WgpuBackend;
use super::super::kernel::{Texels, UnpackKernel};
use super::super::lane::WgpuLane;
use super::error::{ResourceError, SubmitError, names};
use super::slotless::TextureReader;
use crate::error::{DeviceError, OpenError};
use crate::layout::{PixelFormat, SampleLayout};
use crate::preprocess::Preprocess;

impl WgpuLane {
    /// Bytes of device memory that reading a texture takes beside.
    pub(super) fn missing_texture_bytes(&self) -> u64 {
        let raw = matches!(self.spec.preprocess, Preprocess::Raw);
        if raw || self.device_bytes.is_some() || self.slotless.textures.is_some() { 0 } else { self.texture_bytes() }
    }

    fn texture_bytes(&self) -> u64 {
        (self.spec.layout.payload(1) as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT)
    }

    /// Makes what reads textures, the first time.
    ///
    /// # Errors
    /// [`DeviceError`].
    pub(super) fn make_texture_reader(&mut self, texels: Texels) -> Result<(), DeviceError> {
        if self.slotless.textures.is_some() {
            return Ok(());
        }
        let kernel = UnpackKernel::new(self.backend.device(), texels).map_err(|error| match error {
            OpenError::Device(error) => self.backend.check().err().unwrap_or(error),
            other => DeviceError::Refused { message: other.to_string() },
        })?;
        let bytes = match self.missing_texture_bytes() {
            0 => None,
            bytes => {
                let buffer = device_buffer(&self.backend, "gpufeed texture's bytes", bytes)?;
                self.note_device_bytes(bytes);
                Some(buffer)
            }
        };
        self.slotless.textures = Some(TextureReader { kernel, bytes });
        Ok(())
    }
}

/// A frame of this layout as a texture's texels.
///
/// # Errors
/// [`ResourceError::Fields`] and [`ResourceError::Texture`] where frames are no single pictures.
pub(super) fn texels(frame: &SampleLayout) -> Result<Texels, ResourceError> {
    let no_picture = || ResourceError::Texture { problem: format!("cannot become a frame: frames are {frame}") };
    let frame = frame.as_frame().ok_or_else(no_picture)?;
    let channels = frame.format().pixel_bytes().ok_or_else(no_picture)?;
    let bgr = matches!(frame.format(), PixelFormat::Bgr8 | PixelFormat::Bgra8);
    Ok(Texels { height: frame.height(), width: frame.width(), channels, pitch: frame.pitch(), bgr })
}

/// Whether a texture is one picture that can become a frame.
///
/// # Errors
/// [`ResourceError`] says what is in the way.
pub(super) fn check_texture(texels: Texels, texture: &wgpu::Texture) -> Result<(), ResourceError> {
    let missing = wgpu::TextureUsages::TEXTURE_BINDING - texture.usage();
    if !missing.is_empty() {
        return Err(ResourceError::Usage { what: "the texture", missing: names(missing.iter_names()) });
    }
    let problem = match texture.dimension() {
        wgpu::TextureDimension::D2 if texture.sample_count() > 1 => "has several samples a texel: resolve it first",
        // wgpu does not tell which level or layer a view is of.
        wgpu::TextureDimension::D2 if texture.mip_level_count() > 1 => "has several mip levels: give one that has one",
        wgpu::TextureDimension::D2 if texture.depth_or_array_layers() > 1 => {
            "has several layers: give one that has one"
        }
        wgpu::TextureDimension::D2 => "",
        _ => "does not have two dimensions",
    };
    if !problem.is_empty() {
        return Err(ResourceError::Texture { problem: problem.to_owned() });
    }
    check_format(texels, texture.format())?;
    let (width, height) = (texture.width(), texture.height());
    if (width as usize, height as usize) != (texels.width, texels.height) {
        let (frame_width, frame_height) = (texels.width, texels.height);
        return Err(ResourceError::TextureSize { width, height, frame_width, frame_height });
    }
    Ok(())
}

fn check_format(texels: Texels, format: wgpu::TextureFormat) -> Result<(), ResourceError> {
    use wgpu::TextureFormat as Format;
    let refused = |reason: String| Err(ResourceError::TextureFormat { format, reason });
    let (name, fits) = match format {
        Format::R8Unorm => ("one channel", texels.channels == 1),
        Format::Rgba8Unorm | Format::Bgra8Unorm | Format::Rgba8UnormSrgb | Format::Bgra8UnormSrgb => {
            ("four channels", texels.channels != 1)
        }
        _ => {
            return refused(
                "frames are read from R8Unorm, Rgba8Unorm and Bgra8Unorm, and the sRGB twins of these".into(),
            );
        }
    };
    if fits { Ok(()) } else { refused(format!("it has {name}, and the frames have {}", texels.channels)) }
}

/// The texture as its stored values: an sRGB one as its twin that is not.
///
/// # Errors
/// [`ResourceError::TextureFormat`] for an sRGB texture that was made without that view, and the device's error.
pub(super) fn stored_values(backend: &WgpuBackend, texture: &wgpu::Texture) -> Result<wgpu::TextureView, SubmitError> {
    let format = texture.format();
    let stored = format.remove_srgb_suffix();
    let desc = wgpu::TextureViewDescriptor {
        label: Some("gpufeed frame"),
        format: Some(stored),
        usage: Some(wgpu::TextureUsages::TEXTURE_BINDING),
        ..wgpu::TextureViewDescriptor::default()
    };
    backend.scope(|| texture.create_view(&desc)).map_err(|error| match error {
        DeviceError::Refused { .. } if stored != format => {
            let reason = format!("its stored values are read, and it was created without {stored:?} in `view_formats`");
            ResourceError::TextureFormat { format, reason }.into()
        }
        error => error.into(),
    })
}

//! What both kernels share: a compiled pipeline, its bind groups, and the shape of a dispatch.

use std::ops::Range;

use super::module::module;
use crate::error::{DeviceError, OpenError};

/// Threads of a workgroup, as the shaders declare.
pub(super) const GROUP: usize = 256;

/// How a shader uses a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum StorageEntry {
    Read,
    ReadWrite,
    Uniform,
    /// A texture of two dimensions, and no buffer.
    Texture,
}

impl StorageEntry {
    const fn binding_type(self) -> wgpu::BindingType {
        let ty = match self {
            Self::Read => wgpu::BufferBindingType::Storage { read_only: true },
            Self::ReadWrite => wgpu::BufferBindingType::Storage { read_only: false },
            Self::Uniform => wgpu::BufferBindingType::Uniform,
            Self::Texture => {
                return wgpu::BindingType::Texture {
                    sample_type: wgpu::TextureSampleType::Float { filterable: false },
                    view_dimension: wgpu::TextureViewDimension::D2,
                    multisampled: false,
                };
            }
        };
        wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None }
    }
}

/// Runs `make` and turns the device's complaints, which would otherwise panic, into an error.
///
/// # Errors
/// [`DeviceError::Refused`] with what the driver or the compiler said, or [`DeviceError::OutOfMemory`].
pub(super) fn scoped<T>(device: &wgpu::Device, what: &str, make: impl FnOnce() -> T) -> Result<T, OpenError> {
    let scopes = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation]
        .map(|filter| device.push_error_scope(filter));
    let made = make();
    // Innermost first; all of them have to be popped.
    let errors: Vec<_> = scopes.into_iter().rev().map(|scope| pollster::block_on(scope.pop())).collect();
    match errors.into_iter().flatten().next() {
        None => Ok(made),
        Some(wgpu::Error::OutOfMemory { .. }) => {
            Err(DeviceError::OutOfMemory { what: format!("the kernel `{what}`"), bytes: 0 }.into())
        }
        Some(error) => Err(DeviceError::Refused { message: format!("the kernel `{what}`: {error}") }.into()),
    }
}

/// A place in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    pub buffer: &'a wgpu::Buffer,
    /// In bytes.
    pub offset: u64,
}

impl At<'_> {
    /// Bytes that are counted from there, counted from the buffer's beginning.
    pub fn range(self, bytes: &Range<u64>) -> Range<u64> {
        self.offset + bytes.start..self.offset + bytes.end
    }
}

/// A compute pipeline and its bind groups' layouts.
#[derive(Debug)]
pub(super) struct Program {
    pub pipeline: wgpu::ComputePipeline,
    layouts: Vec<wgpu::BindGroupLayout>,
}

impl Program {
    /// Compiles `entry` of a shader with these overrides. `groups` are the bindings by group.
    ///
    /// # Errors
    /// As [`scoped`].
    pub fn new(
        device: &wgpu::Device,
        shader: &str,
        entry: &str,
        constants: &[(&str, f64)],
        groups: &[&[StorageEntry]],
    ) -> Result<Self, OpenError> {
        scoped(device, entry, || Self::compile(device, shader, entry, constants, groups))
    }

    fn compile(
        device: &wgpu::Device,
        shader: &str,
        entry: &str,
        constants: &[(&str, f64)],
        groups: &[&[StorageEntry]],
    ) -> Self {
        let label = Some(entry);
        let module = module(device, label, shader);
        let layouts: Vec<_> = groups.iter().map(|entries| group_layout(device, entry, entries)).collect();
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &layouts.iter().map(Some).collect::<Vec<_>>(),
            immediate_size: 0,
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label,
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(entry),
            // Every workgroup variable is written before it is read.
            compilation_options: wgpu::PipelineCompilationOptions {
                constants,
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        });
        Self { pipeline, layouts }
    }

    /// The first bind group, of these byte ranges, in the order of the bindings.
    pub fn bind(&self, device: &wgpu::Device, buffers: &[(&wgpu::Buffer, &Range<u64>)]) -> wgpu::BindGroup {
        self.bind_group(device, 0, buffers)
    }

    /// A bind group of these byte ranges, in the order of the bindings. `group` is one that the program was made with.
    pub fn bind_group(
        &self,
        device: &wgpu::Device,
        group: usize,
        buffers: &[(&wgpu::Buffer, &Range<u64>)],
    ) -> wgpu::BindGroup {
        self.bind_resources(device, group, buffers.iter().map(|&(buffer, range)| bytes_of(buffer, range)))
    }

    /// A bind group of a texture, and these bytes of a buffer.
    pub fn bind_texture(
        &self,
        device: &wgpu::Device,
        texture: &wgpu::TextureView,
        (buffer, range): (&wgpu::Buffer, &Range<u64>),
    ) -> wgpu::BindGroup {
        self.bind_resources(device, 0, [wgpu::BindingResource::TextureView(texture), bytes_of(buffer, range)])
    }

    fn bind_resources<'a>(
        &self,
        device: &wgpu::Device,
        group: usize,
        resources: impl IntoIterator<Item = wgpu::BindingResource<'a>>,
    ) -> wgpu::BindGroup {
        let entry = |(binding, resource)| wgpu::BindGroupEntry { binding, resource };
        let entries: Vec<_> = (0..).zip(resources).map(entry).collect();
        let layout = &self.layouts[group];
        device.create_bind_group(&wgpu::BindGroupDescriptor { label: Some("gpufeed"), layout, entries: &entries })
    }
}

/// A byte range of a buffer, to be bound.
fn bytes_of<'a>(buffer: &'a wgpu::Buffer, range: &Range<u64>) -> wgpu::BindingResource<'a> {
    wgpu::BindingResource::Buffer(wgpu::BufferBinding {
        buffer,
        offset: range.start,
        size: wgpu::BufferSize::new(range.end - range.start),
    })
}

fn group_layout(device: &wgpu::Device, label: &str, entries: &[StorageEntry]) -> wgpu::BindGroupLayout {
    let entry = |(binding, entry): (u32, &StorageEntry)| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: entry.binding_type(),
        count: None,
    };
    let entries: Vec<_> = (0..).zip(entries).map(entry).collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some(label), entries: &entries })
}

/// Room for one record of constants: a multiple of every device's uniform offset alignment.
const UNIFORM_STRIDE: u64 = 256;

/// Small constants, one record a dispatch. Written while the buffer is made: nothing is uploaded later.
#[derive(Debug)]
pub(super) struct Uniforms {
    pub buffer: wgpu::Buffer,
    bytes: u64,
}

impl Uniforms {
    /// # Errors
    /// As [`scoped`].
    pub fn new<const N: usize>(
        device: &wgpu::Device,
        what: &str,
        records: impl Iterator<Item = [u64; N]>,
    ) -> Result<Self, OpenError> {
        let mut words = Vec::new();
        for values in records {
            // What is counted here is bound or dispatched, and so within 32 bits: `segments` saw to it.
            words.extend(values.map(|value| u32::try_from(value).unwrap_or(u32::MAX)));
            words.resize(words.len().next_multiple_of(UNIFORM_STRIDE as usize / 4), 0);
        }
        let buffer = scoped(device, what, || uniform_buffer(device, bytemuck::cast_slice(&words)))?;
        Ok(Self { buffer, bytes: 4 * N as u64 })
    }

    /// The bytes of a record.
    pub fn range(&self, record: usize) -> Range<u64> {
        let start = record as u64 * UNIFORM_STRIDE;
        start..start + self.bytes
    }
}

fn uniform_buffer(device: &wgpu::Device, bytes: &[u8]) -> wgpu::Buffer {
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("gpufeed constants"),
        size: bytes.len() as u64,
        usage: wgpu::BufferUsages::UNIFORM,
        mapped_at_creation: true,
    });
    if let Ok(mut view) = buffer.get_mapped_range_mut(..) {
        view.copy_from_slice(bytes);
    }
    buffer.unmap();
    buffer
}

/// A segment's bind group.
#[derive(Debug)]
pub(super) struct Part {
    /// The samples, counted within the batch.
    pub samples: Range<usize>,
    /// Their bytes.
    pub group: wgpu::BindGroup,
}

impl Part {
    /// How many of a batch's first `samples` samples are here.
    pub fn count(&self, samples: usize) -> usize {
        samples.saturating_sub(self.samples.start).min(self.samples.len())
    }

    pub fn dispatch(&self, pass: &mut wgpu::ComputePass<'_>, grid: Grid) {
        let Grid([x, y, z]) = grid;
        if x > 0 && y > 0 && z > 0 {
            pass.set_bind_group(0, &self.group, &[]);
            pass.dispatch_workgroups(x, y, z);
        }
    }
}

/// Workgroups by dimension, each within the device's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid(pub [u32; 3]);

impl Grid {
    /// At least enough workgroups for so many threads, in x and y.
    pub fn linear(threads: usize, most: u32) -> Self {
        let [x, y] = fold(threads.div_ceil(GROUP), most);
        Self([x, y, 1])
    }

    /// `groups` workgroups in x for each sample, the samples in y and z.
    pub fn per_sample(groups: usize, samples: usize, most: u32) -> Self {
        let [y, z] = fold(samples, most);
        Self([u32::try_from(groups).unwrap_or(most), y, z])
    }
}

/// Two factors whose product is at least `count`, and less than the second above it.
fn fold(count: usize, most: u32) -> [u32; 2] {
    let rows = count.div_ceil((most as usize).max(1)).max(1);
    [count.div_ceil(rows) as u32, rows as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_grids_fold_into_another_dimension() {
        assert_eq!(Grid::linear(1, 65_535), Grid([1, 1, 1]));
        assert_eq!(Grid::linear(65_535 * 256, 65_535), Grid([65_535, 1, 1]));
        assert_eq!(Grid::linear(65_535 * 256 + 1, 65_535), Grid([32_768, 2, 1]));
        assert_eq!(Grid::per_sample(3, 70_000, 65_535), Grid([3, 35_000, 2]));
        assert_eq!(Grid::per_sample(3, 0, 65_535).0[1], 0);
        for count in 1..500usize {
            let [x, y] = fold(count, 7);
            assert!(x <= 7 || y > 7 || x * y >= count as u32);
            assert!((x * y) as usize >= count && ((x * y) as usize) < count + y as usize);
        }
    }
}

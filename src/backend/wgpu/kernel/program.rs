//! What both kernels share: a compiled pipeline, its bind groups, and the shape of a dispatch.

use std::ops::Range;

use crate::error::{DeviceError, OpenError};

/// Threads of a workgroup, as the shaders declare.
pub(super) const GROUP: usize = 256;

/// How a shader uses a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum StorageEntry {
    Read,
    ReadWrite,
    Uniform,
}

impl StorageEntry {
    const fn binding_type(self) -> wgpu::BindingType {
        let ty = match self {
            Self::Read => wgpu::BufferBindingType::Storage { read_only: true },
            Self::ReadWrite => wgpu::BufferBindingType::Storage { read_only: false },
            Self::Uniform => wgpu::BufferBindingType::Uniform,
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

/// A compute pipeline with one bind group.
#[derive(Debug)]
pub(super) struct Program {
    pub pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

impl Program {
    /// Compiles `entry` of a shader with these overrides.
    ///
    /// # Errors
    /// As [`scoped`].
    pub fn new(
        device: &wgpu::Device,
        shader: &str,
        entry: &str,
        constants: &[(&str, f64)],
        entries: &[StorageEntry],
    ) -> Result<Self, OpenError> {
        scoped(device, entry, || Self::compile(device, shader, entry, constants, entries))
    }

    fn compile(
        device: &wgpu::Device,
        shader: &str,
        entry: &str,
        constants: &[(&str, f64)],
        entries: &[StorageEntry],
    ) -> Self {
        let label = Some(entry);
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label,
            source: wgpu::ShaderSource::Wgsl(shader.into()),
        });
        let entries: Vec<_> = (0..)
            .zip(entries)
            .map(|(binding, entry)| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: entry.binding_type(),
                count: None,
            })
            .collect();
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
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
        Self { pipeline, layout }
    }

    /// A bind group of these byte ranges, in the order of the bindings.
    pub fn bind(&self, device: &wgpu::Device, buffers: &[(&wgpu::Buffer, &Range<u64>)]) -> wgpu::BindGroup {
        let entries: Vec<_> = (0..)
            .zip(buffers)
            .map(|(binding, &(buffer, range))| wgpu::BindGroupEntry {
                binding,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: range.start,
                    size: wgpu::BufferSize::new(range.end - range.start),
                }),
            })
            .collect();
        let descriptor = wgpu::BindGroupDescriptor { label: Some("gpufeed"), layout: &self.layout, entries: &entries };
        device.create_bind_group(&descriptor)
    }
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

//! Steps of an application's own: commands recorded into a batch's submission, behind gpufeed's kernels or instead of them.

use std::fmt;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use std::panic::{AssertUnwindSafe, catch_unwind};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use std::sync::Arc;

use super::info::Api;
use crate::error::Unsupported;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use crate::error::{DeviceError, SourceError, panic_message};
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use crate::layout::BatchLayout;
#[cfg(any(feature = "wgpu", feature = "cuda"))]
use crate::preprocess::OutputLayout;
use crate::preprocess::Preprocess;
use crate::strategy::Strategy;

#[cfg(feature = "wgpu")]
type OnWgpu = dyn Fn(&mut wgpu::CommandEncoder, &WgpuBatch<'_>) -> Result<(), SourceError> + Send + Sync;
#[cfg(feature = "cuda")]
type OnCuda = dyn Fn(&cudarc::driver::CudaStream, &CudaBatch<'_>) -> Result<(), SourceError> + Send + Sync;

/// An application's own commands for every batch of a loader or feeder: they run behind gpufeed's own, in the same submission, and before
/// anything that uses the batch.
///
/// With [`Raw`](Preprocess::Raw), [`Normalize`](Preprocess::Normalize) or [`Pipeline`](Preprocess::Pipeline) a step changes what gpufeed
/// made, in place. With [`Own`](Preprocess::Own) nothing else makes the first field's tensor: the step does, of the batch's bytes on the
/// device.
///
/// The closure is called on the thread that submits, once a batch, and must not wait for the device. An error that it returns, a panic, and
/// whatever the device finds wrong with its commands cost that batch, which ends in [`DeviceError::Step`] or [`DeviceError::Refused`];
/// nothing of it is submitted on wgpu, and the next batch is tried as if nothing had been.
///
/// What the closure is given is the lane's, and used again for other batches: **it is for this call's commands alone**. On wgpu a clone of a
/// buffer may be kept, to cache a bind group by it for example, and stays valid memory; commands that are submitted elsewhere find any batch
/// in it. Who destroys such a buffer loses every batch that would be written there, each with an error. Addresses on CUDA are those of memory
/// that is freed with the loader and its batches, and whatever uses them is `unsafe` in the application.
///
/// [`fingerprints`](crate::LoaderOptions::fingerprints) are of the bytes that arrived, and the device's [times](crate::backend::Lane::gpu_times) are
/// those of gpufeed's own commands. Strategies that read the source's memory directly have no batch to give to a step, and refuse one; so does
/// the host.
///
/// ```
/// use gpufeed::backend::Step;
/// use gpufeed::backend::wgpu::WgpuBackend;
/// use gpufeed::{Feeder, FeederOptions, Normalize, SampleLayout, wgpu};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let Ok(backend) = WgpuBackend::open("vulkan:0") else { return Ok(()) };
/// // Every value becomes 0 or 1.
/// let shader = "
///     @group(0) @binding(0) var<storage, read_write> tensor: array<f32>;
///     @compute @workgroup_size(64) fn threshold(@builtin(global_invocation_id) id: vec3<u32>) {
///         if id.x < arrayLength(&tensor) { tensor[id.x] = select(0.0, 1.0, tensor[id.x] > 0.5); }
///     }";
/// let module = backend.device().create_shader_module(wgpu::ShaderModuleDescriptor {
///     label: None,
///     source: wgpu::ShaderSource::Wgsl(shader.into()),
/// });
/// let threshold = backend.device().create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
///     label: None,
///     layout: None,
///     module: &module,
///     entry_point: None,
///     compilation_options: wgpu::PipelineCompilationOptions::default(),
///     cache: None,
/// });
/// let step = Step::wgpu(move |encoder, batch| {
///     let tensor = batch.tensor(0).ok_or("the images are on the device")?;
///     let elements = batch.tensors.first().of(batch.samples).elements() as u32;
///     let group = batch.device.create_bind_group(&wgpu::BindGroupDescriptor {
///         label: None,
///         layout: &threshold.get_bind_group_layout(0),
///         entries: &[wgpu::BindGroupEntry { binding: 0, resource: wgpu::BindingResource::Buffer(tensor) }],
///     });
///     let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
///     pass.set_pipeline(&threshold);
///     pass.set_bind_group(0, &group, &[]);
///     pass.dispatch_workgroups(elements.div_ceil(64), 1, 1);
///     Ok(())
/// });
/// let options =
///     FeederOptions { preprocess: Normalize::unit(1).into(), step: Some(step), ..FeederOptions::default() };
/// let mut feeder = Feeder::new(&backend, SampleLayout::image(1, 4, 1)?, options)?;
/// assert_eq!(feeder.feed(&[&[0, 127, 128, 255]])?.read_f32()?, [0.0, 0.0, 1.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Step(Recorder);

#[derive(Clone)]
enum Recorder {
    #[cfg(feature = "wgpu")]
    Wgpu(Arc<OnWgpu>),
    #[cfg(feature = "cuda")]
    Cuda(Arc<OnCuda>),
}

/// A batch whose commands are being recorded: what a [`Step`] on wgpu reads and writes.
#[cfg(feature = "wgpu")]
#[derive(Debug)]
#[non_exhaustive]
pub struct WgpuBatch<'a> {
    /// The device, for bind groups.
    pub device: &'a wgpu::Device,
    /// The bytes that arrived, laid out as [`layout`](Self::layout) says from this byte of the buffer on; of frames that were on the GPU already
    /// the first field alone. `None` where no buffer between staging and tensor belongs to the lane: nothing is computed, or kernels read where
    /// bytes arrive. A lane of [`Preprocess::Own`] always has it.
    pub input: Option<(&'a wgpu::Buffer, u64)>,
    /// How samples are laid out in a slot.
    pub layout: &'a BatchLayout,
    /// The tensors, from this byte of the buffer on. The buffer is the batch's [`Tensor`](crate::backend::Tensor), or the application's own target.
    pub output: (&'a wgpu::Buffer, u64),
    /// Where they lie from there on.
    pub tensors: &'a OutputLayout,
    /// How many of the batch's samples there are: the first.
    pub samples: usize,
}

#[cfg(feature = "wgpu")]
impl<'a> WgpuBatch<'a> {
    /// The tensor of the field with this number, of all samples there are; `None` for a field on the host.
    #[must_use]
    pub fn tensor(&self, field: usize) -> Option<wgpu::BufferBinding<'a>> {
        let desc = self.tensors.field(field)?.of(self.samples);
        Some(binding(self.output, desc.offset, desc.byte_len()))
    }

    /// The bytes that arrived of the field with this number, of all samples there are; `None` without an [`input`](Self::input), and for a field
    /// that is not in it.
    #[must_use]
    pub fn field(&self, field: usize) -> Option<wgpu::BufferBinding<'a>> {
        let (input, span) = (self.input?, self.layout.spans().get(field)?);
        let bytes = span.bytes.saturating_mul(self.samples);
        self.tensors.field(field)?;
        let binding = binding(input, span.offset, bytes);
        (binding.offset + binding.size.map_or(0, u64::from) <= input.0.size()).then_some(binding)
    }
}

/// Bytes that begin so far behind a place, in whole words.
#[cfg(feature = "wgpu")]
fn binding((buffer, start): (&wgpu::Buffer, u64), offset: usize, bytes: usize) -> wgpu::BufferBinding<'_> {
    let bytes = (bytes as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
    wgpu::BufferBinding { buffer, offset: start + offset as u64, size: wgpu::BufferSize::new(bytes) }
}

/// A batch whose work is being queued: what a [`Step`] on CUDA reads and writes, by addresses on the device. The stream's context is current.
#[cfg(feature = "cuda")]
#[derive(Debug)]
#[non_exhaustive]
pub struct CudaBatch<'a> {
    /// The bytes that arrived, laid out as [`layout`](Self::layout) says. `None` with [`Preprocess::Raw`], where they are the tensor.
    pub input: Option<u64>,
    /// How samples are laid out in a slot.
    pub layout: &'a BatchLayout,
    /// The tensors.
    pub output: u64,
    /// Where they lie from there on.
    pub tensors: &'a OutputLayout,
    /// How many of the batch's samples there are: the first.
    pub samples: usize,
}

impl Step {
    /// A step that is recorded on wgpu. The encoder is the step's own: its commands run behind gpufeed's and are submitted with them.
    #[cfg(feature = "wgpu")]
    #[must_use]
    pub fn wgpu(
        record: impl Fn(&mut wgpu::CommandEncoder, &WgpuBatch<'_>) -> Result<(), SourceError> + Send + Sync + 'static,
    ) -> Self {
        Self(Recorder::Wgpu(Arc::new(record)))
    }

    /// A step that is queued on CUDA. What it queues on the stream runs behind gpufeed's kernels; the batch counts as written when that has
    /// ended.
    #[cfg(feature = "cuda")]
    #[must_use]
    pub fn cuda(
        queue: impl Fn(&cudarc::driver::CudaStream, &CudaBatch<'_>) -> Result<(), SourceError> + Send + Sync + 'static,
    ) -> Self {
        Self(Recorder::Cuda(Arc::new(queue)))
    }

    /// Has the commands of a batch recorded.
    ///
    /// # Errors
    /// [`DeviceError::Step`].
    #[cfg(feature = "wgpu")]
    pub(super) fn record(&self, encoder: &mut wgpu::CommandEncoder, batch: &WgpuBatch<'_>) -> Result<(), DeviceError> {
        match &self.0 {
            Recorder::Wgpu(record) => caught(|| record(encoder, batch)),
            #[cfg(feature = "cuda")]
            Recorder::Cuda(_) => Err(DeviceError::Step { reason: "it is one of CUDA".to_owned() }),
        }
    }

    /// Has the work of a batch queued.
    ///
    /// # Errors
    /// [`DeviceError::Step`].
    #[cfg(feature = "cuda")]
    pub(super) fn queue(&self, stream: &cudarc::driver::CudaStream, batch: &CudaBatch<'_>) -> Result<(), DeviceError> {
        match &self.0 {
            Recorder::Cuda(queue) => caught(|| queue(stream, batch)),
            #[cfg(feature = "wgpu")]
            Recorder::Wgpu(_) => Err(DeviceError::Step { reason: "it is one of wgpu".to_owned() }),
        }
    }

    /// What it is recorded on, and whether that is CUDA.
    fn kind(&self) -> (&'static str, bool) {
        match self.0 {
            #[cfg(feature = "wgpu")]
            Recorder::Wgpu(_) => ("wgpu", false),
            #[cfg(feature = "cuda")]
            Recorder::Cuda(_) => ("CUDA", true),
        }
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Step(..)")
    }
}

/// Runs an application's closure, whose errors and panics become values.
#[cfg(any(feature = "wgpu", feature = "cuda"))]
fn caught(call: impl FnOnce() -> Result<(), SourceError>) -> Result<(), DeviceError> {
    let reason = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => format!("it panicked: {}", panic_message(panic)),
    };
    Err(DeviceError::Step { reason })
}

/// Refuses what a device of this kind cannot record, and a tensor that nothing makes.
pub(super) fn check_step(
    step: Option<&Step>,
    preprocess: &Preprocess,
    strategy: Strategy,
    api: Api,
) -> Result<(), Unsupported> {
    let refused = |reason: String| Err(Unsupported { strategy, reason });
    let Some(step) = step else {
        return match preprocess {
            Preprocess::Own(_) => refused("the tensor is to be made by a step, and there is none".to_owned()),
            _ => Ok(()),
        };
    };
    let (kind, is_cuda) = step.kind();
    match api == Api::Cuda {
        other if other != is_cuda || api == Api::Host => {
            refused(format!("the step is one of {kind}, which this device is not reached through"))
        }
        _ if strategy.is_direct() => {
            refused("it reads the source's memory in place, and a step is given batches out of slots".to_owned())
        }
        _ => Ok(()),
    }
}

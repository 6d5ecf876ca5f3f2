//! Tensors in device buffers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::device::WgpuBackend;
use super::kernel::{Bindings, GatherOutput, fingerprint_bytes};
use crate::backend::{Api, Tensor};
use crate::error::DeviceError;
use crate::preprocess::{Fingerprint, TensorDesc};

/// A tensor in a device buffer. Clones are the same memory.
#[derive(Clone, Debug)]
pub struct WgpuTensor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    backend: WgpuBackend,
    buffer: wgpu::Buffer,
    fingerprints: Option<wgpu::Buffer>,
    /// One for each buffer that kernels may read: the lane's own, or every slot.
    bindings: Vec<Bindings>,
    /// What writes it, or wrote it last.
    submission: Mutex<Option<wgpu::SubmissionIndex>>,
    /// Of a lane whose kernels gather.
    gather: Option<GatherOutput>,
    writing: Writing,
}

/// The submissions in flight that write a tensor.
#[derive(Clone, Debug, Default)]
pub(super) struct Writing(Arc<AtomicUsize>);

impl Writing {
    /// One more.
    pub(super) fn begin(&self) -> Self {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.clone()
    }

    /// One less.
    pub(super) fn end(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

/// How long a caller that waits for a tensor looks out before it sleeps: an interrupt's way through the driver takes longer than a
/// small batch.
const LOOK_OUT: Duration = Duration::from_micros(150);

impl WgpuTensor {
    pub(super) fn new(
        backend: WgpuBackend,
        buffer: wgpu::Buffer,
        fingerprints: Option<wgpu::Buffer>,
        bindings: Vec<Bindings>,
        gather: Option<GatherOutput>,
    ) -> Self {
        Self(Arc::new(Inner {
            backend,
            buffer,
            fingerprints,
            bindings,
            gather,
            submission: Mutex::new(None),
            writing: Writing::default(),
        }))
    }

    /// The buffer, with usages `STORAGE`, `COPY_SRC` and `COPY_DST`. Its first [`TensorDesc::byte_len`] bytes are the tensor; the rest
    /// is padding.
    #[must_use]
    pub fn buffer(&self) -> &wgpu::Buffer {
        &self.0.buffer
    }

    pub(crate) fn queue(&self) -> &wgpu::Queue {
        self.0.backend.queue()
    }

    pub(super) fn writing(&self) -> &Writing {
        &self.0.writing
    }

    pub(super) fn submission(&self) -> MutexGuard<'_, Option<wgpu::SubmissionIndex>> {
        self.0.submission.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bindings that read what came from this slot.
    pub(super) fn bindings(&self, slot: usize) -> Option<&Bindings> {
        match self.0.bindings.as_slice() {
            [shared] => Some(shared),
            each => each.get(slot),
        }
    }

    /// What a kernel that gathers writes.
    pub(super) fn gather(&self) -> Option<&GatherOutput> {
        self.0.gather.as_ref()
    }

    /// Queues a copy of the first `bytes` bytes to another buffer of the device.
    pub(crate) fn copy_to(
        &self,
        target: &wgpu::Buffer,
        offset: u64,
        bytes: usize,
    ) -> Result<wgpu::SubmissionIndex, DeviceError> {
        let backend = &self.0.backend;
        let size = (bytes as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
        backend.scope(|| {
            let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(&self.0.buffer, 0, target, offset, size);
            backend.queue().submit([encoder.finish()])
        })
    }
}

impl crate::backend::sealed::Sealed for WgpuTensor {}

impl Tensor for WgpuTensor {
    fn needs_pump(&self) -> bool {
        self.0.backend.api() == Api::Gl
    }

    fn wait(&self) -> Result<(), DeviceError> {
        let (backend, start) = (&self.0.backend, Instant::now());
        while !self.0.writing.is_over() && start.elapsed() < LOOK_OUT {
            backend.look()?;
        }
        let submission = self.submission().clone();
        match submission {
            Some(submission) if !self.0.writing.is_over() => {
                backend.wait_until(Some(&submission), || self.0.writing.is_over())
            }
            _ => backend.check(),
        }
    }

    fn is_written(&self) -> Result<bool, DeviceError> {
        if !self.0.writing.is_over() {
            self.0.backend.look()?;
        }
        // A device that is lost forgets what it was to write, which then looks over.
        let over = self.0.writing.is_over();
        if over {
            self.0.backend.check()?;
        }
        Ok(over)
    }

    fn read(&self, desc: &TensorDesc) -> Result<Vec<u8>, DeviceError> {
        read_back(&self.0.backend, &self.0.buffer, 0, desc.byte_len())
    }

    fn fingerprints(&self, samples: usize) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        let Some(sums) = &self.0.fingerprints else { return Ok(None) };
        let bytes = usize::try_from(fingerprint_bytes(samples)).unwrap_or(usize::MAX);
        let bytes = read_back(&self.0.backend, sums, 0, bytes)?;
        Ok(Some(bytes.as_chunks().0.iter().take(samples).map(|&word| u64::from_le_bytes(word)).collect()))
    }
}

/// Copies `bytes` bytes of a buffer, from `start` on, to the CPU.
pub(super) fn read_back(
    backend: &WgpuBackend,
    from: &wgpu::Buffer,
    start: u64,
    bytes: usize,
) -> Result<Vec<u8>, DeviceError> {
    let size = (bytes as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
    let mapped = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&mapped);
    let staging = backend.allocate("a buffer to read back to", size, || {
        let staging = backend.device().create_buffer(&wgpu::BufferDescriptor {
            label: Some("gpufeed read back"),
            size,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(from, start, &staging, 0, size);
        encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., move |_| flag.store(true, Ordering::Release));
        backend.queue().submit([encoder.finish()]);
        staging
    })?;
    backend.wait_until(None, || mapped.load(Ordering::Acquire))?;
    let view = staging.slice(..).get_mapped_range();
    let view = view.map_err(|error| backend.refused(format!("reading back failed: {error}")))?;
    Ok(view[..bytes].to_vec())
}

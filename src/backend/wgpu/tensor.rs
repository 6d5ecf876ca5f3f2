//! Tensors in device buffers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::device::WgpuBackend;
use super::kernel::{Bindings, GatherOutput, fingerprint_bytes};
use super::native::RawBuffer;
use super::work::{Ended, Work};
use crate::backend::{Api, LOOK_OUT, Tensor};
use crate::error::DeviceError;
use crate::preprocess::{Fingerprint, TensorDesc};

/// A tensor in a device buffer. Clones are the same memory.
#[derive(Clone, Debug)]
pub struct WgpuTensor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The application's device.
    backend: WgpuBackend,
    /// Counted within the lane that made it.
    index: usize,
    memory: TensorMemory,
    fingerprints: Option<wgpu::Buffer>,
    /// One for each buffer that kernels may read: the lane's own, or every slot.
    bindings: Vec<Bindings>,
    /// What writes it, or wrote it last.
    work: Mutex<Option<Work>>,
    /// Of a tensor that another queue writes: set when all has ended that the application had submitted when it gave it back.
    last_use: Mutex<Option<Ended>>,
    /// Of a lane whose kernels gather.
    gather: Option<GatherOutput>,
}

/// Memory that a lane writes and the application reads.
#[derive(Debug)]
pub(super) struct TensorMemory {
    /// On the application's device.
    pub buffer: wgpu::Buffer,
    /// The byte at which it begins there.
    pub offset: u64,
    /// Whether it is the application's own, which gets what it asked for only: no geometry of a pipeline.
    pub is_given: bool,
    /// Where another device writes it.
    pub written: Option<Written>,
}

/// The same memory on the device whose queue writes it.
#[derive(Debug)]
pub(super) struct Written {
    pub backend: WgpuBackend,
    pub buffer: wgpu::Buffer,
    pub raw: RawBuffer,
}

impl TensorMemory {
    /// What is written.
    pub(super) fn target(&self) -> &wgpu::Buffer {
        self.written.as_ref().map_or(&self.buffer, |written| &written.buffer)
    }
}

impl WgpuTensor {
    pub(super) fn new(
        backend: WgpuBackend,
        index: usize,
        memory: TensorMemory,
        fingerprints: Option<wgpu::Buffer>,
        bindings: Vec<Bindings>,
        gather: Option<GatherOutput>,
    ) -> Self {
        let (work, last_use) = (Mutex::new(None), Mutex::new(None));
        Self(Arc::new(Inner { backend, index, memory, fingerprints, bindings, work, last_use, gather }))
    }

    /// The buffer, with usages `STORAGE`, `COPY_SRC` and `COPY_DST`. A tensor is its [`TensorDesc::byte_len`] bytes from its
    /// [`TensorDesc::offset`] on; the rest is padding.
    #[must_use]
    pub fn buffer(&self) -> &wgpu::Buffer {
        &self.0.memory.buffer
    }

    /// The buffer as the lane's own device has it.
    pub(super) fn target(&self) -> &wgpu::Buffer {
        self.0.memory.target()
    }

    /// The byte of it at which the tensor begins: zero unless the buffer is an application's.
    pub(super) fn target_offset(&self) -> u64 {
        self.0.memory.offset
    }

    /// Whether the buffer is the application's own.
    pub(super) fn is_given(&self) -> bool {
        self.0.memory.is_given
    }

    /// Of a tensor that another queue than wgpu's writes: its memory, to be copied to.
    pub(super) fn raw(&self) -> Option<&RawBuffer> {
        self.0.memory.written.as_ref().map(|written| &written.raw)
    }

    /// The device that writes it.
    fn writer(&self) -> &WgpuBackend {
        self.0.memory.written.as_ref().map_or(&self.0.backend, |written| &written.backend)
    }

    /// The tensor's number within the lane that made it, from zero in the order they were made. No other tensor of the lane gets it.
    #[must_use]
    pub fn index(&self) -> usize {
        self.0.index
    }

    pub(crate) fn queue(&self) -> &wgpu::Queue {
        self.0.backend.queue()
    }

    /// This work writes it next.
    pub(super) fn written_by(&self, work: Work) {
        *self.0.work.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
    }

    /// What writes it, or wrote it last.
    pub(super) fn work(&self) -> Option<Work> {
        self.0.work.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What may not have written it yet.
    fn unfinished(&self) -> Option<Work> {
        self.work().filter(|work| !work.has_ended())
    }

    fn last_use(&self) -> MutexGuard<'_, Option<Ended>> {
        self.0.last_use.lock().unwrap_or_else(PoisonError::into_inner)
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
            encoder.copy_buffer_to_buffer(self.buffer(), 0, target, offset, size);
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
        let (backend, start) = (self.writer(), Instant::now());
        let Some(work) = self.unfinished() else { return backend.check() };
        while !work.has_ended() && start.elapsed() < LOOK_OUT {
            backend.look()?;
        }
        // What is lost ends too.
        backend.wait_for(&work).and_then(|()| backend.check())
    }

    fn is_written(&self) -> Result<bool, DeviceError> {
        let unfinished = self.unfinished();
        if unfinished.is_some() {
            self.writer().look()?;
        }
        // A device that is lost forgets what it was to write, which then looks over.
        let over = unfinished.is_none_or(|work| work.has_ended());
        if over {
            self.0.backend.check()?;
        }
        Ok(over)
    }

    fn is_idle(&self) -> Result<bool, DeviceError> {
        // Nothing is polled here: that runs callbacks, and the caller may hold what they need.
        Ok(self.last_use().as_ref().is_none_or(Ended::is_set))
    }

    fn must_be_idle(&self) -> bool {
        self.0.memory.written.is_some()
    }

    fn given_back(&self) {
        if self.must_be_idle() {
            let ended = Ended::default();
            let done = ended.on_drop(None);
            *self.last_use() = Some(ended);
            self.queue().on_submitted_work_done(move || drop(done));
        }
    }

    fn read(&self, desc: &TensorDesc) -> Result<Vec<u8>, DeviceError> {
        read_back(&self.0.backend, self.buffer(), desc.offset as u64, desc.byte_len())
    }

    fn fingerprints(&self, count: usize) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        let Some(sums) = &self.0.fingerprints else { return Ok(None) };
        let bytes = usize::try_from(fingerprint_bytes(count)).unwrap_or(usize::MAX);
        let bytes = read_back(&self.0.backend, sums, 0, bytes)?;
        Ok(Some(bytes.as_chunks().0.iter().take(count).map(|&word| u64::from_le_bytes(word)).collect()))
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
    let mapped = Ended::default();
    let (staging, ticket) = backend.allocate("a buffer to read back to", size, || {
        let staging = backend.device().create_buffer(&wgpu::BufferDescriptor {
            label: Some("gpufeed read back"),
            size,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(from, start, &staging, 0, size);
        let ticket = backend.submit([encoder.finish()])?;
        let done = mapped.on_drop(None);
        staging.map_async(wgpu::MapMode::Read, .., move |_| drop(done));
        Ok((staging, ticket))
    })??;
    backend.wait_until(ticket, || mapped.is_set())?;
    let view = staging.slice(..).get_mapped_range();
    let view = view.map_err(|error| backend.refused(format!("reading back failed: {error}")))?;
    Ok(view[..bytes].to_vec())
}

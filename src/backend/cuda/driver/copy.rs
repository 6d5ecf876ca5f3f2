//! Copies between host and device memory.

use cudarc::driver::{CudaStream, DriverError, result, sys};

use super::context::{bind, wait_for};
use super::{DeviceMemory, Event, Memory};

/// A slot's memory while the device reads it: it comes back when the event is reached. Dropped before that, it waits.
#[derive(Debug)]
pub(in super::super) struct Copying {
    /// `None` only while it is given back.
    held: Option<(Memory, Event)>,
}

impl Copying {
    /// Whether the device has finished reading.
    pub(in super::super) fn is_done(&self) -> Result<bool, DriverError> {
        self.held.as_ref().map_or(Ok(true), |(_, event)| event.is_reached())
    }

    /// Waits for the device and gives the memory back, with the event to use again.
    pub(in super::super) fn finish(mut self) -> Result<(Memory, Event), DriverError> {
        match &self.held {
            Some((_, event)) => event.wait()?,
            None => return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE)),
        }
        self.held.take().ok_or(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE))
    }

    /// Makes a stream wait for the copy.
    pub(in super::super) fn hold(&self, stream: &CudaStream) -> Result<(), DriverError> {
        self.held.as_ref().map_or(Ok(()), |(_, event)| event.hold(stream))
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        if let Some((_, event)) = &self.held {
            // An error is sticky: then nothing runs on the device any more, and the memory is no longer read.
            let _ = event.wait();
        }
    }
}

/// A copy that was not queued.
pub(in super::super) struct NotCopied {
    pub(in super::super) error: DriverError,
    pub(in super::super) memory: Memory,
    pub(in super::super) event: Event,
}

/// Queues the copy of the first `bytes` bytes of a slot's memory to the start of `to`. Where the memory is pageable the call
/// itself copies it to the driver's own staging memory.
pub(in super::super) fn upload(
    stream: &CudaStream,
    memory: Memory,
    event: Event,
    to: &DeviceMemory,
    bytes: usize,
) -> Result<Copying, NotCopied> {
    match queue(stream, &memory, &event, to, bytes) {
        Ok(()) => Ok(Copying { held: Some((memory, event)) }),
        Err(error) => Err(NotCopied { error, memory, event }),
    }
}

fn queue(
    stream: &CudaStream,
    memory: &Memory,
    event: &Event,
    to: &DeviceMemory,
    bytes: usize,
) -> Result<(), DriverError> {
    let (from, len) = memory.bytes();
    if bytes > len || bytes > to.bytes() {
        return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
    }
    bind(stream.context())?;
    // SAFETY: both ranges are valid for `bytes` bytes (checked above). The caller owns `memory` until the event recorded below
    // has been reached, or, where that fails, until the stream is idle.
    unsafe { sys::cuMemcpyHtoDAsync_v2(to.address, from.cast(), bytes, stream.cu_stream()) }.result()?;
    event.record(stream).inspect_err(|_| {
        // Nothing tells when the copy ends, so wait here; an error means that nothing runs any more.
        let _ = wait_for(stream);
    })
}

/// Queues the copy of a batch's list, its offsets or its geometries, out of pageable memory to byte `start` of `to`. The driver has taken
/// it when this returns. (From page-locked memory, which the caller must not use here, it would read it later.)
pub(in super::super) fn upload_list<T: bytemuck::NoUninit>(
    stream: &CudaStream,
    list: &Vec<T>,
    (to, start): (&DeviceMemory, usize),
) -> Result<(), DriverError> {
    let list: &[u8] = bytemuck::cast_slice(list.as_slice());
    if start.checked_add(list.len()).is_none_or(|end| end > to.bytes()) {
        return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
    }
    bind(stream.context())?;
    // SAFETY: both ranges are valid for the list's bytes (checked above). From pageable memory the driver copies to its own staging
    // memory before the call returns, so the list need not live longer.
    unsafe { result::memcpy_htod_async(to.address + start as u64, list, stream.cu_stream()) }
}

/// Queues the copy of `bytes` bytes from byte `start` of device memory to byte `offset` of other device memory.
pub(in super::super) fn copy_on_device(
    stream: &CudaStream,
    (from, start): (&DeviceMemory, usize),
    (to, offset): (&DeviceMemory, usize),
    bytes: usize,
) -> Result<(), DriverError> {
    let fits = |memory: &DeviceMemory, at: usize| at.checked_add(bytes).is_some_and(|end| end <= memory.bytes());
    if !fits(from, start) || !fits(to, offset) {
        return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
    }
    bind(stream.context())?;
    // SAFETY: both ranges were checked above. They are of two allocations, which outlive the copy: whoever owns them waits for the
    // stream.
    unsafe {
        result::memcpy_dtod_async(to.address + offset as u64, from.address + start as u64, bytes, stream.cu_stream())
    }
}

/// Reads `bytes` bytes from byte `start` on back, and waits for them and for what was queued on the stream before.
pub(in super::super) fn download(
    stream: &CudaStream,
    from: &DeviceMemory,
    start: usize,
    bytes: usize,
) -> Result<Vec<u8>, DriverError> {
    if start.checked_add(bytes).is_none_or(|end| end > from.bytes()) {
        return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
    }
    bind(from.context())?;
    let mut to = vec![0; bytes];
    // SAFETY: both ranges are valid for `bytes` bytes. The vector outlives the copy, since the stream is waited for below; an
    // error there is sticky, and then nothing is written any more.
    unsafe { result::memcpy_dtoh_async(&mut to, from.address + start as u64, stream.cu_stream()) }?;
    wait_for(stream)?;
    Ok(to)
}

/// The same copy over and over, to measure. Dropping it waits for the stream.
pub(in super::super) struct Copies<'a> {
    stream: &'a CudaStream,
    from: Memory,
    to: DeviceMemory,
}

impl<'a> Copies<'a> {
    pub(in super::super) fn new(stream: &'a CudaStream, from: Memory, to: DeviceMemory) -> Self {
        Self { stream, from, to }
    }

    /// Queues one copy.
    pub(in super::super) fn queue(&self) -> Result<(), DriverError> {
        let (from, len) = self.from.bytes();
        let bytes = len.min(self.to.bytes());
        bind(self.stream.context())?;
        // SAFETY: both ranges are valid for `bytes` bytes and owned until the stream is idle: see `drop`.
        unsafe { sys::cuMemcpyHtoDAsync_v2(self.to.address, from.cast(), bytes, self.stream.cu_stream()) }.result()
    }
}

impl Drop for Copies<'_> {
    fn drop(&mut self) {
        // An error is sticky: then nothing runs on the device any more.
        let _ = wait_for(self.stream);
    }
}

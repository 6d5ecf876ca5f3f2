//! Timestamps around a batch's copy and its kernels.
//!
//! Some drivers have the queries and return nonsense: see [`clock`]. Each device's clock is held against the host's once, over work that
//! takes long enough, and every batch's marks are checked. The first time that anything is wrong all times are taken back: there
//! is no knowing which were right.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::bandwidth::{Copying, GROUP_BYTES};
use super::clock::{self, ClockWindow};
use super::device::WgpuBackend;
use crate::backend::times::SpanLog;
use crate::backend::{GpuSpan, GpuTimes, SubmissionId};
use crate::error::DeviceError;

/// Before the copy, between copy and kernels, after the kernels.
const MARKS: u32 = 3;
const BYTES: u64 = MARKS as u64 * wgpu::QUERY_SIZE as u64;
/// What the clocks are compared over: the time that the host shall take at least, and the buffer that is copied.
const COMPARED: Duration = Duration::from_millis(2);
const COPIED: u64 = 4 << 20;
const MAX_TIMES: usize = 1 << 14;
/// Other work on the device may come between once or twice.
const TRIES: usize = 5;

const FREE: u8 = 0;
const SENT: u8 = 1;
const ARRIVED: u8 = 2;

/// A lane's queries, for as many batches as can be in flight. A batch that finds none free is not measured.
pub(super) struct Timing {
    sets: Vec<Set>,
    /// Seconds a tick.
    tick: f64,
    /// Whether batches are copied by commands of their own.
    copies: bool,
    /// Whether kernels read them.
    kernels: bool,
    log: SpanLog,
    window: ClockWindow,
    /// Where the host's times are counted from.
    zero: Instant,
}

struct Set {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    read: wgpu::Buffer,
    state: Arc<AtomicU8>,
    batch: Mutex<Marked>,
}

/// What a set marks.
#[derive(Clone, Copy)]
struct Marked {
    id: SubmissionId,
    bytes: u64,
    sent: Instant,
}

/// Says that the marks have arrived, whether wgpu runs the callback or drops it: reading them fails in the second case.
struct Arrived(Arc<AtomicU8>);

impl Drop for Arrived {
    fn drop(&mut self) {
        self.0.store(ARRIVED, Ordering::Release);
    }
}

impl Timing {
    /// `None` where the device cannot. `copies` tells whether batches are copied by commands of their own.
    ///
    /// # Errors
    /// The device's error.
    pub(super) fn new(
        backend: &WgpuBackend,
        batches: usize,
        copies: bool,
        kernels: bool,
    ) -> Result<Option<Self>, DeviceError> {
        let needed = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
        if !backend.device().features().contains(needed) {
            return Ok(None);
        }
        let tick = f64::from(backend.queue().get_timestamp_period()) * 1e-9;
        if !backend.clock_agrees(|| compare(backend, tick))? {
            return Ok(None);
        }
        let sets = backend.scope(|| (0..batches).map(|_| Set::new(backend.device())).collect())?;
        let (log, window) = (SpanLog::new(batches), ClockWindow::default());
        Ok(Some(Self { sets, tick, copies, kernels, log, window, zero: Instant::now() }))
    }

    /// Marks the start of the copy of a batch of `bytes` bytes. The number is for the marks that follow.
    pub(super) fn start(&self, id: SubmissionId, bytes: u64, encoder: &mut wgpu::CommandEncoder) -> Option<usize> {
        let set = self.sets.iter().position(|set| set.state.load(Ordering::Acquire) == FREE)?;
        self.sets[set].mark(Marked { id, bytes, sent: Instant::now() });
        encoder.write_timestamp(&self.sets[set].queries, 0);
        Some(set)
    }

    /// Marks the end of the copy.
    pub(super) fn copied(&self, set: Option<usize>, encoder: &mut wgpu::CommandEncoder) {
        if let Some(set) = set {
            encoder.write_timestamp(&self.sets[set].queries, 1);
        }
    }

    /// Marks the end of the kernels.
    pub(super) fn end(&self, set: Option<usize>, encoder: &mut wgpu::CommandEncoder) {
        let Some(set) = set.map(|set| &self.sets[set]) else { return };
        encoder.write_timestamp(&set.queries, 2);
        set.resolve(encoder);
    }

    /// Asks for the times of what was sent.
    pub(super) fn sent(&self, set: Option<usize>) {
        if let Some(set) = set {
            self.sets[set].ask();
        }
    }

    /// What was collected so far; `None` where the device tells nonsense.
    pub(super) fn times(&self) -> Option<GpuTimes> {
        self.log.sum()
    }

    /// The spans that were collected.
    pub(super) fn spans(&mut self, spans: &mut Vec<GpuSpan>) {
        self.log.take(spans);
    }

    /// Reads the marks that have arrived.
    pub(super) fn collect(&mut self, backend: &WgpuBackend) {
        // In the order in which they were sent.
        let next = |sets: &[Set]| {
            let arrived = sets.iter().enumerate().filter(|(_, set)| set.state.load(Ordering::Acquire) == ARRIVED);
            arrived.min_by_key(|(_, set)| set.marked().id).map(|(index, _)| index)
        };
        while let Some(set) = next(&self.sets) {
            let set = &self.sets[set];
            let Marked { id, bytes, sent } = set.marked();
            let Some(marks) = set.take(backend) else { continue };
            let host = (sent.duration_since(self.zero).as_secs_f64(), self.zero.elapsed().as_secs_f64());
            let span = clock::seconds(marks, self.tick).filter(|&[start, copied, end]| {
                let enough = |part: bool, seconds| !part || clock::suffices(seconds, self.tick, bytes);
                enough(true, end - start)
                    && enough(self.copies, copied - start)
                    && enough(self.kernels, end - copied)
                    && self.window.admits((start, end), host)
            });
            match span {
                Some([start, copied, end]) => {
                    // Without a copy the marks before and after it are apart all the same, by what the device does in between.
                    let copied = if self.copies { copied } else { start };
                    self.log.add(GpuSpan { id, copy: start..copied, kernel: copied..end });
                }
                None => self.log.distrust(),
            }
        }
    }
}

impl Set {
    fn new(device: &wgpu::Device) -> Self {
        let buffer = |usage| {
            let desc =
                wgpu::BufferDescriptor { label: Some("gpufeed times"), size: BYTES, usage, mapped_at_creation: false };
            device.create_buffer(&desc)
        };
        let ty = wgpu::QueryType::Timestamp;
        Self {
            queries: device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("gpufeed times"),
                ty,
                count: MARKS,
            }),
            resolved: buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC),
            read: buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST),
            state: Arc::default(),
            batch: Mutex::new(Marked { id: 0, bytes: 0, sent: Instant::now() }),
        }
    }

    fn mark(&self, batch: Marked) {
        *self.batch.lock().unwrap_or_else(PoisonError::into_inner) = batch;
    }

    fn marked(&self) -> Marked {
        *self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the marks to where they can be read.
    fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        encoder.resolve_query_set(&self.queries, 0..MARKS, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.read, 0, BYTES);
    }

    /// Asks for the marks, once they were sent for.
    fn ask(&self) {
        self.state.store(SENT, Ordering::Release);
        let arrived = Arrived(Arc::clone(&self.state));
        self.read.map_async(wgpu::MapMode::Read, .., move |_| drop(arrived));
    }

    /// The marks that have arrived, and the set is free again.
    fn take(&self, backend: &WgpuBackend) -> Option<[u64; MARKS as usize]> {
        let marks = self.read.slice(..).get_mapped_range().ok().map(|view| {
            let words: &[[u8; 8]] = view.as_chunks().0;
            std::array::from_fn(|at| words.get(at).map_or(0, |word| u64::from_le_bytes(*word)))
        });
        // On a buffer that is not mapped, an error that this scope swallows.
        let _ = backend.scope(|| self.read.unmap());
        self.state.store(FREE, Ordering::Release);
        marks
    }
}

/// Whether the device's clock says the same as the host's about copies and about kernels that take a while: a driver may mark the one
/// and not the other.
///
/// # Errors
/// The device's error.
fn compare(backend: &WgpuBackend, tick: f64) -> Result<bool, DeviceError> {
    let bytes = COPIED.min(backend.device().limits().max_storage_buffer_binding_size) / GROUP_BYTES * GROUP_BYTES;
    if bytes == 0 {
        return Ok(false);
    }
    let buffer = || super::buffers::device_buffer(backend, "gpufeed clock", bytes);
    let (from, to, set) = (buffer()?, buffer()?, backend.scope(|| Set::new(backend.device()))?);
    let kernel = Copying::new(backend, bytes)?;
    let copies = |encoder: &mut wgpu::CommandEncoder, times| {
        (0..times).for_each(|_| encoder.copy_buffer_to_buffer(&from, 0, &to, 0, bytes));
    };
    let kernels = |encoder: &mut wgpu::CommandEncoder, times| kernel.encode(encoder, times);
    let agrees = clocks_agree(backend, &set, tick, copies)? && clocks_agree(backend, &set, tick, kernels)?;
    if !agrees {
        log::warn!("{}: its clock and the host's do not agree: its own times are not shown", backend.info().id);
    }
    Ok(agrees)
}

/// Whether the clocks agree about work that is recorded as many times as needed.
fn clocks_agree(
    backend: &WgpuBackend,
    set: &Set,
    tick: f64,
    record: impl Fn(&mut wgpu::CommandEncoder, usize),
) -> Result<bool, DeviceError> {
    let mut times = 1;
    for _ in 0..TRIES {
        let (mut marks, mut host) = timed(backend, set, |encoder| record(encoder, times))?;
        while host < COMPARED && times < MAX_TIMES {
            times *= 4;
            (marks, host) = timed(backend, set, |encoder| record(encoder, times))?;
        }
        let device = marks.and_then(|marks| clock::seconds(marks, tick)).map(|[start, .., end]| end - start);
        if device.is_some_and(|device| clock::agree(device, host)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Runs what is recorded: the device's marks around it, and the time by the host's clock.
fn timed(
    backend: &WgpuBackend,
    set: &Set,
    record: impl FnOnce(&mut wgpu::CommandEncoder),
) -> Result<(Option<[u64; MARKS as usize]>, Duration), DeviceError> {
    let (work, start) = backend.scope(|| {
        let mut encoder = backend.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.write_timestamp(&set.queries, 0);
        record(&mut encoder);
        (1..MARKS).for_each(|mark| encoder.write_timestamp(&set.queries, mark));
        set.resolve(&mut encoder);
        let commands = encoder.finish();
        let start = Instant::now();
        backend.send([commands], None, || set.ask()).map(|work| (work, start))
    })??;
    backend.wait_for(&work)?;
    let host = start.elapsed();
    Ok((set.take(backend), host))
}

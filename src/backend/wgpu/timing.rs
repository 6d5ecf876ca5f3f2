//! Timestamps around a batch's copy and its kernels.
//!
//! Some drivers have the queries and return nonsense, zeros mostly. The first time that happens all times are taken back: there is no
//! knowing which were right.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::device::WgpuBackend;
use crate::backend::times::SpanLog;
use crate::backend::{GpuSpan, GpuTimes, SubmissionId};
use crate::error::DeviceError;

/// Before the copy, between copy and kernels, after the kernels.
const MARKS: u32 = 3;
const BYTES: u64 = MARKS as u64 * wgpu::QUERY_SIZE as u64;
/// No batch takes longer.
const MAX_SECONDS: f64 = 60.0;

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
    log: SpanLog,
}

struct Set {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    read: wgpu::Buffer,
    state: Arc<AtomicU8>,
    /// The submission that it marks.
    id: AtomicU64,
}

impl Timing {
    /// `None` where the device cannot. `copies` tells whether batches are copied by commands of their own.
    ///
    /// # Errors
    /// The device's error.
    pub(super) fn new(backend: &WgpuBackend, batches: usize, copies: bool) -> Result<Option<Self>, DeviceError> {
        let needed = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
        if !backend.device().features().contains(needed) {
            return Ok(None);
        }
        let sets = backend.scope(|| (0..batches).map(|_| Set::new(backend.device())).collect())?;
        let tick = f64::from(backend.queue().get_timestamp_period()) * 1e-9;
        Ok(Some(Self { sets, tick, copies, log: SpanLog::new(batches) }))
    }

    /// Marks the start of a batch's copy. The number is for the marks that follow.
    pub(super) fn start(&self, id: SubmissionId, encoder: &mut wgpu::CommandEncoder) -> Option<usize> {
        let set = self.sets.iter().position(|set| set.state.load(Ordering::Acquire) == FREE)?;
        self.sets[set].id.store(id, Ordering::Relaxed);
        encoder.write_timestamp(&self.sets[set].queries, 0);
        Some(set)
    }

    /// Marks the end of the copy.
    pub(super) fn copied(&self, set: Option<usize>, encoder: &mut wgpu::CommandEncoder) {
        if let Some(set) = set {
            encoder.write_timestamp(&self.sets[set].queries, 1);
        }
    }

    /// Marks the end of the kernels, and asks for the times.
    pub(super) fn end(&self, set: Option<usize>, encoder: &mut wgpu::CommandEncoder) {
        let Some(Set { queries, resolved, read, state, .. }) = set.map(|set| &self.sets[set]) else { return };
        encoder.write_timestamp(queries, 2);
        encoder.resolve_query_set(queries, 0..MARKS, resolved, 0);
        encoder.copy_buffer_to_buffer(resolved, 0, read, 0, BYTES);
        state.store(SENT, Ordering::Release);
        let state = Arc::clone(state);
        // Of a batch that was not sent this comes too, and reading fails then.
        encoder.map_buffer_on_submit(read, wgpu::MapMode::Read, .., move |_| state.store(ARRIVED, Ordering::Release));
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
        for set in self.sets.iter().filter(|set| set.state.load(Ordering::Acquire) == ARRIVED) {
            let id = set.id.load(Ordering::Relaxed);
            let Some(marks) = set.take(backend) else { continue };
            match seconds(marks, self.tick) {
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
            id: AtomicU64::new(0),
        }
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

/// The marks in seconds of the device's clock, if these can be times.
fn seconds(marks: [u64; MARKS as usize], tick: f64) -> Option<[f64; MARKS as usize]> {
    let [start, copied, end] = marks;
    let took = end.checked_sub(start)? as f64 * tick;
    let sane = start != 0 && start <= copied && copied <= end && took > 0.0 && took < MAX_SECONDS;
    sane.then(|| marks.map(|mark| mark as f64 * tick))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_no_time() {
        assert_eq!(seconds([1024, 3072, 4096], 1.0 / 1024.0), Some([1.0, 3.0, 4.0]));
        assert_eq!(seconds([1024, 1024, 4096], 1.0 / 1024.0), Some([1.0, 1.0, 4.0]));
        for marks in [[0, 0, 0], [0, 5, 9], [7, 7, 7], [7, 6, 9], [7, 9, 8], [1, 2, u64::MAX]] {
            assert_eq!(seconds(marks, 1e-3), None);
        }
    }
}

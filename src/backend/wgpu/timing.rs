//! Timestamps around a batch's copy and its kernels.
//!
//! Some drivers have the queries and return nonsense, zeros mostly. The first time that happens all times are taken back: there is no
//! knowing which were right.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::device::WgpuBackend;
use crate::backend::GpuTimes;
use crate::error::DeviceError;

/// Before the copy, between copy and kernels, after the kernels.
const MARKS: u32 = 3;
const BYTES: u64 = MARKS as u64 * wgpu::QUERY_SIZE as u64;
/// No batch takes longer.
const MOST_SECONDS: f64 = 60.0;

const FREE: u8 = 0;
const SENT: u8 = 1;
const ARRIVED: u8 = 2;

/// A lane's queries, for as many batches as can be in flight. A batch that finds none free is not measured.
pub(super) struct Timing {
    sets: Vec<Set>,
    /// Seconds a tick.
    tick: f64,
    /// `None` once nonsense was read.
    times: Option<GpuTimes>,
}

struct Set {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    read: wgpu::Buffer,
    state: Arc<AtomicU8>,
}

impl Timing {
    /// `None` where the device cannot.
    ///
    /// # Errors
    /// The device's error.
    pub(super) fn new(backend: &WgpuBackend, batches: usize) -> Result<Option<Self>, DeviceError> {
        let needed = wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
        if !backend.device().features().contains(needed) {
            return Ok(None);
        }
        let sets = backend.scope(|| (0..batches).map(|_| Set::new(backend.device())).collect())?;
        let tick = f64::from(backend.queue().get_timestamp_period()) * 1e-9;
        Ok(Some(Self { sets, tick, times: Some(GpuTimes::default()) }))
    }

    /// Marks the start of a batch's copy. The number is for the marks that follow.
    pub(super) fn start(&self, encoder: &mut wgpu::CommandEncoder) -> Option<usize> {
        let set = self.sets.iter().position(|set| set.state.load(Ordering::Acquire) == FREE)?;
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
        let Some(Set { queries, resolved, read, state }) = set.map(|set| &self.sets[set]) else { return };
        encoder.write_timestamp(queries, 2);
        encoder.resolve_query_set(queries, 0..MARKS, resolved, 0);
        encoder.copy_buffer_to_buffer(resolved, 0, read, 0, BYTES);
        state.store(SENT, Ordering::Release);
        let state = Arc::clone(state);
        // Of a batch that was not sent this comes too, and reading fails then.
        encoder.map_buffer_on_submit(read, wgpu::MapMode::Read, .., move |_| state.store(ARRIVED, Ordering::Release));
    }

    /// What was measured so far; `None` where the device tells nonsense.
    pub(super) fn times(&mut self, backend: &WgpuBackend) -> Option<GpuTimes> {
        for set in self.sets.iter().filter(|set| set.state.load(Ordering::Acquire) == ARRIVED) {
            let Some(marks) = set.take(backend) else { continue };
            let measured = seconds(marks, self.tick);
            self.times = self.times.zip(measured).map(|(sum, (copy, kernel))| GpuTimes {
                copy_s: sum.copy_s + copy,
                kernel_s: sum.kernel_s + kernel,
                batches: sum.batches + 1,
            });
        }
        self.times
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

/// Seconds of copy and of kernels, if these can be times.
fn seconds([start, copied, end]: [u64; MARKS as usize], tick: f64) -> Option<(f64, f64)> {
    let between = |from: u64, to: u64| to.checked_sub(from).map(|ticks| ticks as f64 * tick);
    let (copy, kernel) = (between(start, copied)?, between(copied, end)?);
    (start != 0 && copy + kernel > 0.0 && copy + kernel < MOST_SECONDS).then_some((copy, kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_no_time() {
        assert_eq!(seconds([1000, 3000, 4000], 1e-3), Some((2.0, 1.0)));
        assert_eq!(seconds([1000, 1000, 4000], 1e-3), Some((0.0, 3.0)));
        for marks in [[0, 0, 0], [0, 5, 9], [7, 7, 7], [7, 6, 9], [7, 9, 8], [1, 2, u64::MAX]] {
            assert_eq!(seconds(marks, 1e-3), None);
        }
    }
}

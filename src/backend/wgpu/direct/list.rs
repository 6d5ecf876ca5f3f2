//! What tells a gathering kernel where a batch's samples are: a small list that the CPU writes where the device reads it.

use super::super::device::WgpuBackend;
use super::super::kernel::{GatherKernels, GatherOutput, GatherSource};
use super::super::native::{Import, KeepAlive, Place, Writable};
use super::SampleLocation;
use super::partition::Partition;
use crate::backend::LaneSpec;
use crate::error::OpenError;

/// The kernels of a lane, and a list for each submission that can be in flight.
pub(in super::super) struct Lists {
    pub kernels: GatherKernels,
    lists: Vec<List>,
    /// The list being written, and how many samples each window has. Used again for each.
    entries: Vec<[u32; 2]>,
    counts: Vec<u32>,
}

struct List {
    memory: Writable,
    source: GatherSource,
}

impl Lists {
    pub(super) fn new(
        backend: &WgpuBackend,
        spec: &LaneSpec,
        partition: &Partition,
        imports: &[Import],
        submissions: usize,
    ) -> Result<Self, OpenError> {
        let kernels = GatherKernels::new(backend.device(), spec, partition.window_count())?;
        let of_import = |(at, import): (usize, &Import)| {
            partition.windows(at).map(|range| (import.buffer.clone(), range)).collect::<Vec<_>>()
        };
        let windows: Vec<_> = imports.iter().enumerate().flat_map(of_import).collect();
        let bytes = partition.list_entries() as u64 * 8;
        let list = |_| {
            let usage = wgpu::BufferUsages::STORAGE;
            let (buffer, memory) =
                backend.native()?.host_buffer(backend, "gpufeed sample list", bytes, usage, Place::NearDevice)?;
            let source = backend.scope(|| kernels.bind_source(backend.device(), &windows, (&buffer, bytes)))?;
            Ok(List { memory, source })
        };
        let lists = (0..submissions).map(list).collect::<Result<Vec<_>, OpenError>>()?;
        Ok(Self {
            lists,
            entries: vec![[0; 2]; partition.list_entries()],
            counts: vec![0; partition.window_count()],
            kernels,
        })
    }

    /// What each submission holds, beside `all`.
    pub(super) fn keeps(&self, all: &[KeepAlive]) -> Vec<KeepAlive> {
        let keep = |list: &List| std::sync::Arc::new([all, &[list.memory.keep()]].concat()) as KeepAlive;
        self.lists.iter().map(keep).collect()
    }

    /// Writes a list and records the kernels that read it. The list is of no submission in flight.
    pub(super) fn record(
        &mut self,
        list: usize,
        found: &[SampleLocation],
        encoder: &mut wgpu::CommandEncoder,
        output: &GatherOutput,
    ) {
        let batch = (self.entries.len() - self.counts.len()) / 2;
        fill(&mut self.entries, &mut self.counts, batch, found);
        let list = &mut self.lists[list];
        list.memory.write(0, bytemuck::cast_slice(&self.entries));
        self.kernels.encode(encoder, &list.source, output, &self.counts, found.len());
    }
}

/// Lays a list out as `shaders/gather.wgsl` reads it: the windows' runs, the samples by window, the samples in order.
fn fill(entries: &mut [[u32; 2]], counts: &mut [u32], batch: usize, found: &[SampleLocation]) {
    let (runs, rest) = entries.split_at_mut(counts.len());
    let (by_window, in_order) = rest.split_at_mut(batch);
    counts.fill(0);
    found.iter().for_each(|sample| counts[sample.window as usize] += 1);
    let mut next = 0;
    for (run, count) in runs.iter_mut().zip(counts.iter()) {
        // What was found so far, to be counted up below.
        *run = [next, 0];
        next += count;
    }
    // No window has this number: places beyond the batch's samples are in none.
    in_order.fill([u32::MAX, 0]);
    for (place, sample) in (0u32..).zip(found) {
        let [first, count] = &mut runs[sample.window as usize];
        by_window[(*first + *count) as usize] = [place, sample.start];
        *count += 1;
        in_order[place as usize] = [sample.window, sample.start];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_listed_by_window_and_in_order() {
        let at = |window, start| SampleLocation { import: 0, byte: 0, window, start };
        let (mut entries, mut counts) = (vec![[9; 2]; 3 + 2 * 5], vec![7; 3]);
        fill(&mut entries, &mut counts, 5, &[at(2, 10), at(0, 20), at(2, 30), at(0, 40)]);
        assert_eq!(counts, [2, 0, 2]);
        assert_eq!(entries[..3], [[0, 2], [2, 0], [2, 2]]);
        assert_eq!(entries[3..7], [[1, 20], [3, 40], [0, 10], [2, 30]]);
        assert_eq!(entries[8..], [[2, 10], [0, 20], [2, 30], [0, 40], [u32::MAX, 0]]);
    }
}

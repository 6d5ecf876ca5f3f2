//! `imported`: the device gathers samples from the source's own memory.

mod list;
mod partition;
mod plan;
mod records;
mod submit;

use list::Lists;
pub(super) use partition::Partition;
use records::Records;
pub(super) use records::record_bytes;

use super::device::WgpuBackend;
use super::native::{Import, ImportError, KeepAlive, RawBuffer, Region};
use super::tuning::{Gather, Tuning};
use crate::backend::{LaneSpec, Strategy};
use crate::error::{DeviceError, OpenError, Unsupported};
use crate::preprocess::{Geometry, Preprocess};

/// The driver's threads would get the signal, and nothing can turn it into an error there.
const MAPPED_ON_SOFTWARE: &str = "a software device reads a mapped file with the CPU, and a file that is cut short meanwhile would end the \
     process; load the file into a `HostArena`, or use `system-ring`";

/// A lane's imports, and how it gathers from them.
pub(super) struct Direct {
    partition: Partition,
    imports: Vec<Import>,
    /// The same buffers, to be copied from on queues that wgpu does not know of.
    raws: Vec<RawBuffer>,
    path: GatherPath,
    /// Of a pipeline.
    records: Option<Records>,
    /// Where the samples of the batch being recorded are, in the batch's order.
    found: Vec<SampleLocation>,
    /// What each submission holds: the imports, and its list or its records.
    keeps: Vec<KeepAlive>,
}

enum GatherPath {
    Kernel(Box<Lists>),
    /// Regions by import. Their room is used again.
    Copy(Vec<Vec<Region>>),
}

/// Where a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SampleLocation {
    import: usize,
    /// Byte of the import's buffer.
    byte: u64,
    /// Counted over all imports.
    window: u32,
    /// Byte of the window.
    start: u32,
}

impl Direct {
    /// Imports the lane's memory.
    ///
    /// # Errors
    /// [`OpenError::Unsupported`] where there is none, or the device does not import it; [`OpenError::Device`].
    pub(super) fn new(backend: &WgpuBackend, spec: &LaneSpec) -> Result<Self, OpenError> {
        let memory = spec.memory.as_ref().ok_or_else(no_memory)?;
        if memory.is_mapped_read_only() && backend.info().is_software() {
            return Err(unsupported(MAPPED_ON_SOFTWARE));
        }
        let partition = Partition::new(backend, spec)?;
        let native = backend.native()?;
        let import = |range| native.import(backend, memory, range);
        let imports = partition.imports().map(import).collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let held: Vec<KeepAlive> = imports.iter().map(Import::keep).collect();
        let submissions = submissions(spec);
        let records = Records::new(backend, spec, submissions)?;
        let (path, keeps) = match gather_of(spec, backend.tuning()) {
            Gather::Kernel => {
                let lists = Lists::new(backend, spec, &partition, &imports, submissions)?;
                let keeps = lists.keeps(&held);
                (GatherPath::Kernel(Box::new(lists)), keeps)
            }
            Gather::Copy => {
                let keep: KeepAlive = std::sync::Arc::new(held);
                let keep = |at| match &records {
                    Some(records) => std::sync::Arc::new([KeepAlive::clone(&keep), records.keep(at)]) as KeepAlive,
                    None => KeepAlive::clone(&keep),
                };
                (GatherPath::Copy(imports.iter().map(|_| Vec::new()).collect()), (0..submissions).map(keep).collect())
            }
        };
        let raws = imports.iter().map(Import::raw).cloned().collect();
        let found = Vec::with_capacity(spec.layout.batch_size());
        Ok(Self { partition, imports, raws, path, records, found, keeps })
    }

    /// The copies that collect the samples found last, `bytes` bytes each, by import.
    pub(super) fn gather(&mut self, bytes: u64) -> impl Iterator<Item = (&RawBuffer, &[Region])> + Clone {
        let regions: &[Vec<Region>] = match &mut self.path {
            GatherPath::Copy(regions) => {
                submit::gather(regions, &self.found, bytes);
                regions
            }
            GatherPath::Kernel(_) => &[],
        };
        self.raws.iter().zip(regions.iter().map(Vec::as_slice)).filter(|(_, regions)| !regions.is_empty())
    }

    /// What a submission holds.
    pub(super) fn keep(&self, submission: usize) -> KeepAlive {
        KeepAlive::clone(&self.keeps[submission])
    }

    /// How many submissions can be in flight.
    pub(super) fn submissions(&self) -> usize {
        self.keeps.len()
    }

    pub(super) fn records(&self) -> Option<&Records> {
        self.records.as_ref()
    }

    /// Writes what a pipeline needs of each sample of a submission.
    fn write_records(&mut self, submission: usize, records: &[[f32; Geometry::WORDS]]) {
        if let Some(memory) = &mut self.records {
            memory.write(submission, records);
        }
    }

    pub(super) fn lists(&self) -> Option<&Lists> {
        match &self.path {
            GatherPath::Kernel(lists) => Some(lists),
            GatherPath::Copy(_) => None,
        }
    }

    /// Allocations made for it.
    pub(super) fn allocations(&self) -> u64 {
        let lists = if self.lists().is_some() || self.records.is_some() { self.keeps.len() } else { 0 };
        (self.imports.len() + lists) as u64
    }

    /// Finds the samples of a batch.
    fn find(&mut self, offsets: &[u64]) -> Result<(), DeviceError> {
        self.found.clear();
        for &offset in offsets {
            let found = self.partition.find(offset).ok_or_else(|| DeviceError::Refused {
                message: format!("no sample lies at byte {offset} of the memory"),
            })?;
            self.found.push(found);
        }
        Ok(())
    }
}

/// How a lane's samples are collected. The kernels of a pipeline read frames that lie together, several times each: over the bus that would
/// be several copies.
pub(super) fn gather_of(spec: &LaneSpec, tuning: Tuning) -> Gather {
    match spec.preprocess {
        Preprocess::Pipeline(_) => Gather::Copy,
        _ => tuning.gather,
    }
}

/// How many submissions can be in flight: those that are copied, and those that the outputs hold.
fn submissions(spec: &LaneSpec) -> usize {
    spec.slots.saturating_add(spec.outputs).max(1)
}

fn unsupported(reason: impl Into<String>) -> OpenError {
    Unsupported { strategy: Strategy::Imported, reason: reason.into() }.into()
}

fn no_memory() -> OpenError {
    unsupported("it reads a source's own memory, and this source does not lie in memory")
}

fn refused(error: ImportError) -> OpenError {
    match error {
        ImportError::Refused(reason) => unsupported(reason),
        ImportError::Device(error) => error.into(),
    }
}

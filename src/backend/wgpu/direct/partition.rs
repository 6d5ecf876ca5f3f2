//! A memory's imports and windows on one device.

use std::ops::Range;

use super::super::device::WgpuBackend;
use super::plan::{Imports, Windows};
use super::{SampleLocation, no_memory, submissions, unsupported};
use crate::backend::LaneSpec;
use crate::error::OpenError;

/// Bytes of an entry of a list.
const ENTRY: u64 = 8;

/// How a memory is divided on a device.
pub(in super::super) struct Partition {
    imports: Imports,
    parts: Vec<Part>,
    batch: usize,
}

struct Part {
    /// Bytes before the import's first, which starts at an aligned address.
    lead: u64,
    windows: Windows,
    /// Windows of the imports before.
    before: usize,
}

impl Partition {
    /// Allocates nothing on the device.
    ///
    /// # Errors
    /// [`OpenError::Unsupported`] names what does not fit.
    pub(in super::super) fn new(backend: &WgpuBackend, spec: &LaneSpec) -> Result<Self, OpenError> {
        let memory = spec.memory.as_ref().ok_or_else(no_memory)?;
        let device = backend.device().limits();
        let import = backend.native()?.import_limits(backend.device()).map_err(unsupported)?;
        let (sample, most) = (spec.layout.payload(1), import.most.min(device.max_buffer_size));
        if memory.len() < sample {
            return Err(unsupported(format!("the memory has {} bytes and a sample {sample}", memory.len())));
        }
        let too_large =
            |what: &str, limit: u64| unsupported(format!("a sample of {sample} bytes exceeds {what} ({limit})"));
        let imports = Imports::new(memory.len(), sample, most, import.align)
            .ok_or_else(|| too_large("what one import holds", most))?;
        // Shaders count bytes in 32 bits.
        let limit = device.max_storage_buffer_binding_size.min(u32::MAX.into());
        let offsets = u64::from(device.min_storage_buffer_offset_alignment.max(256));
        let (mut parts, mut before) = (Vec::new(), 0);
        for range in imports.ranges() {
            // In 64 bits: memory may end where the addresses of a small system do.
            let (align, bytes) = (import.align as u64, range.len() as u64);
            let lead = (memory.address().addr().get() as u64 + range.start as u64) % align;
            let size = (lead + bytes).next_multiple_of(align);
            let end = lead + bytes - sample as u64 + 1;
            let windows = Windows::new(size, end, sample as u64, limit, offsets)
                .ok_or_else(|| too_large("max_storage_buffer_binding_size", limit))?;
            parts.push(Part { lead, before, windows });
            before += parts.last().map_or(0, |part| part.windows.count());
        }
        Ok(Self { imports, parts, batch: spec.layout.batch_size() })
    }

    /// Bytes of the memory, by import.
    pub(super) fn imports(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        self.imports.ranges()
    }

    /// The windows of an import, as bytes of its buffer.
    pub(super) fn windows(&self, import: usize) -> impl Iterator<Item = Range<u64>> + use<> {
        self.parts[import].windows.ranges()
    }

    /// Of all imports.
    pub(super) fn window_count(&self) -> usize {
        self.parts.last().map_or(0, |part| part.before + part.windows.count())
    }

    /// Entries of a list: one a window, and two a sample.
    pub(super) fn list_entries(&self) -> usize {
        self.window_count() + 2 * self.batch
    }

    /// Bytes of all lists of a lane.
    pub(in super::super) fn list_bytes(&self, spec: &LaneSpec) -> u64 {
        (self.list_entries() as u64 * ENTRY).saturating_mul(submissions(spec) as u64)
    }

    pub(super) fn find(&self, offset: u64) -> Option<SampleLocation> {
        let (import, within) = self.imports.find(offset)?;
        let part = &self.parts[import];
        let byte = part.lead + within;
        let (window, start) = part.windows.find(byte);
        Some(SampleLocation { import, byte, window: u32::try_from(part.before + window).ok()?, start })
    }
}

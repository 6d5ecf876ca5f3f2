//! Threads that read samples into regions.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::assembly::{Assembly, Failure};
use super::patience;
use super::pump::ToPump;
use crate::source::Source;
use crate::staging::Region;

/// A run of a batch's samples and the region they go into.
pub(super) struct Job {
    pub(super) assembly: Arc<Assembly>,
    pub(super) slot: usize,
    pub(super) run: Range<usize>,
    pub(super) region: Region,
}

/// Reads runs until the pump hangs up.
pub(super) fn work(source: &dyn Source, jobs: &flume::Receiver<Job>, pump: &flume::Sender<ToPump>) {
    let sample_bytes = source.layout().byte_len();
    while let Ok(Job { assembly, slot, run, mut region }) = patience::recv(jobs) {
        let start = Instant::now();
        let complete = fill(source, &assembly, run, &mut region, sample_bytes);
        assembly.add_read_time(start.elapsed());
        // Nothing of the batch is touched after its region has ended: the pump may start the next one in it.
        let last = if complete { region.commit() } else { region.abandon() };
        if last && pump.send(ToPump::SlotEnded(slot)).is_err() {
            return;
        }
    }
}

/// Reads one run; false if the batch cannot be sent.
fn fill(source: &dyn Source, assembly: &Assembly, run: Range<usize>, region: &mut Region, sample_bytes: usize) -> bool {
    for (place, position) in run.enumerate() {
        if assembly.is_cancelled() {
            return false;
        }
        let index = assembly.index(position);
        let start = place * sample_bytes;
        let read = catch_unwind(AssertUnwindSafe(|| {
            let mut writer = region.writer(start..start + sample_bytes);
            source.read(index, &mut writer)?;
            if let Some(label) = source.label(index) {
                assembly.set_label(position, label);
            }
            Ok(writer.written())
        }));
        let failure = match read {
            Ok(Ok(written)) if written == sample_bytes => continue,
            Ok(Ok(written)) => Failure::Short { index, written, expected: sample_bytes },
            Ok(Err(source)) => Failure::Source { index, source },
            Err(panic) => Failure::Panic { index, message: panic_message(&*panic) },
        };
        assembly.fail(failure);
        return false;
    }
    true
}

/// The text of a panic, where it has one.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "no message".to_owned(),
    }
}

//! Threads that read samples into regions.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::activity::{Activity, WorkerActivity};
use super::assembly::{Assembly, Failure};
use super::bad::{BadSamples, Noted, Substitutes};
use super::patience;
use super::pump::ToPump;
use super::trace::Recorder;
use crate::source::Source;
use crate::staging::Region;

/// A run of a batch's samples and the region they go into.
pub(super) struct Job {
    pub(super) assembly: Arc<Assembly>,
    pub(super) slot: usize,
    pub(super) run: Range<usize>,
    pub(super) region: Region,
}

/// What a worker reads, and how.
pub(super) struct Worker {
    pub(super) number: usize,
    pub(super) source: Arc<dyn Source>,
    pub(super) policy: BadSamples,
    pub(super) substitutes: Option<Substitutes>,
    pub(super) activity: Arc<Activity>,
    pub(super) recorder: Option<Recorder>,
}

impl Worker {
    /// Reads runs until the pump hangs up.
    pub(super) fn work(&self, jobs: &flume::Receiver<Job>, pump: &flume::Sender<ToPump>) {
        while let Ok(Job { assembly, slot, run, mut region }) = patience::recv(jobs) {
            let start = Instant::now();
            let complete = self.fill(&assembly, run.clone(), &mut region);
            let end = Instant::now();
            assembly.add_read_time(end - start);
            if let Some(recorder) = &self.recorder {
                recorder.read(self.number, start..end, assembly.batch(), &run);
            }
            // Nothing of the batch is touched after its region has ended: the pump may start the next one in it.
            let last = if complete { region.commit() } else { region.abandon() };
            if last && pump.send(ToPump::SlotEnded(slot)).is_err() {
                return;
            }
        }
    }

    /// Reads one run; false if the batch cannot be sent.
    fn fill(&self, assembly: &Assembly, run: Range<usize>, region: &mut Region) -> bool {
        let sample_bytes = self.source.layout().byte_len();
        for (place, position) in run.enumerate() {
            if assembly.is_cancelled() {
                return false;
            }
            let bytes = place * sample_bytes..(place + 1) * sample_bytes;
            if let Err(failure) = self.read(assembly, position, assembly.index(position), region, bytes.clone())
                && !self.tolerate(failure, assembly, position, region, bytes)
            {
                return false;
            }
        }
        true
    }

    /// Reads one sample into its bytes of the region.
    fn read(
        &self,
        assembly: &Assembly,
        position: usize,
        index: u64,
        region: &mut Region,
        bytes: Range<usize>,
    ) -> Result<(), Failure> {
        let (activity, expected): (&WorkerActivity, _) = (self.activity.worker(self.number), bytes.len());
        activity.reads(index);
        let read = catch_unwind(AssertUnwindSafe(|| {
            let mut writer = region.writer(bytes);
            self.source.read(index, &mut writer)?;
            if let Some(label) = self.source.label(index) {
                assembly.set_label(position, label);
            }
            Ok(writer.written())
        }));
        activity.has_read();
        match read {
            Ok(Ok(written)) if written == expected => Ok(()),
            Ok(Ok(written)) => Err(Failure::Short { index, written, expected }),
            Ok(Err(source)) => Err(Failure::Source { index, source }),
            Err(panic) => Err(Failure::Panic { index, message: panic_message(&*panic) }),
        }
    }

    /// Deals with a bad sample; false if its batch is lost.
    fn tolerate(
        &self,
        failure: Failure,
        assembly: &Assembly,
        position: usize,
        region: &mut Region,
        bytes: Range<usize>,
    ) -> bool {
        let index = failure.index();
        let substitute = match (self.policy, &self.substitutes) {
            (BadSamples::Skip(_), _) => None,
            (BadSamples::Substitute(_), Some(substitutes)) => {
                let mut tries = substitutes.of(index).filter(|&other| other != index);
                let found = tries.find(|&other| {
                    !assembly.is_cancelled() && self.read(assembly, position, other, region, bytes.clone()).is_ok()
                });
                let Some(found) = found else {
                    assembly.fail(failure);
                    return false;
                };
                assembly.set_index(position, found);
                Some(found)
            }
            _ => {
                assembly.fail(failure);
                return false;
            }
        };
        assembly.note(Noted { position, index, substitute, cause: failure.into_cause() });
        true
    }
}

/// The text of a panic, where it has one.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "no message".to_owned(),
    }
}

//! Threads that read samples into regions.

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::assembly::{Assembly, Failure};
use super::bad::{BadRead, Substitutes};
use super::observe::activity::Activity;
use super::observe::trace::Recorder;
use super::pump::ToPump;
use super::spin_wait;
use super::tolerance::BadSamples;
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
    /// As the loader was opened: a source is not asked again.
    pub(super) sample_bytes: usize,
    pub(super) policy: BadSamples,
    pub(super) substitutes: Option<Substitutes>,
    pub(super) activity: Arc<Activity>,
    pub(super) recorder: Option<Recorder>,
}

impl Worker {
    /// Reads runs until the pump hangs up.
    pub(super) fn work(&self, jobs: &flume::Receiver<Job>, pump: &flume::Sender<ToPump>) {
        while let Ok(Job { assembly, slot, run, mut region }) = spin_wait::recv(jobs) {
            let work = AssertUnwindSafe(|| self.fill_timed(&assembly, &run, &mut region));
            let complete = catch_unwind(work).unwrap_or_else(|panic| {
                // Not in the source, whose panics are caught sample by sample; the batch cannot be sent all the same.
                let index = assembly.first_index();
                assembly.fail(Failure::Panic { index, message: panic_message(panic) });
                false
            });
            // Nothing of the batch is touched after its region has ended: the pump may start the next one in it.
            let last = if complete { region.commit() } else { region.abandon() };
            if last && pump.send(ToPump::SlotEnded(slot)).is_err() {
                return;
            }
        }
    }

    /// Reads one run, and notes how long that took; false if the batch cannot be sent.
    fn fill_timed(&self, assembly: &Assembly, run: &Range<usize>, region: &mut Region) -> bool {
        let start = Instant::now();
        let complete = self.fill(assembly, run.clone(), region);
        let end = Instant::now();
        assembly.add_read_time(end - start);
        if let Some(recorder) = &self.recorder {
            recorder.read(self.number, start..end, assembly.batch(), run);
        }
        complete
    }

    /// Reads one run; false if the batch cannot be sent.
    fn fill(&self, assembly: &Assembly, run: Range<usize>, region: &mut Region) -> bool {
        let sample_bytes = self.sample_bytes;
        let mut complete = true;
        for (place, position) in run.enumerate() {
            if assembly.is_cancelled() {
                return false;
            }
            let bytes = place * sample_bytes..(place + 1) * sample_bytes;
            let at = Place { assembly, position, bytes };
            if let Err(failure) = self.read(&at, assembly.index(position), region) {
                complete &= self.tolerate(failure, &at, region);
            }
        }
        complete
    }

    /// Reads one sample into its bytes of the region.
    fn read(&self, at: &Place<'_>, index: u64, region: &mut Region) -> Result<(), Failure> {
        let (activity, expected) = (self.activity.worker(self.number), at.bytes.len());
        activity.reads(index);
        let read = catch_unwind(AssertUnwindSafe(|| {
            let mut writer = region.writer(at.bytes.clone());
            self.source.read(index, &mut writer)?;
            Ok((writer.written(), self.source.label(index)))
        }));
        activity.has_read();
        match read {
            Ok(Ok((written, label))) if written == expected => {
                if let Some(label) = label {
                    at.assembly.set_label(at.position, label);
                }
                Ok(())
            }
            Ok(Ok((written, _))) => Err(Failure::Short { index, written, expected }),
            Ok(Err(source)) => Err(Failure::Source { index, source }),
            Err(panic) => Err(Failure::Panic { index, message: panic_message(panic) }),
        }
    }

    /// Deals with a bad sample; false if its batch is lost.
    fn tolerate(&self, failure: Failure, at: &Place<'_>, region: &mut Region) -> bool {
        let &Place { assembly, position, .. } = at;
        let index = failure.index();
        if self.policy == BadSamples::Fail {
            assembly.fail(failure);
            // The others need not go on. With other policies they do, so that all bad samples count.
            assembly.cancel();
            return false;
        }
        let substitute = self.substitutes.as_ref().and_then(|substitutes| {
            let mut tries = substitutes.of(index).filter(|&other| other != index);
            tries.find(|&other| !assembly.is_cancelled() && self.read(at, other, region).is_ok())
        });
        let lost = self.substitutes.is_some() && substitute.is_none();
        let cause = if lost {
            let cause = failure.describe().into();
            assembly.fail(failure);
            cause
        } else {
            failure.into_cause()
        };
        if let Some(found) = substitute {
            assembly.set_index(position, found);
        }
        assembly.note(BadRead { position, index, substitute, lost, cause });
        !lost
    }
}

/// Where a sample goes.
struct Place<'a> {
    assembly: &'a Assembly,
    position: usize,
    /// Within the region.
    bytes: Range<usize>,
}

/// The text of a panic, where it has one.
pub(super) fn panic_message(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<&str>().map(|text| (*text).to_owned()).or_else(|panic| panic.downcast().map(|text| *text)) {
        Ok(text) => text,
        Err(other) => {
            // Dropping a value of an unknown type can panic in turn, and then nobody would learn of the first panic.
            #[expect(clippy::mem_forget, reason = "a few bytes of a panic that nobody can read")]
            std::mem::forget(other);
            "no message".to_owned()
        }
    }
}

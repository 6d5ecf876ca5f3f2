//! Threads that read samples into regions.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::assembly::{Assembly, Failure};
use super::bad::{BadRead, NoSubstitute, Substitutes};
use super::geometry::Geometries;
use super::host_fields::HostFields;
use super::observe::activity::Activity;
use super::observe::trace::Recorder;
use super::pump::ToPump;
use super::spin_wait;
use super::tolerance::BadSamples;
use crate::error::panic_message;
use crate::source::{SampleContext, Source};
use crate::staging::Region;

/// A run of a batch's samples: the region they go into.
pub(super) struct Job {
    pub(super) assembly: Arc<Assembly>,
    pub(super) slot: usize,
    pub(super) region: Region,
}

/// What a worker reads, and how.
pub(super) struct Worker {
    pub(super) number: usize,
    pub(super) source: Arc<dyn Source>,
    /// The loader's; zero where it has none.
    pub(super) seed: u64,
    pub(super) policy: BadSamples,
    pub(super) substitutes: Option<Substitutes>,
    /// Of a loader with a pipeline.
    pub(super) geometries: Option<Arc<Geometries>>,
    pub(super) activity: Arc<Activity>,
    pub(super) recorder: Option<Recorder>,
    /// Where the samples' fields on the host are read to. They are taken over run by run, so that workers do not wait for each other.
    pub(super) host: HostFields,
}

impl Worker {
    /// Reads runs until the pump hangs up.
    pub(super) fn work(mut self, jobs: &flume::Receiver<Job>, pump: &flume::Sender<ToPump>) {
        while let Ok(Job { assembly, slot, mut region }) = spin_wait::recv(jobs) {
            let work = AssertUnwindSafe(|| self.fill_timed(&assembly, &mut region));
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
    fn fill_timed(&mut self, assembly: &Assembly, region: &mut Region) -> bool {
        let (start, run) = (Instant::now(), region.samples());
        let complete = self.fill(assembly, region);
        assembly.add_host(&self.host, &run);
        let end = Instant::now();
        assembly.add_read_time(end - start);
        if let Some(recorder) = &self.recorder {
            recorder.read(self.number, start..end, assembly.batch(), &run);
        }
        complete
    }

    /// Reads one run; false if the batch cannot be sent.
    fn fill(&mut self, assembly: &Assembly, region: &mut Region) -> bool {
        let mut complete = true;
        for position in region.samples() {
            if assembly.is_cancelled() {
                return false;
            }
            let target = Target { assembly, position };
            if let Err(failure) = self.read(&target, assembly.index(position), region) {
                complete &= self.tolerate(failure, &target, region);
            }
        }
        complete
    }

    /// Reads one sample into its bytes of the region.
    fn read(&mut self, target: &Target<'_>, index: u64, region: &mut Region) -> Result<(), Failure> {
        let activity = self.activity.worker(self.number);
        let sample = SampleContext::of(index).in_epoch(target.assembly.batch().0).with_seed(self.seed);
        activity.reads(index);
        let (source, host, geometries) = (&self.source, &mut self.host, self.geometries.as_deref());
        let read = catch_unwind(AssertUnwindSafe(|| {
            let mut writer = region.writer(target.position, host.bytes_mut());
            if let Some(geometries) = geometries {
                geometries.write(index, sample.epoch, &mut writer)?;
            }
            source.read(&sample, &mut writer)?;
            Ok(writer.finish())
        }));
        activity.has_read();
        match read {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(short))) => Err(Failure::Short { index, short }),
            Ok(Err(source)) => Err(Failure::Source { index, source }),
            Err(panic) => Err(Failure::Panic { index, message: panic_message(panic) }),
        }
    }

    /// Deals with a bad sample; false if its batch is lost.
    fn tolerate(&mut self, failure: Failure, target: &Target<'_>, region: &mut Region) -> bool {
        let &Target { assembly, position } = target;
        let index = failure.index();
        if self.policy == BadSamples::Fail {
            assembly.fail(failure);
            // The others need not go on. With other policies they do, so that all bad samples count.
            assembly.cancel();
            return false;
        }
        let (mut tried, substitutes) = (0, self.substitutes.clone());
        let substitute = substitutes.as_ref().and_then(|substitutes| {
            let mut tries = substitutes.of(index).filter(|&other| other != index).inspect(|_| tried += 1);
            tries.find(|&other| !assembly.is_cancelled() && self.read(target, other, region).is_ok())
        });
        let lost = substitutes.is_some() && substitute.is_none();
        let cause = if lost {
            let cause = failure.describe().into();
            let source = NoSubstitute { cause: failure.into_cause(), tried }.into();
            assembly.fail(Failure::Source { index, source });
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
struct Target<'a> {
    assembly: &'a Assembly,
    position: usize,
}

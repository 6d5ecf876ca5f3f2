//! One run: a loader, its epochs and its end, as the plan says.

use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use gpufeed::loader::Canceller;
use gpufeed::preprocess::TensorDesc;
use gpufeed::{Backend, Batch, DeviceError, Epoch, LoadError, Loader, OpenError, ResumeToken};

use super::device::FaultyDevice;
use super::pass::Pass;
use super::plan::{Course, Ending, Plan, When};
use super::random::Random;
use super::source::{Event, FaultySource};
use super::watch::Watch;
use super::witness::Witness;

/// A tensor that was taken out, with what is in it.
type Kept<B> = (<B as Backend>::Tensor, Vec<u64>, TensorDesc);

/// What came in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub epochs: u64,
    pub batches: u64,
    pub errors: u64,
}

/// Runs a plan. Panics where anything is not as it should be.
pub fn run<B: FaultyDevice>(plan: &Plan, backend: &B, watch: &Watch) -> Tally {
    let canceller = Arc::<OnceLock<Canceller>>::default();
    let lose = {
        let backend = backend.clone();
        move || backend.lose()
    };
    let cancel = {
        let canceller = Arc::clone(&canceller);
        move || canceller.get().into_iter().for_each(Canceller::cancel)
    };
    let (mut events, mut timers) = (Vec::new(), Vec::new());
    arrange(plan.loss, lose, &mut events, &mut timers);
    arrange(plan.cancel, cancel, &mut events, &mut timers);
    let source = Arc::new(FaultySource::new(plan, events));
    watch.at("opening the loader", 0);
    let mut tally = Tally::default();
    match Loader::new(backend, source.clone(), plan.options.clone()) {
        Ok(loader) => {
            assert!(canceller.set(loader.canceller()).is_ok());
            let (held, kept) = (Vec::new(), Vec::new());
            let (witness, random) = (Witness::new(plan), Random::new(plan.seed ^ 0xFEED));
            tally = Run { plan, witness, watch, random, held, kept, tally }.all(loader);
        }
        Err(OpenError::Device(DeviceError::Lost { .. })) if plan.loss.is_some() => {}
        Err(error) => panic!("the loader does not open: {error}"),
    }
    watch.at("joining the timers", 0);
    timers.into_iter().for_each(|timer| timer.join().expect("it only sleeps"));
    drop(canceller);
    assert_eq!(Arc::strong_count(&source), 1, "somebody still holds the source");
    tally
}

/// Has something happen when it should.
fn arrange(
    when: Option<When>,
    happen: impl Fn() + Send + Sync + 'static,
    events: &mut Vec<Event>,
    timers: &mut Vec<JoinHandle<()>>,
) {
    match when {
        Some(When::AtRead(read)) => events.push((read, Box::new(happen))),
        Some(When::After(time)) => timers.push(std::thread::spawn(move || {
            std::thread::sleep(time);
            happen();
        })),
        Some(When::AtSubmission(_)) | None => {}
    }
}

struct Run<'p, B: FaultyDevice> {
    plan: &'p Plan,
    witness: Witness<'p>,
    watch: &'p Watch,
    random: Random,
    held: Vec<Batch<B>>,
    kept: Vec<Kept<B>>,
    tally: Tally,
}

impl<'p, B: FaultyDevice> Run<'p, B> {
    fn all(mut self, mut loader: Loader<B>) -> Tally {
        for (number, &(epoch, course)) in self.plan.epochs.iter().enumerate() {
            self.watch.at("starting epoch", number as u64);
            self.course(&mut loader, epoch, course);
            if self.random.chance(30) {
                self.watch.at("asking for memory after epoch", number as u64);
                assert!(loader.memory().is_some() || self.plan.cancel.is_some(), "the pump is gone");
            }
        }
        self.witness.report(&loader.bad_samples());
        self.watch.at("looking at kept tensors", 0);
        self.kept.iter().for_each(|(tensor, indices, desc)| self.witness.tensor(tensor, indices, desc));
        let tally = self.tally;
        self.end(loader);
        tally
    }

    fn course(&mut self, loader: &mut Loader<B>, number: u64, course: Course) {
        let mut pass = Pass::new(self.plan, number, 0);
        let epoch = loader.epoch(number);
        let Some(token) = self.epoch(epoch, &mut pass, course) else { return };
        // As another process would have it.
        let text = serde_json::to_string(&token).expect("it is plain data");
        let token: ResumeToken = serde_json::from_str(&text).expect("as it was written");
        let at_the_end = pass.next() == pass.batches() || token.batch() == 0;
        assert!(at_the_end || (token.epoch(), token.batch()) == (number, pass.next()), "{token:?}");
        let mut pass = Pass::new(self.plan, token.epoch(), token.batch());
        let epoch = loader.resume(&token).expect("nothing was changed");
        self.epoch(epoch, &mut pass, Course::Whole);
    }

    /// Goes through an epoch; where it stood, if it is to be resumed.
    fn epoch(&mut self, mut epoch: Epoch<'_, B>, pass: &mut Pass<'_>, course: Course) -> Option<ResumeToken> {
        self.tally.epochs += 1;
        let (dead_before, remaining, mut wound_down) = (self.witness.dead, epoch.remaining(), false);
        loop {
            match course {
                Course::Part(most) if pass.answers >= most => return None,
                Course::Resume(most) if pass.answers >= most && !pass.over && self.plan.options.ordered => {
                    return epoch.resume_token().ok();
                }
                Course::WindDown(after) if pass.answers == after && !wound_down && !pass.over => {
                    self.watch.at("winding down after batch", pass.next());
                    epoch.wind_down();
                    wound_down = true;
                }
                _ => {}
            }
            self.watch.at("waiting after batch", pass.next());
            let item = match course {
                Course::Await => pollster::block_on(epoch.next_async()),
                Course::Impatient(time) => epoch.next_timeout(time),
                _ => epoch.try_next(),
            };
            let Some(item) = item else { break };
            assert!(!pass.over, "something comes after the end");
            self.take(pass, item, course);
        }
        assert_eq!(epoch.remaining(), 0);
        assert!(!dead_before || pass.answers == 0, "the end is forgotten");
        assert!(!dead_before || pass.over || wound_down || remaining == 0, "the end is not told again");
        if !pass.over {
            pass.ended(wound_down);
        }
        None
    }

    fn take(&mut self, pass: &mut Pass<'_>, item: Result<Batch<B>, LoadError>, course: Course) {
        match &item {
            Ok(_) => self.tally.batches += 1,
            Err(_) => self.tally.errors += 1,
        }
        match item {
            Ok(batch) => {
                self.witness.batch(pass, &batch);
                self.keep_or_drop(batch, course);
            }
            Err(LoadError::AllTensorsLeased { outputs }) => {
                assert!(self.held.len() >= outputs, "{} of {outputs} are held", self.held.len());
                // Any number of them, in any order.
                for _ in 0..self.random.between(1, self.held.len() as u64) {
                    let one = self.random.below(self.held.len() as u64) as usize;
                    drop(self.held.swap_remove(one));
                }
            }
            Err(LoadError::TimedOut(time)) => {
                assert_eq!(course, Course::Impatient(time));
                // A user who only asks again would take the time that the loader needs.
                std::thread::sleep(Duration::from_micros(50));
            }
            Err(error) => self.witness.error(pass, error),
        }
    }

    /// What becomes of a batch: it is read, held, kept for good, or dropped at once.
    fn keep_or_drop(&mut self, batch: Batch<B>, course: Course) {
        let number = batch.number();
        let hold = if course == Course::Hold { 90 } else { 10 };
        if self.random.chance(60) {
            self.watch.at("reading batch", number);
            self.witness.bytes(&batch);
        }
        if course == Course::Keep && self.random.chance(40) {
            let (indices, desc) = (batch.indices().to_vec(), batch.desc());
            self.watch.at("taking out the tensor of batch", number);
            self.kept.push((batch.into_tensor(), indices, desc));
        } else if self.random.chance(hold) {
            self.held.push(batch);
        }
    }

    fn end(self, loader: Loader<B>) {
        let Self { witness, watch, held, kept, plan, .. } = self;
        let look = |held: Vec<Batch<B>>| held.iter().for_each(|batch| witness.bytes(batch));
        match plan.ending {
            Ending::BatchesFirst => {
                watch.at("reading what is held before the loader goes", 0);
                look(held);
                watch.at("dropping the loader", 0);
                drop(loader);
            }
            Ending::LoaderFirst => {
                watch.at("dropping the loader while batches are held", 0);
                drop(loader);
                watch.at("reading batches whose loader is gone", 0);
                look(held);
            }
            Ending::Elsewhere => std::thread::scope(|scope| {
                watch.at("dropping the loader while batches are read", 0);
                scope.spawn(|| look(held));
                drop(loader);
            }),
        }
        drop(kept);
    }
}

//! One run: a loader, its epochs and its end, as the plan says.

use std::sync::Arc;

use gpufeed::preprocess::TensorDesc;
use gpufeed::{Batch, DeviceError, Epoch, LoadError, Loader, OpenError};

use super::device::FaultyDevice;
use super::plan::{Course, Ending, Loss, Plan};
use super::random::Random;
use super::source::FaultySource;
use super::watch::Watch;
use super::witness::{Pass, Witness};

/// A tensor that was taken out, with what is in it.
type Kept<B> = (<B as gpufeed::Backend>::Tensor, Vec<u64>, TensorDesc);

struct Run<'p, B: FaultyDevice> {
    witness: Witness<'p>,
    watch: &'p Watch,
    random: Random,
    held: Vec<Batch<B>>,
    kept: Vec<Kept<B>>,
}

/// Runs a plan. Panics where anything is not as it should be.
pub fn run<B: FaultyDevice>(plan: &Plan, backend: &B, watch: &Watch) {
    let source = {
        let backend = backend.clone();
        Arc::new(FaultySource::new(plan, move || backend.lose()))
    };
    let timer = match plan.loss {
        Some(Loss::After(time)) => {
            let backend = backend.clone();
            Some(std::thread::spawn(move || {
                std::thread::sleep(time);
                backend.lose();
            }))
        }
        _ => None,
    };
    watch.at("opening the loader", 0);
    match Loader::new(backend, source.clone(), plan.options.clone()) {
        Ok(loader) => {
            let (held, kept) = (Vec::new(), Vec::new());
            let (witness, random) = (Witness::new(plan), Random::new(plan.seed ^ 0xFEED));
            Run { witness, watch, random, held, kept }.all(loader);
        }
        Err(OpenError::Device(DeviceError::Lost { .. })) if timer.is_some() => {}
        Err(error) => panic!("the loader does not open: {error}"),
    }
    watch.at("joining the timer", 0);
    timer.map(|timer| timer.join().expect("it only sleeps"));
    assert_eq!(Arc::strong_count(&source), 1, "somebody still holds the source");
}

impl<B: FaultyDevice> Run<'_, B> {
    fn all(mut self, mut loader: Loader<B>) {
        for (number, &(epoch, course)) in self.witness.plan.epochs.iter().enumerate() {
            self.watch.at("starting epoch", number as u64);
            self.epoch(loader.epoch(epoch), epoch, course);
            if self.random.chance(30) {
                self.watch.at("asking for memory after epoch", number as u64);
                assert!(loader.memory().is_some(), "the pump is gone");
            }
        }
        self.watch.at("looking at kept tensors", 0);
        self.kept.iter().for_each(|(tensor, indices, desc)| self.witness.tensor(tensor, indices, desc));
        self.end(loader);
    }

    fn end(self, loader: Loader<B>) {
        let Self { witness, watch, held, kept, .. } = self;
        let look = |held: Vec<Batch<B>>| held.iter().all(|batch| witness.bytes(batch));
        match witness.plan.ending {
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

    fn epoch(&mut self, mut epoch: Epoch<'_, B>, number: u64, course: Course) {
        let mut pass = self.witness.pass(number);
        let (lost_before, batches) = (self.witness.lost, pass.sampler.batches());
        assert_eq!(epoch.remaining(), batches);
        let mut end = batches;
        loop {
            match course {
                Course::Part(most) if pass.next >= most => return,
                Course::WindDown(after) if pass.next == after && end == batches && !pass.over => {
                    self.watch.at("winding down at batch", pass.next);
                    epoch.wind_down();
                    end = pass.next + epoch.remaining();
                    assert!(end <= batches);
                }
                _ => {}
            }
            self.watch.at("waiting for batch", pass.next);
            let item = match course {
                Course::Await => pollster::block_on(epoch.next_async()),
                _ => epoch.next(),
            };
            let Some(item) = item else { break };
            assert!(!pass.over, "a delivery after the loss");
            self.take(&mut pass, item, course);
        }
        assert!(pass.over || pass.next == end, "{} of {end} batches came", pass.next);
        assert!(!lost_before || pass.next == 0, "the loss is forgotten");
        assert!(!lost_before || pass.over || batches == 0, "the loss is not told again");
    }

    fn take(&mut self, pass: &mut Pass, item: Result<Batch<B>, LoadError>, course: Course) {
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
}

//! One epoch's batches: which have come, and which still may.

use gpufeed::loader::{Order, Sampler};
use gpufeed::{BadSamples, Batch};

use super::device::FaultyDevice;
use super::plan::{Plan, SampleFault};
use super::source::label;

pub struct Pass<'p> {
    plan: &'p Plan,
    sampler: Sampler,
    first: u64,
    seen: Vec<bool>,
    /// One more than the last that came.
    next: u64,
    /// How many have come, errors included.
    pub answers: u64,
    /// Nothing comes after what has come.
    pub over: bool,
}

impl<'p> Pass<'p> {
    /// An epoch from batch `first` on.
    pub fn new(plan: &'p Plan, epoch: u64, first: u64) -> Self {
        let sampler = Sampler::new(Order::new(plan.samples, &plan.options), epoch);
        let seen = vec![false; sampler.batches() as usize];
        Self { plan, sampler, first, seen, next: first, answers: 0, over: false }
    }

    pub fn batches(&self) -> u64 {
        self.sampler.batches()
    }

    pub fn next(&self) -> u64 {
        self.next
    }

    pub fn asked(&self, number: u64) -> Vec<u64> {
        self.sampler.batch(number).collect()
    }

    /// Something took this batch's place: once, and in order where there is one.
    pub fn answered(&mut self, number: u64) {
        assert!((self.first..self.batches()).contains(&number), "batch {number} of {}", self.batches());
        assert!(!std::mem::replace(&mut self.seen[number as usize], true), "batch {number} came twice");
        if self.plan.options.ordered {
            assert!(number >= self.next, "batch {number} after {}", self.next);
            let missing = (self.next..number).find(|&missing| !self.may_be_empty(missing));
            assert_eq!(missing, None, "missing before batch {number}");
        }
        self.next = number + 1;
        self.answers += 1;
    }

    /// No other batch comes: all have, up to where the epoch was wound down.
    pub fn ended(&self, wound_down: bool) {
        let last = self.seen.iter().rposition(|&seen| seen).map_or(self.first, |last| last as u64 + 1);
        let end = if wound_down { last } else { self.batches() };
        let missing = (self.first..end).find(|&number| !self.seen[number as usize] && !self.may_be_empty(number));
        assert_eq!(missing, None, "missing at the end, of {end} batches");
    }

    /// Whether all of a batch's samples may have been left out.
    fn may_be_empty(&self, number: u64) -> bool {
        let skip = matches!(self.plan.options.bad_samples, BadSamples::Skip(_));
        skip && self.asked(number).iter().all(|&index| self.plan.may_fail(index))
    }

    /// Whether a batch has the samples, the padding and the labels that it should.
    pub fn check<B: FaultyDevice>(&self, batch: &Batch<B>) {
        let number = batch.number();
        let (asked, got) = (self.asked(number), batch.indices());
        let own = asked.len() - self.sampler.padding(number);
        let never = got.iter().find(|&&index| self.plan.must_fail(index));
        assert_eq!(never, None, "sample {never:?} of batch {number} cannot have arrived");
        let mut padding = asked.len() - own;
        match self.plan.options.bad_samples {
            BadSamples::Skip(_) => {
                let mut rest = got.iter().copied().peekable();
                for (position, &index) in asked.iter().enumerate() {
                    if rest.next_if_eq(&index).is_none() {
                        assert!(self.plan.may_fail(index), "sample {index} of batch {number} was left out");
                        padding -= usize::from(position >= own);
                    }
                }
                assert_eq!(rest.next(), None, "{got:?} are more than {asked:?}");
            }
            BadSamples::Substitute(_) => {
                assert_eq!(got.len(), asked.len());
                let replaced = asked.iter().zip(got).filter(|(asked, got)| asked != got);
                replaced.for_each(|(&asked, got)| assert!(self.plan.may_fail(asked), "{asked} became {got}"));
            }
            _ => assert_eq!(got, asked, "batch {number}"),
        }
        // Of equal samples it cannot be told which was left out.
        let repeats = (1..asked.len()).any(|at| asked[..at].contains(&asked[at]));
        assert!(repeats || batch.padding() == padding, "{} of batch {number} are padding", batch.padding());
        let labels: Vec<i64> = got.iter().map(|&index| label(index)).collect();
        assert_eq!(batch.labels().as_deref(), Some(labels.as_slice()));
    }
}

impl Plan {
    /// Whether every read of a sample fails.
    pub fn must_fail(&self, index: u64) -> bool {
        self.may_fail(index) && self.faults.get(&index) != Some(&SampleFault::Flaky)
    }

    /// Whether a read of a sample can fail.
    pub fn may_fail(&self, index: u64) -> bool {
        self.faults.get(&index).is_some_and(|fault| !matches!(fault, SampleFault::Slow(_)))
    }
}

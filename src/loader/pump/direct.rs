//! Batches that the device gathers from the source's own memory: no slot, no worker, only a list of offsets.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::super::observe::metrics::BatchTimestamps;
use super::super::order::sampler::Sampler;
use super::super::outputs::reserved;
use super::super::worker::panic_message;
use super::observer::Observer;
use super::prepared::{Lists, Prepared, Unsent};
use crate::backend::{Input, Wait};
use crate::error::{DeviceError, LoadError};
use crate::source::Source;

/// Where samples lie in the source's own memory.
pub(in crate::loader) struct Direct {
    source: Arc<dyn Source>,
    /// Batches in flight at most.
    depth: usize,
    offsets: Vec<u64>,
    /// Whether the device took long over a batch the last time that it was waited for.
    slow: bool,
}

/// Over a batch that takes a device longer than this, a thread has time to wake up and send several more.
const SLOW: Duration = Duration::from_micros(300);

impl Direct {
    /// For batches of at most `samples` samples.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(in crate::loader) fn new(source: Arc<dyn Source>, depth: usize, samples: usize) -> Result<Self, DeviceError> {
        Ok(Self { source, depth, offsets: reserved(samples)?, slow: false })
    }

    /// What to wait for when as many batches are in flight as may be. A slow device finishes most of them first: sending several at a
    /// time costs the CPU half as much a batch, since its threads wake up less often and find more in their caches.
    pub(super) fn wait(&self) -> Wait {
        if self.slow { Wait::AtMost((self.depth / 4).max(1).min(self.depth - 1)) } else { Wait::One }
    }

    /// The device took this long to finish `batches` batches.
    pub(super) fn waited(&mut self, time: Duration, batches: usize) {
        self.slow = time > SLOW.saturating_mul(u32::try_from(batches.max(1)).unwrap_or(u32::MAX));
    }

    /// Makes a submission of a batch, and writes the lists that go with it.
    pub(super) fn prepare(
        &mut self,
        sampler: &Sampler,
        number: u64,
        observer: &mut Observer,
        lists: Lists<'_>,
    ) -> Result<Prepared<'_>, Box<Unsent>> {
        let begun = observer.now();
        self.locate(sampler, number, lists)?;
        let located = observer.begun(begun);
        let (handed_out, ended, sent, submitted) = (located, located, located, located);
        let times =
            BatchTimestamps { epoch: sampler.epoch(), number, slot: None, begun, handed_out, ended, sent, submitted };
        Ok(Prepared {
            input: Input::Direct(&self.offsets),
            samples: self.offsets.len(),
            padding: sampler.padding(number),
            bad: Vec::new(),
            read_time: Duration::ZERO,
            times,
        })
    }

    /// Looks up the samples of a batch. The source is the application's: its panics are errors.
    fn locate(&mut self, sampler: &Sampler, batch: u64, (indices, labels): Lists<'_>) -> Result<(), Box<Unsent>> {
        indices.clear();
        labels.clear();
        self.offsets.clear();
        let mut asked = None;
        let located = catch_unwind(AssertUnwindSafe(|| {
            self.source.check()?;
            for index in sampler.batch(batch) {
                asked = Some(index);
                self.offsets.push(self.source.position(index));
                indices.push(index);
                labels.extend(self.source.label(index));
            }
            Ok(())
        }));
        let first = || sampler.batch(batch).next().unwrap_or_default();
        let index = asked.unwrap_or_else(first);
        let error = match located {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(source)) => LoadError::Sample { index, batch, source },
            Err(panic) => LoadError::Panic { index, batch, message: panic_message(&*panic) },
        };
        Err(Box::new(Unsent { result: Err(error), bad: Vec::new(), ends_epoch: false }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{LoaderOptions, Order};
    use super::*;
    use crate::error::SourceError;
    use crate::layout::SampleLayout;
    use crate::staging::SampleWriter;

    /// Does not know where its second sample is.
    struct Lost;

    impl Source for Lost {
        fn layout(&self) -> SampleLayout {
            SampleLayout::bytes(&[8]).expect("a layout")
        }

        fn len(&self) -> u64 {
            2
        }

        fn read(&self, _: u64, _: &mut SampleWriter<'_>) -> Result<(), SourceError> {
            Ok(())
        }

        fn position(&self, index: u64) -> u64 {
            assert!(index != 1, "sample {index} is nowhere");
            index
        }
    }

    #[test]
    fn a_source_that_panics_when_asked_where_a_sample_is_loses_the_batch_only() {
        let sampler = Sampler::new(Order::new(2, &LoaderOptions::default()), 0);
        let mut direct = Direct::new(Arc::new(Lost), 1, 2).expect("a little memory");
        let unsent = direct.locate(&sampler, 0, (&mut Vec::new(), &mut Vec::new())).expect_err("it panics");
        let Unsent { result: Err(LoadError::Panic { index, batch, message }), ends_epoch, .. } = *unsent else {
            panic!("another error")
        };
        assert_eq!((index, batch, message.as_str(), ends_epoch), (1, 0, "sample 1 is nowhere", false));
    }
}

//! Batches that the device gathers from the source's own memory: no slot, no worker, only a list of offsets.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::super::geometry::Geometries;
use super::super::observe::metrics::BatchTimestamps;
use super::super::order::sampler::Sampler;
use super::super::outputs::reserved;
use super::observer::Observer;
use super::prepared::{Lists, Prepared, Unsent};
use crate::backend::{Input, Wait};
use crate::error::{DeviceError, LayoutError, LoadError, SourceError, panic_message};
use crate::layout::BatchLayout;
use crate::preprocess::Geometry;
use crate::source::{self, SampleContext};
use crate::staging::{SampleWriter, ShortField};

/// Where samples lie in the source's own memory, and what of them is still written on the host.
pub(in crate::loader) struct Direct {
    source: source::Direct,
    layout: BatchLayout,
    /// The loader's; zero where it has none.
    seed: u64,
    /// Batches in flight at most.
    depth: usize,
    offsets: Vec<u64>,
    /// Of a loader with a pipeline.
    geometries: Option<Arc<Geometries>>,
    records: Vec<[f32; Geometry::WORDS]>,
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
    pub(in crate::loader) fn new(
        source: source::Direct,
        layout: BatchLayout,
        seed: u64,
        depth: usize,
        samples: usize,
    ) -> Result<Self, DeviceError> {
        let (offsets, records) = (reserved(samples)?, Vec::new());
        Ok(Self { source, layout, seed, depth, offsets, geometries: None, records, slow: false })
    }

    /// The same for a loader with a pipeline.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(in crate::loader) fn with_geometries(
        mut self,
        geometries: Option<&Arc<Geometries>>,
    ) -> Result<Self, DeviceError> {
        if let Some(geometries) = geometries {
            self.records = reserved(self.offsets.capacity())?;
            self.geometries = Some(Arc::clone(geometries));
        }
        Ok(self)
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
            input: Input::Direct { offsets: &self.offsets, records: &self.records },
            samples: self.offsets.len(),
            padding: sampler.padding(number),
            bad: Vec::new(),
            read_time: Duration::ZERO,
            times,
        })
    }

    /// Looks up the samples of a batch. The source is the application's: its panics are errors.
    fn locate(&mut self, sampler: &Sampler, batch: u64, lists: Lists<'_>) -> Result<(), Box<Unsent>> {
        let mut index = sampler.batch(batch).next().unwrap_or_default();
        let located = catch_unwind(AssertUnwindSafe(|| self.try_locate(sampler, batch, lists, &mut index)));
        let error = match located {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(Refusal::Source(source))) => LoadError::Sample { index, batch, source },
            Ok(Err(Refusal::Short(ShortField { name: field, written, expected }))) => {
                LoadError::ShortSample { index, batch, field, written, expected }
            }
            Err(panic) => LoadError::Panic { index, batch, message: panic_message(panic) },
        };
        Err(Box::new(Unsent { result: Err(error), bad: Vec::new(), ends_epoch: false }))
    }

    /// Leaves the sample it came to in `asked`.
    fn try_locate(
        &mut self,
        sampler: &Sampler,
        batch: u64,
        (indices, host): Lists<'_>,
        asked: &mut u64,
    ) -> Result<(), Refusal> {
        indices.clear();
        self.offsets.clear();
        self.records.clear();
        self.source.check()?;
        for (position, index) in sampler.batch(batch).enumerate() {
            *asked = index;
            self.offsets.push(self.source.position(index));
            indices.push(index);
            if let Some(geometries) = &self.geometries {
                self.records.push(geometries.of(index, sampler.epoch())?.words());
            }
            if !host.is_empty() {
                let sample = SampleContext::of(index).in_epoch(sampler.epoch()).with_seed(self.seed);
                let mut writer = SampleWriter::on_host(&self.layout, host.bytes_mut(), position);
                self.source.write_host_fields(&sample, &mut writer)?;
                writer.finish().map_err(Refusal::Short)?;
            }
        }
        host.pack(self.offsets.len());
        Ok(())
    }
}

/// Why a batch cannot be read in place.
enum Refusal {
    Source(SourceError),
    Short(ShortField),
}

impl From<LayoutError> for Refusal {
    fn from(error: LayoutError) -> Self {
        Self::Source(error.into())
    }
}

impl From<SourceError> for Refusal {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::host_fields::HostFields;
    use super::super::super::{LoaderOptions, Order};
    use super::*;
    use crate::layout::{Element, SampleLayout};
    use crate::memory::HostArena;

    /// What the first batch of two samples of eight bytes and a label comes to.
    fn locate(source: impl FnOnce(source::Direct) -> source::Direct) -> (Result<Vec<u64>, LoadError>, Vec<i64>) {
        let sampler = Sampler::new(Order::new(2, &LoaderOptions::default()), 0);
        let sample = SampleLayout::bytes(&[8]).and_then(|sample| sample.with_label(Element::I64)).expect("a sample");
        let layout = BatchLayout::new(sample, 2).expect("a batch");
        let memory = Arc::new(HostArena::new(16, |_| {}).expect("a little memory"));
        let source = source(source::Direct::new(memory, |index| index * 8));
        let mut host = HostFields::new(&layout).expect("a little memory");
        let mut direct = Direct::new(source, layout, 7, 1, 2).expect("a little memory");
        let located = direct.locate(&sampler, 0, (&mut Vec::new(), &mut host));
        let result = located.map(|()| direct.offsets).map_err(|unsent| {
            assert!(!unsent.ends_epoch);
            unsent.result.err().expect("an error")
        });
        (result, host.values("label", 2).expect("labels").to_vec())
    }

    #[test]
    fn fields_on_the_host_are_written_beside_the_offsets() {
        let (offsets, labels) = locate(|source| {
            source.with_host_fields(|sample, out| Ok(out.label(i64::try_from(sample.index * 10 + sample.seed)?)?))
        });
        assert_eq!((offsets.expect("it works"), labels), (vec![0, 8], vec![7, 17]));
    }

    #[test]
    fn a_source_that_panics_when_asked_where_a_sample_is_loses_the_batch_only() {
        let nowhere = |index: u64| {
            assert!(index != 1, "sample {index} is nowhere");
            index
        };
        let (located, _) = locate(|source| source.renumbered(nowhere).with_host_fields(|_, out| Ok(out.label(1i64)?)));
        let Err(LoadError::Panic { index, batch, message }) = located else { panic!("another outcome") };
        assert_eq!((index, batch, message.as_str()), (1, 0, "sample 1 is nowhere"));
    }

    #[test]
    fn a_field_on_the_host_that_is_not_written_is_named() {
        let (located, _) = locate(|source| source);
        let Err(LoadError::ShortSample { index: 0, field, written: 0, expected: 8, .. }) = located else {
            panic!("another outcome")
        };
        assert_eq!(field, "label");
    }
}

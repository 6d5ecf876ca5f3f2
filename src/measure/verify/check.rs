//! Comparing what was delivered with what should have been: on plain values, without a device.

use std::sync::Arc;

use super::oracle::{Oracle, Wrong};
use crate::backend::Backend;
use crate::error::OpenError;
use crate::layout::{BatchLayout, Placement};
use crate::loader::{Batch, Geometries, LoaderOptions, Sampler, staged_layout};
use crate::measure::outcome::{Mismatch, VerifyError};
use crate::preprocess::{Fingerprint, OutputField, OutputLayout, fingerprint, sample_fingerprint};
use crate::source::{SampleContext, Source};
use crate::staging::SampleBuffer;

/// Compares batches with a source and the oracle. Keeps the bytes of one batch.
pub(in crate::measure) struct Checker {
    source: Arc<dyn Source>,
    layout: BatchLayout,
    tensors: OutputLayout,
    oracle: Oracle,
    /// Of a pipeline's masks, by the number of the field.
    masks: Vec<(usize, Oracle)>,
    /// Of a loader with a pipeline.
    geometries: Option<Geometries>,
    /// The loader's; zero where it has none.
    seed: u64,
    epoch: u64,
    indices: Vec<u64>,
    /// Of each field those of a batch's samples, one after the other: with the zeros behind the rows of ragged ones on the device.
    bytes: Vec<Vec<u8>>,
    /// Of each ragged field where each sample's rows end; of others nothing.
    ends: Vec<Vec<i32>>,
    sample: SampleBuffer,
}

impl Checker {
    pub(in crate::measure) fn new(source: Arc<dyn Source>, options: &LoaderOptions) -> Result<Self, OpenError> {
        if options.step.is_some() {
            let reason = "what an application's own step makes of a batch is not known".to_owned();
            return Err(OpenError::Option { option: "step", reason });
        }
        let layout = staged_layout(&options.preprocess, &source.layout(), options.batch_size)?;
        let sample = SampleBuffer::new(layout.sample().clone())?;
        let oracle = Oracle::new(&options.preprocess, layout.sample())?;
        let masks = Oracle::masks(&options.preprocess, layout.sample())?;
        let geometries = Geometries::new(&options.preprocess, &source.layout(), options.seed.unwrap_or_default())?;
        let (tensors, fields) = (OutputLayout::new(&options.preprocess, &layout)?, layout.sample().fields().len());
        let (bytes, ends) = (vec![Vec::new(); fields], vec![Vec::new(); fields]);
        let (seed, indices) = (options.seed.unwrap_or_default(), Vec::new());
        Ok(Self { source, layout, tensors, oracle, masks, geometries, seed, epoch: 0, indices, bytes, ends, sample })
    }

    pub(in crate::measure) fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Compares a batch's indices with the order of its epoch.
    pub(in crate::measure) fn indices(&self, order: &Sampler, batch: u64, got: &[u64]) -> Result<(), Mismatch> {
        let mut expected = order.batch(batch);
        for position in 0..got.len().max(expected.len()) {
            let (expected, got) = (expected.next(), got.get(position).copied());
            if expected != got {
                return Err(Mismatch::Index { batch, position, expected, got });
            }
        }
        Ok(())
    }

    /// Reads these samples, to compare the batch with.
    pub(in crate::measure) fn read(&mut self, epoch: u64, batch: u64, indices: &[u64]) -> Result<(), VerifyError> {
        (self.indices, self.epoch) = (indices.to_vec(), epoch);
        self.bytes.iter_mut().for_each(Vec::clear);
        self.ends.iter_mut().for_each(Vec::clear);
        for &index in indices {
            let mut out = self.sample.writer();
            let context = SampleContext::of(index).in_epoch(epoch).with_seed(self.seed);
            let written = self.geometries.as_ref().map_or(Ok(()), |of| of.write(index, epoch, &mut out));
            let read = written.and_then(|()| self.source.read(&context, &mut out));
            let read = read.and_then(|()| match out.finish() {
                Ok(()) => Ok(()),
                Err(short) => Err(format!("{} bytes are missing", short.expected - short.written).into()),
            });
            read.map_err(|source| VerifyError::Source { batch, index, source })?;
            self.take_sample();
        }
        Ok(())
    }

    /// Keeps the fields of the sample that was read.
    fn take_sample(&mut self) {
        for (number, span) in self.layout.spans().iter().enumerate() {
            let (all, own) = (&mut self.bytes[number], self.sample.bytes(number).unwrap_or_default());
            all.extend_from_slice(own);
            if let Some(ragged) = self.layout.ragged_field(number) {
                let (before, rows) =
                    (self.ends[number].last().copied().unwrap_or_default(), own.len() / ragged.row_bytes);
                self.ends[number].push(before + rows as i32);
                if span.placement == Placement::Device {
                    all.resize(all.len() + span.bytes - own.len(), 0);
                }
            }
        }
    }

    /// Compares the device's fingerprints with those of the samples that were read.
    pub(in crate::measure) fn fingerprints(&self, batch: u64, got: Option<&[Fingerprint]>) -> Result<(), Mismatch> {
        let got = got.unwrap_or_default();
        length(batch, "fingerprints", self.indices.len(), got.len())?;
        for (at, (&index, &got)) in self.indices.iter().zip(got).enumerate() {
            let fields = self.tensors.fields().iter().map(|field| {
                let bytes = field.source_bytes(&self.layout);
                fingerprint(&self.bytes[field.field][at * bytes..][..bytes])
            });
            let expected = sample_fingerprint(&fields.collect::<Vec<_>>());
            if expected != got {
                return Err(Mismatch::Fingerprint { batch, index, expected, got });
            }
        }
        Ok(())
    }

    /// Compares the fields on the host, and where the rows of ragged ones are, with those of the samples that were read.
    pub(in crate::measure) fn host_fields<B: Backend>(&self, batch: &Batch<B>) -> Result<(), Mismatch> {
        for (number, field) in self.layout.sample().fields().iter().enumerate() {
            let ends = batch.offsets(number).map_or(&[][..], |offsets| &offsets[1..]);
            let bytes = batch.host_bytes(number);
            if ends != self.ends[number] || bytes.is_some_and(|bytes| bytes != self.bytes[number]) {
                return Err(Mismatch::Field { batch: batch.number(), field: field.name().to_owned() });
            }
        }
        Ok(())
    }

    /// Compares the whole tensors of the fields behind the first with the samples that were read.
    pub(in crate::measure) fn further_tensors<B: Backend>(&self, batch: &Batch<B>) -> Result<(), VerifyError> {
        for field in self.tensors.tail() {
            let number = batch.number();
            let read = batch.read_field(field.field);
            let read = read.map_err(|source| VerifyError::ReadBack { batch: number, source })?;
            let is_right = match self.masks.iter().find(|(number, _)| *number == field.field) {
                Some((_, oracle)) => read.is_some_and(|tensor| self.is_mask(field, oracle, &tensor)),
                None => read.as_deref() == Some(&self.bytes[field.field]),
            };
            if !is_right {
                let field = self.layout.sample().fields()[field.field].name().to_owned();
                return Err(Mismatch::Field { batch: number, field }.into());
            }
        }
        Ok(())
    }

    /// Whether a whole tensor is what the samples' masks should become.
    fn is_mask(&self, field: &OutputField, oracle: &Oracle, tensor: &[u8]) -> bool {
        let (bytes, each) = (&self.bytes[field.field], field.of(1).byte_len());
        let pairs = bytes.chunks_exact(field.source_bytes(&self.layout)).zip(tensor.chunks_exact(each));
        let mut samples = self.indices.iter().zip(pairs);
        tensor.len() == self.indices.len() * each
            && samples.all(|(&index, (sample, tensor))| {
                let geometry = self.geometries.as_ref().and_then(|of| of.of(index, self.epoch).ok());
                oracle.compare(geometry.as_ref(), sample, tensor).is_none()
            })
    }

    /// Compares a whole tensor with what the samples that were read should become.
    pub(in crate::measure) fn tensor(&self, batch: u64, tensor: &[u8]) -> Result<(), Mismatch> {
        let (bytes, each) = (&self.bytes[0], self.tensors.first().of(1).byte_len());
        length(batch, "bytes", self.indices.len() * each, tensor.len())?;
        let pairs = bytes.chunks_exact(self.layout.payload(1)).zip(tensor.chunks_exact(each));
        for (&index, (sample, tensor)) in self.indices.iter().zip(pairs) {
            let geometry = self.geometries.as_ref().and_then(|of| of.of(index, self.epoch).ok());
            if let Some(Wrong { element, expected, got, bound }) =
                self.oracle.compare(geometry.as_ref(), sample, tensor)
            {
                return Err(Mismatch::Value { batch, index, element, expected, got, bound });
            }
        }
        Ok(())
    }
}

fn length(batch: u64, what: &'static str, expected: usize, got: usize) -> Result<(), Mismatch> {
    if expected == got { Ok(()) } else { Err(Mismatch::Length { batch, what, expected, got }) }
}

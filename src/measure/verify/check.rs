//! Comparing what was delivered with what should have been: on plain values, without a device.

use std::sync::Arc;

use super::oracle::{Oracle, Wrong, raw};
use crate::error::OpenError;
use crate::layout::BatchLayout;
use crate::loader::{LoaderOptions, Sampler};
use crate::measure::outcome::{Mismatch, VerifyError};
use crate::preprocess::{Fingerprint, Preprocess, fingerprint};
use crate::source::{SampleContext, Source};
use crate::staging::SampleBuffer;

/// Compares batches with a source and the oracle. Keeps the bytes of one batch.
pub(in crate::measure) struct Checker {
    source: Arc<dyn Source>,
    layout: BatchLayout,
    oracle: Option<Oracle>,
    indices: Vec<u64>,
    /// The first field of a batch's samples.
    bytes: Vec<u8>,
    sample: SampleBuffer,
}

impl Checker {
    pub(in crate::measure) fn new(source: Arc<dyn Source>, options: &LoaderOptions) -> Result<Self, OpenError> {
        let layout = BatchLayout::new(source.layout(), options.batch_size)?;
        let sample = SampleBuffer::new(layout.sample().clone())?;
        let oracle = match (&options.preprocess, layout.sample().as_image()) {
            (Preprocess::Normalize(normalize), Some(image)) => Some(Oracle::new(normalize, image)?),
            _ => None,
        };
        Ok(Self { source, layout, oracle, indices: Vec::new(), bytes: Vec::new(), sample })
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
    pub(in crate::measure) fn read(&mut self, batch: u64, indices: &[u64]) -> Result<(), VerifyError> {
        let sample_bytes = self.layout.payload(1);
        self.indices = indices.to_vec();
        self.bytes.resize(sample_bytes * indices.len(), 0);
        for (&index, bytes) in indices.iter().zip(self.bytes.chunks_exact_mut(sample_bytes)) {
            let mut out = self.sample.writer();
            let read = self.source.read(&SampleContext::of(index), &mut out);
            let read = read.and_then(|()| match out.short_field() {
                None => Ok(()),
                Some(short) => Err(format!("{} bytes are missing", short.expected - short.written).into()),
            });
            read.map_err(|source| VerifyError::Source { batch, index, source })?;
            bytes.copy_from_slice(self.sample.bytes(0).unwrap_or_default());
        }
        Ok(())
    }

    /// Compares the device's fingerprints with those of the samples that were read.
    pub(in crate::measure) fn fingerprints(&self, batch: u64, got: Option<&[Fingerprint]>) -> Result<(), Mismatch> {
        let got = got.unwrap_or_default();
        length(batch, "fingerprints", self.indices.len(), got.len())?;
        let samples = self.bytes.chunks_exact(self.layout.payload(1));
        for ((&index, sample), &got) in self.indices.iter().zip(samples).zip(got) {
            let expected = fingerprint(sample);
            if expected != got {
                return Err(Mismatch::Fingerprint { batch, index, expected, got });
            }
        }
        Ok(())
    }

    /// Compares a whole tensor with what the samples that were read should become.
    pub(in crate::measure) fn tensor(&self, batch: u64, tensor: &[u8]) -> Result<(), Mismatch> {
        let scale = self.oracle.as_ref().map_or(1, |oracle| oracle.dtype.size());
        length(batch, "bytes", self.bytes.len() * scale, tensor.len())?;
        let sample = self.layout.payload(1);
        let pairs = self.bytes.chunks_exact(sample).zip(tensor.chunks_exact(sample * scale));
        for (&index, (sample, tensor)) in self.indices.iter().zip(pairs) {
            let wrong = match &self.oracle {
                None => raw(sample, tensor),
                Some(oracle) => oracle.compare(sample, tensor),
            };
            if let Some(Wrong { element, expected, got, bound }) = wrong {
                return Err(Mismatch::Value { batch, index, element, expected, got, bound });
            }
        }
        Ok(())
    }
}

fn length(batch: u64, what: &'static str, expected: usize, got: usize) -> Result<(), Mismatch> {
    if expected == got { Ok(()) } else { Err(Mismatch::Length { batch, what, expected, got }) }
}

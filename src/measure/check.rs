//! Comparing what was delivered with what should have been: on plain values, without a device.

use std::sync::Arc;

use half::f16;

use super::verify::VerifyError;
use crate::error::{LayoutError, OpenError};
use crate::layout::{BatchLayout, Element, ImageLayout, SampleLayout};
use crate::loader::{LoaderOptions, Sampler};
use crate::preprocess::{Fingerprint, Normalize, Preprocess, TensorLayout, error_bound, expected, fingerprint};
use crate::source::{SampleContext, Source};
use crate::staging::SampleBuffer;

/// What was delivered is not what should have been.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// Another sample, or none, stands where the sampler's order has one.
    #[error("batch {batch}: sample {position} of it has index {got:?}, and the order says {expected:?}")]
    Index {
        /// The batch.
        batch: u64,
        /// The place in the batch.
        position: usize,
        /// The index that should be there.
        expected: Option<u64>,
        /// The index that is.
        got: Option<u64>,
    },
    /// The bytes on the device are not the source's.
    #[error(
        "batch {batch}, sample {index}: the device has the fingerprint {got:016x}, and the source's is {expected:016x}"
    )]
    Fingerprint {
        /// The batch.
        batch: u64,
        /// The sample's index in the source.
        index: u64,
        /// The fingerprint of the source's bytes.
        expected: Fingerprint,
        /// The device's.
        got: Fingerprint,
    },
    /// The tensor or the list of fingerprints has another length.
    #[error("batch {batch}: {got} {what} were delivered, and it has {expected}")]
    Length {
        /// The batch.
        batch: u64,
        /// What was counted.
        what: &'static str,
        /// How many it has.
        expected: usize,
        /// How many were delivered.
        got: usize,
    },
    /// A value of the tensor is not the oracle's.
    #[error("batch {batch}, sample {index}: element {element} is {got}, and {expected} ± {bound:.3e} was expected")]
    Value {
        /// The batch.
        batch: u64,
        /// The sample's index in the source.
        index: u64,
        /// The element within the sample's tensor.
        element: usize,
        /// The oracle's value.
        expected: f64,
        /// The device's.
        got: f64,
        /// How far they may be apart.
        bound: f64,
    },
}

/// Compares batches with a source and the oracle. Keeps the bytes of one batch.
pub(super) struct Checker {
    source: Arc<dyn Source>,
    layout: BatchLayout,
    oracle: Option<Oracle>,
    indices: Vec<u64>,
    /// The first field of a batch's samples.
    bytes: Vec<u8>,
    sample: SampleBuffer,
}

impl Checker {
    pub(super) fn new(source: Arc<dyn Source>, options: &LoaderOptions) -> Result<Self, OpenError> {
        let layout = BatchLayout::new(source.layout(), options.batch_size)?;
        let sample = SampleBuffer::new(layout.sample().clone())?;
        let oracle = match (&options.preprocess, layout.sample().as_image()) {
            (Preprocess::Normalize(normalize), Some(image)) => Some(Oracle::new(normalize, image)?),
            _ => None,
        };
        Ok(Self { source, layout, oracle, indices: Vec::new(), bytes: Vec::new(), sample })
    }

    pub(super) fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Compares a batch's indices with the order of its epoch.
    pub(super) fn indices(&self, order: &Sampler, batch: u64, got: &[u64]) -> Result<(), Mismatch> {
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
    pub(super) fn read(&mut self, batch: u64, indices: &[u64]) -> Result<(), VerifyError> {
        self.indices = indices.to_vec();
        self.bytes.resize(self.layout.payload(1) * indices.len(), 0);
        for (&index, bytes) in indices.iter().zip(self.bytes.chunks_exact_mut(self.layout.payload(1))) {
            let sample = SampleContext::of(index);
            let mut out = self.sample.writer();
            let read = self.source.read(&sample, &mut out);
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
    pub(super) fn fingerprints(&self, batch: u64, got: Option<&[Fingerprint]>) -> Result<(), Mismatch> {
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
    pub(super) fn tensor(&self, batch: u64, tensor: &[u8]) -> Result<(), Mismatch> {
        // Raw bytes are compared as they are.
        let size = self.oracle.as_ref().map_or(1, |oracle| oracle.dtype.size());
        length(batch, "bytes", self.bytes.len() * size, tensor.len())?;
        let sample = self.layout.payload(1);
        let pairs = self.bytes.chunks_exact(sample).zip(tensor.chunks_exact(sample * size));
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

/// The first value that is not as expected.
#[derive(Debug, PartialEq)]
struct Wrong {
    element: usize,
    expected: f64,
    got: f64,
    bound: f64,
}

/// Raw bytes are equal, whatever they stand for.
fn raw(sample: &[u8], tensor: &[u8]) -> Option<Wrong> {
    if sample == tensor {
        return None;
    }
    let element = sample.iter().zip(tensor).position(|(expected, got)| expected != got)?;
    let value = |bytes: &[u8]| f64::from(bytes[element]);
    Some(Wrong { element, expected: value(sample), got: value(tensor), bound: 0.0 })
}

/// The oracle's value of each pixel value of each channel, and how far a kernel's may be from it.
struct Oracle {
    values: Vec<[(f64, f64); 256]>,
    layout: TensorLayout,
    dtype: Element,
}

impl Oracle {
    fn new(normalize: &Normalize, image: ImageLayout) -> Result<Self, LayoutError> {
        let channels = image.channels();
        // An image of every pixel value in every channel; for that image HWC is the simpler order.
        let ramp = SampleLayout::image(1, 256, channels)?.as_image();
        let ramp = ramp.ok_or_else(|| LayoutError::NotAnImage { layout: "a ramp".to_owned() })?;
        let pixels: Vec<u8> = (0..=255).flat_map(|pixel| std::iter::repeat_n(pixel, channels)).collect();
        let flat = expected(&normalize.clone().with_layout(TensorLayout::Nhwc), ramp, &pixels)?;
        let table = |channel: usize| {
            std::array::from_fn(|pixel| {
                (flat[pixel * channels + channel], error_bound(normalize, channel, pixel as u8))
            })
        };
        let dtype = match normalize.dtype {
            crate::preprocess::FloatType::F32 => Element::F32,
            crate::preprocess::FloatType::F16 => Element::F16,
        };
        Ok(Self { values: (0..channels).map(table).collect(), layout: normalize.layout, dtype })
    }

    fn compare(&self, sample: &[u8], tensor: &[u8]) -> Option<Wrong> {
        if self.dtype == Element::F16 {
            self.compare_values(sample, tensor.as_chunks().0, |&bytes| f64::from(f16::from_ne_bytes(bytes)))
        } else {
            self.compare_values(sample, tensor.as_chunks().0, |&bytes| f64::from(f32::from_ne_bytes(bytes)))
        }
    }

    fn compare_values<T>(&self, sample: &[u8], tensor: &[T], value: impl Fn(&T) -> f64) -> Option<Wrong> {
        let channels = self.values.len();
        let plane = sample.len() / channels;
        for (channel, table) in self.values.iter().enumerate() {
            for position in 0..plane {
                let element = match self.layout {
                    TensorLayout::Nchw => channel * plane + position,
                    TensorLayout::Nhwc => position * channels + channel,
                };
                let (expected, bound) = table[usize::from(sample[position * channels + channel])];
                let got = value(&tensor[element]);
                let error = (got - expected).abs();
                if error.is_nan() || error > bound {
                    return Some(Wrong { element, expected, got, bound });
                }
            }
        }
        None
    }
}

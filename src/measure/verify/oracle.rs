//! What a sample should become, and the first value that differs.

use half::f16;

use crate::error::LayoutError;
use crate::layout::{Element, ImageLayout, SampleLayout};
use crate::preprocess::{Geometry, Normalize, PipelineOracle, Preprocess, TensorLayout, error_bound, expected};

/// The first value that is not as expected.
#[derive(Debug, PartialEq)]
pub(super) struct Wrong {
    pub(super) element: usize,
    pub(super) expected: f64,
    pub(super) got: f64,
    pub(super) bound: f64,
}

/// What each kind of preprocessing should make of a sample.
pub(super) enum Oracle {
    Raw,
    Normalized(NormalizeTables),
    Pipeline(Box<PipelineOracle>),
}

impl Oracle {
    pub(super) fn new(preprocess: &Preprocess, sample: &SampleLayout) -> Result<Self, LayoutError> {
        match (preprocess, sample.as_image()) {
            (Preprocess::Normalize(normalize), Some(image)) => {
                NormalizeTables::new(normalize, image).map(Self::Normalized)
            }
            (Preprocess::Pipeline(pipeline), _) => {
                PipelineOracle::new(pipeline, sample).map(|oracle| Self::Pipeline(Box::new(oracle)))
            }
            _ => Ok(Self::Raw),
        }
    }

    /// What the masks of a pipeline should become, by the number of the field.
    pub(super) fn masks(preprocess: &Preprocess, sample: &SampleLayout) -> Result<Vec<(usize, Self)>, LayoutError> {
        let Preprocess::Pipeline(pipeline) = preprocess else { return Ok(Vec::new()) };
        let masks = PipelineOracle::masks(pipeline, sample)?.into_iter();
        Ok(masks.map(|(field, oracle)| (field, Self::Pipeline(Box::new(oracle)))).collect())
    }

    /// The first value of a sample's tensor that is wrong. Samples of a pipeline have a geometry.
    pub(super) fn compare(&self, geometry: Option<&Geometry>, sample: &[u8], tensor: &[u8]) -> Option<Wrong> {
        match (self, geometry) {
            (Self::Normalized(tables), _) => tables.compare(sample, tensor),
            (Self::Pipeline(oracle), Some(geometry)) => {
                let (element, expected, got) = oracle.wrong(geometry, sample, tensor).ok().flatten()?;
                Some(Wrong { element, expected: expected.value, got, bound: expected.bound })
            }
            _ => raw(sample, tensor),
        }
    }
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
pub(super) struct NormalizeTables {
    values: Vec<[(f64, f64); 256]>,
    layout: TensorLayout,
    dtype: Element,
}

impl NormalizeTables {
    fn new(normalize: &Normalize, image: ImageLayout) -> Result<Self, LayoutError> {
        let channels = image.channels();
        // An image of every pixel value in every channel; for that image HWC is the simpler order.
        let Some(ramp) = SampleLayout::image(1, 256, channels)?.as_image() else {
            return Err(LayoutError::NotAnImage { layout: "a ramp".to_owned() });
        };
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

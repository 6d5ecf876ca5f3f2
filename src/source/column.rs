//! Labels held in memory: one element a sample.

use std::sync::Arc;

use super::LabelCount;
use crate::error::{LayoutError, SourceError};
use crate::layout::{Element, LABEL, SampleLayout, Scalar};
use crate::staging::SampleWriter;
#[cfg(feature = "npy")]
use crate::staging::as_integers;

/// One label a sample, in the samples' order. Clones are the same list.
#[derive(Clone, Debug)]
pub(super) struct Labels {
    element: Element,
    bytes: Arc<[u8]>,
}

impl Labels {
    /// # Errors
    /// [`LabelCount`] where there are more or fewer than samples.
    pub(super) fn new<T: Scalar>(labels: &[T], samples: u64) -> Result<Self, LabelCount> {
        let count = labels.len() as u64;
        if count != samples {
            return Err(LabelCount { labels: count, samples });
        }
        Ok(Self { element: T::ELEMENT, bytes: bytemuck::cast_slice(labels).into() })
    }

    /// The labels as integers.
    #[cfg(feature = "npy")]
    pub(super) fn integers(&self) -> impl ExactSizeIterator<Item = i64> + use<'_> {
        as_integers(self.element, &self.bytes)
    }

    /// The layout of samples with these labels.
    ///
    /// # Errors
    /// [`LayoutError`] where they have one already.
    pub(super) fn add_to(&self, layout: &SampleLayout) -> Result<SampleLayout, LayoutError> {
        layout.with_label(self.element)
    }

    /// Writes the label of sample `index`, which exists.
    pub(super) fn write(&self, index: u64, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let size = self.element.size();
        let start = usize::try_from(index).ok().and_then(|index| index.checked_mul(size));
        let label = start.and_then(|start| self.bytes.get(start..start.checked_add(size)?));
        let label = label.ok_or_else(|| format!("sample {index} has no label"))?;
        Ok(out.field(LABEL)?.write(label)?)
    }
}

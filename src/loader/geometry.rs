//! The geometry of a pipeline's samples: written into their slots, and told with their batches.

use crate::error::{LayoutError, SourceError};
use crate::layout::{BatchLayout, SampleLayout};
use crate::preprocess::{Geometry, PipelinePlan, Preprocess};
use crate::source::SampleContext;
use crate::staging::SampleWriter;

/// What draws the geometry of every sample of a loader or a feeder.
#[derive(Debug)]
pub(crate) struct Geometries {
    plan: PipelinePlan,
    /// The loader's; zero where it has none.
    seed: u64,
    /// The number of the field that holds it.
    field: usize,
}

impl Geometries {
    /// For samples of this layout; `None` where there is no pipeline.
    ///
    /// # Errors
    /// [`LayoutError`] for a pipeline that does not fit.
    pub(crate) fn new(preprocess: &Preprocess, sample: &SampleLayout, seed: u64) -> Result<Option<Self>, LayoutError> {
        let Some(plan) = preprocess.plan(sample)? else { return Ok(None) };
        let field = PipelinePlan::record_field(&preprocess.staged(sample)?)?;
        Ok(Some(Self { plan, seed, field }))
    }

    /// That of a sample.
    ///
    /// # Errors
    /// None for a pipeline that fits.
    pub(crate) fn of(&self, index: u64, epoch: u64) -> Result<Geometry, LayoutError> {
        let sample = SampleContext::of(index).in_epoch(epoch).with_seed(self.seed);
        self.plan.geometry(sample.random_seed())
    }

    /// The number of the field that holds it.
    #[cfg(feature = "wgpu")]
    pub(super) fn field(&self) -> usize {
        self.field
    }

    /// Writes that of a sample beside its own fields.
    ///
    /// # Errors
    /// None for a slot that was laid out for it.
    pub(crate) fn write(&self, index: u64, epoch: u64, sample: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let words = self.of(index, epoch)?.words();
        Ok(sample.field(self.field)?.values(&words)?)
    }
}

/// How slots and tensors are laid out for samples of this layout.
///
/// # Errors
/// [`LayoutError`] for a batch that is empty or too large, or samples without room for what a pipeline adds.
pub(crate) fn staged_layout(
    preprocess: &Preprocess,
    sample: &SampleLayout,
    batch_size: usize,
) -> Result<BatchLayout, LayoutError> {
    BatchLayout::new(preprocess.staged(sample)?, batch_size)
}

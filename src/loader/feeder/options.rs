//! What a feeder can be told.

use super::super::options::{LoaderOptions, check_counts};
use crate::backend::{Step, Strategy};
use crate::error::{OpenError, Unsupported};
use crate::preprocess::Preprocess;

/// Options of a [`Feeder`](super::Feeder).
///
/// # Sizing
///
/// With one slot a frame waits for the copy of the one before it; two let the next be filled meanwhile. Outputs bound how many batches
/// the application holds at once.
#[derive(Clone, Debug)]
pub struct FeederOptions {
    /// The most frames in a batch.
    pub batch_size: usize,
    /// Staging slots. At least 1.
    pub slots: usize,
    /// Output tensors: batches that the application holds at once. At least 1.
    pub outputs: usize,
    /// How bytes get to the device; `None` takes the backend's default for pushed frames.
    pub strategy: Option<Strategy>,
    /// What the device does with the bytes. A pipeline draws what is random by the number of the frame, with seed and epoch zero.
    pub preprocess: Preprocess,
    /// The application's own commands on the device, behind that or instead of it.
    pub step: Option<Step>,
    /// The most bytes (staging, device and outputs together) it may hold; `None` for no bound. Tensors that were
    /// [taken out](crate::Batch::into_tensor) are the caller's and do not count.
    pub byte_budget: Option<u64>,
}

impl Default for FeederOptions {
    fn default() -> Self {
        Self {
            batch_size: 1,
            slots: 3,
            outputs: 4,
            strategy: None,
            preprocess: Preprocess::default(),
            step: None,
            byte_budget: None,
        }
    }
}

impl FeederOptions {
    /// What can be refused before anything is made.
    pub(super) fn check(&self, strategy: Strategy) -> Result<(), OpenError> {
        check_counts(&[
            ("batch_size", self.batch_size, usize::MAX),
            ("slots", self.slots, LoaderOptions::MAX_POOLED),
            ("outputs", self.outputs, LoaderOptions::MAX_POOLED),
        ])?;
        if strategy.is_direct() {
            let reason = "it reads a dataset in place; frames are pushed through slots".to_owned();
            return Err(Unsupported { strategy, reason }.into());
        }
        Ok(())
    }
}

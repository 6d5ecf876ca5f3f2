//! Asking the device's own clock about a configuration, in a pass of its own: asking for times costs time.

use std::time::Duration;

use super::comparison::Comparison;
use super::outcome::VerifyError;
use super::rounds::Contestant;
use crate::backend::Backend;

impl<B: Backend> Comparison<'_, B> {
    /// Asks once. Without a clock there is no answer, which is no error.
    pub(super) fn ask_the_device(
        &mut self,
        index: usize,
        contestant: &Contestant<B>,
        time: Duration,
    ) -> Result<(), VerifyError> {
        match contestant.gpu(time, &|| self.observer.stop()) {
            Err(error) if !error.is_lost() => {
                let strategy = self.plan.settings[index].strategy;
                log::warn!("{strategy}: the device's own times could not be had: {error}");
            }
            rates => self.report.configurations[index].gpu = rates?,
        }
        Ok(())
    }
}

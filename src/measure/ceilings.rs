//! What copying alone reaches, measured between the rounds.

use std::time::Duration;

use super::comparison::Comparison;
use super::memcpy::parallel_memcpy;
use super::report::{Ceilings, Settings};
use crate::backend::Backend;

/// Each measurement of the host's memcpy touches half a gigabyte first, so that there are no more than this.
const MAX_MEMCPY: usize = 5;

impl<B: Backend> Comparison<'_, B> {
    /// The host's memcpy once a round, as it drifts like everything else; the device's own copy once.
    pub(super) fn measure_ceilings(&mut self, round: usize) {
        let time = self.plan.timing.ceiling;
        if time.is_zero() {
            return;
        }
        if round == 1 && !self.over() {
            match self.backend.kernel_ceiling(time) {
                Ok(ceiling) => self.report.kernel_ceiling_gb_s = ceiling.map(|rate| rate / 1e9),
                Err(error) => self.report.kernel_ceiling_error = Some(error.to_string()),
            }
        }
        if let Err(error) = self.time_works() {
            log::warn!("the consumer's work could not be timed alone: {error}");
        }
        let sample = self.source.layout().byte_len();
        let sizes: Vec<Settings> = self.entrants.iter().map(|entrant| self.plan.settings[entrant.rows[0]]).collect();
        for settings in sizes {
            let Settings { batch_size, workers, .. } = settings;
            let bytes = sample.saturating_mul(batch_size);
            let known = |c: &Ceilings| (c.batch_size, c.workers) == (batch_size, workers);
            let index = match self.report.ceilings.iter().position(known) {
                Some(index) => index,
                None if self.over() => continue,
                None => {
                    let ceilings = self.new_ceilings(&settings, bytes, time);
                    self.report.ceilings.push(ceilings);
                    self.report.ceilings.len() - 1
                }
            };
            let samples = self.report.ceilings[index].host_memcpy_samples.len();
            if samples < round && samples < MAX_MEMCPY && !self.over() {
                let rate = parallel_memcpy(bytes, workers, time).map(|rate| rate / 1e9);
                self.report.ceilings[index].host_memcpy_samples.extend(rate);
            }
        }
    }

    fn new_ceilings(&self, settings: &Settings, bytes: usize, time: Duration) -> Ceilings {
        let Settings { sample_bytes, batch_size, workers, .. } = *settings;
        // The device's copy is the same for any number of workers.
        let same = self.report.ceilings.iter().find(|c| c.batch_size == batch_size);
        let (device_copy_gb_s, device_copy_error) = match same {
            Some(same) => (same.device_copy_gb_s, same.device_copy_error.clone()),
            // Small copies do not reach the link's limit, and pipelined ones may; the ceiling is the link's.
            None => match self.backend.copy_ceiling(bytes.max(64 << 20), time) {
                Ok(rate) => (Some(rate / 1e9), None),
                Err(error) => (None, Some(error.to_string())),
            },
        };
        let host_memcpy_samples = Vec::new();
        let pageable_copy_gb_s = match same {
            Some(same) => same.pageable_copy_gb_s,
            // What is missing is reported where the other copy fails.
            None => self.backend.pageable_ceiling(bytes.max(64 << 20), time).ok().flatten().map(|rate| rate / 1e9),
        };
        // Beside a consumer that computes it is the batch's own copy that is to be hidden.
        let batch_copy_gb_s = match same {
            Some(same) => same.batch_copy_gb_s,
            None if self.load.is_some() => self.backend.copy_ceiling(bytes, time).ok().map(|rate| rate / 1e9),
            None => None,
        };
        Ceilings {
            sample_bytes,
            batch_size,
            workers,
            host_memcpy_samples,
            host_memcpy_gb_s: None,
            device_copy_gb_s,
            batch_copy_gb_s,
            pageable_copy_gb_s,
            device_copy_error,
        }
    }
}

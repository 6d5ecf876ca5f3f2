//! The arguments that size what is compared.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::Args;
use gpufeed::measure::report::{HandOver, Settings};
use gpufeed::{LoaderOptions, Strategy};

use super::sweep::Sweep;
use crate::units::HxW;

/// Takes about a minute with what there is on a desktop.
const DEFAULT_SECONDS: f64 = 35.0;

/// A consumer that does nothing: every strategy is measured beside it, whatever else there is.
pub const IDLE: (u32, HandOver) = (0, HandOver::Queued);

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Loading; each combination of lists is measured")]
pub struct SizeArgs {
    /// Samples in a batch [default: 64]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    pub batch_size: Vec<NonZeroUsize>,
    /// Threads that read samples [default: one a core, at most 8]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    pub workers: Vec<NonZeroUsize>,
    /// Staging slots: batches being filled or copied [default: 4]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    pub slots: Vec<NonZeroUsize>,
    /// Sweep a size, and name where the winner changes: batch, workers, slots, compute (microseconds), or sample (a side, or height
    /// and width of images), as in batch=1,4,16,64 or sample=32,64x48,224; may be repeated
    #[arg(long = "sweep", value_name = "SIZE=N,..")]
    pub sweeps: Vec<Sweep>,
    /// Output tensors: batches ready or in use [default: 4]
    #[arg(long, value_name = "N")]
    pub outputs: Option<NonZeroUsize>,
    /// Shuffle; the order depends on this number alone
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// How long it all may take, about: more time makes more and longer rounds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_SECONDS, value_parser = seconds)]
    pub time: f64,
    /// Give a device up that has not ended after this long [default: a minute and four times its share of --time]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub device_timeout: Option<f64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.1..=1e6).contains(seconds));
    seconds.ok_or_else(|| "expected seconds, from 0.1 to 1000000".to_owned())
}

impl SizeArgs {
    /// Every combination of the sizes, with any strategy and size of sample.
    pub fn combinations(&self) -> Vec<Settings> {
        let default = LoaderOptions::default();
        let or = |given: &[NonZeroUsize], default| match given {
            [] => vec![default],
            given => unique(given).into_iter().map(NonZeroUsize::get).collect(),
        };
        let outputs = self.outputs.map_or(default.outputs, NonZeroUsize::get);
        let mut all = Vec::new();
        for &batch_size in &or(self.of("batch", &self.batch_size), default.batch_size) {
            for &workers in &or(self.of("workers", &self.workers), default.workers) {
                for &slots in &or(self.of("slots", &self.slots), default.slots) {
                    let (compute_us, hand_over) = IDLE;
                    let strategy = Strategy::Memcpy;
                    let sizes = Settings {
                        strategy,
                        sample_bytes: 0,
                        batch_size,
                        workers,
                        slots,
                        outputs,
                        compute_us,
                        hand_over,
                    };
                    all.push(sizes);
                }
            }
        }
        all
    }

    /// The values of a size: those swept, or those of its own option.
    fn of<'a>(&'a self, size: &str, given: &'a [NonZeroUsize]) -> &'a [NonZeroUsize] {
        let swept = self.sweeps.iter().rev().find_map(|sweep| match sweep {
            Sweep::Count(name, values) if *name == size => Some(values.as_slice()),
            _ => None,
        });
        swept.unwrap_or(given)
    }

    /// An option whose size is swept as well, and so would say nothing.
    pub fn swept_and_given(&self, compute: &[u32]) -> Option<&'static str> {
        let swept =
            |size: &str| self.sweeps.iter().any(|sweep| matches!(sweep, Sweep::Count(name, _) if *name == size));
        let given = [
            ("--batch-size", swept("batch") && !self.batch_size.is_empty()),
            ("--workers", swept("workers") && !self.workers.is_empty()),
            ("--slots", swept("slots") && !self.slots.is_empty()),
            ("--compute", !self.computes().is_empty() && !compute.is_empty()),
        ];
        given.into_iter().find(|(_, both)| *both).map(|(option, _)| option)
    }

    /// The sizes of images that are swept.
    pub fn samples(&self) -> Vec<HxW> {
        let swept = self.sweeps.iter().rev().find_map(|sweep| match sweep {
            Sweep::Sample(values) => Some(unique(values)),
            _ => None,
        });
        swept.unwrap_or_default()
    }

    /// How long consumers compute, where that is swept.
    pub fn computes(&self) -> &[u32] {
        let swept = self.sweeps.iter().rev().find_map(|sweep| match sweep {
            Sweep::Compute(values) => Some(values.as_slice()),
            _ => None,
        });
        swept.unwrap_or_default()
    }

    /// The largest batch.
    pub fn largest_batch(&self) -> usize {
        self.of("batch", &self.batch_size)
            .iter()
            .map(|size| size.get())
            .max()
            .unwrap_or(LoaderOptions::default().batch_size)
    }

    /// How long a device may take that was given this much of the time.
    pub fn deadline(&self, budget: Duration) -> Duration {
        self.device_timeout.map_or_else(|| budget * 4 + Duration::from_secs(60), Duration::from_secs_f64)
    }
}

/// Each value once, in their order.
pub fn unique<T: Copy + PartialEq>(values: &[T]) -> Vec<T> {
    let mut once: Vec<T> = Vec::new();
    for &value in values {
        if !once.contains(&value) {
            once.push(value);
        }
    }
    once
}

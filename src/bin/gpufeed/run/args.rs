//! The arguments of `gpufeed run`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use gpufeed::{LastBatch, LoaderOptions, Preprocess, Strategy};

use crate::args::{DataArgs, FeedArgs, strategy};
use crate::units;

#[derive(Debug, Args)]
pub struct RunArgs {
    /// A folder of JPEG, PNG and WebP images, or a .npy file (labels: NAME.labels.npy beside it)
    pub data: PathBuf,
    /// Device: auto, an API (vulkan), an id (vulkan:0, host), or a part of a name; see `gpufeed devices`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: String,
    /// How bytes get to the device [default: the device's own]
    #[arg(long, value_name = "NAME", value_parser = strategy())]
    pub strategy: Option<Strategy>,
    #[command(flatten)]
    pub loading: LoadingArgs,
    #[command(flatten)]
    pub images: DataArgs,
    #[command(flatten)]
    pub feed: FeedArgs,
    /// Save each tensor, read back from the device, as batch-000000.npy and so on, with .indices.npy and .labels.npy
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub save: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Loading")]
pub struct LoadingArgs {
    /// Samples in a batch
    #[arg(long, value_name = "N", default_value = "64")]
    pub batch_size: NonZeroUsize,
    /// Passes over the samples
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub epochs: u32,
    /// Shuffle each epoch; the order depends on this number and the epoch's alone
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Leave out the samples that do not fill a batch
    #[arg(long)]
    pub drop_last: bool,
    /// Threads that read samples [default: one a core, at most 8]
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroUsize>,
    /// Staging slots: batches being filled or copied [default: 4]
    #[arg(long, value_name = "N")]
    pub slots: Option<NonZeroUsize>,
    /// Output tensors: batches ready or in use [default: 4]
    #[arg(long, value_name = "N")]
    pub outputs: Option<NonZeroUsize>,
    /// The most memory to take, as in 512MB or 1GiB: refuses to start if more is needed
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    pub budget: Option<u64>,
}

impl RunArgs {
    /// What the loader is told.
    pub fn options(&self, preprocess: Preprocess) -> LoaderOptions {
        let default = LoaderOptions::default();
        let given = &self.loading;
        let or = |count: Option<NonZeroUsize>, default| count.map_or(default, NonZeroUsize::get);
        LoaderOptions {
            batch_size: given.batch_size.get(),
            slots: or(given.slots, default.slots),
            outputs: or(given.outputs, default.outputs),
            workers: or(given.workers, default.workers),
            seed: given.seed,
            last_batch: if given.drop_last { LastBatch::Drop } else { LastBatch::Short },
            strategy: self.strategy,
            preprocess,
            byte_budget: given.budget,
            ..default
        }
    }
}

//! The arguments of `gpufeed run`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use gpufeed::{LoaderOptions, Preprocess, Share, Source, Strategy};

use super::auto::{Auto, OrAuto, strategy_or_auto};
use super::batches::BatchArgs;
use super::observe::ObserveArgs;
use crate::args::{DataArgs, usage_error};
use crate::feed_args::FeedArgs;
use crate::output_file::{Inputs, OutputFile};
use crate::units;

#[derive(Debug, Args)]
pub struct RunArgs {
    /// A folder of JPEG, PNG and WebP images, tar shards (as in 'train-{000..146}.tar', quoted), or a .npy file (labels:
    /// NAME.labels.npy beside it)
    pub data: PathBuf,
    /// Device: auto, an API (vulkan), an id (vulkan:0, host), or a part of a name; see `gpufeed devices`. Given several
    /// times, the devices are fed together and share each epoch
    #[arg(long = "device", value_name = "DEVICE", default_value = "auto")]
    pub devices: Vec<String>,
    /// How bytes get to the device [default: the device's own]
    #[arg(long, value_name = "NAME", value_parser = strategy_or_auto())]
    strategy: Option<OrAuto<Strategy>>,
    #[command(flatten)]
    pub loading: LoadingArgs,
    #[command(flatten)]
    pub batches: BatchArgs,
    #[command(flatten)]
    pub images: DataArgs,
    #[command(flatten)]
    pub feed: FeedArgs,
    #[command(flatten)]
    pub observe: ObserveArgs,
    /// Save each tensor, read back from the device, as batch-000000.npy and so on, with .indices.npy and .labels.npy;
    /// several devices each into a folder in it (vulkan-0, host)
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
    /// Deliver the share of this machine or process, from 0, of each epoch; all need the same --seed. Where the samples
    /// do not divide evenly some ranks have one sample more, and may so have one batch more: --drop-last or --pad-last. Bad
    /// samples that are skipped shorten a rank's own batches, and one of which nothing is left does not come
    #[arg(long, value_name = "N", requires = "world")]
    pub rank: Option<u32>,
    /// Among how many machines or processes each epoch is shared
    #[arg(long, value_name = "N", requires = "rank", value_parser = clap::value_parser!(u32).range(1..))]
    pub world: Option<u32>,
    /// Take rank and world from what torchrun, Open MPI, MPICH, Intel MPI, MVAPICH or srun has set in the environment. The
    /// device is still yours to choose, as in --device cuda:$LOCAL_RANK
    #[arg(long, conflicts_with_all = ["rank", "world"])]
    pub share_from_env: bool,
    /// Threads that read samples for each device; auto measures how many are best [default: one a core, at most 8; several
    /// devices divide the cores]
    #[arg(long, value_name = "N|auto")]
    workers: Option<OrAuto<NonZeroUsize>>,
    /// Have auto measure beside a consumer that computes this long for each batch, in microseconds, as the application will
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    compute: Option<u32>,
    /// Keep what auto chose in this file, and take it from there next time
    #[arg(long, value_name = "FILE")]
    auto_cache: Option<PathBuf>,
    /// Staging slots: batches being filled or copied [default: 4]
    #[arg(long, value_name = "N")]
    pub slots: Option<NonZeroUsize>,
    /// Output tensors: batches ready or in use [default: 4]
    #[arg(long, value_name = "N")]
    pub outputs: Option<NonZeroUsize>,
    /// The most memory to take, as in 512MB or 1GiB: refuses to start if more is needed. Several devices divide it evenly
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    pub budget: Option<u64>,
    /// Where memory is short, or cannot be page-locked, start with fewer slots and outputs, and say so
    #[arg(long)]
    pub shrink: bool,
}

impl RunArgs {
    /// Checks what the parser cannot, and returns the share of this process, whatever its number of devices.
    ///
    /// # Errors
    /// One of usage, or of what the environment has.
    pub fn check(&self) -> Result<Share> {
        self.batches.check()?;
        let auto = self.auto();
        if auto.cache.is_some() && !auto.strategy && !auto.workers {
            bail!(usage_error("run", "--auto-cache is only for --strategy auto and --workers auto"));
        }
        if self.loading.compute.is_some() && !auto.strategy && !auto.workers {
            bail!(usage_error("run", "--compute is only for --strategy auto and --workers auto"));
        }
        self.loading.share()
    }

    /// The files that are read, which no output may be. A state may be gone on with in its own file.
    ///
    /// # Errors
    /// An output is one of them, directly or through links.
    pub fn check_outputs(&self, source: &Arc<dyn Source>) -> Result<Arc<Inputs>> {
        let inputs = Inputs::new(self.images.classes.clone()).with_source(&self.data, source);
        if let Some(cache) = &self.loading.auto_cache {
            OutputFile::new("--auto-cache", cache, &inputs)?;
        }
        let state = Inputs::new(self.batches.resume.clone());
        for (option, path) in self.observe.files() {
            OutputFile::new(option, path, &state)?;
        }
        Ok(Arc::new(inputs))
    }

    /// What is to be measured first.
    pub fn auto(&self) -> Auto {
        Auto {
            strategy: self.strategy == Some(OrAuto::Auto),
            workers: self.loading.workers == Some(OrAuto::Auto),
            cache: self.loading.auto_cache.clone(),
            compute: Duration::from_micros(self.loading.compute.unwrap_or(0).into()),
        }
    }

    /// The options of the loader of device `number` of `devices`.
    pub fn options(&self, share: Share, preprocess: Preprocess, number: usize, devices: usize) -> LoaderOptions {
        let default = LoaderOptions::default();
        let given = &self.loading;
        let or = |count: Option<NonZeroUsize>, default| count.map_or(default, NonZeroUsize::get);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers = given.workers.and_then(OrAuto::given);
        let mut options = LoaderOptions {
            batch_size: given.batch_size.get(),
            slots: or(given.slots, default.slots),
            outputs: or(given.outputs, default.outputs),
            workers: or(workers, (cores / devices).clamp(1, default.workers)),
            seed: given.seed,
            rank: share.rank * devices as u64 + number as u64,
            world: share.world * devices as u64,
            strategy: self.strategy.and_then(OrAuto::given),
            preprocess,
            byte_budget: given.budget.map(|budget| budget / devices as u64),
            ..default
        };
        self.batches.apply(&mut options);
        options
    }
}

impl LoadingArgs {
    fn share(&self) -> Result<Share> {
        if self.share_from_env {
            let found = Share::from_env()?;
            return found.context("--share-from-env: no launcher has set a rank and a number of processes");
        }
        let (rank, world) = (self.rank.unwrap_or(0).into(), self.world.unwrap_or(1).into());
        Share::new(rank, world).ok_or_else(|| {
            usage_error("run", format_args!("--rank {rank} is not below --world {world}: ranks count from 0")).into()
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::UsageError;

    /// The arguments alone.
    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: RunArgs,
    }

    fn parse(args: &[&str]) -> RunArgs {
        Line::parse_from([&["run", "x.npy"], args].concat()).args
    }

    fn share(args: &RunArgs) -> Share {
        args.check().expect("a share")
    }

    fn is_usage(error: &anyhow::Error) -> bool {
        error.downcast_ref::<UsageError>().is_some_and(|usage| usage.command == "run")
    }

    #[test]
    fn devices_have_global_ranks_and_divide_cores_and_budget() {
        let args = parse(&["--rank", "1", "--world", "3", "--budget", "1001"]);
        let options = args.options(share(&args), Preprocess::Raw, 1, 2);
        assert_eq!((options.rank, options.world, options.byte_budget), (3, 6, Some(500)));
        let cores = thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(options.workers, (cores / 2).clamp(1, 8));
        assert_eq!(args.options(share(&args), Preprocess::Raw, 0, 1000).workers, 1);
        let args = parse(&["--workers", "5"]);
        assert_eq!(args.options(share(&args), Preprocess::Raw, 0, 2).workers, 5);
    }

    #[test]
    fn one_device_alone_has_the_defaults() {
        let args = parse(&[]);
        let (options, default) = (args.options(share(&args), Preprocess::Raw, 0, 1), LoaderOptions::default());
        assert_eq!((options.rank, options.world, options.workers), (0, 1, default.workers));
        assert_eq!((options.slots, options.outputs, options.byte_budget), (default.slots, default.outputs, None));
    }

    #[test]
    fn a_rank_outside_its_world_is_wrong_usage() {
        assert!(parse(&["--rank", "2", "--world", "3"]).check().is_ok());
        let error = parse(&["--rank", "3", "--world", "3"]).check().expect_err("refused");
        assert!(is_usage(&error), "{error}");
    }

    #[test]
    fn what_is_left_to_auto_is_measured_and_the_rest_is_not() {
        let auto = |args: &[&str]| {
            let Auto { strategy, workers, .. } = parse(args).auto();
            (strategy, workers)
        };
        assert_eq!(auto(&[]), (false, false));
        assert_eq!(auto(&["--strategy", "auto", "--workers", "3"]), (true, false));
        assert_eq!(auto(&["--strategy", "memcpy", "--workers", "auto"]), (false, true));
        let error = parse(&["--auto-cache", "x.json"]).check().expect_err("refused");
        assert!(is_usage(&error), "{error}");
        assert_eq!(parse(&["--workers", "auto", "--compute", "400"]).auto().compute, Duration::from_micros(400));
        let error = parse(&["--compute", "400"]).check().expect_err("refused");
        assert!(is_usage(&error), "{error}");
        for wrong in [["--workers", "0"], ["--workers", "many"], ["--strategy", "fast"]] {
            assert!(Line::try_parse_from([&["run", "x.npy"][..], &wrong].concat()).is_err(), "{wrong:?}");
        }
    }
}

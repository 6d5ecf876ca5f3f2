//! The arguments of `gpufeed compare`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gpufeed::backend::select;
use gpufeed::measure::report::{Column, HandOver, Settings, Table};
use gpufeed::{AdapterInfo, Strategy};

use super::baseline::BaselineArgs;
use super::size_args::{IDLE, SizeArgs, unique};
use crate::args::{DataArgs, UsageError, open_source, strategy, usage_error};
use crate::feed_args::FeedArgs;
use crate::output_file::Inputs;

const HELP: &str = "\
Every configuration is verified first, with the very settings it is then timed with: a checksum of each sample that the \
device computes, and whole tensors against a reference. Wrong data is an error, never a number. Configurations are timed \
in turn, round by round. A rate that no memory or link can reach is not shown, and the reason is. Each device runs in a \
process of its own, so that a driver's crash is a row and not the end.";

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 failed (wrong data, nothing could be measured, or slower than --baseline allows), 2 wrong usage, 3 no such device, 130 interrupted.";

/// How it is measured, what each column says, and the exit codes.
fn help() -> String {
    let explained = |column: &Column| format!("  {}: {}", column.heading(), column.explanation);
    let loader = Column::of(Table::Loader).map(explained);
    let overlap = Column::of(Table::Overlap).map(explained);
    let clock = Column::of(Table::Clock).map(explained);
    let columns = ["Columns, medians of the rounds:".to_owned()].into_iter().chain(loader);
    let columns = columns.chain(["Beside a consumer that computes (--compute):".to_owned()]).chain(overlap);
    let columns = columns.chain(["By the device's own clock:".to_owned()]).chain(clock).collect::<Vec<_>>().join("\n");
    format!("{HELP}\n\n{columns}\n\n{EXIT_CODES}")
}

#[derive(Debug, Args)]
#[command(after_long_help = help())]
pub struct CompareArgs {
    /// A folder of JPEG, PNG and WebP images, tar shards (as in 'train-{000..146}.tar', quoted), or a .npy file [default: random
    /// images in memory]
    pub data: Option<PathBuf>,
    /// Compare on this device: an API (vulkan), an id (vulkan:0, host), or a part of a name; may be repeated [default: all]
    #[arg(long = "device", value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Compare this strategy; may be repeated [default: all]
    #[arg(long = "strategy", value_name = "NAME", value_parser = strategy())]
    pub strategies: Vec<Strategy>,
    #[command(flatten)]
    pub sizes: SizeArgs,
    #[command(flatten)]
    pub consumer: ConsumerArgs,
    #[command(flatten)]
    pub images: DataArgs,
    #[command(flatten)]
    pub feed: FeedArgs,
    #[command(flatten)]
    pub baseline: BaselineArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A consumer computes for this long at most.
pub const MAX_COMPUTE_US: u32 = 1_000_000;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Consumer; one that does nothing is always measured beside")]
pub struct ConsumerArgs {
    /// Measure beside a consumer too that computes this long for each batch, in microseconds: fixed work of one workgroup on
    /// the device, calibrated alone
    #[arg(long, value_name = "US,..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_COMPUTE_US)))]
    pub compute: Vec<u32>,
    /// What the consumer's CPU waits for [default: queued]
    #[arg(long, value_name = "HOW,..", value_delimiter = ',', value_parser = hand_over())]
    pub hand_over: Vec<HandOver>,
}

fn hand_over() -> impl TypedValueParser<Value = HandOver> {
    let named = HandOver::ALL.iter().map(|way| PossibleValue::new(way.key()).help(way.describe()));
    PossibleValuesParser::new(named).try_map(|name| name.parse::<HandOver>())
}

impl ConsumerArgs {
    /// What becomes of the batches: nothing first, then each compute with each hand-over.
    fn uses(&self, swept: &[u32]) -> Vec<(u32, HandOver)> {
        let computes = [&[0], self.compute.as_slice(), swept].concat();
        let ways = if self.hand_over.is_empty() { vec![HandOver::Queued] } else { self.hand_over.clone() };
        let each = computes.iter().flat_map(|&compute| ways.iter().map(move |&way| (compute, way)));
        unique(&std::iter::once(IDLE).chain(each).collect::<Vec<_>>())
    }
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output, written after each device")]
pub struct OutputArgs {
    /// Write everything that was measured as JSON (gpufeed-compare/2)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write every round as a line of CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write one self-contained page with charts
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl CompareArgs {
    /// What the parser cannot tell of options that exclude each other.
    pub fn check(&self) -> Result<(), UsageError> {
        if let Some(option) = self.sizes.swept_and_given(&self.consumer.compute) {
            return Err(usage_error("compare", format!("{option} is swept already: --sweep has its values")));
        }
        let swept = !self.sizes.samples().is_empty();
        let excluded = [("--size", self.images.size.is_some()), ("--baseline", self.baseline.baseline.is_some())];
        match excluded.into_iter().find(|(_, given)| swept && *given) {
            Some((option, _)) => Err(usage_error("compare", format!("--sweep sample=.. cannot be used with {option}"))),
            None => Ok(()),
        }
    }

    /// The files that are read.
    pub fn inputs(&self) -> Result<Inputs> {
        let inputs = Inputs::new(self.images.classes.clone().into_iter().chain(self.baseline.baseline.clone()));
        let outputs = [&self.output.json, &self.output.markdown, &self.output.csv, &self.output.html];
        match &self.data {
            // Only a file that is there can be an input.
            Some(data) if outputs.into_iter().flatten().any(|path| path.exists()) => {
                Ok(inputs.with_source(data, &open_source(data, &self.images)?))
            }
            _ => Ok(inputs),
        }
    }

    /// The devices asked for, or all of them; each once.
    pub fn choose<'a>(&self, found: &'a [AdapterInfo]) -> Result<Vec<&'a AdapterInfo>> {
        if self.devices.is_empty() {
            return Ok(found.iter().collect());
        }
        let mut chosen: Vec<&AdapterInfo> = Vec::new();
        for wanted in &self.devices {
            let device = select::select(found, wanted)?;
            if !chosen.iter().any(|known| known.id == device.id) {
                chosen.push(device);
            }
        }
        Ok(chosen)
    }

    /// What is compared on a device: each strategy with each combination of sizes. One that the device cannot run is
    /// listed once.
    pub fn settings(&self, device: &AdapterInfo) -> Vec<Settings> {
        let strategies = match self.strategies.as_slice() {
            [] => device.strategies.iter().map(|support| support.strategy).collect(),
            asked => unique(asked),
        };
        let runs = |strategy: Strategy| {
            device.strategies.iter().any(|support| support.strategy == strategy && support.missing.is_none())
        };
        let mut all = Vec::new();
        for (number, sizes) in self.sizes.combinations().into_iter().enumerate() {
            for &strategy in strategies.iter().filter(|&&strategy| number == 0 || runs(strategy)) {
                let uses = if runs(strategy) { self.consumer.uses(self.sizes.computes()) } else { vec![IDLE] };
                let used = |(compute_us, hand_over)| Settings { strategy, compute_us, hand_over, ..sizes };
                all.extend(uses.into_iter().map(used));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use gpufeed::Api;
    use gpufeed::backend::host::host_info;

    use super::*;
    use crate::testing::{adapter, support};

    /// The arguments alone.
    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: CompareArgs,
    }

    fn parse(line: &str) -> CompareArgs {
        Line::try_parse_from(["compare"].into_iter().chain(line.split_whitespace())).expect("valid").args
    }

    fn device() -> AdapterInfo {
        let strategies =
            vec![support(Strategy::MappedRing, None, None), support(Strategy::DirectMap, Some("no"), None)];
        adapter(|adapter| {
            (adapter.id, adapter.api, adapter.strategies) = ("vulkan:0".to_owned(), Api::Vulkan, strategies);
        })
    }

    #[test]
    fn lists_are_swept_and_what_cannot_run_is_listed_once() {
        let all = parse("--batch-size 8,64,8 --slots 2,4 --outputs 3").settings(&device());
        let listed: Vec<_> = all.iter().map(|s| (s.strategy, s.batch_size, s.slots)).collect();
        let (ring, direct) = (Strategy::MappedRing, Strategy::DirectMap);
        assert_eq!(listed, [(ring, 8, 2), (direct, 8, 2), (ring, 8, 4), (ring, 64, 2), (ring, 64, 4)]);
        assert!(all.iter().all(|s| s.outputs == 3));
    }

    #[test]
    fn every_strategy_that_runs_is_used_in_every_way_and_first_in_none() {
        let uses = |line: &str| -> Vec<(Strategy, u32, &str)> {
            let all = parse(line).settings(&device());
            all.iter().map(|s| (s.strategy, s.compute_us, s.hand_over.key())).collect()
        };
        let (ring, direct) = (Strategy::MappedRing, Strategy::DirectMap);
        assert_eq!(uses(""), [(ring, 0, "queued"), (direct, 0, "queued")]);
        let computes = [(ring, 0, "queued"), (ring, 400, "queued"), (ring, 9, "queued"), (direct, 0, "queued")];
        assert_eq!(uses("--compute 400,0,9,400"), computes);
        let waits = [(ring, 0, "queued"), (ring, 0, "waited"), (ring, 9, "waited"), (direct, 0, "queued")];
        assert_eq!(uses("--compute 9 --hand-over waited"), waits);
        for bad in ["--compute=-1", "--compute=x", "--compute=2000000", "--hand-over=now"] {
            assert!(Line::try_parse_from(["compare", bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_strategy_of_another_device_is_still_listed() {
        let all = parse("--strategy memcpy --strategy memcpy").settings(&device());
        assert_eq!(all.iter().map(|s| s.strategy).collect::<Vec<_>>(), [Strategy::Memcpy]);
    }

    #[test]
    fn a_device_that_is_named_twice_is_measured_once() {
        let found = [device(), host_info()];
        let ids = |line: &str| -> Vec<String> {
            parse(line).choose(&found).expect("there").iter().map(|device| device.id.clone()).collect()
        };
        assert_eq!(ids(""), ["vulkan:0", "host"]);
        assert_eq!(ids("--device host --device 1 --device vulkan"), ["host", "vulkan:0"]);
        assert!(parse("--device nosuch").choose(&found).is_err());
    }

    #[test]
    fn a_sweep_is_a_list_by_the_sizes_name() {
        let sizes = |line: &str| -> Vec<(usize, usize)> {
            let all = parse(line).settings(&device());
            all.iter().filter(|s| s.strategy == Strategy::MappedRing).map(|s| (s.batch_size, s.slots)).collect()
        };
        assert_eq!(sizes("--sweep batch=1,4 --sweep slots=2,3"), [(1, 2), (1, 3), (4, 2), (4, 3)]);
        assert_eq!(parse("--sweep batch=1,256").sizes.largest_batch(), 256);
        assert_eq!(parse("--sweep sample=32,64x48,32").sizes.samples().len(), 2);
        let computes: Vec<u32> =
            parse("--sweep compute=9,400").settings(&device()).iter().map(|s| s.compute_us).collect();
        assert_eq!(computes, [0, 9, 400, 0], "an idle consumer first, and what cannot run once");
        let refused = |line: &str| parse(line).check().is_err_and(|why| why.to_string().contains("--sweep sample"));
        assert!(refused("--sweep sample=32 --size 8x8") && refused("--sweep sample=32 --baseline a.json"));
        assert!(!refused("--sweep batch=1 --size 8x8"));
        let both = |line: &str| parse(line).check().err().map(|why| why.to_string());
        assert!(
            both("--sweep batch=1 --batch-size 2").is_some_and(|why| why.contains("--batch-size is swept already"))
        );
        assert!(both("--sweep compute=1 --compute 2").is_some_and(|why| why.contains("--compute is swept already")));
        assert_eq!(both("--sweep batch=1,4 --compute 1000 --workers 2"), None);
        assert_eq!(both("--sweep sample=32 --batch-size 16"), None);
    }

    #[test]
    fn times_that_make_no_sense_are_refused() {
        for bad in ["0", "-1", "nan", "inf", "x"] {
            let line = ["compare", "--time", bad];
            assert!(Line::try_parse_from(line).is_err(), "{bad}");
        }
    }
}

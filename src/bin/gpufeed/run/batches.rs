//! The arguments of `gpufeed run` that say which batches there are, and what happens where something is wrong.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use gpufeed::{BadSamples, LastBatch, LoaderOptions, Subset, Tolerance};

use super::state::StateFile;
use crate::args::{UsageError, usage_error};
use crate::output_file::Inputs;

#[derive(Debug, Args)]
#[command(next_help_heading = "Batches")]
pub struct BatchArgs {
    /// Only these samples, counted from 0, the last one excluded
    #[arg(long, value_name = "FIRST..LAST", value_parser = parse_range)]
    samples: Option<Range<u64>>,
    /// Leave out the samples that do not fill a batch
    #[arg(long)]
    drop_last: bool,
    /// Fill the last batch with samples from the start of the epoch's order
    #[arg(long, conflicts_with = "drop_last")]
    pad_last: bool,
    /// Deliver batches as they get ready: a slow sample delays its own batch only
    #[arg(long, conflicts_with_all = ["save_state", "resume"])]
    unordered: bool,
    /// What happens to samples that cannot be read [default: fail]
    #[arg(long, value_name = "HOW")]
    bad_samples: Option<BadArg>,
    /// The most bad samples in an epoch, as a number or as in 1% [default: all]
    #[arg(long, value_name = "N|N%", requires = "bad_samples")]
    max_bad: Option<MaxBad>,
    /// Give up after this many seconds in which nothing moves, and report what waits for what; 0 for never [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    stall_timeout: Option<Duration>,
    /// Keep where delivery stands in this file, for --resume: each second, and at the end, however it comes
    #[arg(long, value_name = "FILE")]
    save_state: Option<PathBuf>,
    /// Go on where this file says, on any device and with any strategy and number of workers
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BadArg {
    /// The command fails
    Fail,
    /// They are left out, and their batches are shorter
    Skip,
    /// Others stand in for them, the same in every run
    Substitute,
}

/// How many bad samples there may be.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MaxBad(Tolerance);

impl FromStr for MaxBad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is no number, and no percentage from 0% to 100%");
        let tolerance = match text.strip_suffix('%') {
            None => Tolerance::Count(text.parse().map_err(|_| refused())?),
            Some(percent) => {
                let percent: f64 = percent.trim().parse().map_err(|_| refused())?;
                Some(percent / 100.0)
                    .filter(|rate| (0.0..=1.0).contains(rate))
                    .map(Tolerance::Rate)
                    .ok_or_else(refused)?
            }
        };
        Ok(Self(tolerance))
    }
}

impl BatchArgs {
    /// Checks what the parser cannot: a limit where nothing is tolerated.
    ///
    /// # Errors
    /// One of usage.
    pub fn check(&self) -> Result<(), UsageError> {
        match (self.bad_samples, self.max_bad) {
            (Some(BadArg::Fail), Some(_)) => Err(usage_error("run", "--max-bad is not for --bad-samples fail")),
            _ => Ok(()),
        }
    }

    /// The file to keep where delivery stands in.
    pub fn state_file(&self, devices: usize, inputs: &Inputs) -> anyhow::Result<Option<StateFile>> {
        let gone_on = self.resume.is_some();
        self.save_state.as_deref().map(|path| StateFile::new(path, devices, gone_on, inputs)).transpose()
    }

    /// Writes into the options what was given.
    pub fn apply(&self, options: &mut LoaderOptions) {
        options.last_batch = match (self.drop_last, self.pad_last) {
            (true, _) => LastBatch::Drop,
            (_, true) => LastBatch::Pad,
            _ => LastBatch::Short,
        };
        options.subset = self.samples.clone().map(Subset::range);
        options.ordered = !self.unordered;
        let most = self.max_bad.map_or(Tolerance::All, |most| most.0);
        options.bad_samples = match self.bad_samples {
            Some(BadArg::Skip) => BadSamples::Skip(most),
            Some(BadArg::Substitute) => BadSamples::Substitute(most),
            Some(BadArg::Fail) | None => BadSamples::Fail,
        };
        if let Some(timeout) = self.stall_timeout {
            options.stall_timeout = Some(timeout).filter(|timeout| !timeout.is_zero());
        }
    }
}

fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let ends = text.split_once("..").and_then(|(first, last)| Some(first.parse().ok()?..last.parse().ok()?));
    ends.filter(|range| range.start < range.end).ok_or_else(|| format!("`{text}` is no range like 0..1000"))
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| format!("`{text}` is no number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_ranges_are_read_or_refused() {
        assert_eq!("12".parse(), Ok(MaxBad(Tolerance::Count(12))));
        assert_eq!("2.5%".parse(), Ok(MaxBad(Tolerance::Rate(0.025))));
        for wrong in ["", "-1", "101%", "%", "nan%", "many"] {
            assert!(wrong.parse::<MaxBad>().is_err(), "{wrong}");
        }
        assert_eq!(parse_range("3..10"), Ok(3..10));
        assert!(["3..3", "3", "..4", "5..2", "a..b"].into_iter().all(|text| parse_range(text).is_err()));
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(["-1", "nan", "soon"].into_iter().all(|text| parse_seconds(text).is_err()));
    }
}

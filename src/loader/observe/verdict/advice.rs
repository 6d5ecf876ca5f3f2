//! Which option to turn next.

use std::fmt;

use serde::Serialize;

use super::super::super::options::LoaderOptions;
use super::super::stats::LoaderStats;
use super::bottleneck::Bottleneck;
use super::evidence::{BUSY, Evidence};
use crate::backend::Strategy;
use crate::preprocess::{FloatType, Preprocess};

/// An option to turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// A field of [`LoaderOptions`], or of its [`Normalize`](crate::Normalize).
    pub option: &'static str,
    /// How, and why.
    pub how: String,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.option, self.how)
    }
}

/// Copies smaller than this do not reach the speed of the link.
const SMALL: u64 = 4 << 20;

pub(super) fn advice(
    bottleneck: Bottleneck,
    evidence: &Evidence,
    stats: &LoaderStats,
    options: &LoaderOptions,
    strategy: Strategy,
    hidden_by: Option<Strategy>,
) -> Vec<Advice> {
    let raise = |option, count: usize, why: &str| one(option, format!("raise it from {count} to {}{why}", 2 * count));
    match bottleneck {
        Bottleneck::Startup => Vec::new(),
        Bottleneck::Source => source(evidence, options, strategy),
        Bottleneck::Slots => {
            let slots = options.slots;
            vec![one(
                "slots",
                format!("raise it from {slots} to {}, so that source and device overlap", (2 * slots).max(3)),
            )]
        }
        Bottleneck::Copy => copy(stats, options, strategy),
        Bottleneck::Kernel => kernel(options),
        Bottleneck::Device => {
            vec![one("timing", "set it: the device's own clock tells copies and kernels apart".to_owned())]
        }
        Bottleneck::NotHidden => not_hidden(hidden_by, strategy),
        Bottleneck::Submission => {
            let allocates = strategy.allocates_per_batch();
            let other =
                allocates.then(|| one("strategy", format!("`{strategy}` allocates for every batch; a ring does not")));
            let larger = raise("batch_size", options.batch_size, ": its cost is the batch's, not the sample's");
            other.into_iter().chain([larger]).collect()
        }
        Bottleneck::Outputs => vec![raise("outputs", options.outputs, ", so that the next is prepared meanwhile")],
        Bottleneck::Consumer => Vec::new(),
    }
}

fn one(option: &'static str, how: String) -> Advice {
    Advice { option, how }
}

fn source(evidence: &Evidence, options: &LoaderOptions, strategy: Strategy) -> Vec<Advice> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = options.workers;
    let mut advice = Vec::new();
    if evidence.workers < BUSY && evidence.occupancy.filled > 0.5 && options.ordered {
        // Batches are ready behind one that is not.
        advice.push(one("ordered", "turn it off: batches are ready, and wait for a slower one before them".to_owned()));
    }
    if workers < cores {
        advice.push(one("workers", format!("raise it from {workers} to {}", (2 * workers).min(cores))));
    } else {
        let how = format!(
            "there is one a core already ({workers}); more help only where reading waits, for a slow disk or a network. \
             Otherwise the source has to get cheaper"
        );
        advice.push(one("workers", how));
    }
    if strategy != Strategy::Memcpy {
        let how = "where the source lies in memory, `registered` (CUDA) and `imported` (Vulkan) have the device read it there, without workers";
        advice.push(one("strategy", how.to_owned()));
    }
    advice
}

fn not_hidden(hidden_by: Option<Strategy>, strategy: Strategy) -> Vec<Advice> {
    let how = match hidden_by {
        Some(other) => format!(
            "`{other}` would hide the copies: it copies while the device computes, and `{strategy}` in turn with it"
        ),
        None => "`gpufeed compare --compute` measures which strategy hides its copies behind as much work".to_owned(),
    };
    vec![one("strategy", how)]
}

fn copy(stats: &LoaderStats, options: &LoaderOptions, strategy: Strategy) -> Vec<Advice> {
    let small = stats.batches > 0 && stats.bytes / stats.batches < SMALL;
    let larger = small.then(|| {
        let to = 2 * options.batch_size;
        one(
            "batch_size",
            format!("raise it from {} to {to}: small copies do not reach the link's speed", options.batch_size),
        )
    });
    let how = format!("`gpufeed compare` measures whether another copies faster than `{strategy}`");
    larger.into_iter().chain([one("strategy", how)]).collect()
}

fn kernel(options: &LoaderOptions) -> Vec<Advice> {
    let sums = options.fingerprints.then(|| one("fingerprints", "turn them off: a kernel computes them".to_owned()));
    let half = match &options.preprocess {
        Preprocess::Normalize(normalize) if normalize.dtype == FloatType::F32 => {
            Some(one("dtype", "f16 has the kernel write half as many bytes".to_owned()))
        }
        _ => None,
    };
    sums.into_iter().chain(half).collect()
}

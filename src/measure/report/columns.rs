//! The one table of columns: whatever shows figures of a comparison shows these.
//!
//! A new column is one entry of [`COLUMNS`]. The terminal, Markdown, CSV, the JSON and `gpufeed compare --help` follow it by
//! themselves; `GPUFEED_UPDATE_SNAPSHOTS=1 cargo test` writes the JSON schema and the snapshot of the help anew.

use super::figures::Figures;
use super::measured::Measured;
use super::text;
use crate::measure::bounds::percent_of;

/// A column.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Column {
    /// Its heading. Where it is broken, terminals may break it.
    pub title: &'static str,
    /// What it says, in one sentence without a full stop.
    pub explanation: &'static str,
    /// Which table it stands in.
    pub table: Table,
    /// Its figures: one, or several that are shown together.
    pub figures: &'static [Figure],
    text: fn(&[Option<f64>]) -> String,
}

/// A number with a name of its own.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Figure {
    /// Its name in JSON and CSV.
    pub key: &'static str,
    value: fn(&Measured<'_>) -> Option<f64>,
}

/// The tables that people see. CSV and JSON have every column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Table {
    /// What the loader reached.
    Loader,
    /// What is hidden behind the work of a consumer that computes.
    Overlap,
    /// What the device's own clock says.
    Clock,
    /// None: it stands in CSV and JSON alone.
    None,
}

const fn figure(key: &'static str, value: fn(&Measured<'_>) -> Option<f64>) -> Figure {
    Figure { key, value }
}

/// Every column, in the order in which they stand.
pub const COLUMNS: &[Column] = &[
    Column {
        title: "samples/s\n± spread",
        explanation: "samples a second: the median of the rounds and their spread, a robust standard deviation",
        table: Table::Loader,
        figures: &[
            figure("samples_s", |m| m.median(|round| Some(round.samples_s))),
            figure("samples_s_spread", |m| m.spread(|round| round.samples_s)),
        ],
        text: text::spread,
    },
    Column {
        title: "GB/s",
        explanation: "decimal gigabytes a second, of the samples as the source delivers them",
        table: Table::Loader,
        figures: &[figure("gb_s", |m| m.median(|round| Some(round.gb_s)))],
        text: text::number,
    },
    Column {
        title: "CPU\ns/GB",
        explanation: "CPU time of the whole process for each gigabyte, in seconds",
        table: Table::Loader,
        figures: &[figure("cpu_s_per_gb", |m| m.median(|round| round.cpu_s_per_gb))],
        text: text::number,
    },
    Column {
        title: "latency ms\np50/95/99",
        explanation: "from the start of a batch's fill to its tensor ready on the device, percentiles in milliseconds",
        table: Table::Loader,
        figures: &[
            figure("latency_p50_ms", |m| m.median(|round| Some(round.stats.latency.p50_us / 1e3))),
            figure("latency_p95_ms", |m| m.median(|round| Some(round.stats.latency.p95_us / 1e3))),
            figure("latency_p99_ms", |m| m.median(|round| Some(round.stats.latency.p99_us / 1e3))),
        ],
        text: text::number,
    },
    Column {
        title: "wait ms\np50/95/99",
        explanation: "time that the consumer spends inside next, percentiles in milliseconds",
        table: Table::Loader,
        figures: &[
            figure("wait_p50_ms", |m| m.median(|round| Some(round.stats.wait.p50_us / 1e3))),
            figure("wait_p95_ms", |m| m.median(|round| Some(round.stats.wait.p95_us / 1e3))),
            figure("wait_p99_ms", |m| m.median(|round| Some(round.stats.wait.p99_us / 1e3))),
        ],
        text: text::number,
    },
    Column {
        title: "staging GB/s\n(x memcpy)",
        explanation: "the CPU's step alone: taking memory, filling it and submitting it; in brackets, against the memcpy",
        table: Table::Loader,
        figures: &[
            figure("staging_gb_s", |m| m.median(|round| round.staging_gb_s)),
            figure("staging_times_memcpy", |m| m.times_memcpy(m.median(|round| round.staging_gb_s))),
        ],
        text: text::with_ratio,
    },
    Column {
        title: "of own\ncopy",
        explanation: "GB/s as a share of the device's own copy, a ceiling; a dash where it is not known, or was passed and so is none",
        table: Table::Loader,
        figures: &[figure("percent_of_copy", |m| {
            m.median(|round| Some(round.gb_s))
                .zip(m.ceilings?.device_copy_gb_s)
                .and_then(|(rate, copy)| percent_of(rate, copy))
        })],
        text: text::percents,
    },
    Column {
        title: "times\nmemcpy",
        explanation: "GB/s against a parallel memcpy on the host with as many threads, a reference that can be passed",
        table: Table::Loader,
        figures: &[figure("times_memcpy", |m| m.times_memcpy(m.median(|round| Some(round.gb_s))))],
        text: text::ratios,
    },
    Column {
        title: "computes\nµs alone",
        explanation: "how long the consumer's work for a batch takes on a device that has nothing else to do; 0 for a consumer that does nothing",
        table: Table::Overlap,
        figures: &[figure("compute_us", |m| Some(m.compute_us()))],
        text: text::number,
    },
    Column {
        title: "step µs",
        explanation: "from batch to batch, copies and the consumer's work included",
        table: Table::Overlap,
        figures: &[figure("step_us", |m| m.step_us())],
        text: text::number,
    },
    Column {
        title: "ideal µs\n(step)",
        explanation: "the slowest of what would take place at once: the device's own copy of a batch, the CPU's fill, the consumer's work; in brackets, the step as a multiple of it",
        table: Table::Overlap,
        figures: &[
            figure("ideal_us", |m| m.ideal_us()),
            figure("step_times_ideal", |m| Some(m.step_us()? / m.ideal_us()?)),
        ],
        text: text::with_ratio,
    },
    Column {
        title: "hidden",
        explanation: "of the shorter of transfer (a step beside a consumer that does nothing) and compute, the share that cost no time of its own",
        table: Table::Overlap,
        figures: &[figure("hidden_percent", |m| m.hidden().map(|share| 100.0 * share))],
        text: text::percents,
    },
    Column {
        title: "CPU waits\nµs",
        explanation: "time a batch that the consumer's CPU waited: in next, and where it waits for a batch or for its own work",
        table: Table::Overlap,
        figures: &[figure("cpu_waits_us", |m| {
            m.median(|round| Some(1e6 * (round.stats.next_s + round.waited_s) / round.batches as f64))
        })],
        text: text::number,
    },
    Column {
        title: "copy GB/s",
        explanation: "the copy from staging memory by the device's own clock; a dash where it is no command of its own",
        table: Table::Clock,
        figures: &[figure("gpu_copy_gb_s", |m| m.gpu?.copy_gb_s)],
        text: text::number,
    },
    Column {
        title: "kernel GB/s\n(of ceiling)",
        explanation: "kernels by the device's own clock, bytes read and written; in brackets, of what a copying kernel reaches",
        table: Table::Clock,
        figures: &[
            figure("gpu_kernel_gb_s", |m| m.gpu?.kernel_gb_s),
            figure("gpu_kernel_percent_of_ceiling", |m| {
                m.gpu?.kernel_gb_s.zip(m.kernel_ceiling_gb_s).and_then(|(rate, ceiling)| percent_of(rate, ceiling))
            }),
        ],
        text: text::with_percent,
    },
    Column {
        title: "copying alone GB/s",
        explanation: "what copying alone reaches: the device from page-locked and from pageable memory, the host, a kernel",
        table: Table::None,
        figures: &[
            figure("device_copy_gb_s", |m| m.ceilings?.device_copy_gb_s),
            figure("batch_copy_gb_s", |m| m.ceilings?.batch_copy_gb_s),
            figure("pageable_copy_gb_s", |m| m.ceilings?.pageable_copy_gb_s),
            figure("host_memcpy_gb_s", |m| m.ceilings?.host_memcpy_gb_s),
            figure("kernel_ceiling_gb_s", |m| m.kernel_ceiling_gb_s),
        ],
        text: text::number,
    },
    Column {
        title: "ready",
        explanation: "share of the consumer's calls of next that found a batch ready, in percent",
        table: Table::None,
        figures: &[figure("ready_percent", |m| m.median(|round| Some(100.0 * round.stats.data_readiness())))],
        text: text::percents,
    },
    Column {
        title: "rounds",
        explanation: "the length of a round in seconds, and its batches: medians",
        table: Table::None,
        figures: &[
            figure("round_seconds", |m| m.median(|round| Some(round.seconds))),
            figure("round_batches", |m| m.median(|round| Some(round.batches as f64))),
        ],
        text: text::number,
    },
];

impl Column {
    /// The columns of a table.
    pub fn of(table: Table) -> impl Iterator<Item = &'static Self> {
        COLUMNS.iter().filter(move |column| column.table == table)
    }

    /// Its text for figures.
    #[must_use]
    pub fn text(&self, figures: &Figures) -> String {
        let values: Vec<Option<f64>> = self.figures.iter().map(|figure| figures.get(figure.key)).collect();
        (self.text)(&values)
    }

    /// Its heading on one line.
    #[must_use]
    pub fn heading(&self) -> String {
        self.title.replace('\n', " ")
    }
}

/// The keys of all figures.
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().flat_map(|column| column.figures).map(|figure| figure.key)
}

impl Measured<'_> {
    /// All figures. Those of the rounds are medians.
    pub(super) fn figures(&self) -> Figures {
        let all = COLUMNS.iter().flat_map(|column| column.figures);
        all.map(|figure| (figure.key, if self.rounds.is_empty() { None } else { (figure.value)(self) })).collect()
    }
}

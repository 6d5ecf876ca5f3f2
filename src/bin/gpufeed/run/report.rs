//! What `gpufeed run` reports at its end: the same as text or as JSON.

use comfy_table::CellAlignment;
use gpufeed::backend::{Footprint, MemoryUse};
use gpufeed::loader::{BadSampleReport, Occupancy, Percentiles, Verdict};
use gpufeed::measure::WhatIf;
use gpufeed::source::SourceSummary;
use gpufeed::{AdapterInfo, AnyLoader, LoaderOptions, LoaderStats, Strategy, Tuned};
use serde::Serialize;

use super::args::RunArgs;
use super::auto::AutoReport;
use super::ending::{Ending, Stopped, ended};
use super::explain;
use crate::units::noun;
use crate::{data, devices, output, units};

/// The result of a run. The names are those of the JSON.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The device, as `gpufeed devices --json` describes it.
    pub(super) device: AdapterInfo,
    /// Whether the device's driver computes on the CPU.
    software: bool,
    /// Whether gpufeed itself was built without optimisation.
    debug_build: bool,
    strategy: Strategy,
    /// How strategy or workers were chosen; left out where they were not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    auto: Option<AutoReport>,
    /// A description of the samples.
    source: String,
    source_samples: u64,
    /// The classes by label, and what was left out of the data.
    #[serde(flatten)]
    summary: SourceSummary,
    /// What a full batch becomes.
    tensor_shape: Vec<usize>,
    tensor_dtype: String,
    batch_size: usize,
    epochs: u32,
    slots: usize,
    outputs: usize,
    workers: usize,
    seed: Option<u64>,
    /// Left out where it is the whole epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<EpochShare>,
    /// From the first epoch's start until the device had done the last batch. Includes saving.
    pub(super) elapsed_s: f64,
    samples_per_s: f64,
    /// Decimal gigabytes of source bytes.
    gb_per_s: f64,
    pub(super) stats: LoaderStats,
    data_readiness: f64,
    occupancy: Occupancy,
    verdict: Verdict,
    /// The verdict and its advice in one sentence.
    verdict_text: String,
    /// What it would be if stages were free, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) what_if: Option<Vec<WhatIf>>,
    /// Bytes planned.
    footprint: Footprint,
    /// Bytes held at the end; null if the loader has stopped.
    memory: Option<MemoryUse>,
    saved: bool,
    /// Samples that were left out or replaced.
    bad_samples: BadSampleReport,
    pub(super) interrupted: bool,
    pub(super) error: Option<String>,
    #[serde(skip)]
    pub(super) noun: &'static str,
    /// Whether the error is that of another device.
    #[serde(skip)]
    pub(super) stopped: bool,
}

/// Which part of each epoch was delivered: that of a device among several, or of a machine.
#[derive(Clone, Copy, Debug, Serialize)]
struct EpochShare {
    rank: u64,
    world: u64,
    samples_per_epoch: u64,
}

/// A description of how fast it was.
pub fn speed(samples_per_s: f64, noun: &str, gb_per_s: f64) -> String {
    format!("{} {noun}/s, {} GB/s", units::digits(samples_per_s), units::digits(gb_per_s))
}

impl EpochShare {
    /// `None` for the whole of each epoch.
    fn of(loader: &AnyLoader) -> Option<Self> {
        let &LoaderOptions { rank, world, .. } = loader.options();
        (world > 1).then(|| Self { rank, world, samples_per_epoch: loader.samples_per_epoch() })
    }
}

impl Report {
    pub fn new(loader: &AnyLoader, args: &RunArgs, ending: &Ending) -> Self {
        let (stats, tensor, options) = (loader.stats(), loader.tensor(), loader.options());
        let (elapsed_s, verdict) = (ending.elapsed.as_secs_f64(), loader.verdict());
        Self {
            device: loader.info().clone(),
            software: loader.info().is_software(),
            debug_build: cfg!(debug_assertions),
            strategy: loader.strategy(),
            auto: None,
            source: format!("{}: {}", args.data.display(), loader.source().layout().first()),
            source_samples: loader.source().len(),
            summary: loader.source().summary(),
            tensor_shape: tensor.shape.as_slice().to_vec(),
            tensor_dtype: tensor.dtype.to_string(),
            batch_size: options.batch_size,
            epochs: args.loading.epochs,
            slots: options.slots,
            outputs: options.outputs,
            workers: options.workers,
            seed: options.seed,
            share: EpochShare::of(loader),
            elapsed_s,
            samples_per_s: stats.samples as f64 / elapsed_s,
            gb_per_s: stats.bytes as f64 / 1e9 / elapsed_s,
            data_readiness: stats.data_readiness(),
            occupancy: stats.occupancy(),
            verdict_text: verdict.to_string(),
            verdict,
            what_if: None,
            stats,
            footprint: loader.footprint(),
            memory: loader.memory(),
            saved: args.save.is_some(),
            bad_samples: loader.bad_samples(),
            interrupted: ending.interrupted,
            error: ending.error.as_ref().map(ToString::to_string),
            noun: noun(&loader.source().layout()),
            stopped: ending.error.as_ref().is_some_and(|error| error.is::<Stopped>()),
        }
    }

    /// The same, with how strategy or workers were chosen.
    pub fn with_auto(self, tuned: Option<&Tuned>) -> Self {
        Self { auto: tuned.map(AutoReport::new), ..self }
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let head = output::table(&[], CellAlignment::Left, self.head());
        let passing = output::table(
            &["per batch", "p50", "p95", "p99", "max"],
            CellAlignment::Right,
            [percentiles("latency", &self.stats.latency), percentiles("wait in next", &self.stats.wait)],
        );
        let time =
            output::table(&["where the time went", "total", "per batch", "share"], CellAlignment::Right, self.time());
        let verdict = explain::verdict(&self.verdict);
        let what_if = self.what_if.as_ref().map(|runs| explain::what_if(runs, self.samples_per_s, self.noun));
        let parts = [format!("{}\n{head}", self.headline()), passing, time, verdict];
        parts.into_iter().chain(what_if).collect::<Vec<_>>().join("\n\n")
    }

    fn headline(&self) -> String {
        format!(
            "{} {} in {} in {}: {}{}",
            self.stats.samples,
            self.noun,
            units::count(self.stats.batches, "batch", "batches"),
            units::seconds(self.elapsed_s),
            speed(self.samples_per_s, self.noun, self.gb_per_s),
            ended(self.error.is_some(), self.interrupted),
        )
    }

    fn head(&self) -> Vec<Vec<String>> {
        let Footprint { staging, device, outputs, host, .. } = self.footprint;
        let mut parts = vec![(staging, "staging"), (device, "device"), (outputs, "outputs")];
        parts.extend((host > 0).then_some((host, "host")));
        let parts: Vec<String> = parts.into_iter().map(|(bytes, of)| format!("{} {of}", units::bytes(bytes))).collect();
        let memory = format!("{} ({})", units::bytes(self.footprint.total()), parts.join(", "));
        let tensor = format!("{} {:?}", self.tensor_dtype, self.tensor_shape);
        let threads = format!("{}, {} slots, {} outputs", self.workers, self.slots, self.outputs);
        let mut rows = vec![
            ("device", format!("{}, {}: {}", self.device.id, self.device.name, devices::kind(&self.device))),
            ("strategy", self.strategy.to_string()),
            ("source", format!("{} {} ({})", self.source_samples, self.noun, self.source)),
            ("tensor", tensor),
            ("workers", threads),
            ("batches", self.whereabouts()),
            ("memory", memory),
        ];
        if let Some(auto) = &self.auto {
            rows.push(("auto", auto.why.clone()));
        }
        if let Some(EpochShare { rank, world, samples_per_epoch }) = self.share {
            rows.push(("share", format!("rank {rank} of {world}: {samples_per_epoch} {} an epoch", self.noun)));
        }
        rows.extend(self.remarks());
        rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
    }

    /// What has to be known of the figures.
    fn remarks(&self) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        if self.debug_build {
            rows.push((
                "build",
                "debug build: the CPU's part is several times slower than in a release build".to_owned(),
            ));
        }
        if let Some(first) = self.bad_samples.listed.first() {
            let BadSampleReport { skipped, substituted, .. } = self.bad_samples;
            let counts =
                format!("{skipped} left out, {substituted} replaced; the first is {}: {}", first.index, first.cause);
            rows.push(("bad samples", counts));
        }
        if !self.summary.classes.is_empty() {
            rows.push(("classes", data::describe_classes(&self.summary.classes)));
        }
        if !self.summary.left_out.is_empty() {
            rows.push(("left out", data::describe_left_out(&self.summary)));
        }
        if self.saved {
            rows.push(("saving", "the times include reading back and saving".to_owned()));
        }
        rows
    }

    /// Where the batches were, on average.
    fn whereabouts(&self) -> String {
        let Occupancy { filling, filled, in_flight, delivered, held, .. } = self.occupancy;
        format!(
            "on average {filling:.1} filling, {filled:.1} filled, {in_flight:.1} in flight; {delivered:.1} ready for the user, \
             {held:.1} held"
        )
    }

    /// Workers run side by side, so their sum is divided; so are batches on the device, whose share would mean nothing.
    fn time(&self) -> Vec<Vec<String>> {
        let stats = &self.stats;
        let row = |name: &str, seconds: f64, share: bool| {
            let per_batch = if stats.batches == 0 { 0.0 } else { seconds / stats.batches as f64 };
            let share = if share { format!("{:.1}%", 100.0 * seconds / self.elapsed_s) } else { "-".to_owned() };
            vec![name.to_owned(), units::seconds(seconds), units::seconds(per_batch), share]
        };
        let (waits, gpu) = (&stats.waits, stats.gpu.filter(|gpu| gpu.batches > 0));
        let mut rows = vec![
            row("source, per worker", stats.source_s / self.workers as f64, true),
            row("begin (taking staging memory)", stats.begin_s, true),
            row("slot wait", stats.slot_wait_s, true),
            row("submit", stats.submit_s, true),
            row("GPU, queued to done (overlapping)", stats.gpu_s, false),
        ];
        if let Some(gpu) = gpu {
            rows.push(row("GPU copies, by its own clock", gpu.copy_s, true));
            rows.push(row("GPU kernels, by its own clock", gpu.kernel_s, true));
        }
        rows.extend([
            row("idle device, waiting for the source", waits.source_s, true),
            row("idle workers, waiting for the device", waits.device_s, true),
            row("both at work", waits.either_s, true),
            row("waiting for the user", waits.consumer_s, true),
        ]);
        rows
    }
}

fn percentiles(name: &str, of: &Percentiles) -> Vec<String> {
    let times = [of.p50_us, of.p95_us, of.p99_us, of.max_us].map(|us| units::seconds(us / 1e6));
    std::iter::once(name.to_owned()).chain(times).collect()
}

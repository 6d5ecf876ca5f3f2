//! Loaders that are slow on purpose. The verdict follows from ratios, and no time is asserted.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use super::*;
use crate::backend::GpuTimes;
use crate::backend::host::{Faults, HostBackend};
use crate::error::SourceError;
use crate::layout::SampleLayout;
use crate::loader::{Loader, PumpWaits};
use crate::source::{SampleContext, Source};
use crate::staging::SampleWriter;

/// Long against what a busy machine takes from a thread.
const SLOW: Duration = Duration::from_millis(12);

/// Samples that take a while each.
struct Slow {
    read: Duration,
}

impl Source for Slow {
    fn layout(&self) -> SampleLayout {
        SampleLayout::bytes(&[16]).expect("a valid layout")
    }

    fn len(&self) -> u64 {
        120
    }

    fn read(&self, _: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        sleep(self.read);
        Ok(out.write(&[7; 16])?)
    }
}

/// Two samples a batch, one worker: 60 batches.
fn options() -> LoaderOptions {
    LoaderOptions { batch_size: 2, workers: 1, slots: 3, outputs: 3, timing: true, ..LoaderOptions::default() }
}

fn run(faults: Faults, read: Duration, options: LoaderOptions, hold: Duration) -> Verdict {
    let mut loader =
        Loader::new(&HostBackend::with_faults(faults), Arc::new(Slow { read }), options).expect("it opens");
    for batch in loader.epoch(0) {
        let batch = batch.expect("a batch");
        sleep(hold);
        drop(batch);
    }
    loader.verdict()
}

fn options_named(verdict: &Verdict) -> Vec<&'static str> {
    verdict.advice.iter().map(|advice| advice.option).collect()
}

#[test]
fn a_slow_source_is_named_and_workers_are_to_be_raised() {
    let verdict = run(Faults::default(), SLOW, options(), Duration::ZERO);
    assert_eq!((verdict.bottleneck, options_named(&verdict)), (Bottleneck::Source, vec!["workers"]), "{verdict}");
}

#[test]
fn a_slow_copy_is_named() {
    let verdict = run(Faults { copy: SLOW, ..Faults::default() }, Duration::ZERO, options(), Duration::ZERO);
    let named = options_named(&verdict);
    assert_eq!((verdict.bottleneck, named), (Bottleneck::Copy, vec!["batch_size", "strategy"]), "{verdict}");
}

#[test]
fn a_slow_kernel_is_named() {
    let verdict = run(Faults { kernel: SLOW, ..Faults::default() }, Duration::ZERO, options(), Duration::ZERO);
    assert_eq!(verdict.bottleneck, Bottleneck::Kernel, "{verdict}");
}

#[test]
fn without_the_devices_clock_its_parts_are_not_told_apart() {
    let options = LoaderOptions { timing: false, ..options() };
    let verdict = run(Faults { kernel: SLOW, ..Faults::default() }, Duration::ZERO, options, Duration::ZERO);
    assert_eq!((verdict.bottleneck, options_named(&verdict)), (Bottleneck::Device, vec!["timing"]), "{verdict}");
}

#[test]
fn too_few_slots_are_named() {
    let options = LoaderOptions { slots: 1, ..options() };
    let verdict = run(Faults { copy: SLOW, ..Faults::default() }, SLOW / 2, options, Duration::ZERO);
    assert_eq!((verdict.bottleneck, options_named(&verdict)), (Bottleneck::Slots, vec!["slots"]), "{verdict}");
}

#[test]
fn a_slow_consumer_is_named_and_nothing_is_to_be_turned() {
    let verdict = run(Faults::default(), Duration::ZERO, options(), SLOW);
    assert_eq!((verdict.bottleneck, options_named(&verdict)), (Bottleneck::Consumer, vec![]), "{verdict}");
}

#[test]
fn too_few_outputs_are_named() {
    let waited_for = |outputs| {
        let faults = Faults { copy: SLOW, ..Faults::default() };
        let source = Arc::new(Slow { read: Duration::ZERO });
        let options = LoaderOptions { outputs, ..options() };
        let mut loader = Loader::new(&HostBackend::with_faults(faults), source, options).expect("it opens");
        for batch in loader.epoch(0) {
            let batch = batch.expect("a batch");
            batch.wait().expect("the device is there");
            sleep(2 * SLOW);
        }
        loader.verdict()
    };
    let verdict = waited_for(1);
    assert_eq!((verdict.bottleneck, options_named(&verdict)), (Bottleneck::Outputs, vec!["outputs"]), "{verdict}");
    let verdict = waited_for(3);
    assert_eq!(verdict.bottleneck, Bottleneck::Consumer, "{verdict}");
}

#[test]
fn a_few_batches_say_nothing() {
    let mut loader =
        Loader::new(&HostBackend::new(), Arc::new(Slow { read: Duration::ZERO }), options()).expect("it opens");
    loader.epoch(0).take(5).for_each(|batch| drop(batch.expect("a batch")));
    assert_eq!(loader.verdict().bottleneck, Bottleneck::Startup);
}

fn stats(waits: PumpWaits) -> LoaderStats {
    LoaderStats { batches: 100, bytes: 100 << 24, active_s: 1.0, waits, ..LoaderStats::default() }
}

fn verdict(stats: &LoaderStats) -> Verdict {
    Verdict::of(
        stats,
        &LoaderOptions { workers: 2, ..LoaderOptions::default() },
        Strategy::MappedRing,
        Beside::default(),
    )
}

#[test]
fn what_overlaps_is_told_by_whether_the_workers_are_busy() {
    let overlap = stats(PumpWaits { either_s: 0.9, device_s: 0.05, ..PumpWaits::default() });
    assert_eq!(verdict(&LoaderStats { source_s: 1.9, ..overlap }).bottleneck, Bottleneck::Source);
    assert_eq!(verdict(&LoaderStats { source_s: 0.6, ..overlap }).bottleneck, Bottleneck::Device);
}

#[test]
fn a_thread_that_never_waits_is_the_bottleneck_itself() {
    let busy = LoaderStats { begin_s: 0.6, submit_s: 0.1, ..stats(PumpWaits::default()) };
    let found = verdict(&busy);
    assert_eq!((found.bottleneck, options_named(&found)), (Bottleneck::Submission, vec!["batch_size"]));
    let fresh = Verdict::of(&busy, &LoaderOptions::default(), Strategy::FreshMapped, Beside::default());
    assert_eq!(options_named(&fresh), ["strategy", "batch_size"]);
    // On the host it is the device as well.
    let host =
        Verdict::of(&stats(PumpWaits::default()), &LoaderOptions::default(), Strategy::Memcpy, Beside::default());
    assert_eq!(host.bottleneck, Bottleneck::Device);
}

#[test]
fn a_user_that_waits_while_it_is_waited_for_lacks_outputs() {
    let waits = PumpWaits { consumer_s: 0.6, device_s: 0.3, ..PumpWaits::default() };
    assert_eq!(verdict(&LoaderStats { next_s: 0.4, ..stats(waits) }).bottleneck, Bottleneck::Outputs);
    assert_eq!(verdict(&LoaderStats { next_s: 0.05, ..stats(waits) }).bottleneck, Bottleneck::Consumer);
}

#[test]
fn times_of_some_batches_stand_for_all_and_advice_fits_the_options() {
    let waits = PumpWaits { device_s: 0.9, ..PumpWaits::default() };
    let gpu = Some(GpuTimes { copy_s: 0.1, kernel_s: 0.4, batches: 50 });
    let stats = LoaderStats { gpu, ..stats(waits) };
    let options = LoaderOptions { preprocess: crate::Normalize::imagenet().into(), fingerprints: true, ..options() };
    let found = Verdict::of(&stats, &options, Strategy::PinnedRing, Beside::default());
    assert_eq!((found.bottleneck, found.evidence.kernel), (Bottleneck::Kernel, Some(0.8)));
    assert_eq!(options_named(&found), ["fingerprints", "dtype"]);
    assert!(
        found.to_string().starts_with("held back by the device's kernels (batches were on the device 90%"),
        "{found}"
    );
}

/// A device that is waited for all the time, and by its own clock works for the loader so much of it.
fn waited_for(copy_s: f64, kernel_s: f64) -> LoaderStats {
    let gpu = Some(GpuTimes { copy_s, kernel_s, batches: 100 });
    LoaderStats { gpu, ..stats(PumpWaits { device_s: 0.9, ..PumpWaits::default() }) }
}

fn beside(strategy: Strategy, stats: &LoaderStats, beside: Beside) -> Verdict {
    Verdict::of(stats, &LoaderOptions::default(), strategy, beside)
}

#[test]
fn copies_in_turn_with_other_work_are_named_with_the_strategy_that_would_hide_them() {
    let hidden_by = Beside { hidden_by: Some(Strategy::SystemRing), ..Beside::default() };
    let found = beside(Strategy::MappedRing, &waited_for(0.4, 0.05), hidden_by);
    assert_eq!((found.bottleneck, found.hidden_by), (Bottleneck::NotHidden, Some(Strategy::SystemRing)), "{found}");
    let told = found.to_string();
    assert!(
        told.starts_with("held back by copies that are not hidden: they take turns with its user's work"),
        "{told}"
    );
    assert!(
        told.contains("for the loader 45% of the time") && told.contains("; `system-ring` would hide them"),
        "{told}"
    );
    assert!(told.contains("`strategy`: `system-ring` would hide the copies"), "{told}");
    assert_eq!(options_named(&found), ["strategy"]);
    // A device that copies all the time is held back by its copies, and so is one whose copies run beside already.
    assert_eq!(beside(Strategy::MappedRing, &waited_for(0.85, 0.1), hidden_by).bottleneck, Bottleneck::Copy);
    let already = beside(Strategy::SystemRing, &waited_for(0.4, 0.05), Beside::default());
    assert_eq!((already.bottleneck, already.hidden_by), (Bottleneck::Copy, None));
    // Without its clock nobody knows what the device works at.
    let no_clock = LoaderStats { gpu: None, ..waited_for(0.4, 0.05) };
    assert_eq!(beside(Strategy::MappedRing, &no_clock, hidden_by).bottleneck, Bottleneck::Device);
}

#[test]
fn where_the_users_work_was_measured_that_decides() {
    let measured = |compute_s, hidden| {
        let known = Beside { compute_s: Some(compute_s), hidden: Some(hidden), hidden_by: Some(Strategy::Registered) };
        beside(Strategy::PinnedRing, &waited_for(0.85, 0.1), known)
    };
    // A hundred batches in a second.
    assert_eq!(measured(0.005, 0.1).bottleneck, Bottleneck::NotHidden);
    assert_eq!(measured(0.005, 0.9).bottleneck, Bottleneck::Copy, "the compute is what is hidden");
    assert_eq!(measured(0.0095, 0.9).bottleneck, Bottleneck::Consumer);
    assert_eq!(measured(0.0095, 0.1).bottleneck, Bottleneck::NotHidden);
    let told = measured(0.005, 0.1).describe();
    assert!(told.contains("the user's own work alone takes 50%, 10% of the shorter cost no time of its own"), "{told}");
}

use std::sync::atomic::{AtomicU64, Ordering};

use std::time::Duration;

use super::*;
use crate::backend::Strategy;
use crate::backend::host::{Faults, HostBackend};
use crate::error::SourceError;
use crate::layout::SampleLayout;
use crate::loader::LoaderOptions;
use crate::measure::plan::Timing;
use crate::measure::report::{Configuration, HandOver};
use crate::preprocess::Normalize;
use crate::source::{SampleContext, random_images};
use crate::staging::SampleWriter;

fn images() -> Arc<dyn Source> {
    Arc::new(random_images(SampleLayout::image(6, 6, 3).expect("an image"), 40, 1).expect("in memory"))
}

fn settings(strategy: Strategy, batch_size: usize) -> Settings {
    Settings {
        strategy,
        sample_bytes: 0,
        batch_size,
        workers: 1,
        slots: 2,
        outputs: 2,
        compute_us: 0,
        hand_over: HandOver::Queued,
    }
}

fn plan(settings: Vec<Settings>) -> Plan {
    let base = LoaderOptions { preprocess: Normalize::imagenet().into(), seed: Some(1), ..LoaderOptions::default() };
    let plan = Plan::new(settings, base, Duration::from_millis(40));
    // However slow the machine, there are three rounds.
    let timing = Timing { budget: Duration::from_secs(600), rounds: 3, ..plan.timing };
    Plan { timing, ..plan }
}

/// Keeps the events, and asks for an end after some rounds.
#[derive(Default)]
struct Notes {
    events: Vec<Event>,
    stop_after: Option<usize>,
}

impl Observer for Notes {
    fn event(&mut self, event: &Event, _: &DeviceReport) {
        self.events.push(event.clone());
    }

    fn stop(&self) -> bool {
        let timed = self.events.iter().filter(|event| matches!(event, Event::Timed { .. })).count();
        self.stop_after.is_some_and(|most| timed >= most)
    }
}

/// Delivers other bytes from a certain read on.
struct Rots {
    inner: Arc<dyn Source>,
    reads: AtomicU64,
    honest: u64,
}

impl Source for Rots {
    fn layout(&self) -> SampleLayout {
        self.inner.layout()
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        if read < self.honest {
            return self.inner.read(sample, out);
        }
        Ok(out.write(&vec![read as u8; out.len()])?)
    }
}

#[test]
fn every_configuration_is_verified_timed_in_turn_and_summed_up() {
    let mut notes = Notes::default();
    let plan = plan(vec![settings(Strategy::Memcpy, 4), settings(Strategy::Memcpy, 8)]);
    let report = compare(&HostBackend::new(), images(), &plan, &mut notes);
    assert_eq!(report.status, DeviceStatus::Ok);
    for row in &report.configurations {
        assert!(row.is_measured() && row.verified.is_some_and(|v| v.batches >= 6 && v.tensors > 0), "{row:?}");
        assert!(row.rounds.iter().all(|round| round.batches >= 3 && round.staging_gb_s.is_some()));
        assert!(row.figures.get("times_memcpy").is_some() && row.held_back.is_some() && row.footprint.is_some());
    }
    assert_eq!((report.ceilings.len(), report.sweep.len()), (2, 2));
    let timed: Vec<usize> = notes
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Timed { settings, .. } => Some(settings.batch_size),
            _ => None,
        })
        .collect();
    assert!(timed.len() == 6 && timed.chunks(2).all(|turn| turn == [4, 8]), "{timed:?}");
}

#[test]
fn a_strategy_that_cannot_run_stays_as_a_row_with_its_reason() {
    let plan = plan(vec![settings(Strategy::MappedRing, 4), settings(Strategy::Memcpy, 4)]);
    let report = compare(&HostBackend::new(), images(), &plan, &mut ());
    let Status::Unsupported { reason } = &report.configurations[0].status else { panic!("{report:?}") };
    assert!(reason.contains("memcpy"), "{reason}");
    assert!(report.configurations[1].is_measured());
    assert_eq!(report.winner.map(|w| w.settings.strategy), Some(Strategy::Memcpy));
}

#[test]
fn wrong_bytes_are_a_failed_row_and_never_a_number() {
    let source = Rots { inner: images(), reads: AtomicU64::new(0), honest: 10 };
    let report = compare(&HostBackend::new(), Arc::new(source), &plan(vec![settings(Strategy::Memcpy, 4)]), &mut ());
    let row = &report.configurations[0];
    assert!(matches!(row.status, Status::Failed { wrong_data: true, .. }), "{row:?}");
    assert!(row.rounds.is_empty() && row.figures.get("gb_s").is_none() && report.winner.is_none());
}

#[test]
fn bytes_that_go_wrong_after_verification_are_found_in_the_timed_rounds() {
    // Verifying reads each sample twice, so this is past it: 10 batches of 4, twice, and the loader's own lead.
    let source = Rots { inner: images(), reads: AtomicU64::new(0), honest: 200 };
    let report = compare(&HostBackend::new(), Arc::new(source), &plan(vec![settings(Strategy::Memcpy, 4)]), &mut ());
    let row = &report.configurations[0];
    assert!(row.verified.is_some(), "{row:?}");
    assert!(matches!(row.status, Status::Failed { wrong_data: true, .. }), "{row:?}");
    assert!(row.rounds.is_empty() && row.figures.get("gb_s").is_none(), "earlier rounds go too");
}

#[test]
fn a_lost_device_ends_the_comparison_and_says_so() {
    let backend = HostBackend::with_faults(Faults { lose_at_submission: Some(30), ..Faults::default() });
    let plan = plan(vec![settings(Strategy::Memcpy, 4), settings(Strategy::Memcpy, 8)]);
    let report = compare(&backend, images(), &plan, &mut ());
    assert!(matches!(&report.status, DeviceStatus::Error { message } if message.contains("lost")), "{report:?}");
}

#[test]
fn an_end_that_is_asked_for_keeps_what_was_measured() {
    let mut notes = Notes { stop_after: Some(2), ..Notes::default() };
    let report = compare(&HostBackend::new(), images(), &plan(vec![settings(Strategy::Memcpy, 4)]), &mut notes);
    assert_eq!(report.status, DeviceStatus::Interrupted);
    assert_eq!(report.configurations[0].rounds.len(), 2);
    assert!(report.configurations[0].is_measured());
}

#[test]
fn loaders_that_do_not_fit_side_by_side_are_opened_for_each_round() {
    let plan = Plan { hold_bytes: 0, ..plan(vec![settings(Strategy::Memcpy, 4)]) };
    let report = compare(&HostBackend::new(), images(), &plan, &mut ());
    assert!(report.configurations[0].is_measured(), "{report:?}");
}

/// With a consumer that computes for so long, which is much beside a batch of a few images.
fn computing(compute_us: u32, hand_over: HandOver) -> Settings {
    Settings { compute_us, hand_over, ..settings(Strategy::Memcpy, 4) }
}

#[test]
fn a_consumer_that_computes_is_a_row_of_its_own_with_what_was_hidden() {
    let mut notes = Notes::default();
    let uses = [(0, HandOver::Queued), (300, HandOver::Queued), (300, HandOver::Blocking)];
    let plan = plan(uses.map(|(compute_us, hand_over)| computing(compute_us, hand_over)).to_vec());
    let report = compare(&HostBackend::new(), images(), &plan, &mut notes);
    let [idle, busy, blocking] = &report.configurations[..] else { panic!("{report:?}") };
    assert!([idle, busy, blocking].iter().all(|row| row.is_measured()), "{report:?}");
    assert_eq!((busy.verified, busy.footprint), (idle.verified, idle.footprint), "one loader, verified once");
    let verified = notes.events.iter().filter(|event| matches!(event, Event::Verified { .. })).count();
    let calibrated = notes.events.iter().filter(|event| matches!(event, Event::Calibrated { .. })).count();
    assert_eq!((verified, calibrated), (1, 1));
    let figure = |row: &Configuration, key| row.figures.get(key);
    assert_eq!((figure(idle, "compute_us"), figure(idle, "hidden_percent")), (Some(0.0), None));
    assert!(busy.compute_alone_us > Some(0.0) && figure(busy, "compute_us") == busy.compute_alone_us, "{busy:?}");
    assert!(figure(busy, "step_us") > Some(0.0), "{busy:?}");
    for row in [busy, blocking] {
        assert!(figure(row, "hidden_percent").is_some_and(|share| (0.0..=100.0).contains(&share)), "{row:?}");
        assert!(figure(row, "ideal_us") >= figure(row, "compute_us") && figure(row, "cpu_waits_us").is_some());
    }
    assert!(blocking.rounds.iter().all(|round| round.waited_s > 0.0), "{blocking:?}");
    assert_eq!(report.winner.as_ref().map(|winner| winner.settings), Some(idle.settings));
    assert_eq!((report.sweep.len(), report.busy.len()), (0, 2), "what computes is no size");
}

#[test]
fn a_batch_that_is_not_what_was_verified_is_noticed_by_the_consumer_that_works_on_it() {
    // The last batch of a round is compared with the source, which swears to what it delivers now: only who saw the batch before notices.
    let plan = plan(vec![computing(0, HandOver::Queued), computing(300, HandOver::Queued)]);
    let report = compare(&HostBackend::new(), Arc::new(Swapped(images(), AtomicU64::new(0))), &plan, &mut ());
    let [idle, busy] = &report.configurations[..] else { panic!("{report:?}") };
    assert!(idle.verified.is_some(), "{idle:?}");
    assert!(matches!(busy.status, Status::Failed { wrong_data: true, .. }), "{busy:?}");
}

/// Delivers right samples until it was verified, and after that those of another index, in pairs that the check of the last batch reads
/// the same way.
struct Swapped(Arc<dyn Source>, AtomicU64);

impl Source for Swapped {
    fn layout(&self) -> SampleLayout {
        self.0.layout()
    }

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let later = self.1.fetch_add(1, Ordering::Relaxed) >= 200;
        self.0.read(&if later { sample.at(sample.index ^ 1) } else { *sample }, out)
    }
}

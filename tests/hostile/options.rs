//! Options at their limits and beyond.

use std::sync::Arc;
use std::time::Duration;

use gpufeed::backend::host::HostBackend;
use gpufeed::{
    BadSamples, Feeder, FeederOptions, LastBatch, Loader, LoaderOptions, Normalize, Preprocess, ResumeToken,
    SampleLayout, Subset, SyntheticSource, Tolerance,
};
use proptest::prelude::*;

use crate::{alone, cases, within};

/// Staging and outputs together.
const BUDGET: usize = 1 << 20;
/// Lists of indices and labels, threads and channels come on top.
const MOST: usize = 64 << 20;

/// Small numbers, and those where arithmetic ends.
fn extreme() -> impl Strategy<Value = usize> {
    let edges = vec![0, 1, 2, 3, 7, 64, 1023, 1024, 1025, 65_535, 65_536, 65_537, 1 << 31, 1 << 33, usize::MAX / 2];
    prop_oneof![0usize..9, prop::sample::select(edges), Just(usize::MAX), any::<usize>()]
}

fn extreme64() -> impl Strategy<Value = u64> {
    extreme().prop_map(|number| number as u64)
}

fn few_or_extreme() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 1usize..4, 1 => extreme().prop_filter("that many threads take their time", |n| !(64..=1024).contains(n))]
}

fn tolerance() -> impl Strategy<Value = Tolerance> {
    let rates = prop::sample::select(vec![-1.0, 0.0, 0.5, 1.0, 2.0, f64::NAN, f64::INFINITY]);
    prop_oneof![Just(Tolerance::All), extreme64().prop_map(Tolerance::Count), rates.prop_map(Tolerance::Rate)]
}

fn subset() -> impl Strategy<Value = Option<Subset>> {
    let range = (extreme64(), extreme64()).prop_map(|(start, end)| Some(Subset::range(start..end)));
    let list =
        prop::collection::vec(prop_oneof![0u64..50, extreme64()], 0..5).prop_map(|list| Some(Subset::list(list)));
    prop_oneof![3 => Just(None), 1 => range, 1 => list]
}

prop_compose! {
    fn options()(
        (batch_size, slots, outputs, workers) in (extreme(), few_or_extreme(), few_or_extreme(), few_or_extreme()),
        (seed, rank, world) in (prop::option::of(any::<u64>()), extreme64(), extreme64()),
        last_batch in prop::sample::select(vec![LastBatch::Short, LastBatch::Drop, LastBatch::Pad]),
        subset in subset(),
        bad_samples in prop_oneof![
            Just(BadSamples::Fail), tolerance().prop_map(BadSamples::Skip), tolerance().prop_map(BadSamples::Substitute)],
        (ordered, fingerprints, float) in any::<(bool, bool, bool)>(),
        budget in extreme64(),
        stall in prop::sample::select(vec![None, Some(Duration::MAX), Some(Duration::from_secs(300))]),
    ) -> LoaderOptions {
        LoaderOptions {
            batch_size, slots, outputs, workers, seed, rank, world, last_batch, subset, bad_samples, ordered, fingerprints,
            preprocess: if float { Normalize::unit(3).into() } else { Preprocess::Raw },
            byte_budget: Some(budget.min(BUDGET as u64)),
            shutdown_timeout: Duration::MAX,
            stall_timeout: stall,
            ..LoaderOptions::default()
        }
    }
}

/// Opens a loader, and takes two batches where it opens.
fn try_out(options: LoaderOptions, layout: SampleLayout, samples: u64) {
    let source = Arc::new(SyntheticSource::blank(layout, samples));
    let planned = options.clone();
    match Loader::new(&HostBackend::new(), source, options) {
        Ok(mut loader) => {
            assert!(planned.validate().is_ok() && loader.footprint().total() <= BUDGET as u64);
            for batch in loader.epoch(u64::MAX).take(2) {
                let batch = batch.expect("nothing fails");
                assert!(batch.len() <= planned.batch_size);
            }
            let past_the_end = loader.epoch(0).resume_token();
            assert_eq!(past_the_end.is_ok(), planned.ordered);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn options_work_or_say_why_not(
        options in options(),
        image in any::<bool>(),
        side in 1usize..20,
        samples in prop_oneof![1u64..50, Just(1 << 40), Just(u64::MAX)],
    ) {
        let _turn = alone();
        let layout = if image { SampleLayout::image(side, 3, 3) } else { SampleLayout::bytes(&[side]) };
        within(MOST, || try_out(options, layout.expect("valid"), samples));
    }

    #[test]
    fn layouts_are_checked_before_anything_is_multiplied(dims in prop::collection::vec(extreme(), 0..7), samples in extreme64()) {
        let _turn = alone();
        let layouts = [
            SampleLayout::bytes(&dims),
            SampleLayout::f32(&dims),
            SampleLayout::image(dims.first().copied().unwrap_or(0), dims.get(1).copied().unwrap_or(1), 3),
        ];
        let options = LoaderOptions { batch_size: 2, workers: 1, byte_budget: Some(BUDGET as u64), ..LoaderOptions::default() };
        for layout in layouts.into_iter().flatten() {
            within(MOST, || try_out(options.clone(), layout, samples));
        }
    }

    #[test]
    fn a_feeder_works_or_says_why_not(
        (batch_size, slots, outputs) in (extreme(), few_or_extreme(), few_or_extreme()),
        side in prop_oneof![1usize..20, extreme()],
        budget in extreme64(),
    ) {
        let _turn = alone();
        let Ok(layout) = SampleLayout::bytes(&[side]) else { return Ok(()) };
        let byte_budget = Some(budget.min(BUDGET as u64));
        let options = FeederOptions { batch_size, slots, outputs, byte_budget, ..FeederOptions::default() };
        within(MOST, || match Feeder::new(&HostBackend::new(), layout, options) {
            Ok(mut feeder) => {
                let frame = vec![7; side];
                assert_eq!(feeder.feed(&[&frame]).expect("one frame fits").read().expect("readable"), frame);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        });
    }

    #[test]
    fn a_token_that_was_tampered_with_is_refused_or_is_another_place(
        number in extreme64(),
        field in prop::sample::select(vec!["version", "epoch", "batch", "source_samples", "batch_size", "seed", "rank", "world"]),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let _turn = alone();
        let source = Arc::new(SyntheticSource::blank(SampleLayout::bytes(&[4]).expect("valid"), 50));
        let options = LoaderOptions { batch_size: 8, seed: Some(1), workers: 1, ..LoaderOptions::default() };
        let mut loader = Loader::new(&HostBackend::new(), source, options).expect("a loader");
        let token = loader.epoch(3).resume_token().expect("in order");
        let mut json = serde_json::to_value(token).expect("plain data");
        let place = if json.get(field).is_some() { &mut json } else { &mut json["fixed"] };
        place[field] = number.into();
        let mut text = json.to_string().into_bytes();
        if let Some((at, value)) = damage {
            let at = at.index(text.len());
            text[at] = value;
        }
        let Ok(token) = serde_json::from_slice::<ResumeToken>(&text) else { return Ok(()) };
        if let Ok(epoch) = loader.resume(&token) {
            epoch.take(2).for_each(|batch| drop(batch.expect("nothing fails")));
        }
    }
}

//! Exact, resumable and never stuck.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gpufeed::loader::BadSample;
use gpufeed::{
    BadSamples, LastBatch, LoadError, Loader, LoaderOptions, ResumeError, ResumeToken, SampleLayout, SourceError,
    Strategy, Subset, Tolerance,
};

use crate::device::TestDevice;
use crate::faults::Scripted;
use crate::loaders::{batch_bytes, options, pattern};

/// Indices and bytes of a batch, under its number.
type Content = (u64, Vec<u64>, Vec<u8>);

pub fn an_epoch_goes_on_where_any_token_was_made<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = pattern(SampleLayout::bytes(&[24]).expect("valid"), 41);
    let options = LoaderOptions { batch_size: 6, seed: Some(5), ..options(strategy) };
    let mut loader = Loader::new(backend, source.clone(), options.clone()).expect("the loader opens");
    let content = |batch: gpufeed::Batch<B>| -> Content {
        assert_eq!(batch.read().expect("readable"), batch_bytes(&*source, &batch));
        (batch.number(), batch.indices().to_vec(), batch.read().expect("readable"))
    };
    let whole: Vec<Content> = loader.epoch(3).map(|batch| content(batch.expect("no error"))).collect();
    // Another loader: nothing but the token is carried over.
    let other = LoaderOptions { workers: 3, slots: 2, outputs: 2, ..options };
    let mut other = Loader::new(backend, source.clone(), other).expect("the loader opens");
    for taken in 0..=whole.len() {
        let mut epoch = loader.epoch(3);
        let mut all: Vec<Content> = epoch.by_ref().take(taken).map(|batch| content(batch.expect("no error"))).collect();
        let token = epoch.resume_token().expect("in order");
        drop(epoch);
        let text = serde_json::to_string(&token).expect("it is plain data");
        assert!(text.len() < 400, "{text}");
        let token: ResumeToken = serde_json::from_str(&text).expect("as it was written");
        if taken == whole.len() {
            assert_eq!((token.epoch(), token.batch()), (4, 0), "the end is the next epoch's beginning");
            continue;
        }
        all.extend(other.resume(&token).expect("the same batches").map(|batch| content(batch.expect("no error"))));
        assert_eq!(all, whole, "stopped after {taken}");
    }
}

pub fn a_changed_configuration_is_not_resumed<B: TestDevice>(backend: &B, strategy: Strategy) {
    let first = LoaderOptions { batch_size: 4, seed: Some(1), world: 2, ..options(strategy) };
    let open = |samples, options: &LoaderOptions| {
        let source = Scripted::shared(samples, |_| Ok(40));
        Loader::new(backend, source, options.clone()).expect("the loader opens")
    };
    let mut loader = open(40, &first);
    let mut epoch = loader.epoch(0);
    drop(epoch.next());
    let (within, mut loader) = (epoch.resume_token().expect("in order"), open(40, &first));
    let between = loader.epoch(1).resume_token().expect("in order");
    assert!(!within.is_between_epochs() && between.is_between_epochs());
    let changed = [
        ("batch_size", LoaderOptions { batch_size: 5, ..first.clone() }),
        ("seed", LoaderOptions { seed: None, ..first.clone() }),
        ("last_batch", LoaderOptions { last_batch: LastBatch::Drop, ..first.clone() }),
        ("subset", LoaderOptions { subset: Some(Subset::range(0..40)), ..first.clone() }),
        ("rank", LoaderOptions { rank: 1, ..first.clone() }),
        ("world", LoaderOptions { world: 3, ..first.clone() }),
        ("bad_samples", LoaderOptions { bad_samples: BadSamples::Substitute(Tolerance::All), ..first.clone() }),
    ];
    for (name, options) in changed {
        let mut loader = open(40, &options);
        let refused = loader.resume(&within).map(|_| ()).expect_err("it was changed");
        assert!(matches!(&refused, ResumeError::Changed { field, .. } if *field == name), "{name}: {refused}");
        // Between epochs others may share the next.
        assert_eq!(loader.resume(&between).is_ok(), name == "rank" || name == "world", "{name}");
    }
    let refused = open(41, &first).resume(&within).map(|_| ()).expect_err("another source").to_string();
    assert_eq!(refused, "cannot resume: the source's number of samples was 40 and is 41");
    let unordered = LoaderOptions { ordered: false, ..first };
    assert_eq!(open(40, &unordered).resume(&within).map(|_| ()), Err(ResumeError::Unordered));
    assert_eq!(open(40, &unordered).epoch(0).resume_token(), Err(ResumeError::Unordered));
}

/// Fails at some samples, panics at one, and writes less at another.
fn bad(index: u64) -> Result<usize, SourceError> {
    match index {
        30 => panic!("sample thirty is unlucky"),
        31 => Ok(17),
        _ if index % 13 == 4 || (8..12).contains(&index) => Err("worn out".into()),
        _ => Ok(40),
    }
}

fn is_bad(index: u64) -> bool {
    index == 30 || index == 31 || index % 13 == 4 || (8..12).contains(&index)
}

fn tolerant(strategy: Strategy, bad_samples: BadSamples) -> LoaderOptions {
    LoaderOptions { batch_size: 4, workers: 3, bad_samples, ..options(strategy) }
}

pub fn skipped_samples_shift_nothing<B: TestDevice>(backend: &B, strategy: Strategy) {
    let options = tolerant(strategy, BadSamples::Skip(Tolerance::All));
    let mut loader = Loader::new(backend, Scripted::shared(50, bad), options).expect("the loader opens");
    for epoch in 0..2 {
        let mut next = 0;
        for batch in loader.epoch(epoch) {
            let batch = batch.expect("bad samples are skipped");
            let asked = batch.number() * 4..(batch.number() * 4 + 4).min(50);
            let good: Vec<u64> = asked.filter(|&index| !is_bad(index)).collect();
            assert_eq!(batch.indices(), good);
            assert_eq!(batch.shape()[0], good.len());
            let bytes = batch.read().expect("readable");
            assert!(bytes.chunks(40).zip(&good).all(|(sample, &index)| sample.iter().all(|&b| b == index as u8)));
            assert_eq!(bytes.len(), good.len() * 40);
            // Batch 2 is of bad samples only, and does not come.
            assert_eq!(batch.number(), if next == 2 { 3 } else { next });
            next = batch.number() + 1;
        }
        assert_eq!(next, 13);
    }
    let report = loader.bad_samples();
    let expected: Vec<u64> = (0..50).filter(|&index| is_bad(index)).collect();
    let of =
        |epoch| report.listed.iter().filter(move |bad| bad.epoch == epoch).map(|bad| bad.index).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (expected.clone(), expected.clone()));
    assert_eq!((report.skipped, report.substituted), (2 * expected.len() as u64, 0));
    assert_eq!(loader.stats().skipped, report.skipped);
    let first =
        BadSample { epoch: 0, batch: 1, index: 4, substitute: None, batch_lost: false, cause: "worn out".to_owned() };
    assert_eq!(report.listed[0], first);
    assert!(report.listed.iter().any(|bad| bad.cause == "the source panicked: sample thirty is unlucky"));
    assert!(report.listed.iter().any(|bad| bad.cause == "the source wrote 17 of the 40 bytes of field `data`"));
}

pub fn substitutes_are_the_same_everywhere<B: TestDevice>(backend: &B, strategy: Strategy) {
    let mut first: Option<(Vec<Vec<u64>>, Vec<BadSample>)> = None;
    for workers in [1, 2, 7] {
        let options = LoaderOptions {
            workers,
            seed: Some(9),
            ..tolerant(strategy, BadSamples::Substitute(Tolerance::Rate(0.5)))
        };
        let mut loader = Loader::new(backend, Scripted::shared(50, bad), options).expect("the loader opens");
        let mut batches = Vec::new();
        for batch in loader.epoch(2) {
            let batch = batch.expect("bad samples are replaced");
            assert!(batch.indices().iter().all(|&index| !is_bad(index)));
            let bytes = batch.read().expect("readable");
            let right = bytes.chunks(40).zip(batch.indices()).all(|(s, &index)| s.iter().all(|&b| b == index as u8));
            assert!(right, "the tensor holds what the indices say");
            batches.push(batch.indices().to_vec());
        }
        assert_eq!(batches.concat().len(), 50, "every place is filled");
        let report = loader.bad_samples();
        assert_eq!(report.substituted, (0..50).filter(|&index| is_bad(index)).count() as u64);
        assert_eq!(*first.get_or_insert((batches.clone(), report.listed.clone())), (batches, report.listed));
    }
}

pub fn too_many_bad_samples_end_the_epoch<B: TestDevice>(backend: &B, strategy: Strategy) {
    for (tolerance, limit) in [(Tolerance::Count(5), "5"), (Tolerance::Rate(0.1), "5 (10% of the epoch)")] {
        let options = tolerant(strategy, BadSamples::Skip(tolerance));
        let mut loader = Loader::new(backend, Scripted::shared(50, bad), options).expect("the loader opens");
        for epoch in 0..2 {
            let results: Vec<_> = loader.epoch(epoch).map(|batch| batch.map(|batch| batch.number())).collect();
            // 4, 8, 9, 10 and 11 are skipped; 17 is one too many.
            assert!(results[..results.len() - 1].iter().map(|r| r.as_ref().expect("a batch")).eq(&[0, 1, 3]));
            let error = results[results.len() - 1].as_ref().expect_err("17 is one too many");
            assert!(
                matches!(error, LoadError::TooManyBadSamples { bad: 6, seen: 20, index: 17, batch: 4, .. }),
                "{error}"
            );
            assert!(error.to_string().contains(&format!("and {limit} is the limit")), "{error}");
        }
    }
}

pub fn unordered_batches_are_the_same_batches<B: TestDevice>(backend: &B, strategy: Strategy) {
    // Sample 0 waits until the last batch has been read, which in order would never be while batch 0 is the first to leave.
    let last = Arc::new(AtomicBool::new(false));
    let source = {
        let last = Arc::clone(&last);
        Scripted::shared(80, move |index| {
            while index == 0 && !last.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(200));
            }
            last.fetch_or(index == 79, Ordering::Relaxed);
            Ok(40)
        })
    };
    let options = LoaderOptions { batch_size: 4, workers: 2, slots: 3, ordered: false, ..options(strategy) };
    let mut loader = Loader::new(backend, source, options).expect("the loader opens");
    let mut numbers = Vec::new();
    for batch in loader.epoch(0) {
        let batch = batch.expect("no error");
        assert!(batch.indices().iter().copied().eq(batch.number() * 4..batch.number() * 4 + 4));
        let bytes = batch.read().expect("readable");
        assert!(bytes.chunks(40).zip(batch.indices()).all(|(s, &index)| s.iter().all(|&b| b == index as u8)));
        numbers.push(batch.number());
    }
    assert_ne!(numbers[0], 0, "a slow sample delays its own batch only");
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..20));
}

pub fn a_waiting_user_can_be_cancelled<B: TestDevice>(backend: &B, strategy: Strategy) {
    let release = Arc::new(AtomicBool::new(false));
    let source = {
        let release = Arc::clone(&release);
        Scripted::shared(40, move |index| {
            while index == 9 && !release.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(200));
            }
            Ok(40)
        })
    };
    let options = LoaderOptions { batch_size: 4, ..options(strategy) };
    let mut loader = Loader::new(backend, source, options).expect("the loader opens");
    let canceller = loader.canceller();
    let mut epoch = loader.epoch(0);
    assert!(epoch.by_ref().take(2).all(|batch| batch.is_ok()));
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        canceller.cancel();
    });
    assert!(matches!(epoch.next(), Some(Err(LoadError::Cancelled))));
    assert!(epoch.next().is_none(), "it is over");
    drop(epoch);
    other.join().expect("no panic");
    // For good, and awaiting ones too.
    assert!(matches!(pollster::block_on(loader.epoch(1).next_async()), Some(Err(LoadError::Cancelled))));
    release.store(true, Ordering::Relaxed);
}

pub fn a_wait_can_end_in_time<B: TestDevice>(backend: &B, strategy: Strategy) {
    let release = Arc::new(AtomicBool::new(false));
    let source = {
        let release = Arc::clone(&release);
        Scripted::shared(12, move |index| {
            while index == 5 && !release.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(200));
            }
            Ok(40)
        })
    };
    let stall_timeout = Some(Duration::from_millis(60));
    let options = LoaderOptions { batch_size: 4, workers: 1, stall_timeout, ..options(strategy) };
    let mut loader = Loader::new(backend, source, options).expect("the loader opens");
    let mut epoch = loader.epoch(0);
    // A busy machine may stand still for that long as well.
    let is_stall = |result: &Result<_, _>| matches!(result, Err(LoadError::Stalled(_)));
    let mut tries = std::iter::from_fn(|| epoch.try_next());
    let first = tries.find(|batch| !is_stall(batch)).expect("the first");
    assert_eq!(first.expect("a batch").number(), 0);
    let mut waits = std::iter::repeat_with(|| epoch.next_timeout(Duration::from_millis(5)).expect("it is not over"));
    assert!(matches!(waits.find(|batch| !is_stall(batch)), Some(Err(LoadError::TimedOut(_)))));
    // Nothing moves at all, and the error says who waits for what.
    let stall = std::iter::from_fn(|| epoch.try_next()).find_map(|batch| match batch {
        Err(LoadError::Stalled(stall)) => (stall.reading == [(0, 5)]).then_some(stall),
        other => panic!("nothing moves, and still: {other:?}"),
    });
    let stall = stall.expect("the epoch is not over");
    assert_eq!(stall.workers, 1, "{stall}");
    assert!(stall.to_string().contains("worker 0 is reading sample 5"), "{stall}");
    assert_eq!(epoch.remaining(), 2, "nothing is lost");
    release.store(true, Ordering::Relaxed);
    let rest = std::iter::from_fn(|| epoch.try_next()).filter(|batch| !is_stall(batch));
    let numbers: Vec<u64> = rest.map(|batch| batch.expect("it goes on").number()).collect();
    assert_eq!(numbers, [1, 2]);
}

pub fn padding_fills_the_last_batch<B: TestDevice>(backend: &B, strategy: Strategy) {
    let source = pattern(SampleLayout::bytes(&[24]).expect("valid"), 11);
    let last_batch = LastBatch::Pad;
    let options = LoaderOptions { batch_size: 4, world: 2, rank: 1, last_batch, ..options(strategy) };
    let mut loader = Loader::new(backend, source.clone(), options).expect("the loader opens");
    let batches: Vec<_> = loader.epoch(0).map(|batch| batch.expect("no error")).collect();
    let seen: Vec<_> = batches.iter().map(|batch| (batch.indices().to_vec(), batch.padding())).collect();
    assert_eq!(seen, [(vec![1, 3, 5, 7], 0), (vec![9, 0, 2, 4], 3)]);
    for batch in &batches {
        assert_eq!(batch.read().expect("readable"), batch_bytes(&*source, batch));
    }
}

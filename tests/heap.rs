//! gpufeed's own heap stands still in steady state: counted by the allocator, on the host backend.

#[path = "support/counting.rs"]
mod counting;

use std::sync::Arc;

use counting::{LARGE_BYTES, large_allocations, live};
use gpufeed::backend::host::HostBackend;
use gpufeed::source::random_images;
use gpufeed::{Element, Field, Loader, LoaderOptions, MemorySource, Normalize, SampleLayout};

/// Threads that are blocked in a channel hold a small allocation each.
fn near(one: i64, other: i64, allocations: i64) -> bool {
    (one - other).abs() <= allocations * LARGE_BYTES as i64
}

const SAMPLES: usize = 28;

fn images() -> MemorySource {
    let layout = SampleLayout::image(11, 7, 3).expect("a valid layout");
    random_images(layout, SAMPLES, 1).expect("images")
}

/// The same with tokens on the device and boxes on the host, of every sample another number.
fn detections() -> MemorySource {
    let tokens = Field::ragged("tokens", Element::I64, SAMPLES, &[]).expect("a valid field");
    let boxes = Field::ragged("boxes", Element::F32, SAMPLES, &[4]).expect("a valid field").on_host();
    let source = images().with_ragged(tokens, (0..SAMPLES).map(|sample| vec![sample as i64; sample]));
    let source =
        source.and_then(|source| source.with_ragged(boxes, (0..SAMPLES).map(|sample| vec![0.5f32; 4 * sample])));
    source.expect("they fit")
}

/// What is asserted of a loader with these options; its batches are read now and then.
fn stands_still(source: MemorySource, options: LoaderOptions) {
    let source = Arc::new(source);
    let backend = HostBackend::new();
    let before = live();
    let mut loader = Loader::new(&backend, source.clone(), options).expect("the loader opens");
    let mut epochs = |count: u64| {
        for epoch in 0..count {
            loader.epoch(epoch).for_each(|batch| drop(batch.expect("memory can be read")));
        }
        // The last batches' messages may be on their way; asking the pump for anything puts us behind them.
        let memory = loader.memory().expect("the pump is there");
        (live(), large_allocations(), memory)
    };
    let (_, large, memory) = epochs(20);
    let (bytes, _, _) = epochs(1);
    let (bytes_later, large_later, memory_later) = epochs(1000);
    assert_eq!(memory, memory_later);
    assert_eq!(large, large_later, "nothing of a batch's size is allocated after warm-up");
    assert!(near(bytes_later, bytes, 8), "{bytes} bytes became {bytes_later}");
    drop(loader);
    let after = live();
    assert!(near(after, before, 4), "{before} bytes before, {after} after");
}

#[test]
fn the_heap_stands_still_over_a_thousand_epochs_and_is_given_back() {
    let options = LoaderOptions {
        batch_size: 8,
        workers: 3,
        seed: Some(5),
        preprocess: Normalize::imagenet().into(),
        fingerprints: true,
        ..LoaderOptions::default()
    };
    stands_still(images(), options.clone());
    stands_still(detections(), options.clone());
    // One after the other: the whole process is counted.
    stands_still(images(), LoaderOptions { ordered: false, stall_timeout: None, ..options });
}

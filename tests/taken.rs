//! Tensors that are taken out for good: they are the caller's, others take their places, and the budget goes on to hold.

use std::sync::Arc;

use gpufeed::backend::Tensor;
use gpufeed::backend::host::HostBackend;
use gpufeed::{FeedError, Feeder, FeederOptions, Loader, LoaderOptions, SampleLayout, SyntheticSource};

fn layout() -> SampleLayout {
    SampleLayout::bytes(&[100]).expect("a layout")
}

fn frame(number: u8) -> [u8; 100] {
    [number; 100]
}

#[test]
fn a_feeder_makes_another_tensor_in_place_of_one_that_was_taken_out() {
    let options = FeederOptions { slots: 1, outputs: 2, ..FeederOptions::default() };
    let mut feeder = Feeder::new(&HostBackend::new(), layout(), options).expect("a feeder");
    let mut kept = Vec::new();
    for number in 0..10 {
        let batch = feeder.feed(&[&frame(number)]).expect("another output takes the place");
        let desc = batch.desc();
        kept.push((batch.into_tensor(), desc));
    }
    for ((tensor, desc), number) in kept.iter().zip(0..) {
        assert_eq!(tensor.read(desc).expect("readable"), frame(number));
    }
    // As many as before can be held at once, and no more.
    let held = [1, 2].map(|number| feeder.feed(&[&frame(number)]).expect("an output is free"));
    assert_eq!(feeder.feed(&[&frame(3)]).map(drop), Err(FeedError::AllTensorsLeased { outputs: 2 }));
    drop(held);
}

#[test]
fn what_was_taken_out_of_a_feeder_is_neither_held_nor_counted_against_the_budget() {
    let options = FeederOptions { slots: 1, outputs: 2, ..FeederOptions::default() };
    let planned = Feeder::new(&HostBackend::new(), layout(), options.clone()).expect("a feeder").footprint();
    let options = FeederOptions { byte_budget: Some(planned.total()), ..options };
    let mut feeder = Feeder::new(&HostBackend::new(), layout(), options).expect("a feeder within its budget");
    for number in 0..10 {
        let tensor = feeder.feed(&[&frame(number)]).expect("within the budget").into_tensor();
        assert!(feeder.memory().held.total() < planned.total(), "the tensor is not the feeder's");
        drop(tensor);
    }
    drop(feeder.feed(&[&frame(0)]));
    drop([1, 2].map(|number| feeder.feed(&[&frame(number)]).expect("an output is free")));
    assert_eq!(feeder.memory().held, planned);
}

#[test]
fn what_was_taken_out_of_a_loader_is_neither_held_nor_counted_against_the_budget() {
    let source = Arc::new(SyntheticSource::new(layout(), 60));
    let options = LoaderOptions { batch_size: 2, slots: 2, outputs: 3, workers: 1, ..LoaderOptions::default() };
    let planned = Loader::new(&HostBackend::new(), source.clone(), options.clone()).expect("a loader").footprint();
    let options = LoaderOptions { byte_budget: Some(planned.total()), ..options };
    let mut loader = Loader::new(&HostBackend::new(), source, options).expect("a loader within its budget");
    let kept: Vec<_> = loader.epoch(0).map(|batch| batch.expect("within the budget").into_tensor()).collect();
    assert_eq!(kept.len(), 30);
    assert_eq!(loader.memory().expect("the pump is there").held, planned);
}

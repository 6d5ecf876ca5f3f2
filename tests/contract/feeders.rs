//! Pushed feeding: the same slots, strategies and kernels, without sampler or epoch.

use gpufeed::{FeedError, Feeder, FeederOptions, Normalize, SampleLayout, Strategy};

use crate::device::TestDevice;

fn options(strategy: Strategy) -> FeederOptions {
    FeederOptions { strategy: Some(strategy), ..FeederOptions::default() }
}

fn frame(number: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 3 + number * 7) as u8).collect()
}

pub fn frames_become_batches_in_the_order_they_are_pushed<B: TestDevice>(backend: &B, strategy: Strategy) {
    let layout = SampleLayout::image(5, 7, 3).expect("valid");
    let options = FeederOptions { batch_size: 3, slots: 1, outputs: 2, ..options(strategy) };
    let mut feeder = Feeder::new(backend, layout, options).expect("the feeder opens");
    let memory = feeder.memory();
    let mut fed = 0;
    for frames in [1, 3, 2, 3, 1, 1, 2] {
        let frames: Vec<Vec<u8>> = (fed..fed + frames).map(|number| frame(number, 105)).collect();
        let borrowed: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let batch = feeder.feed(&borrowed).expect("it is sent");
        batch.wait().expect("the device is there");
        assert_eq!(batch.read().expect("readable"), frames.concat());
        assert!(batch.indices().iter().copied().eq(fed as u64..(fed + frames.len()) as u64));
        fed += frames.len();
    }
    if !strategy.allocates_per_batch() && strategy != Strategy::StagingBelt {
        assert_eq!(feeder.memory(), memory);
    }
}

pub fn frames_are_normalised<B: TestDevice>(backend: &B, strategy: Strategy) {
    let layout = SampleLayout::image(4, 4, 3).expect("valid");
    let options = FeederOptions { preprocess: Normalize::unit(3).into(), ..options(strategy) };
    let mut feeder = Feeder::new(backend, layout, options).expect("the feeder opens");
    for value in [0u8, 51, 255] {
        let batch = feeder.feed(&[&[value; 48]]).expect("it is sent");
        let values = batch.read_f32().expect("readable");
        assert!(values.iter().all(|v| (v - f32::from(value) / 255.0).abs() < 1e-6), "{value}: {values:?}");
    }
}

pub fn frames_that_do_not_fit_are_named_and_nothing_is_lost<B: TestDevice>(backend: &B, strategy: Strategy) {
    let layout = SampleLayout::bytes(&[16]).expect("valid");
    let options = FeederOptions { batch_size: 2, outputs: 1, slots: 1, ..options(strategy) };
    let mut feeder = Feeder::new(backend, layout, options).expect("the feeder opens");
    let (good, short) = (frame(0, 16), frame(1, 15));
    assert_eq!(feeder.feed::<&[u8]>(&[]).map(drop), Err(FeedError::Count { got: 0, most: 2 }));
    assert_eq!(feeder.feed(&[&good, &good, &good]).map(drop), Err(FeedError::Count { got: 3, most: 2 }));
    assert_eq!(feeder.feed(&[&good, &short]).map(drop), Err(FeedError::Length { frame: 1, got: 15, expected: 16 }));
    let held = feeder.feed(&[&good]).expect("it is sent");
    assert_eq!(feeder.feed(&[&good]).map(drop), Err(FeedError::AllTensorsLeased { outputs: 1 }));
    drop(held);
    assert_eq!(feeder.feed(&[&good]).expect("the output is back").read().expect("readable"), good);
}

pub fn frames_can_be_awaited<B: TestDevice>(backend: &B, strategy: Strategy) {
    let layout = SampleLayout::bytes(&[64]).expect("valid");
    let options = FeederOptions { slots: 1, outputs: 3, ..options(strategy) };
    let mut feeder = Feeder::new(backend, layout, options).expect("the feeder opens");
    pollster::block_on(async {
        for number in 0..20 {
            let frame = frame(number, 64);
            let batch = feeder.feed_async(&[&frame]).await.expect("it is sent");
            batch.ready().await.expect("the device is there");
            assert_eq!(batch.read().expect("readable"), frame);
        }
    });
}

pub fn a_device_lost_between_frames_is_an_error<B: TestDevice>(backend: &B, strategy: Strategy) {
    let layout = SampleLayout::bytes(&[16]).expect("valid");
    let mut feeder = Feeder::new(backend, layout, options(strategy)).expect("the feeder opens");
    let good = frame(0, 16);
    drop(feeder.feed(&[&good]).expect("it is sent"));
    backend.lose();
    for _ in 0..5 {
        if let Err(error) = feeder.feed(&[&good]).map(drop) {
            assert!(matches!(error, FeedError::Device(gpufeed::DeviceError::Lost { .. })), "{error}");
            return;
        }
    }
    panic!("the loss is not noticed");
}

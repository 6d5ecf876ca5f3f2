//! What the end of a copy and the end of a kernel give back, by a host device that ends both at chosen moments.

use std::sync::Arc;

use gpufeed::backend::host::{Faults, HostBackend, Moments, Release};
use gpufeed::backend::{Backend, Input, Lane, Tensor, Wait};
use gpufeed::source::random_images;
use gpufeed::{Loader, LoaderOptions, SampleLayout, Strategy};

use crate::device::{host, run};
use crate::lanes::{BATCH, batch_bytes, begin, spec, write};

/// More looks than a lane takes to see everything end.
const LOOKS: u32 = 6;

fn host_with(moments: Moments) -> HostBackend {
    HostBackend::with_faults(Faults { moments, ..Faults::default() })
}

/// Every choice of looks after which a copy and its kernel end.
fn all_moments() -> impl Iterator<Item = Moments> {
    (0..LOOKS).flat_map(|copy| (copy..LOOKS).map(move |kernel| Moments::Looks { copy, kernel }))
}

#[test]
fn the_only_slot_comes_back_whenever_its_copy_and_its_kernel_end() {
    for moments in all_moments() {
        let spec = spec(Strategy::Memcpy, 1);
        let mut lane = host_with(moments.clone()).open_lane(&spec).expect("the lane opens");
        let mut output = lane.output().expect("an output");
        for batch in 0..3 {
            let filled = write(begin(&mut lane), &batch_bytes(batch, BATCH));
            output = lane.submit(Input::Staged(filled), BATCH, output).expect("it is sent").tensor;
            let mut finished = Vec::new();
            for _ in 0..=LOOKS {
                lane.reap(Wait::Poll, &mut finished).expect("the device is there");
            }
            assert_eq!((finished, lane.in_flight()), (vec![batch as u64], 0), "{moments:?}");
            let desc = spec.preprocess.tensor(&spec.layout, BATCH);
            assert_eq!(output.read(&desc).expect("it can be read"), batch_bytes(batch, BATCH), "{moments:?}");
        }
    }
}

#[test]
fn a_slot_is_free_when_its_copy_has_ended_and_a_submission_when_its_kernel_has() {
    let release = Arc::new(Release::default());
    let mut lane =
        host_with(Moments::Released(Arc::clone(&release))).open_lane(&spec(Strategy::Memcpy, 1)).expect("it opens");
    let output = lane.output().expect("an output");
    let filled = write(begin(&mut lane), &batch_bytes(0, BATCH));
    let tensor = lane.submit(Input::Staged(filled), BATCH, output).expect("it is sent").tensor;
    let mut finished = Vec::new();

    lane.reap(Wait::Poll, &mut finished).expect("the device is there");
    assert!(lane.begin().expect("the device is there").is_none(), "the copy reads the slot");
    assert_eq!((lane.in_flight(), tensor.is_written()), (1, Ok(false)));

    release.end_copy();
    lane.reap(Wait::Poll, &mut finished).expect("the device is there");
    let fill = lane.begin().expect("the device is there").expect("the copy has ended");
    assert_eq!((lane.in_flight(), tensor.is_written(), finished.len()), (1, Ok(false), 0), "the kernel runs");

    release.end_kernel();
    lane.reap(Wait::Poll, &mut finished).expect("the device is there");
    assert_eq!((lane.in_flight(), tensor.is_written(), &finished[..]), (0, Ok(true), &[0][..]));
    drop(fill);
}

#[test]
fn what_ended_between_two_looks_is_not_forgotten() {
    let release = Arc::new(Release::default());
    let mut lane =
        host_with(Moments::Released(Arc::clone(&release))).open_lane(&spec(Strategy::Memcpy, 2)).expect("it opens");
    let mut finished = Vec::new();
    for batch in 0..2 {
        let filled = write(begin(&mut lane), &batch_bytes(batch, BATCH));
        let output = lane.output().expect("an output");
        lane.submit(Input::Staged(filled), BATCH, output).expect("it is sent");
    }
    // The kernel's end is there to be seen before the copy's is.
    release.end_kernel();
    lane.reap(Wait::Poll, &mut finished).expect("the device is there");
    assert_eq!((finished.len(), lane.in_flight()), (0, 2), "its slot is not back");
    release.end_copy();
    lane.reap(Wait::One, &mut finished).expect("the device is there");
    assert_eq!((&finished[..], lane.in_flight()), (&[0][..], 1));
    release.end_all();
    lane.reap(Wait::All, &mut finished).expect("the device is there");
    assert_eq!((&finished[..], lane.in_flight()), (&[0, 1][..], 0));
    assert!((begin(&mut lane), begin(&mut lane)).0.slot() == 0, "both slots are free");
}

#[test]
fn a_loader_with_one_slot_delivers_whenever_copies_and_kernels_end() {
    run("a loader with one slot", host, Strategy::Memcpy, |_| {
        let images = Arc::new(random_images(SampleLayout::image(8, 8, 3).expect("valid"), 40, 1).expect("memory"));
        for moments in all_moments() {
            let options = LoaderOptions { batch_size: 4, slots: 1, outputs: 2, ..LoaderOptions::default() };
            let mut loader = Loader::new(&host_with(moments), images.clone(), options).expect("the loader opens");
            for epoch in 0..2 {
                assert_eq!(loader.epoch(epoch).filter(|batch| batch.is_ok()).count(), 10);
            }
        }
    });
}

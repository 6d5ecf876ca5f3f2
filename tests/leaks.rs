//! What is given up is given back: memory of batches that are never sent. In a process of its own, whose memory is measured.

#![cfg(all(feature = "wgpu", target_os = "linux"))]

#[path = "support/process.rs"]
mod process;
#[path = "support/skip.rs"]
mod skip;

use std::sync::Arc;

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::{
    Loader, LoaderOptions, OpenError, SampleContext, SampleLayout, SampleWriter, Source, SourceError, Strategy,
};

/// Samples of a mebibyte, none of which can be read.
struct Gone(SampleLayout);

impl Source for Gone {
    fn layout(&self) -> SampleLayout {
        self.0.clone()
    }

    fn len(&self) -> u64 {
        800
    }

    fn read(&self, _: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        // Touched, so that it counts.
        out.write(&vec![1; out.len()])?;
        Err("gone".into())
    }
}

const NAME: &str = "batches_that_are_never_sent_cost_no_memory";

#[test]
fn batches_that_are_never_sent_cost_no_memory() {
    let backend = match WgpuBackend::open("vulkan:0") {
        Err(OpenError::NoDevice { .. }) => return skip::skip(NAME, "no Vulkan device here"),
        opened => opened.expect("the device is there and opens"),
    };
    if !backend.info().is_software() {
        return skip::skip(NAME, "a card's memory does not show in the process");
    }
    let layout = SampleLayout::bytes(&[1 << 20]).expect("valid");
    for strategy in [Strategy::StagingBelt, Strategy::WriteBufferWith, Strategy::FreshMapped, Strategy::MappedRing] {
        let options = LoaderOptions { batch_size: 4, workers: 2, strategy: Some(strategy), ..LoaderOptions::default() };
        let mut loader = Loader::new(&backend, Arc::new(Gone(layout.clone())), options).expect("the loader opens");
        let mut fail = || assert_eq!(loader.epoch(0).filter(Result::is_err).count(), 200);
        fail();
        let before = process::resident_bytes() >> 20;
        fail();
        // 200 batches of 4 MiB were given up.
        let grown = (process::resident_bytes() >> 20).saturating_sub(before);
        assert!(grown < 200, "{strategy}: {grown} MiB more");
    }
}

//! Files that change while a device has them mapped.

use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::source::Direct;
use gpufeed::{
    Loader, LoaderOptions, NpySource, OpenError, SampleContext, SampleLayout, SampleWriter, Source, SourceError,
    StableHostMemory, Strategy,
};

use crate::changing::{CHANGES, SAMPLES, changed, samples, tells, whole};

/// A mapped file that does not say so. Software devices take it; here nobody cuts the file while they read.
struct Unsaid(Arc<dyn StableHostMemory>);

// SAFETY: the mapping is one, and is not touched.
#[allow(unsafe_code)]
unsafe impl StableHostMemory for Unsaid {
    fn address(&self) -> NonNull<u8> {
        self.0.address()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

struct UnsaidSource(NpySource);

impl Source for UnsaidSource {
    fn layout(&self) -> SampleLayout {
        self.0.layout()
    }

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        self.0.read(sample, out)
    }

    fn direct(&self) -> Option<Direct> {
        let inner = Arc::new(self.0.direct()?);
        let (position, memory) = (Arc::clone(&inner), Arc::clone(inner.memory()));
        let direct = Direct::new(Arc::new(Unsaid(memory)), move |index| position.position(index));
        Some(direct.with_check(move || inner.check()))
    }
}

fn unsaid(path: &Path) -> Arc<dyn Source> {
    Arc::new(UnsaidSource(NpySource::open(path).expect("a whole file")))
}

fn device(name: &str) -> Option<WgpuBackend> {
    match WgpuBackend::open("vulkan:0") {
        Err(OpenError::NoDevice { .. }) => {
            crate::skip::skip(name, "no Vulkan device here");
            None
        }
        opened => Some(opened.expect("the device is there and opens")),
    }
}

fn imported() -> LoaderOptions {
    let strategy = Some(Strategy::Imported);
    LoaderOptions { batch_size: 2, outputs: 2, strategy, ..LoaderOptions::default() }
}

#[test]
fn a_file_that_changes_while_a_device_has_it_mapped_is_an_error() {
    let _turn = crate::alone();
    let name = "a_file_that_changes_while_a_device_has_it_mapped_is_an_error";
    let Some(backend) = device(name) else { return };
    let open = if backend.info().is_software() { unsaid } else { whole };
    let (_folder, path) = samples();
    match Loader::new(&backend, open(&path), imported()).map(|_| ()) {
        Err(OpenError::Unsupported(unsupported)) => return crate::skip::skip(name, &unsupported.to_string()),
        opened => opened.expect("the loader opens"),
    }
    for (what, change) in CHANGES {
        let errors = changed(&backend, &imported(), change, open);
        assert_eq!(errors.len(), SAMPLES / 2 - 2, "{what}");
        assert!(errors.iter().all(tells), "{what}: {errors:?}");
    }
}

#[test]
fn a_software_device_is_not_left_alone_with_a_file_that_may_be_cut_short() {
    let _turn = crate::alone();
    let name = "a_software_device_is_not_left_alone_with_a_file_that_may_be_cut_short";
    let Some(backend) = device(name) else { return };
    if !backend.info().is_software() {
        return crate::skip::skip(name, "the Vulkan device here is no software");
    }
    let (_folder, path) = samples();
    let refused = Loader::new(&backend, whole(&path), imported()).map(|_| ()).expect_err("a signal may follow");
    let OpenError::Unsupported(unsupported) = refused else { panic!("another error: {refused}") };
    assert_eq!(unsupported.strategy, Strategy::Imported);
    assert!(unsupported.reason.contains("cut short"), "{unsupported}");
}

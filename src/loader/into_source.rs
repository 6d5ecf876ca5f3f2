//! What a loader takes as its source.

use std::sync::Arc;

use crate::source::Source;

/// A shared source: an `Arc` of any [`Source`], of one whose type is known or of `dyn Source`.
///
/// ```
/// # use std::sync::Arc;
/// # use gpufeed::{Loader, LoaderOptions, SampleLayout, Source, SyntheticSource, backend::host::HostBackend};
/// let source = Arc::new(SyntheticSource::new(SampleLayout::bytes(&[8])?, 100));
/// let any: Arc<dyn Source> = source.clone();
/// Loader::new(&HostBackend::new(), Arc::clone(&source), LoaderOptions::default())?;
/// Loader::new(&HostBackend::new(), Arc::clone(&any), LoaderOptions::default())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait IntoSource: private::Sealed {
    /// The source, whatever its type.
    fn into_source(self) -> Arc<dyn Source>;
}

mod private {
    pub trait Sealed {}
}

impl<S: Source + 'static> private::Sealed for Arc<S> {}

impl<S: Source + 'static> IntoSource for Arc<S> {
    fn into_source(self) -> Arc<dyn Source> {
        self
    }
}

impl private::Sealed for Arc<dyn Source> {}

impl IntoSource for Arc<dyn Source> {
    fn into_source(self) -> Arc<dyn Source> {
        self
    }
}

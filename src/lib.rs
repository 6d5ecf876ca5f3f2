//! Feeds batches to GPUs.
pub mod any;
pub mod backend;
pub mod error;
pub mod layout;
pub mod loader;
pub mod measure;
pub mod preprocess;
pub mod source;
pub mod staging;

#[cfg(feature = "cuda")]
pub use ::cudarc;
#[cfg(feature = "wgpu")]
pub use ::wgpu;
pub use any::{AnyBackend, AnyBatch, AnyEpoch, AnyLoader, devices, open};
pub use backend::{AdapterInfo, Api, Backend, DeviceType, Strategy};
pub use error::{DeviceError, LayoutError, LoadError, OpenError, SourceError, Stage, Unsupported};
pub use layout::{BatchLayout, ImageLayout, SampleLayout};
pub use loader::{Batch, Epoch, LastBatch, Loader, LoaderOptions, LoaderStats};
pub use preprocess::{FloatType, Normalize, Preprocess, TensorDesc, TensorLayout};
#[cfg(feature = "images")]
pub use source::FolderSource;
pub use source::{MemorySource, NpySource, Source, SyntheticSource};
pub use staging::SampleWriter;

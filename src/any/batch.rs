//! A batch on a device of any backend.

use std::borrow::Cow;
use std::time::Duration;

use super::each;
#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaBackend;
use crate::backend::host::HostBackend;
#[cfg(feature = "wgpu")]
use crate::backend::wgpu::WgpuBackend;
use crate::error::DeviceError;
use crate::layout::{Element, FieldKey, Scalar};
use crate::loader::Batch;
use crate::preprocess::{Fingerprint, TensorDesc};

/// A batch on a device of any backend. Match on it for the typed tensor.
#[derive(Debug)]
#[must_use = "dropping a batch gives its tensor back"]
#[non_exhaustive]
pub enum AnyBatch {
    /// Host memory.
    Host(Batch<HostBackend>),
    /// Vulkan, Metal, DX12 or GL.
    #[cfg(feature = "wgpu")]
    Wgpu(Batch<WgpuBackend>),
    /// CUDA.
    #[cfg(feature = "cuda")]
    Cuda(Batch<CudaBackend>),
}

impl AnyBatch {
    /// Shape and element type of the tensor.
    #[must_use]
    pub fn desc(&self) -> TensorDesc {
        each!(Self, self, batch => batch.desc())
    }

    /// Shape, element type and place of a field's tensor, as [`Batch::field`].
    #[must_use]
    pub fn field(&self, field: impl FieldKey) -> Option<TensorDesc> {
        each!(Self, self, batch => batch.field(field))
    }

    /// The dimensions of the tensor, samples first.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        each!(Self, self, batch => batch.shape())
    }

    /// The element type of the tensor.
    #[must_use]
    pub fn dtype(&self) -> Element {
        each!(Self, self, batch => batch.dtype())
    }

    /// The number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        each!(Self, self, batch => batch.len())
    }

    /// Whether there are no samples; never true for a delivered batch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The samples' indices in the source, in the order of the tensor.
    #[must_use]
    pub fn indices(&self) -> &[u64] {
        each!(Self, self, batch => batch.indices())
    }

    /// The elements of a field on the host, as [`Batch::host_field`].
    #[must_use]
    pub fn host_field<T: Scalar>(&self, field: impl FieldKey) -> Option<&[T]> {
        each!(Self, self, batch => batch.host_field(field))
    }

    /// The bytes of a field on the host, as [`Batch::host_bytes`].
    #[must_use]
    pub fn host_bytes(&self, field: impl FieldKey) -> Option<&[u8]> {
        each!(Self, self, batch => batch.host_bytes(field))
    }

    /// Where the rows of each sample of a ragged field begin, as [`Batch::offsets`].
    #[must_use]
    pub fn offsets(&self, field: impl FieldKey) -> Option<&[i32]> {
        each!(Self, self, batch => batch.offsets(field))
    }

    /// The elements of one sample of a ragged field on the host, as [`Batch::ragged`].
    #[must_use]
    pub fn ragged<T: Scalar>(&self, field: impl FieldKey, position: usize) -> Option<&[T]> {
        each!(Self, self, batch => batch.ragged(field, position))
    }

    /// The samples' labels as integers, as [`Batch::labels`].
    #[must_use]
    pub fn labels(&self) -> Option<Cow<'_, [i64]>> {
        each!(Self, self, batch => batch.labels())
    }

    /// The batch's number within its epoch, from zero.
    #[must_use]
    pub fn number(&self) -> u64 {
        each!(Self, self, batch => batch.number())
    }

    /// The epoch it belongs to.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        each!(Self, self, batch => batch.epoch())
    }

    /// How many of the last samples are repetitions, as [`Batch::padding`].
    #[must_use]
    pub fn padding(&self) -> usize {
        each!(Self, self, batch => batch.padding())
    }

    /// Whether the device has written the tensor, as [`Batch::is_ready`].
    ///
    /// # Errors
    /// The device's error.
    pub fn is_ready(&self) -> Result<bool, DeviceError> {
        each!(Self, self, batch => batch.is_ready())
    }

    /// Waits until the device has written the tensor, as [`Batch::wait`].
    ///
    /// # Errors
    /// The device's error.
    pub fn wait(&self) -> Result<(), DeviceError> {
        each!(Self, self, batch => batch.wait())
    }

    /// As [`wait`](Self::wait), for no longer than `timeout`, as [`Batch::wait_timeout`].
    ///
    /// # Errors
    /// The device's error.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool, DeviceError> {
        each!(Self, self, batch => batch.wait_timeout(timeout))
    }

    /// Waits for the device and reads the tensor back, as [`Batch::read`].
    ///
    /// # Errors
    /// The device's error.
    pub fn read(&self) -> Result<Vec<u8>, DeviceError> {
        each!(Self, self, batch => batch.read())
    }

    /// As [`read`](Self::read), of a field, as [`Batch::read_field`].
    ///
    /// # Errors
    /// The device's error.
    pub fn read_field(&self, field: impl FieldKey) -> Result<Option<Vec<u8>>, DeviceError> {
        each!(Self, self, batch => batch.read_field(field))
    }

    /// Waits for the device and reads the tensor back as f32, as [`Batch::read_f32`].
    ///
    /// # Errors
    /// The device's error.
    pub fn read_f32(&self) -> Result<Vec<f32>, DeviceError> {
        each!(Self, self, batch => batch.read_f32())
    }

    /// Waits for the device and reads each sample's fingerprint, as [`Batch::fingerprints`].
    ///
    /// # Errors
    /// The device's error.
    pub fn fingerprints(&self) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        each!(Self, self, batch => batch.fingerprints())
    }

    /// As [`fingerprints`](Self::fingerprints), of one field, as [`Batch::field_fingerprints`].
    ///
    /// # Errors
    /// The device's error.
    pub fn field_fingerprints(&self, field: impl FieldKey) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        each!(Self, self, batch => batch.field_fingerprints(field))
    }

    /// Waits for the device and gives one number for the whole batch, as [`Batch::fingerprint`].
    ///
    /// # Errors
    /// The device's error.
    pub fn fingerprint(&self) -> Result<Option<Fingerprint>, DeviceError> {
        each!(Self, self, batch => batch.fingerprint())
    }
}

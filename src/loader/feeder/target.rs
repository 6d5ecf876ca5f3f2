//! Batches in a buffer of the application's.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::geometry::Geometries;
use super::super::outputs::{Output, OutputPool};
use crate::backend::Tensor;
use crate::backend::wgpu::WgpuTensor;
use crate::error::DeviceError;
use crate::layout::{FieldKey, Scalar};
use crate::preprocess::{Geometry, OutputLayout, TensorDesc};

/// Frames whose tensors are written into a buffer of the application's. It lends nothing: dropping it changes nothing.
///
/// The work is queued. What the application queues from now on sees the tensors without a wait.
#[derive(Debug)]
#[must_use = "it says where the tensors are"]
pub struct TargetBatch {
    output: Output<WgpuTensor>,
    pool: Arc<OutputPool<WgpuTensor>>,
    tensors: Arc<OutputLayout>,
    geometries: Option<Arc<Geometries>>,
    offset: usize,
}

impl TargetBatch {
    pub(super) fn new(
        output: Output<WgpuTensor>,
        pool: &Arc<OutputPool<WgpuTensor>>,
        tensors: &Arc<OutputLayout>,
        geometries: Option<Arc<Geometries>>,
        offset: u64,
    ) -> Self {
        // It was checked to be within the buffer.
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        Self { output, pool: Arc::clone(pool), tensors: Arc::clone(tensors), geometries, offset }
    }

    /// The application's buffer.
    #[must_use]
    pub fn buffer(&self) -> &wgpu::Buffer {
        self.output.tensor.buffer()
    }

    /// Shape, element type and place of the first field's tensor: its [`offset`](TensorDesc::offset) is that within the buffer.
    #[must_use]
    pub fn desc(&self) -> TensorDesc {
        self.placed(self.tensors.first().of(self.len()))
    }

    /// The same of a field, by its name or number; `None` if there is no such field on the device. A pipeline's `geometry` is not written
    /// there: see [`geometry`](Self::geometry).
    #[must_use]
    pub fn field(&self, field: impl FieldKey) -> Option<TensorDesc> {
        let number = self.output.host.position(field)?;
        if self.geometries.as_ref().is_some_and(|geometries| geometries.field() == number) {
            return None;
        }
        Some(self.placed(self.tensors.field(number)?.of(self.len())))
    }

    fn placed(&self, desc: TensorDesc) -> TensorDesc {
        TensorDesc { offset: desc.offset + self.offset, ..desc }
    }

    /// The number of frames.
    #[must_use]
    pub fn len(&self) -> usize {
        self.output.indices.len()
    }

    /// Whether there are no frames; never true.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frames' numbers among all that the feeder was given.
    #[must_use]
    pub fn indices(&self) -> &[u64] {
        &self.output.indices
    }

    /// The frames' tags: see [`Batch::tags`](crate::Batch::tags).
    #[must_use]
    pub fn tags(&self) -> &[u64] {
        &self.output.tags
    }

    /// The elements of a field on the host: see [`Batch::host_field`](crate::Batch::host_field).
    #[must_use]
    pub fn host_field<T: Scalar>(&self, field: impl FieldKey) -> Option<&[T]> {
        self.output.host.values(field, self.len())
    }

    /// The frames' labels as integers: see [`Batch::labels`](crate::Batch::labels).
    #[must_use]
    pub fn labels(&self) -> Option<Cow<'_, [i64]>> {
        self.output.host.labels(self.len())
    }

    /// How a [`Pipeline`](crate::Pipeline) made the frame at this position: see [`Batch::geometry`](crate::Batch::geometry).
    #[must_use]
    pub fn geometry(&self, position: usize) -> Option<Geometry> {
        self.geometries.as_ref()?.of(*self.indices().get(position)?, 0).ok()
    }

    /// Waits until the device has written the tensors. Work queued on the device needs no wait.
    ///
    /// # Errors
    /// The device's error.
    pub fn wait(&self) -> Result<(), DeviceError> {
        self.output.tensor.wait()
    }

    /// Whether the device has written the tensors: looks, and does not wait.
    ///
    /// # Errors
    /// The device's error.
    pub fn is_ready(&self) -> Result<bool, DeviceError> {
        self.output.tensor.is_written()
    }

    /// As [`wait`](Self::wait), and gives the thread back until then. (On GL, where one thread may talk to the device, it blocks.)
    ///
    /// # Errors
    /// The device's error.
    pub async fn ready(&self) -> Result<(), DeviceError> {
        if self.output.tensor.needs_pump() {
            return self.wait();
        }
        self.pool.waiter().wait(self.output.tensor.clone()).await
    }
}

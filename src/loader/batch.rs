//! A batch on the device, and the lease on its tensor.

mod ragged;
mod read;
#[cfg(feature = "wgpu")]
mod wgpu;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::geometry::Geometries;
use super::outputs::{Output, OutputPool};
use crate::backend::{Backend, Tensor};
use crate::error::DeviceError;
use crate::layout::{Element, FieldKey, Scalar};
use crate::preprocess::{Geometry, OutputLayout, TensorDesc};

/// A batch on the device: a tensor for each field that its samples have there, and which samples are in it.
///
/// The batch lends its tensor. Dropping it gives the tensor back to the loader, which writes a later batch into it; that
/// write is queued after everything submitted to the device's queue before the drop. So: submit what uses the tensor, then drop
/// the batch. A batch may outlive its loader and may be dropped on any thread. A forgotten batch costs its tensor.
#[must_use = "dropping a batch gives its tensor back"]
pub struct Batch<B: Backend> {
    /// `None` only while it is being dropped.
    output: Option<Output<B::Tensor>>,
    pool: Arc<OutputPool<B::Tensor>>,
    /// Of a full batch.
    tensors: Arc<OutputLayout>,
    /// The first field's.
    desc: TensorDesc,
    number: u64,
    epoch: u64,
    padding: usize,
    geometries: Option<Arc<Geometries>>,
    /// When the user got it.
    since: Instant,
}

impl<B: Backend> Batch<B> {
    pub(super) fn new(
        output: Output<B::Tensor>,
        pool: Arc<OutputPool<B::Tensor>>,
        tensors: Arc<OutputLayout>,
        number: u64,
        epoch: u64,
        since: Instant,
    ) -> Self {
        pool.lease();
        let desc = tensors.first().of(output.indices.len());
        Self { output: Some(output), pool, tensors, desc, number, epoch, padding: 0, geometries: None, since }
    }

    pub(super) fn with_padding(mut self, padding: usize) -> Self {
        self.padding = padding;
        self
    }

    pub(super) fn with_geometries(mut self, geometries: Option<Arc<Geometries>>) -> Self {
        self.geometries = geometries;
        self
    }

    fn output(&self) -> &Output<B::Tensor> {
        self.output.as_ref().expect("a batch holds its output until it is dropped")
    }

    /// The memory on the device, which holds the tensors of all fields: that of the first from its beginning, each other at the
    /// [offset](TensorDesc::offset) of its [`field`](Self::field).
    #[must_use]
    pub fn tensor(&self) -> &B::Tensor {
        &self.output().tensor
    }

    /// Shape and element type of the first field's tensor.
    #[must_use]
    pub fn desc(&self) -> TensorDesc {
        self.desc
    }

    /// Shape, element type and place of a field's tensor, by the field's name or number; `None` if there is no such field on the device.
    /// Fields behind the first are as the source wrote them; behind the rows of ragged ones there are zeros.
    #[must_use]
    pub fn field(&self, field: impl FieldKey) -> Option<TensorDesc> {
        let number = self.output().host.position(field)?;
        Some(self.tensors.field(number)?.of(self.len()))
    }

    /// The dimensions of the first field's tensor, samples first.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.desc.shape.as_slice()
    }

    /// The element type of the first field's tensor.
    #[must_use]
    pub fn dtype(&self) -> Element {
        self.desc.dtype
    }

    /// The number of samples.
    #[must_use]
    pub fn len(&self) -> usize {
        self.output().indices.len()
    }

    /// Whether there are no samples; never true for a delivered batch.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The samples' indices in the source, in the order of the tensor.
    #[must_use]
    pub fn indices(&self) -> &[u64] {
        &self.output().indices
    }

    /// The frames' tags, in the order of the tensor, where a [`Feeder`](super::Feeder) was given any; 0 is that of a frame without one.
    /// None of a loader's batch.
    #[must_use]
    pub fn tags(&self) -> &[u64] {
        &self.output().tags
    }

    /// The elements of a field on the host, sample after sample in the order of the tensor: [`Field::elements`](crate::Field::elements)
    /// a sample, or of a ragged field those of its rows. `None` if there is no such field on the host, or its elements are of another type.
    #[must_use]
    pub fn host_field<T: Scalar>(&self, field: impl FieldKey) -> Option<&[T]> {
        self.output().host.values(field, self.len())
    }

    /// As [`host_field`](Self::host_field), whatever the elements are: their bytes in native order.
    #[must_use]
    pub fn host_bytes(&self, field: impl FieldKey) -> Option<&[u8]> {
        self.output().host.bytes(field, self.len()).map(|(_, bytes)| bytes)
    }

    /// The samples' labels as integers, in the order of the tensor: the field called `label` on the host, where there is one and it is a
    /// single element. Those of type i64 are borrowed, others converted; [`host_field`](Self::host_field) has them as they are.
    #[must_use]
    pub fn labels(&self) -> Option<Cow<'_, [i64]>> {
        self.output().host.labels(self.len())
    }

    /// How a [`Pipeline`](crate::Pipeline) made the sample at this position of the tensor of its frame: for mapping boxes and points to
    /// the frame and back. `None` without a pipeline, and for a position that the batch does not have. Kernels find the same as the field
    /// `geometry`, as [`Geometry::words`] lays it out.
    #[must_use]
    pub fn geometry(&self, position: usize) -> Option<Geometry> {
        let index = *self.indices().get(position)?;
        // What fits one sample fits all, as was checked when the loader was made.
        self.geometries.as_ref()?.of(index, self.epoch).ok()
    }

    /// The batch's number within its epoch, from zero.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// How many of the last samples are repetitions that fill it: see [`LastBatch::Pad`](super::LastBatch::Pad).
    #[must_use]
    pub fn padding(&self) -> usize {
        self.padding
    }

    /// The epoch it belongs to.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Takes the tensor out of the loader or [`Feeder`](super::Feeder) for good: it is the caller's, no longer counts as the loader's
    /// memory, and another is made in its place. A feeder makes it when next it needs one.
    #[must_use]
    pub fn into_tensor(mut self) -> B::Tensor {
        let output = self.output.take().expect("a batch holds its output until it is dropped");
        self.pool.take_out(output)
    }

    /// Waits until the device has written the tensor. Work queued on the device needs no wait.
    ///
    /// # Errors
    /// The device's error.
    pub fn wait(&self) -> Result<(), DeviceError> {
        let tensor = self.tensor().clone();
        self.on_pump(move || tensor.wait())
    }

    /// Whether the device has written the tensor: looks, and does not wait for it. (On GL, where one thread may talk to the device, it
    /// waits for that thread.)
    ///
    /// # Errors
    /// The device's error.
    pub fn is_ready(&self) -> Result<bool, DeviceError> {
        let tensor = self.tensor().clone();
        self.on_pump(move || tensor.is_written())
    }

    /// As [`wait`](Self::wait), for no longer than `timeout`: whether the tensor is written then. It looks once in a while, so
    /// that `wait` learns it sooner.
    ///
    /// # Errors
    /// The device's error.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<bool, DeviceError> {
        let start = Instant::now();
        let mut nap = Duration::from_micros(20);
        while !self.is_ready()? {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(nap.min(left));
            nap = (nap * 2).min(Duration::from_millis(1));
        }
        Ok(true)
    }

    /// As [`wait`](Self::wait), and gives the thread back until then. (On GL, where one thread may talk to the device, it blocks.)
    ///
    /// # Errors
    /// The device's error.
    pub async fn ready(&self) -> Result<(), DeviceError> {
        if self.tensor().needs_pump() {
            return self.wait();
        }
        self.pool.waiter().wait(self.tensor().clone()).await
    }

    /// Calls into the device on the pump's thread, or here if that is gone or not needed.
    fn on_pump<R: Send + 'static>(&self, call: impl Fn() -> R + Clone + Send + 'static) -> R {
        if self.tensor().needs_pump()
            && let Some(result) = self.pool.call(call.clone())
        {
            return result;
        }
        call()
    }
}

impl<B: Backend> Drop for Batch<B> {
    fn drop(&mut self) {
        if let Some(output) = self.output.take() {
            self.pool.end_lease(output, self.since.elapsed());
        }
    }
}

impl<B: Backend> std::fmt::Debug for Batch<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("epoch", &self.epoch)
            .field("number", &self.number)
            .field("desc", &self.desc)
            .finish_non_exhaustive()
    }
}

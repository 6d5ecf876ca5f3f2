//! What a batch on a `wgpu` device offers beside: its buffer, and ways to use it.

use super::Batch;
use crate::backend::wgpu::WgpuBackend;
use crate::error::DeviceError;
use crate::layout::FieldKey;
use crate::preprocess::TensorDesc;

impl Batch<WgpuBackend> {
    /// The first field's tensor as an entry of a bind group: exactly the bytes of this batch's samples.
    ///
    /// The last batch of an epoch may be short, and so may any batch of a [`Feeder`](crate::Feeder): behind its samples the
    /// [`buffer`](Self::buffer) still holds older ones, which a shader that asks for `arrayLength` must not see.
    ///
    /// A storage binding is a multiple of four bytes, so the size is rounded up to one: behind the last element of a u8 or f16 tensor
    /// there may be up to three bytes of no meaning. Shaders read such tensors as `array<u32>`; count the elements by
    /// [`shape`](Self::shape) where their number is no multiple of a word's.
    ///
    /// A bind group that was made with it fits every batch of the same [`output_index`](Self::output_index) and
    /// [`len`](Self::len).
    #[must_use]
    pub fn binding(&self) -> wgpu::BindingResource<'_> {
        self.bound(&self.desc)
    }

    /// As [`binding`](Self::binding), of a field by its name or number: exactly its bytes, from its offset in the buffer on, a multiple of
    /// 256. `None` if there is no such field on the device.
    #[must_use]
    pub fn field_binding(&self, field: impl FieldKey) -> Option<wgpu::BindingResource<'_>> {
        self.field(field).map(|tensor| self.bound(&tensor))
    }

    fn bound(&self, tensor: &TensorDesc) -> wgpu::BindingResource<'_> {
        let bytes = (tensor.byte_len() as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: self.buffer(),
            offset: tensor.offset as u64,
            size: wgpu::BufferSize::new(bytes),
        })
    }

    /// Which of the loader's tensors this is: the same number is the same buffer, for as long as the loader lives, so that bind groups
    /// can be kept in a list by it.
    ///
    /// The numbers are below [`outputs`](crate::LoaderOptions::outputs), and all of them occur. Only where
    /// [`into_buffer`](Self::into_buffer) takes tensors out do the tensors in their place get the numbers that follow; none is
    /// given twice.
    #[must_use]
    pub fn output_index(&self) -> usize {
        self.tensor().index()
    }

    /// The buffer that holds the tensor: usages `STORAGE`, `COPY_SRC` and `COPY_DST`. The tensor is its first
    /// [`byte_len`](crate::TensorDesc::byte_len) bytes; behind it are padding and, in a short batch, older samples. To bind it, use
    /// [`binding`](Self::binding).
    ///
    /// `wgpu::Buffer` can be cloned, and the clone outlives the batch: work submitted after the batch is dropped may read a later one.
    /// [`submit`](Self::submit) and [`into_buffer`](Self::into_buffer) cannot be used wrongly.
    #[must_use]
    pub fn buffer(&self) -> &wgpu::Buffer {
        self.tensor().buffer()
    }

    /// Submits work that uses the tensor, and gives the tensor back after it.
    pub fn submit(self, commands: impl IntoIterator<Item = wgpu::CommandBuffer>) -> wgpu::SubmissionIndex {
        // Dropping `self` afterwards lets the loader queue its next write, which the queue orders behind this.
        self.tensor().queue().submit(commands)
    }

    /// Queues a copy of the tensor into a buffer of the caller's, for frameworks that cannot take a foreign buffer. The copy is of the
    /// tensor's bytes, rounded up to a multiple of four. Nothing needs to be waited for before the batch is dropped: what the
    /// loader writes next is queued behind the copy.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] where the copy does not fit `target`, `offset` is no multiple of four, or `target` lacks `COPY_DST`.
    /// Nothing was queued then, and the batch can be used otherwise.
    pub fn fill_into(&self, target: &wgpu::Buffer, offset: u64) -> Result<wgpu::SubmissionIndex, DeviceError> {
        self.tensor().copy_to(target, offset, self.desc.byte_len())
    }

    /// Takes the tensor's buffer out of the loader for good, as [`into_tensor`](Self::into_tensor).
    #[must_use]
    pub fn into_buffer(self) -> wgpu::Buffer {
        self.into_tensor().buffer().clone()
    }
}

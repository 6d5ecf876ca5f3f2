//! One sample in ordinary memory.

use super::{HostMemory, SampleWriter};
use crate::error::DeviceError;
use crate::layout::{BatchLayout, Element, Field, FieldKey, LABEL, SampleLayout, Scalar};
use half::{bf16, f16};

/// Ordinary memory for one sample, with all of its fields: for using a [`Source`](crate::Source) without a loader.
///
/// ```
/// use gpufeed::{MemorySource, SampleBuffer, SampleContext, SampleLayout, Source};
///
/// let source = MemorySource::new(vec![1, 2, 3, 4], SampleLayout::bytes(&[2])?)?.with_labels(vec![7i64, 9])?;
/// let mut sample = SampleBuffer::new(source.layout())?;
/// source.read(&SampleContext::of(1), &mut sample.writer())?;
/// assert_eq!(sample.bytes(0), Some(&[3, 4][..]));
/// assert_eq!(sample.label(), Some(9));
/// # Ok::<(), gpufeed::SourceError>(())
/// ```
#[derive(Debug)]
pub struct SampleBuffer {
    /// A batch of one, all of it on the host.
    layout: BatchLayout,
    memory: HostMemory,
}

impl SampleBuffer {
    /// Memory for one sample of this layout, zeroed.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    #[expect(clippy::needless_pass_by_value, reason = "a source's layout is given away")]
    pub fn new(sample: SampleLayout) -> Result<Self, DeviceError> {
        let refused = || DeviceError::OutOfMemory { what: "a sample".to_owned(), bytes: sample.byte_len() as u64 };
        let layout = BatchLayout::all_on_host(&sample).map_err(|_| refused())?;
        let memory = HostMemory::new(layout.host_bytes())?;
        Ok(Self { layout, memory })
    }

    /// Writes the sample from its beginning.
    pub fn writer(&mut self) -> SampleWriter<'_> {
        SampleWriter::on_host(&self.layout, &mut self.memory, 0)
    }

    /// The bytes of a field, of a ragged one those of its rows; `None` if there is no such field.
    #[must_use]
    pub fn bytes(&self, field: impl FieldKey) -> Option<&[u8]> {
        let number = self.layout.sample().position(field)?;
        let bytes = self.memory.get(self.layout.spans().get(number)?.of(&(0..1)))?;
        let Some(ragged) = self.layout.ragged_field(number) else { return Some(bytes) };
        let rows: i32 = bytemuck::pod_read_unaligned(self.memory.get(ragged.count(0))?);
        bytes.get(..usize::try_from(rows).ok()?.checked_mul(ragged.row_bytes)?)
    }

    /// The elements of a field; `None` if there is no such field, or its elements are of another type.
    #[must_use]
    pub fn values<T: Scalar>(&self, field: impl FieldKey) -> Option<&[T]> {
        let element = self.field(field)?.element();
        T::holds(element).then(|| self.bytes(field).map(bytemuck::cast_slice))?
    }

    /// The first element of the field `label` as an integer; `None` if there is no such field.
    #[must_use]
    pub fn label(&self) -> Option<i64> {
        as_integers(self.field(LABEL)?.element(), self.bytes(LABEL)?).next()
    }

    fn field(&self, field: impl FieldKey) -> Option<&Field> {
        let sample = self.layout.sample();
        sample.fields().get(sample.position(field)?)
    }
}

/// Elements as integers; floats are rounded towards zero.
pub(crate) fn as_integers(element: Element, bytes: &[u8]) -> impl ExactSizeIterator<Item = i64> + '_ {
    bytes.chunks_exact(element.size()).map(move |one| match element {
        Element::U8 | Element::Bool => one[0].into(),
        Element::I8 => one[0].cast_signed().into(),
        Element::U16 => bytemuck::pod_read_unaligned::<u16>(one).into(),
        Element::I32 => bytemuck::pod_read_unaligned::<i32>(one).into(),
        Element::I64 => bytemuck::pod_read_unaligned::<i64>(one),
        Element::F16 => bytemuck::pod_read_unaligned::<f16>(one).to_f32() as i64,
        Element::Bf16 => bytemuck::pod_read_unaligned::<bf16>(one).to_f32() as i64,
        Element::F32 => bytemuck::pod_read_unaligned::<f32>(one) as i64,
    })
}

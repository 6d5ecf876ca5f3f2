//! Where a batch's tensors lie in one output.

use super::{Preprocess, TensorDesc};
use crate::error::LayoutError;
use crate::layout::{BatchLayout, FIELD_ALIGN, Placement, VECTOR_ALIGN, align_up};

/// The tensors of one output, which is one allocation: that of the first field, then those of the device's other fields, each at a
/// multiple of [`FIELD_ALIGN`] bytes. Where they lie does not depend on how many samples a batch has.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputLayout {
    fields: Vec<OutputField>,
    bytes: usize,
}

/// One tensor of an output.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct OutputField {
    /// The field's number in the sample.
    pub field: usize,
    /// The tensor of a full batch.
    pub desc: TensorDesc,
    /// Its first byte in a slot.
    pub slot_offset: usize,
    /// Whether a kernel makes it of the field's bytes. Others are those bytes.
    pub(crate) is_made: bool,
}

impl OutputField {
    /// Bytes of one sample in a slot.
    #[must_use]
    pub fn source_bytes(&self, layout: &BatchLayout) -> usize {
        layout.spans().get(self.field).map_or(0, |span| span.bytes)
    }

    /// The tensor of a batch of `samples` samples.
    #[must_use]
    pub fn of(&self, samples: usize) -> TensorDesc {
        self.desc.of(samples)
    }
}

impl OutputLayout {
    /// The tensors that batches of this layout become.
    ///
    /// # Errors
    /// [`LayoutError::Overflow`] where they do not fit the address space.
    pub fn new(preprocess: &Preprocess, layout: &BatchLayout) -> Result<Self, LayoutError> {
        let overflow = || LayoutError::Overflow { what: "the output's byte count" };
        let samples = layout.batch_size();
        let masks = preprocess.masks(layout.sample())?;
        let mut output = Self { fields: Vec::new(), bytes: 0 };
        for (number, (field, span)) in layout.sample().fields().iter().zip(layout.spans()).enumerate() {
            if span.placement == Placement::Host {
                continue;
            }
            let mask = masks.iter().find(|mask| mask.field == number);
            let desc = match mask {
                Some(mask) => TensorDesc::of_pipeline(mask, samples),
                None if number == 0 => preprocess.tensor(layout, samples),
                None => TensorDesc::raw(field, samples),
            };
            let is_made = mask.is_some() || (number == 0 && preprocess.computes());
            let offset = align_up(output.bytes, FIELD_ALIGN).ok_or_else(overflow)?;
            let end = desc.buffer_bytes().and_then(|bytes| offset.checked_add(bytes));
            output.bytes = end.filter(|&end| isize::try_from(end).is_ok()).ok_or_else(overflow)?;
            let desc = TensorDesc { offset, ..desc };
            output.fields.push(OutputField { field: number, desc, slot_offset: span.offset, is_made });
        }
        debug_assert!(output.bytes.is_multiple_of(VECTOR_ALIGN));
        Ok(output)
    }

    /// The tensor of the first field.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "a sample's first field is on the device")]
    pub fn first(&self) -> &OutputField {
        &self.fields[0]
    }

    /// The tensors, that of the first field first.
    #[must_use]
    pub fn fields(&self) -> &[OutputField] {
        &self.fields
    }

    /// The tensors of the fields behind the first: of a pipeline's masks, and those that are delivered as they are.
    #[must_use]
    pub fn tail(&self) -> &[OutputField] {
        self.fields.get(1..).unwrap_or_default()
    }

    /// The tensors that are copied from a slot to the output beside the kernel's; none where the slot is copied there as a whole.
    #[cfg(any(feature = "wgpu", feature = "cuda"))]
    pub(crate) fn copied_beside(self, preprocess: &Preprocess) -> Vec<OutputField> {
        match preprocess {
            Preprocess::Raw => Vec::new(),
            Preprocess::Normalize(_) | Preprocess::Pipeline(_) | Preprocess::Own(_) => {
                self.fields.into_iter().filter(|field| !field.is_made).collect()
            }
        }
    }

    /// The tensor of the sample's field with this number; `None` for a field on the host.
    #[must_use]
    pub fn field(&self, number: usize) -> Option<&OutputField> {
        self.fields.iter().find(|field| field.field == number)
    }

    /// Which of the tensors is that of the sample's field with this number; `None` for a field on the host.
    #[must_use]
    pub fn position(&self, number: usize) -> Option<usize> {
        self.fields.iter().position(|field| field.field == number)
    }

    /// Bytes of the whole output, padded to [`VECTOR_ALIGN`].
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{Element, Field, SampleLayout};
    use crate::preprocess::Normalize;

    fn layout() -> BatchLayout {
        let fields = [
            Field::image("image", 5, 3, 3),
            Field::array("label", Element::I64, &[]).map(Field::on_host),
            Field::array("mask", Element::U8, &[5, 3]),
            Field::array("weight", Element::F32, &[]),
        ];
        let sample = fields.into_iter().collect::<Result<Vec<_>, _>>().and_then(SampleLayout::new);
        BatchLayout::new(sample.expect("a sample"), 3).expect("a batch")
    }

    #[test]
    fn an_output_of_one_field_is_its_tensor() {
        let layout = BatchLayout::new(SampleLayout::bytes(&[7]).expect("bytes"), 3).expect("a batch");
        let output = OutputLayout::new(&Preprocess::Raw, &layout).expect("it fits");
        assert_eq!((output.bytes(), output.tail().len()), (32, 0));
    }

    #[test]
    fn further_fields_follow_the_tensor_raw_and_aligned() {
        let output = OutputLayout::new(&Normalize::imagenet().into(), &layout()).expect("it fits");
        let places: Vec<_> =
            output.fields().iter().map(|field| (field.field, field.desc.offset, field.slot_offset)).collect();
        // 3 * 45 floats are 540 bytes; 3 * 15 bytes of mask end before the next multiple of 256.
        assert_eq!(places, [(0, 0, 0), (2, 768, 256), (3, 1024, 512)]);
        assert_eq!(output.bytes(), 1024 + 16);
        let mask = output.field(2).expect("on the device").of(2);
        assert_eq!((mask.shape.as_slice(), mask.dtype, mask.byte_len()), (&[2, 5, 3][..], Element::U8, 30));
        assert_eq!(output.field(1), None);
        let raw = OutputLayout::new(&Preprocess::Raw, &layout()).expect("it fits");
        assert!(
            raw.fields().iter().all(|field| field.desc.offset == field.slot_offset),
            "a raw output is laid out as its slot"
        );
    }
}

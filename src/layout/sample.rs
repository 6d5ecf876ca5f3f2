//! What a sample is: a list of fields.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::{Element, Field, FieldKey, FieldKind, FrameLayout, ImageLayout, PixelFormat, Placement};
use crate::error::LayoutError;

/// The name of the field that holds a sample's label.
pub const LABEL: &str = "label";

/// What one sample is: its fields, in order. Clones are the same list.
///
/// The first field lies on the device; it is the one that [preprocessing](crate::Preprocess) is for, and for most samples the only one.
///
/// ```
/// use gpufeed::{Element, Field, SampleLayout};
///
/// let image = SampleLayout::image(224, 224, 3)?;
/// let labelled = SampleLayout::image(224, 224, 3)?.with_label(Element::I64)?;
/// let segmented = SampleLayout::new([
///     Field::image("image", 224, 224, 3)?,
///     Field::array("mask", Element::U8, &[224, 224])?,
///     Field::ragged("boxes", Element::F32, 16, &[4])?.on_host(),
/// ])?;
/// assert_eq!((image.byte_len(), segmented.byte_len()), (150_528, 150_528 + 50_176));
/// assert_eq!(labelled.fields()[1].name(), "label");
/// # Ok::<(), gpufeed::LayoutError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SampleLayout(Arc<[Field]>);

impl SampleLayout {
    /// The largest number of fields of one sample.
    pub const MAX_FIELDS: usize = 16;

    /// A sample of these fields. The lengths of [ragged](Field::ragged) fields on the device are added behind them, and count as fields.
    ///
    /// # Errors
    /// [`LayoutError::Fields`] for none, or more than [`MAX_FIELDS`](Self::MAX_FIELDS); [`LayoutError::FieldName`] for a name that comes
    /// twice, or a first field that is on the host; [`LayoutError::Overflow`] where the sum of their bytes does not fit.
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Result<Self, LayoutError> {
        let own: Vec<Field> = fields.into_iter().filter(|field| field.kind() != FieldKind::Lengths).collect();
        let lengths: Vec<Field> = own.iter().filter_map(Field::lengths).collect();
        let fields: Arc<[Field]> = own.into_iter().chain(lengths).collect();
        if fields.is_empty() || fields.len() > Self::MAX_FIELDS {
            return Err(LayoutError::Fields { got: fields.len(), max: Self::MAX_FIELDS });
        }
        let refused = |field: &Field, reason| LayoutError::FieldName { name: field.name().to_owned(), reason };
        if let [first, ..] = &*fields
            && first.placement() == Placement::Host
        {
            return Err(refused(first, "the first field must be on the device"));
        }
        for (at, field) in fields.iter().enumerate() {
            if fields.iter().take(at).any(|before| before.name() == field.name()) {
                return Err(refused(field, "another field has it too"));
            }
        }
        fields
            .iter()
            .try_fold(0usize, |sum, field| sum.checked_add(field.byte_len()))
            .ok_or(LayoutError::Overflow { what: "a sample's byte count" })?;
        Ok(Self(fields))
    }

    /// A u8 image in HWC order with 1, 3 or 4 channels; the field's name is `image`.
    ///
    /// # Errors
    /// As [`Field::image`].
    pub fn image(height: usize, width: usize, channels: usize) -> Result<Self, LayoutError> {
        Self::new([Field::image("image", height, width, channels)?])
    }

    /// A frame of pixels without padding; the field's name is `image`.
    ///
    /// # Errors
    /// As [`Field::frame`].
    pub fn frame(format: PixelFormat, height: usize, width: usize) -> Result<Self, LayoutError> {
        Self::new([Field::frame("image", format, height, width)?])
    }

    /// An array of these dimensions; the field's name is `data`.
    ///
    /// # Errors
    /// As [`Field::array`].
    pub fn array(element: Element, dims: &[usize]) -> Result<Self, LayoutError> {
        Self::new([Field::array("data", element, dims)?])
    }

    /// An f32 array of these dimensions.
    ///
    /// # Errors
    /// As [`Field::array`].
    pub fn f32(dims: &[usize]) -> Result<Self, LayoutError> {
        Self::array(Element::F32, dims)
    }

    /// A u8 array of these dimensions.
    ///
    /// # Errors
    /// As [`Field::array`].
    pub fn bytes(dims: &[usize]) -> Result<Self, LayoutError> {
        Self::array(Element::U8, dims)
    }

    /// The same sample with another field behind the others.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with(&self, field: Field) -> Result<Self, LayoutError> {
        Self::new(self.0.iter().cloned().chain([field]))
    }

    /// The same sample with a single element called `label` in host memory.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_label(&self, element: Element) -> Result<Self, LayoutError> {
        self.with_host(LABEL, element, &[])
    }

    /// The same sample with an array in host memory.
    ///
    /// # Errors
    /// As [`new`](Self::new) and [`Field::array`].
    pub fn with_host(
        &self,
        name: impl Into<Cow<'static, str>>,
        element: Element,
        dims: &[usize],
    ) -> Result<Self, LayoutError> {
        self.with(Field::array(name, element, dims)?.on_host())
    }

    /// The same fields, all in host memory: not what a source may have.
    pub(super) fn all_on_host(&self) -> Self {
        Self(self.0.iter().cloned().map(Field::on_host).collect())
    }

    /// The fields, in order: at least one.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.0
    }

    /// The first field, which preprocessing is for.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "`new` refuses an empty list")]
    pub fn first(&self) -> &Field {
        &self.0[0]
    }

    /// The number of a field.
    #[must_use]
    pub fn position(&self, field: impl FieldKey) -> Option<usize> {
        field.find(&self.0)
    }

    /// The fields that become tensors on the device, in order.
    pub fn on_device(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().filter(|field| field.placement() == Placement::Device)
    }

    /// The fields that a source writes: all but the lengths of ragged ones, which are counted.
    pub fn written(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().filter(|field| field.kind() != FieldKind::Lengths)
    }

    /// The same sample without its fields on the host.
    #[must_use]
    pub fn without_host(&self) -> Self {
        Self(self.on_device().cloned().collect())
    }

    /// Bytes of one sample on the device; never zero.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.on_device().fold(0, |sum: usize, field| sum.saturating_add(field.byte_len()))
    }

    /// The frame, where the first field is one or an image.
    #[must_use]
    pub fn as_frame(&self) -> Option<FrameLayout> {
        self.first().as_frame()
    }

    /// The image in HWC order, where the first field is one.
    #[must_use]
    pub fn as_image(&self) -> Option<ImageLayout> {
        self.first().as_image()
    }
}

impl fmt::Display for SampleLayout {
    /// The first field, and the others by name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first())?;
        for field in self.0.iter().skip(1) {
            let place = if field.placement() == Placement::Host { " on the host" } else { "" };
            write!(f, ", {}: {field}{place}", field.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn one_field_is_as_short_as_it_can_be() {
        let layout = SampleLayout::image(4, 5, 3).unwrap();
        assert_eq!((layout.byte_len(), layout.to_string().as_str()), (60, "u8 images of 4x5x3"));
        assert_eq!(SampleLayout::f32(&[3, 5]).unwrap().to_string(), "f32 arrays of [3, 5]");
        assert_eq!(SampleLayout::bytes(&[]).unwrap().byte_len(), 1);
        for element in Element::ALL {
            assert_eq!(SampleLayout::array(element, &[7]).unwrap().byte_len(), 7 * element.size(), "{element}");
        }
    }

    #[test]
    fn fields_are_found_by_number_and_by_name() {
        let mask = Field::array("mask", Element::U16, &[4, 5]).unwrap();
        let layout = SampleLayout::image(4, 5, 3).unwrap().with(mask).unwrap().with_label(Element::I64).unwrap();
        assert_eq!((layout.position("mask"), layout.position(2), layout.position(3)), (Some(1), Some(2), None));
        assert_eq!((layout.position(LABEL), layout.position("boxes")), (Some(2), None));
        assert_eq!(layout.byte_len(), 60 + 40, "what is on the host does not count");
        assert_eq!(
            layout.to_string(),
            "u8 images of 4x5x3, mask: u16 arrays of [4, 5], label: i64 arrays of [] on the host"
        );
    }

    #[test]
    fn ragged_fields_on_the_device_bring_their_lengths_behind_all_others() {
        let tokens = Field::ragged("tokens", Element::I64, 7, &[]).unwrap();
        let boxes = Field::ragged("boxes", Element::F32, 3, &[4]).unwrap();
        let layout = SampleLayout::new([tokens.clone(), boxes.clone().on_host()]).unwrap();
        let layout = layout.with_label(Element::U8).unwrap();
        let names: Vec<&str> = layout.fields().iter().map(Field::name).collect();
        assert_eq!(names, ["tokens", "boxes", "label", "tokens.lengths"]);
        let pushed = layout.without_host();
        assert_eq!((pushed.pushed_bytes(&[]), pushed.written().count()), (56, 1));
        assert_eq!([0, 8, 12, 56, 64].map(|bytes| pushed.is_pushed_as(bytes, &[])), [true, true, false, true, false]);
        let both = SampleLayout::new([tokens.clone(), boxes.clone()]).unwrap();
        assert!(
            !both.is_pushed_as(56 + 48, &[]) && !both.is_pushed_as(56, &[]),
            "two numbers of rows do not follow from one of bytes"
        );
        assert!(both.is_pushed_as(16, &[true, false]), "unless the others are given by name");
        assert_eq!((layout.byte_len(), boxes.rows(), layout.fields()[2].rows()), (7 * 8 + 4, Some((3, 16)), None));
        assert_eq!(SampleLayout::new(layout.fields().iter().cloned()).unwrap(), layout, "they are not added twice");
        assert_eq!(layout.first().to_string(), "ragged i64 arrays of at most [7]");
        let taken = Field::array("tokens.lengths", Element::I32, &[]).unwrap();
        let taken = SampleLayout::new([tokens, taken]);
        assert!(matches!(taken, Err(LayoutError::FieldName { name, .. }) if name == "tokens.lengths"));
        let many = (0..9).map(|at| Field::ragged(format!("field {at}"), Element::U8, 1, &[]).unwrap());
        assert!(matches!(SampleLayout::new(many), Err(LayoutError::Fields { got: 18, .. })));
        assert!(matches!(Field::ragged("none", Element::U8, 0, &[]), Err(LayoutError::Zero { .. })));
    }

    #[test]
    fn lists_that_make_no_sample_are_refused() {
        let byte = |name: &'static str| Field::array(name, Element::U8, &[]).unwrap();
        assert!(matches!(SampleLayout::new([]), Err(LayoutError::Fields { got: 0, .. })));
        let many = (0..17).map(|at| Field::array(format!("field {at}"), Element::U8, &[]).unwrap());
        assert!(matches!(SampleLayout::new(many), Err(LayoutError::Fields { got: 17, max: 16 })));
        let twice = SampleLayout::new([byte("a"), byte("b"), byte("a")]);
        assert!(matches!(twice, Err(LayoutError::FieldName { name, .. }) if name == "a"));
        assert!(matches!(SampleLayout::new([byte("a").on_host()]), Err(LayoutError::FieldName { .. })));
        assert!(matches!(Field::array("", Element::U8, &[]), Err(LayoutError::FieldName { .. })));
        let half = |name: &'static str| Field::array(name, Element::U8, &[usize::MAX / 2 + 1]).unwrap();
        assert!(matches!(SampleLayout::new([half("one"), half("other")]), Err(LayoutError::Overflow { .. })));
    }

    #[test]
    fn bad_shapes_are_named() {
        assert!(matches!(SampleLayout::image(2, 2, 2), Err(LayoutError::Channels { channels: 2 })));
        assert!(matches!(SampleLayout::image(0, 2, 1), Err(LayoutError::Zero { .. })));
        assert!(matches!(SampleLayout::bytes(&[1; 6]), Err(LayoutError::Rank { rank: 6, .. })));
        assert!(matches!(SampleLayout::image(usize::MAX, 2, 3), Err(LayoutError::Overflow { .. })));
        assert!(SampleLayout::f32(&[usize::MAX / 2]).is_err());
    }
}

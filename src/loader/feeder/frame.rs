//! Frames as an application gives them: bytes, further fields, a tag.

use std::cmp::Ordering;
use std::io;

use super::error::{FeedError, FieldProblem};
use crate::layout::{Element, Field, FieldKind, LABEL, Placement, SampleLayout, Scalar};
use crate::staging::SampleWriter;

/// One frame, with what belongs to it.
///
/// Its bytes are those of the fields on the device that are not given by name, in their order, back to back: for most frames, the
/// picture. Fields on the host are given by name. A [ragged](crate::Field::ragged) field may have fewer rows if it is given by name, or if
/// it is the last of the bytes and the only such field there. The tag is the application's own, and comes with the batch: see
/// [`Batch::tags`](crate::Batch::tags).
///
/// ```
/// use gpufeed::backend::host::HostBackend;
/// use gpufeed::{Element, Feeder, FeederOptions, Frame, SampleLayout};
///
/// let layout = SampleLayout::image(2, 2, 3)?.with_label(Element::I64)?.with_host("boxes", Element::F32, &[1, 4])?;
/// let mut feeder = Feeder::new(&HostBackend::new(), layout, FeederOptions::default())?;
/// let frame = Frame::new(&[7; 12]).with_label(3i64).with_field("boxes", &[0.0, 0.0, 1.0, 0.5f32]).with_tag(1042);
/// let batch = feeder.feed(&[frame])?;
/// assert_eq!((batch.tags(), batch.labels().as_deref()), (&[1042][..], Some(&[3][..])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    tag: u64,
    label: Option<Label>,
    fields: Vec<NamedField<'a>>,
}

/// The bytes of a single element.
#[derive(Clone, Copy, Debug)]
struct Label {
    element: Element,
    bytes: [u8; 8],
}

#[derive(Clone, Copy, Debug)]
struct NamedField<'a> {
    name: &'a str,
    element: Element,
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// A frame of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, tag: 0, label: None, fields: Vec::new() }
    }

    /// With the caller's own number, which comes with the batch.
    #[must_use]
    pub fn with_tag(mut self, tag: u64) -> Self {
        self.tag = tag;
        self
    }

    /// With the field called `label`, which is a single element.
    #[must_use]
    pub fn with_label<T: Scalar>(mut self, label: T) -> Self {
        let mut bytes = [0; 8];
        let own = bytemuck::bytes_of(&label);
        bytes[..own.len()].copy_from_slice(own);
        self.label = Some(Label { element: T::ELEMENT, bytes });
        self
    }

    /// With the elements of a field, on the device or on the host.
    #[must_use]
    pub fn with_field<T: Scalar>(mut self, name: &'a str, values: &'a [T]) -> Self {
        self.fields.push(NamedField { name, element: T::ELEMENT, bytes: bytemuck::cast_slice(values) });
        self
    }

    pub(super) fn tag(&self) -> u64 {
        self.tag
    }

    /// The fields that were given by name.
    fn named(&self) -> impl Iterator<Item = NamedField<'_>> {
        let label = self.label.as_ref().map(|label| NamedField {
            name: LABEL,
            element: label.element,
            bytes: &label.bytes[..label.element.size()],
        });
        label.into_iter().chain(self.fields.iter().copied())
    }

    /// Whether it has every field of a layout, whole and once.
    ///
    /// # Errors
    /// [`FeedError::Field`] and [`FeedError::Length`].
    pub(in super::super) fn check(&self, frame: usize, layout: &SampleLayout) -> Result<(), FeedError> {
        let wrong = |field: &str, problem| FeedError::Field { frame, field: field.to_owned(), problem };
        let mut given = [None::<usize>; SampleLayout::MAX_FIELDS];
        for NamedField { name, element, bytes } in self.named() {
            let field = layout.position(name).filter(|&number| layout.fields()[number].kind() != FieldKind::Lengths);
            let number = field.ok_or_else(|| wrong(name, FieldProblem::Unknown))?;
            let expected = layout.fields()[number].element();
            if !holds(element, expected) {
                return Err(wrong(name, FieldProblem::Type { got: element, expected }));
            }
            given[number] = Some(given[number].unwrap_or(0).saturating_add(bytes.len()));
        }
        for (field, &given) in layout.written().zip(&given) {
            if field.placement() == Placement::Host || given.is_some() {
                check_length(field, given).map_err(|problem| wrong(field.name(), problem))?;
            }
        }
        let (named, got) = (given.map(|given| given.is_some()), self.bytes.len());
        if !layout.is_pushed_as(got, &named) {
            return Err(FeedError::Length { frame, got, expected: layout.pushed_bytes(&named) });
        }
        Ok(())
    }

    /// Writes what was checked.
    pub(super) fn write(&self, layout: &SampleLayout, writer: &mut SampleWriter<'_>) -> io::Result<()> {
        let mut given = [false; SampleLayout::MAX_FIELDS];
        for NamedField { name, bytes, .. } in self.named() {
            if let Some(number) = layout.position(name) {
                given[number] = true;
                writer.field(number)?.write(bytes)?;
            }
        }
        let mut rest = self.bytes;
        for (number, field) in layout.written().enumerate() {
            if !given[number] && field.placement() == Placement::Device {
                let (own, others) = rest.split_at(field.byte_len().min(rest.len()));
                writer.field(number)?.write(own)?;
                rest = others;
            }
        }
        Ok(())
    }
}

/// Whether a field that was given so many bytes by name is whole; a ragged one ends behind any of its rows.
fn check_length(field: &Field, given: Option<usize>) -> Result<(), FieldProblem> {
    let (got, most) = (given.unwrap_or(0), field.byte_len());
    let expected = match field.rows() {
        Some((_, row)) if given.is_some() => got.next_multiple_of(row).min(most),
        _ => most,
    };
    match got.cmp(&expected) {
        Ordering::Less => Err(FieldProblem::Short { got, expected }),
        Ordering::Greater => Err(FieldProblem::Long { got, expected }),
        Ordering::Equal => Ok(()),
    }
}

/// Whether elements of this type are written to a field of that one.
fn holds(got: Element, expected: Element) -> bool {
    got == expected || (got == Element::U8 && expected == Element::Bool)
}

/// What can be fed as a frame: a [`Frame`], or the bytes alone.
pub trait AsFrame {
    /// The frame. Asked for once a call.
    fn as_frame(&self) -> Frame<'_>;
}

impl<T: AsRef<[u8]>> AsFrame for T {
    fn as_frame(&self) -> Frame<'_> {
        Frame::new(self.as_ref())
    }
}

impl AsFrame for Frame<'_> {
    fn as_frame(&self) -> Frame<'_> {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> SampleLayout {
        let layout = SampleLayout::image(1, 2, 3).and_then(|layout| layout.with_label(Element::I64));
        let layout = layout.and_then(|layout| layout.with_host("name", Element::U8, &[2]));
        let layout = layout.and_then(|layout| layout.with(crate::Field::array("mask", Element::Bool, &[2])?));
        layout.expect("a layout")
    }

    fn problem(frame: &Frame<'_>) -> String {
        frame.check(4, &layout()).expect_err("it is not whole").to_string()
    }

    #[test]
    fn the_bytes_are_those_of_the_fields_on_the_device_that_have_no_name() {
        let whole = |bytes: &'static [u8]| Frame::new(bytes).with_label(1i64).with_field("name", &[1u8, 2]);
        assert_eq!(whole(&[0; 8]).check(0, &layout()), Ok(()));
        assert_eq!(whole(&[0; 6]).with_field("mask", &[0u8, 1]).check(0, &layout()), Ok(()));
        assert_eq!(whole(&[0; 2]).with_field("image", &[7u8; 6]).check(0, &layout()), Ok(()));
        assert_eq!(whole(&[0; 6]).check(2, &layout()), Err(FeedError::Length { frame: 2, got: 6, expected: 8 }));
    }

    #[test]
    fn a_field_that_cannot_be_is_named_with_what_is_wrong() {
        let bytes = [0; 8];
        let whole = || Frame::new(&bytes).with_label(1i64).with_field("name", &[1u8, 2]);
        assert_eq!(problem(&Frame::new(&bytes)), "field `label` of frame 4: 0 of its 8 bytes were written");
        assert_eq!(
            problem(&whole().with_label(1i32)),
            "field `label` of frame 4: its elements are of type i64, not i32"
        );
        assert_eq!(problem(&whole().with_field("none", &[1u8])), "field `none` of frame 4: frames have no such field");
        assert_eq!(
            problem(&whole().with_field("name", &[1u8, 2])),
            "field `name` of frame 4: 4 bytes were given, and it has 2"
        );
    }
}

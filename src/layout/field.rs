//! One field of a sample.

use std::borrow::Cow;
use std::fmt;

use super::{Dims, Element, FrameLayout, ImageLayout, PixelFormat};
use crate::error::LayoutError;

/// What a field's elements mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldKind {
    /// Pixels in HWC order: rows, columns, channels.
    Image,
    /// Pixels that lie otherwise: see [`Field::frame`].
    Frame(FrameLayout),
    /// An array that is passed through.
    Array,
    /// An array of which each sample has its own number of rows, up to a maximum: see [`Field::ragged`].
    Ragged,
    /// How many rows each sample of a ragged field has. The loader writes it.
    Lengths,
}

/// Where a batch's elements of a field end up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Placement {
    /// In a tensor on the device.
    Device,
    /// In host memory: labels, boxes, what the application itself reads.
    Host,
}

/// One field of a sample: a name, an element type and a shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    name: Cow<'static, str>,
    element: Element,
    dims: Dims,
    kind: FieldKind,
    placement: Placement,
}

impl Field {
    /// A u8 image in HWC order with 1, 3 or 4 channels, on the device.
    ///
    /// # Errors
    /// [`LayoutError`] for a zero dimension, another channel count, or a size that overflows.
    pub fn image(
        name: impl Into<Cow<'static, str>>,
        height: usize,
        width: usize,
        channels: usize,
    ) -> Result<Self, LayoutError> {
        if !matches!(channels, 1 | 3 | 4) {
            return Err(LayoutError::Channels { channels });
        }
        let array = Self::array(name, Element::U8, &[height, width, channels])?;
        Ok(Self { kind: FieldKind::Image, ..array })
    }

    /// A frame of pixels without padding, on the device; [`with_pitch`](Self::with_pitch) says otherwise. One of Gray8, RGB8 or RGBA8 is
    /// the [`image`](Self::image) of the same bytes. BGR8 and BGRA8 have the dimensions of an image as well, and all other frames
    /// `[rows, pitch]`, as [`FrameLayout`] has them.
    ///
    /// # Errors
    /// As [`FrameLayout::new`] and [`array`](Self::array).
    pub fn frame(
        name: impl Into<Cow<'static, str>>,
        format: PixelFormat,
        height: usize,
        width: usize,
    ) -> Result<Self, LayoutError> {
        Self::of_frame(name, FrameLayout::new(format, height, width)?)
    }

    /// A frame of this layout, on the device.
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub fn of_frame(name: impl Into<Cow<'static, str>>, frame: FrameLayout) -> Result<Self, LayoutError> {
        if let Some(image) = frame.as_image() {
            return Self::image(name, image.height(), image.width(), image.channels());
        }
        let (height, width) = (frame.height(), frame.width());
        let array = match frame.format().pixel_bytes() {
            Some(bytes) if frame.pitch() == width.saturating_mul(bytes) => {
                Self::array(name, Element::U8, &[height, width, bytes])
            }
            _ => Self::array(name, Element::U8, &[frame.rows(), frame.pitch()]),
        };
        Ok(Self { kind: FieldKind::Frame(frame), ..array? })
    }

    /// The same frame with so many bytes from one row of the first plane to the next.
    ///
    /// # Errors
    /// [`LayoutError::FieldName`] for a field that is no image or frame, and as [`FrameLayout::with_pitch`].
    pub fn with_pitch(self, pitch: usize) -> Result<Self, LayoutError> {
        let reason = "only frames have a pitch";
        let frame = self.as_frame().ok_or_else(|| LayoutError::FieldName { name: self.name.to_string(), reason })?;
        let placement = self.placement;
        Ok(Self { placement, ..Self::of_frame(self.name, frame.with_pitch(pitch)?)? })
    }

    /// An array of these dimensions, outermost first, on the device. No dimensions make a single element.
    ///
    /// # Errors
    /// As [`Dims::new`], and [`LayoutError::FieldName`] for an empty name.
    pub fn array(name: impl Into<Cow<'static, str>>, element: Element, dims: &[usize]) -> Result<Self, LayoutError> {
        let (name, dims) = (name.into(), Dims::new(dims)?);
        if name.is_empty() {
            return Err(LayoutError::FieldName { name: String::new(), reason: "it is empty" });
        }
        dims.elements().checked_mul(element.size()).ok_or(LayoutError::Overflow { what: "a sample's byte count" })?;
        Ok(Self { name, element, dims, kind: FieldKind::Array, placement: Placement::Device })
    }

    /// An array of at most `max_rows` rows of these dimensions, on the device: each sample has its own number of rows, which may be zero. No
    /// dimensions make rows of a single element, as tokens or the bytes of a string are.
    ///
    /// Memory is kept for the maximum. On the device the tensor is `[samples, max_rows, ..row]` with zeros behind each sample's rows, and
    /// its lengths are a tensor of one i32 a sample beside it: a field called as this one with `.lengths` behind, which a
    /// [`SampleLayout`](super::SampleLayout) adds behind all others. On the host the rows of a batch lie one after the other, without
    /// padding, and [`Batch::offsets`](crate::Batch::offsets) says where each sample's begin.
    ///
    /// ```
    /// use gpufeed::{Element, Field, SampleLayout};
    ///
    /// let tokens = Field::ragged("tokens", Element::I64, 512, &[])?;
    /// let boxes = Field::ragged("boxes", Element::F32, 100, &[4])?.on_host();
    /// let layout = SampleLayout::new([tokens, boxes])?;
    /// assert_eq!((layout.fields()[0].dims(), layout.fields()[1].dims()), (&[512][..], &[100, 4][..]));
    /// assert_eq!(layout.fields()[2].name(), "tokens.lengths");
    /// # Ok::<(), gpufeed::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// As [`array`](Self::array).
    pub fn ragged(
        name: impl Into<Cow<'static, str>>,
        element: Element,
        max_rows: usize,
        row: &[usize],
    ) -> Result<Self, LayoutError> {
        let dims: Vec<usize> = std::iter::once(max_rows).chain(row.iter().copied()).collect();
        Ok(Self { kind: FieldKind::Ragged, ..Self::array(name, element, &dims)? })
    }

    /// What the name of a ragged field's lengths has behind the field's own.
    pub(super) const LENGTHS: &'static str = ".lengths";

    /// The lengths of this ragged field on the device.
    pub(super) fn lengths(&self) -> Option<Self> {
        if self.kind != FieldKind::Ragged || self.placement != Placement::Device {
            return None;
        }
        let (name, dims) = (format!("{}{}", self.name, Self::LENGTHS).into(), Dims::new(&[]).ok()?);
        Some(Self { name, element: Element::I32, dims, kind: FieldKind::Lengths, placement: Placement::Device })
    }

    /// The same field in host memory.
    #[must_use]
    pub fn on_host(mut self) -> Self {
        self.placement = Placement::Host;
        self
    }

    /// Its name, which no other field of the sample has.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type of its elements.
    #[must_use]
    pub fn element(&self) -> Element {
        self.element
    }

    /// The dimensions in one sample, outermost first; of a ragged field the first one is the maximum.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        self.dims.as_slice()
    }

    /// What its elements mean.
    #[must_use]
    pub fn kind(&self) -> FieldKind {
        self.kind
    }

    /// Whether each sample has its own number of rows: see [`ragged`](Self::ragged).
    #[must_use]
    pub fn is_ragged(&self) -> bool {
        self.kind == FieldKind::Ragged
    }

    /// The largest number of rows of one sample, and the bytes of a row, where the field is ragged.
    #[must_use]
    pub fn rows(&self) -> Option<(usize, usize)> {
        let most = *self.dims().first().filter(|_| self.is_ragged())?;
        Some((most, self.byte_len().checked_div(most)?))
    }

    /// Where a batch's elements end up.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Elements in one sample, in the largest where the field is ragged; never zero.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.dims.elements()
    }

    /// Bytes in one sample, in the largest where the field is ragged; never zero.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.elements().saturating_mul(self.element.size())
    }

    /// The frame, where this is one or an image.
    #[must_use]
    pub fn as_frame(&self) -> Option<FrameLayout> {
        match self.kind {
            FieldKind::Frame(frame) => Some(frame),
            _ => self.as_image().map(FrameLayout::of_image),
        }
    }

    /// The image in HWC order, where this is one.
    #[must_use]
    pub fn as_image(&self) -> Option<ImageLayout> {
        match (self.kind, self.dims()) {
            (FieldKind::Image, &[height, width, channels]) => Some(ImageLayout::of(height, width, channels)),
            _ => None,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let element = self.element;
        match (self.as_image(), self.kind) {
            (Some(image), _) => {
                write!(f, "{element} images of {}x{}x{}", image.height(), image.width(), image.channels())
            }
            (None, FieldKind::Frame(frame)) => frame.fmt(f),
            (None, FieldKind::Ragged) => write!(f, "ragged {element} arrays of at most {:?}", self.dims),
            (None, _) => write!(f, "{element} arrays of {:?}", self.dims),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Yuv;
    use super::*;

    #[test]
    fn a_frame_that_is_an_image_is_that_image() {
        let rgb = Field::frame("image", PixelFormat::Rgb8, 4, 5).unwrap();
        assert_eq!(rgb, Field::image("image", 4, 5, 3).unwrap());
        assert_eq!(rgb.as_frame().unwrap().format(), PixelFormat::Rgb8);
        assert_eq!(rgb.clone().with_pitch(15).unwrap(), rgb);
        let padded = rgb.with_pitch(16).unwrap();
        assert_eq!((padded.as_image(), padded.dims(), padded.byte_len()), (None, &[4, 16][..], 64));
        assert_eq!(padded.to_string(), "RGB8 frames of 4x5, 16 bytes a row");
    }

    #[test]
    fn other_frames_are_no_images() {
        let bgr = Field::frame("frame", PixelFormat::Bgr8, 4, 5).unwrap();
        assert_eq!((bgr.as_image(), bgr.dims()), (None, &[4, 5, 3][..]));
        let nv12 = Field::frame("frame", PixelFormat::Nv12(Yuv::BT709), 5, 7).unwrap();
        assert_eq!((nv12.as_image(), nv12.dims(), nv12.byte_len()), (None, &[8, 8][..], 64));
        let host = Field::frame("frame", PixelFormat::Bgra8, 4, 5).unwrap().on_host().with_pitch(64).unwrap();
        assert_eq!((host.placement(), host.byte_len()), (Placement::Host, 256));
        let array = Field::array("data", Element::U8, &[4]).unwrap().with_pitch(8);
        assert!(matches!(array, Err(LayoutError::FieldName { name, .. }) if name == "data"));
    }
}

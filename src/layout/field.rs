//! One field of a sample.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Dims, Element};
use crate::error::LayoutError;

/// What a field's elements mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldKind {
    /// Pixels in HWC order: rows, columns, channels.
    Image,
    /// An array that is passed through.
    Array,
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

    /// The dimensions in one sample, outermost first.
    #[must_use]
    pub fn dims(&self) -> &[usize] {
        self.dims.as_slice()
    }

    /// What its elements mean.
    #[must_use]
    pub fn kind(&self) -> FieldKind {
        self.kind
    }

    /// Where a batch's elements end up.
    #[must_use]
    pub fn placement(&self) -> Placement {
        self.placement
    }

    /// Elements in one sample; never zero.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.dims.elements()
    }

    /// Bytes in one sample; never zero.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.elements().saturating_mul(self.element.size())
    }

    /// The image, where this is one.
    #[must_use]
    pub fn as_image(&self) -> Option<ImageLayout> {
        match (self.kind, self.dims()) {
            (FieldKind::Image, &[height, width, channels]) => Some(ImageLayout { height, width, channels }),
            _ => None,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_image() {
            Some(i) => write!(f, "{} images of {}x{}x{}", self.element, i.height, i.width, i.channels),
            None => write!(f, "{} arrays of {:?}", self.element, self.dims),
        }
    }
}

/// A u8 image in HWC order: `height * width * channels` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ImageLayout {
    height: usize,
    width: usize,
    channels: usize,
}

impl ImageLayout {
    /// Rows.
    #[must_use]
    pub const fn height(&self) -> usize {
        self.height
    }

    /// Columns.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Channels: 1, 3 or 4.
    #[must_use]
    pub const fn channels(&self) -> usize {
        self.channels
    }

    /// Pixels of one channel.
    #[must_use]
    pub const fn plane(&self) -> usize {
        self.height.saturating_mul(self.width)
    }
}

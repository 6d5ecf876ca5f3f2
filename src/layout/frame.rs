//! Where the bytes of one frame lie: planes, rows and pitch.

use std::fmt;

use super::{ImageLayout, PixelFormat};
use crate::error::LayoutError;

/// One frame of pixels: a format, a size and the bytes from one row to the next.
///
/// Planes follow each other without a gap. The first has `height` rows of [`pitch`](Self::pitch) bytes. The chroma plane of NV12 has
/// `height / 2` rows, rounded up, of the same pitch; each of I420's two chroma planes has as many rows of half the pitch. So a frame
/// takes `pitch * rows` bytes in either case, where `rows` is `height + height / 2`. What a row has behind its pixels is never read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameLayout {
    format: PixelFormat,
    height: usize,
    width: usize,
    pitch: usize,
}

impl FrameLayout {
    /// A frame without padding. The pitch of 4:2:0 is the width rounded up to an even number.
    ///
    /// # Errors
    /// [`LayoutError::Zero`] for a side of no pixels, [`LayoutError::Overflow`] where the bytes do not fit.
    pub fn new(format: PixelFormat, height: usize, width: usize) -> Result<Self, LayoutError> {
        if height == 0 || width == 0 {
            return Err(LayoutError::Zero { what: "a frame's height or width" });
        }
        let pitch = row_bytes(format, width).ok_or(OVERFLOW)?;
        Self { format, height, width, pitch }.checked()
    }

    /// The same frame with so many bytes from one row of the first plane to the next.
    ///
    /// # Errors
    /// [`LayoutError::Pitch`] where a row does not fit or the pitch of 4:2:0 is odd, [`LayoutError::Overflow`] as for `new`.
    pub fn with_pitch(self, pitch: usize) -> Result<Self, LayoutError> {
        let needed = row_bytes(self.format, self.width).ok_or(OVERFLOW)?;
        let reason = match self.format.yuv() {
            _ if pitch < needed => "a row does not fit",
            Some(_) if !pitch.is_multiple_of(2) => "chroma rows take half of it",
            _ => return Self { pitch, ..self }.checked(),
        };
        Err(LayoutError::Pitch { format: self.format.name(), pitch, needed, reason })
    }

    fn checked(self) -> Result<Self, LayoutError> {
        let bytes = self.rows_if_they_fit().and_then(|rows| rows.checked_mul(self.pitch));
        bytes.filter(|&bytes| isize::try_from(bytes).is_ok()).map(|_| self).ok_or(OVERFLOW)
    }

    fn rows_if_they_fit(&self) -> Option<usize> {
        match self.format.yuv() {
            None => Some(self.height),
            Some(_) => self.height.checked_add(self.height.div_ceil(2)),
        }
    }

    /// How the bytes stand for pixels.
    #[must_use]
    pub const fn format(&self) -> PixelFormat {
        self.format
    }

    /// Rows of pixels.
    #[must_use]
    pub const fn height(&self) -> usize {
        self.height
    }

    /// Columns of pixels.
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Bytes from one row of the first plane to the next.
    #[must_use]
    pub const fn pitch(&self) -> usize {
        self.pitch
    }

    /// Rows of `pitch` bytes that the whole frame takes, its chroma included.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows_if_they_fit().unwrap_or(usize::MAX)
    }

    /// Bytes of the frame.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        self.rows().saturating_mul(self.pitch)
    }

    /// The first byte of each plane; those that the format does not have are zero.
    #[must_use]
    pub fn plane_offsets(&self) -> [usize; 3] {
        let luma = self.pitch.saturating_mul(self.height);
        match self.format {
            PixelFormat::Nv12(_) => [0, luma, 0],
            PixelFormat::I420(_) => {
                let chroma = (self.pitch >> 1).saturating_mul(self.height.div_ceil(2));
                [0, luma, luma.saturating_add(chroma)]
            }
            _ => [0; 3],
        }
    }

    /// The image in HWC order that these bytes are, too: components in the order of their names, and no padding.
    #[must_use]
    pub fn as_image(&self) -> Option<ImageLayout> {
        let channels = match self.format {
            PixelFormat::Gray8 => 1,
            PixelFormat::Rgb8 => 3,
            PixelFormat::Rgba8 => 4,
            _ => return None,
        };
        let is_tight = row_bytes(self.format, self.width) == Some(self.pitch);
        is_tight.then_some(ImageLayout::of(self.height, self.width, channels))
    }

    /// The frame that an image in HWC order is.
    pub(super) fn of_image(image: ImageLayout) -> Self {
        let format = match image.channels() {
            1 => PixelFormat::Gray8,
            3 => PixelFormat::Rgb8,
            _ => PixelFormat::Rgba8,
        };
        let pitch = image.width().saturating_mul(image.channels());
        Self { format, height: image.height(), width: image.width(), pitch }
    }
}

impl fmt::Display for FrameLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} frames of {}x{}, {} bytes a row", self.format, self.height, self.width, self.pitch)
    }
}

const OVERFLOW: LayoutError = LayoutError::Overflow { what: "a frame's byte count" };

/// Bytes of a row of the first plane, and of the chroma rows that share its pitch.
fn row_bytes(format: PixelFormat, width: usize) -> Option<usize> {
    match format.pixel_bytes() {
        Some(bytes) => width.checked_mul(bytes),
        None => width.checked_next_multiple_of(2),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Yuv;
    use super::*;

    #[test]
    fn planes_follow_each_other_and_odd_sides_round_up() {
        let nv12 = FrameLayout::new(PixelFormat::Nv12(Yuv::BT709), 5, 7).unwrap();
        assert_eq!((nv12.pitch(), nv12.rows(), nv12.byte_len()), (8, 8, 64));
        assert_eq!(nv12.plane_offsets(), [0, 40, 0]);
        let i420 = FrameLayout::new(PixelFormat::I420(Yuv::JPEG), 5, 7).unwrap().with_pitch(12).unwrap();
        assert_eq!((i420.rows(), i420.byte_len(), i420.plane_offsets()), (8, 96, [0, 60, 78]));
        let bgra = FrameLayout::new(PixelFormat::Bgra8, 5, 7).unwrap().with_pitch(256).unwrap();
        assert_eq!((bgra.byte_len(), bgra.plane_offsets()), (1280, [0; 3]));
    }

    #[test]
    fn a_pitch_that_holds_no_row_is_refused() {
        let frame = |format| FrameLayout::new(format, 4, 6).unwrap();
        let short = frame(PixelFormat::Rgb8).with_pitch(17).unwrap_err();
        assert_eq!(
            short.to_string(),
            "a pitch of 17 bytes cannot be used for RGB8, whose rows have 18: a row does not fit"
        );
        let odd = frame(PixelFormat::Nv12(Yuv::BT601)).with_pitch(7);
        assert!(matches!(odd, Err(LayoutError::Pitch { pitch: 7, needed: 6, .. })));
        assert!(frame(PixelFormat::Gray8).with_pitch(7).is_ok());
        assert!(matches!(FrameLayout::new(PixelFormat::Gray8, 0, 4), Err(LayoutError::Zero { .. })));
        let large = frame(PixelFormat::Gray8).with_pitch(usize::MAX / 2);
        assert!(matches!(large, Err(LayoutError::Overflow { .. })));
    }
}

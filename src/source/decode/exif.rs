//! The orientation in a file's metadata, by the rules of Pillow's `ImageOps.exif_transpose`.

use image::metadata::Orientation;

/// The tag of the orientation in a TIFF directory.
const ORIENTATION: u16 = 0x0112;

/// Metadata of a file that may have an orientation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Metadata<'a> {
    /// EXIF: a TIFF file, perhaps after one or two `Exif\0\0`.
    pub(super) exif: Option<&'a [u8]>,
    /// XMP, which counts where EXIF has no orientation.
    pub(super) xmp: Option<&'a [u8]>,
}

impl Metadata<'_> {
    /// The orientation; none where there is none, or none that makes sense.
    pub(super) fn orientation(&self) -> Orientation {
        let value = self.exif.and_then(in_exif).or_else(|| self.xmp.and_then(in_xmp).map(Some)).flatten();
        value.and_then(Orientation::from_exif).unwrap_or(Orientation::NoTransforms)
    }
}

/// The orientation's value in EXIF data: `None` where there is no such tag, `Some(None)` where it is no whole number from 1 to 8.
fn in_exif(exif: &[u8]) -> Option<Option<u8>> {
    const PREFIX: &[u8] = b"Exif\0\0";
    let tiff = exif.strip_prefix(PREFIX).unwrap_or(exif);
    Tiff::new(tiff.strip_prefix(PREFIX).unwrap_or(tiff))?.orientation()
}

/// A TIFF file.
struct Tiff<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Tiff<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let big_endian = match bytes.first_chunk::<4>()? {
            // The last of each is invalid, and read by Pillow nevertheless.
            b"MM\0*" | b"MM*\0" => true,
            b"II*\0" | b"II\0*" => false,
            _ => return None,
        };
        Some(Self { bytes, big_endian })
    }

    fn u16(&self, at: usize) -> Option<u16> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn u64(&self, at: usize) -> Option<u64> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(if self.big_endian { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// The first usable orientation of the first directory.
    fn orientation(&self) -> Option<Option<u8>> {
        let directory = self.u32(4)? as usize;
        let count = usize::from(self.u16(directory)?);
        let entries = (0..count).map(|i| directory.saturating_add(2 + 12 * i));
        entries.take_while(|&at| self.u32(at.saturating_add(8)).is_some()).find_map(|at| self.orientation_at(at))
    }

    /// The value of an entry that is the orientation: its first number, if it is an integer.
    fn orientation_at(&self, entry: usize) -> Option<Option<u8>> {
        if self.u16(entry)? != ORIENTATION {
            return None;
        }
        let width: usize = match self.u16(entry + 2)? {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 | 16 => 8,
            _ => return None,
        };
        let size = width.checked_mul(self.u32(entry + 4)? as usize).filter(|&size| size > 0)?;
        let at = if size > 4 { self.u32(entry + 8)? as usize } else { entry + 8 };
        self.bytes.get(at..at.checked_add(size)?)?;
        let number = self.number(self.u16(entry + 2)?, at);
        Some(number.filter(|number| (1.0..=8.0).contains(number) && number.fract() == 0.0).map(|number| number as u8))
    }

    /// The number of this type, where Pillow takes one of this type for an orientation.
    fn number(&self, kind: u16, at: usize) -> Option<f64> {
        let second = at + 4;
        Some(match kind {
            3 => self.u16(at)?.into(),
            8 => (self.u16(at)? as i16).into(),
            4 | 13 => self.u32(at)?.into(),
            9 => (self.u32(at)? as i32).into(),
            6 => (*self.bytes.get(at)? as i8).into(),
            5 => f64::from(self.u32(at)?) / f64::from(self.u32(second)?),
            10 => f64::from(self.u32(at)? as i32) / f64::from(self.u32(second)? as i32),
            11 => f32::from_bits(self.u32(at)?).into(),
            12 => f64::from_bits(self.u64(at)?),
            16 => self.u64(at)? as f64,
            _ => return None,
        })
    }
}

/// The orientation in XMP data: the digit after the first `tiff:Orientation="` or `tiff:Orientation>`.
fn in_xmp(xmp: &[u8]) -> Option<u8> {
    const NAME: &[u8] = b"tiff:Orientation";
    let mut rest = xmp;
    while let Some(at) = rest.windows(NAME.len()).position(|bytes| bytes == NAME) {
        rest = &rest[at + NAME.len()..];
        let value = rest.strip_prefix(b"=\"").or_else(|| rest.strip_prefix(b">")).and_then(<[u8]>::first);
        if let Some(digit) = value.filter(|value| value.is_ascii_digit()) {
            return Some(digit - b'0');
        }
    }
    None
}

/// The metadata of a JPEG: its application segments before the first scan. EXIF of several segments is put together in
/// `joined`.
pub(super) fn of_jpeg<'a>(file: &'a [u8], joined: &'a mut Vec<u8>) -> Metadata<'a> {
    const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
    let (mut exif, mut xmp) = (None, None);
    let mut at = 2;
    joined.clear();
    while let Some(&[0xff, marker, high, low]) = file.get(at..).and_then(<[u8]>::first_chunk) {
        match marker {
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            0xda | 0xd9 => break,
            _ => {
                let end = at + 2 + usize::from(u16::from_be_bytes([high, low]));
                let body = file.get(at + 4..end).unwrap_or_default();
                if marker == 0xe1 && body.starts_with(b"Exif\0\0") {
                    if let Some(first) = exif.filter(|_| joined.is_empty()) {
                        joined.extend_from_slice(first);
                    }
                    if exif.is_some() {
                        joined.extend_from_slice(&body[6..]);
                    }
                    exif = Some(body);
                } else if marker == 0xe1 && body.starts_with(XMP) {
                    xmp = Some(&body[XMP.len()..]);
                }
                at = end;
            }
        }
    }
    Metadata { exif: if joined.is_empty() { exif } else { Some(joined) }, xmp }
}

/// The metadata of a WebP: of the first chunks that its header announces.
pub(super) fn of_webp(file: &[u8]) -> Metadata<'_> {
    let mut metadata = Metadata::default();
    let mut flags = 0;
    for (i, (name, body)) in super::format::webp_chunks(file).enumerate() {
        match name {
            b"VP8X" if i == 0 => flags = body.first().copied().unwrap_or(0),
            b"EXIF" if flags & 8 != 0 => metadata.exif = metadata.exif.or(Some(body)),
            b"XMP " if flags & 4 != 0 => metadata.xmp = metadata.xmp.or(Some(body)),
            _ => {}
        }
    }
    metadata
}

#[cfg(all(test, not(miri)))]
#[path = "exif_tests.rs"]
mod tests;

//! Image files before decoding: their format, and the checks that the decoders leave out.

use image::ImageFormat;

use super::error::ImageProblem;

/// The extensions of the formats that are read.
pub(in crate::source) const EXTENSIONS: [&str; 8] = ["jpg", "jpeg", "jpe", "jfif", "jif", "png", "apng", "webp"];

/// The format of a file by its first bytes, if it is one of those supported and whole as far as can be told, and the bytes of
/// the image.
pub(super) fn of(file: &[u8]) -> Result<(ImageFormat, &[u8]), ImageProblem> {
    let format = image::guess_format(file).map_err(|_| ImageProblem::Format)?;
    match format {
        ImageFormat::Png => {}
        ImageFormat::Jpeg if has_jpeg_end(file) => {}
        ImageFormat::WebP => return riff(file).map(|riff| (format, riff)).ok_or(ImageProblem::Truncated),
        ImageFormat::Jpeg => return Err(ImageProblem::Truncated),
        _ => return Err(ImageProblem::Format),
    }
    Ok((format, file))
}

/// Whether a JPEG has an end of image after its (first) scan. The decoder would make up the missing part in grey.
///
/// Where the segments before the scan make no sense the answer is yes: the decoder knows better what to say.
fn has_jpeg_end(file: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xff, marker, high, low]) = file.get(at..at + 4) {
        match marker {
            // Fill bytes, and markers without a length.
            0xff => at += 1,
            0x01 | 0xd0..=0xd7 => at += 2,
            // The scan. Its data never has an 0xd9 after an 0xff.
            0xda => return file[at..].windows(2).rev().any(|bytes| bytes == [0xff, 0xd9]),
            _ => at += 2 + usize::from(u16::from_be_bytes([high, low])),
        }
    }
    true
}

/// A WebP file up to where its RIFF header says that it ends; whatever follows is none of it. `None` where the file, or a chunk,
/// is shorter than it says: the decoder, which has no limits, would take the memory that a lying chunk claims before it finds out.
fn riff(file: &[u8]) -> Option<&[u8]> {
    let size = u32::from_le_bytes(*file.get(4..)?.first_chunk()?) as usize;
    let riff = file.get(..size.checked_add(8)?)?;
    let mut at = 12;
    while let Some(header) = riff.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let size = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        at = at.checked_add(8)?.checked_add(size)?;
        if at > riff.len() {
            return None;
        }
        at += size % 2;
    }
    Some(riff)
}

/// The chunks of a WebP file: their names and contents.
pub(super) fn webp_chunks(riff: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    let mut rest = riff.get(12..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, after) = rest.split_first_chunk::<4>()?;
        let (size, after) = after.split_first_chunk::<4>()?;
        let size = u32::from_le_bytes(*size) as usize;
        let body = after.get(..size)?;
        rest = after.get(size + size % 2..).unwrap_or_default();
        Some((name, body))
    })
}

#[cfg(all(test, not(miri)))]
mod tests {
    use std::io::Cursor;

    use image::RgbImage;

    use super::*;

    fn encoded(format: ImageFormat) -> Vec<u8> {
        let mut file = Vec::new();
        RgbImage::from_fn(40, 30, |x, y| image::Rgb([x as u8, y as u8, (x * y) as u8]))
            .write_to(&mut Cursor::new(&mut file), format)
            .expect("encoded");
        file
    }

    #[test]
    fn a_jpeg_without_its_end_is_truncated_wherever_it_was_cut_within_the_scan() {
        let jpeg = encoded(ImageFormat::Jpeg);
        let scan = jpeg.windows(2).position(|bytes| bytes == [0xff, 0xda]).expect("a scan");
        for end in scan + 4..jpeg.len() {
            assert!(matches!(of(&jpeg[..end]), Err(ImageProblem::Truncated)), "cut at {end}");
        }
        assert_eq!(of(&jpeg).expect("whole"), (ImageFormat::Jpeg, &jpeg[..]));
        assert!(of(&[&jpeg[..], b"appended"].concat()).is_ok(), "what comes after the end does not matter");
    }

    #[test]
    fn the_end_of_an_embedded_thumbnail_is_not_the_end_of_the_image() {
        let jpeg = encoded(ImageFormat::Jpeg);
        let thumbnail = b"\xff\xe1\0\x08ab\xff\xd9xx";
        let cut = [&jpeg[..2], &thumbnail[..10], &jpeg[2..jpeg.len() - 2]].concat();
        assert!(matches!(of(&cut), Err(ImageProblem::Truncated)));
    }

    #[test]
    fn a_webp_is_whole_if_its_chunks_are() {
        let webp = encoded(ImageFormat::WebP);
        assert_eq!(of(&webp).expect("whole"), (ImageFormat::WebP, &webp[..]));
        let followed = [&webp[..], b"\n<!-- served by cache 17 -->"].concat();
        assert_eq!(of(&followed).expect("whole"), (ImageFormat::WebP, &webp[..]));
        assert!(matches!(of(&webp[..webp.len() - 3]), Err(ImageProblem::Truncated)));
    }

    #[test]
    fn other_formats_are_refused() {
        for file in [&b""[..], b"GIF89a......", b"BM", b"RIFF\0\0\0\0WAVE", b"text"] {
            assert!(matches!(of(file), Err(ImageProblem::Format)));
        }
    }
}

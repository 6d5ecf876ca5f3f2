//! Image files before decoding: their format, and the checks that the decoders leave out.

use image::ImageFormat;

use super::decode::ImageProblem;

/// The format of a file by its first bytes, if it is one of those supported and whole as far as can be told.
pub(super) fn format(file: &[u8]) -> Result<ImageFormat, ImageProblem> {
    let format = image::guess_format(file).map_err(|_| ImageProblem::Format)?;
    match format {
        ImageFormat::Png => {}
        ImageFormat::Jpeg if has_jpeg_end(file) => {}
        ImageFormat::WebP if has_webp_chunks(file) => {}
        ImageFormat::Jpeg | ImageFormat::WebP => return Err(ImageProblem::Truncated),
        _ => return Err(ImageProblem::Format),
    }
    Ok(format)
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

/// Whether all chunks of a WebP file lie within it. The decoder, which has no limits, would take the memory that a
/// lying chunk claims before it finds out.
fn has_webp_chunks(file: &[u8]) -> bool {
    let mut rest = file.get(12..).unwrap_or_default();
    while let Some((header, body)) = rest.split_first_chunk::<8>() {
        let size = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        if size > body.len() {
            return false;
        }
        rest = body.get(size.saturating_add(size % 2)..).unwrap_or_default();
    }
    true
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
            assert!(matches!(format(&jpeg[..end]), Err(ImageProblem::Truncated)), "cut at {end}");
        }
        assert_eq!(format(&jpeg).expect("whole"), ImageFormat::Jpeg);
        assert!(format(&[&jpeg[..], b"appended"].concat()).is_ok(), "what comes after the end does not matter");
    }

    #[test]
    fn the_end_of_an_embedded_thumbnail_is_not_the_end_of_the_image() {
        let jpeg = encoded(ImageFormat::Jpeg);
        let thumbnail = b"\xff\xe1\0\x08ab\xff\xd9xx";
        let cut = [&jpeg[..2], &thumbnail[..10], &jpeg[2..jpeg.len() - 2]].concat();
        assert!(matches!(format(&cut), Err(ImageProblem::Truncated)));
    }

    #[test]
    fn a_webp_is_whole_if_its_chunks_are() {
        let webp = encoded(ImageFormat::WebP);
        assert_eq!(format(&webp).expect("whole"), ImageFormat::WebP);
        assert!(matches!(format(&webp[..webp.len() - 3]), Err(ImageProblem::Truncated)));
    }

    #[test]
    fn other_formats_are_refused() {
        for file in [&b""[..], b"GIF89a......", b"BM", b"RIFF\0\0\0\0WAVE", b"text"] {
            assert!(matches!(format(file), Err(ImageProblem::Format)));
        }
    }
}

//! PNG files.

use std::io::{self, Cursor};

use png::{BitDepth, Decoder, DecodingError, Info, Limits, Transformations};

use super::error::ImageProblem;
use super::exif::Metadata;
use super::pixels;
use super::scratch::Decoded;

/// Decodes a file to 8 bits a channel into `pixels`, whose contents are replaced. Of an animation the default image counts.
pub(super) fn decode(file: &[u8], limit: u64, pixels: &mut Vec<u8>) -> Result<Decoded, ImageProblem> {
    match decode_whole(file, limit, pixels) {
        Err(ImageProblem::Truncated) => {
            // All pixels may be there all the same; as Pillow, the end alone is not missed.
            let ended = [whole_chunks(file), END].concat();
            decode_whole(&ended, limit, pixels).map_err(|problem| match problem {
                ImageProblem::Decode(_) => ImageProblem::Truncated,
                problem => problem,
            })
        }
        decoded => decoded,
    }
}

/// The last chunk of every file.
const END: &[u8] = b"\0\0\0\0IEND\xae\x42\x60\x82";

/// A file up to its first chunk that is not whole.
fn whole_chunks(file: &[u8]) -> &[u8] {
    const SIGNATURE: usize = 8;
    // Length, type and checksum.
    const AROUND: usize = 12;
    let mut end = SIGNATURE.min(file.len());
    while let Some(length) = file.get(end..).and_then(<[u8]>::first_chunk) {
        let next = end.saturating_add(AROUND).saturating_add(u32::from_be_bytes(*length) as usize);
        if next > file.len() {
            break;
        }
        end = next;
    }
    &file[..end]
}

fn decode_whole(file: &[u8], limit: u64, pixels: &mut Vec<u8>) -> Result<Decoded, ImageProblem> {
    let refused = |error: DecodingError| match error {
        DecodingError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => ImageProblem::Truncated,
        error => ImageProblem::Decode(error.into()),
    };
    let bytes = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut decoder = Decoder::new_with_limits(Cursor::new(file), Limits { bytes });
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(refused)?;
    let needed = reader.output_buffer_size().unwrap_or(usize::MAX);
    if needed as u64 > limit {
        return Err(ImageProblem::TooLarge { needed: needed as u64, limit });
    }
    // Cleared, so that nothing of the image before shows through where a decoder stops early.
    pixels.clear();
    pixels.resize(needed, 0);
    let frame = reader.next_frame(pixels).map_err(refused)?;
    // Metadata may follow the pixels; without them it is as if there were none.
    let _ = reader.finish();
    if frame.bit_depth == BitDepth::Sixteen {
        big_endian_to_native(pixels);
        pixels::narrow(pixels);
    }
    let info = reader.info();
    let profile = if info.exif_metadata.is_none() { raw_exif(info) } else { None };
    let exif = info.exif_metadata.as_deref().or(profile.as_deref());
    let xmp = info.utf8_text.iter().find(|text| text.keyword == "XML:com.adobe.xmp");
    let xmp = xmp.and_then(|text| text.get_text().ok());
    let metadata = Metadata { exif, xmp: xmp.as_deref().map(str::as_bytes) };
    Ok(Decoded::whole((frame.width, frame.height), frame.color_type.samples(), metadata.orientation()))
}

/// EXIF as ImageMagick wrote it before PNG had a chunk for it: three lines, and then hexadecimal digits.
fn raw_exif(info: &Info<'_>) -> Option<Vec<u8>> {
    const KEYWORD: &str = "Raw profile type exif";
    let plain =
        info.uncompressed_latin1_text.iter().filter(|text| text.keyword == KEYWORD).map(|text| Some(text.text.clone()));
    let packed =
        info.compressed_latin1_text.iter().filter(|text| text.keyword == KEYWORD).map(|text| text.get_text().ok());
    let text = plain.chain(packed).last()??;
    let digits: Vec<u8> = text.split('\n').skip(3).flat_map(str::bytes).filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    digits.as_chunks::<2>().0.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

fn big_endian_to_native(pixels: &mut [u8]) {
    for pair in pixels.as_chunks_mut::<2>().0 {
        *pair = u16::from_be_bytes(*pair).to_ne_bytes();
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use image::metadata::Orientation;
    use png::text_metadata::{ITXtChunk, TEXtChunk, ZTXtChunk};
    use png::{ColorType, Encoder, Writer};

    use super::*;

    const TIFF: &[u8] = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";

    /// The orientation of a PNG with something before and something after its pixels.
    fn orientation(
        before: impl Fn(&mut Writer<&mut Vec<u8>>),
        after: impl Fn(&mut Writer<&mut Vec<u8>>),
    ) -> Orientation {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, 2, 1);
        encoder.set_color(ColorType::Grayscale);
        let mut writer = encoder.write_header().expect("a header");
        before(&mut writer);
        writer.write_image_data(&[1, 2]).expect("pixels");
        after(&mut writer);
        writer.finish().expect("an end");
        let mut pixels = Vec::new();
        let decoded = decode(&file, 1 << 20, &mut pixels).expect("decoded");
        assert_eq!(pixels, [1, 2]);
        decoded.orientation
    }

    #[test]
    fn the_exif_chunk_counts_before_and_after_the_pixels() {
        let chunk = |writer: &mut Writer<&mut Vec<u8>>| writer.write_chunk(png::chunk::eXIf, TIFF).expect("a chunk");
        let prefixed = [b"Exif\0\0", TIFF].concat();
        let prefixed =
            |writer: &mut Writer<&mut Vec<u8>>| writer.write_chunk(png::chunk::eXIf, &prefixed).expect("a chunk");
        assert_eq!(orientation(chunk, |_| {}), Orientation::Rotate90);
        assert_eq!(orientation(|_| {}, chunk), Orientation::Rotate90);
        assert_eq!(orientation(prefixed, |_| {}), Orientation::Rotate90);
        assert_eq!(orientation(|_| {}, |_| {}), Orientation::NoTransforms);
    }

    #[test]
    fn only_the_end_may_be_missing() {
        let mut file = Vec::new();
        let mut encoder = Encoder::new(&mut file, 40, 30);
        encoder.set_color(ColorType::Grayscale);
        let bytes: Vec<u8> = (0..1200u32).map(|at| ((at * at) >> 3) as u8).collect();
        let mut writer = encoder.write_header().expect("a header");
        writer.write_image_data(&bytes).expect("pixels");
        writer.finish().expect("an end");
        let mut pixels = Vec::new();
        for cut in 0..=END.len() {
            decode(&file[..file.len() - cut], 1 << 20, &mut pixels)
                .unwrap_or_else(|problem| panic!("{cut}: {problem}"));
            assert_eq!(pixels, bytes);
        }
        for end in 8..file.len() - END.len() {
            let problem = decode(&file[..end], 1 << 20, &mut pixels).err().expect("pixels are missing");
            assert!(matches!(problem, ImageProblem::Truncated), "{end}: {problem}");
        }
    }

    #[test]
    fn text_with_exif_or_xmp_counts_where_there_is_no_exif_chunk() {
        let hex: String = [b"Exif\0\0", TIFF].concat().iter().map(|byte| format!("{byte:02x}")).collect();
        let raw = format!("\nexif\n      32\n{}\n{}\n", &hex[..40], &hex[40..]);
        let plain = TEXtChunk::new("Raw profile type exif", raw.as_str());
        let packed = ZTXtChunk::new("Raw profile type exif", raw.as_str());
        let xmp = ITXtChunk::new("XML:com.adobe.xmp", "<a tiff:Orientation=\"6\"/>");
        assert_eq!(orientation(|writer| writer.write_text_chunk(&plain).expect("text"), |_| {}), Orientation::Rotate90);
        assert_eq!(
            orientation(|writer| writer.write_text_chunk(&packed).expect("text"), |_| {}),
            Orientation::Rotate90
        );
        assert_eq!(orientation(|_| {}, |writer| writer.write_text_chunk(&xmp).expect("text")), Orientation::Rotate90);
    }
}

//! The values that Pillow 13 gives for the same bytes.

use super::*;

const EXIF: &[u8] = b"Exif\0\0";
const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";

/// A directory's entry, big-endian.
fn entry(tag: u16, kind: u16, count: u32, value: [u8; 4]) -> Vec<u8> {
    [&tag.to_be_bytes()[..], &kind.to_be_bytes(), &count.to_be_bytes(), &value].concat()
}

/// A TIFF file with these entries, and what follows them.
fn tiff(entries: &[Vec<u8>], tail: &[u8]) -> Vec<u8> {
    let count = entries.len() as u16;
    [b"MM\0*\0\0\0\x08", &count.to_be_bytes()[..], &entries.concat(), tail].concat()
}

/// One SHORT.
fn short(value: u8) -> Vec<u8> {
    tiff(&[entry(ORIENTATION, 3, 1, [0, value, 0, 0])], &[0; 4])
}

/// The orientation of a JPEG with these APP1 segments.
fn of(segments: &[&[u8]]) -> u8 {
    let app1 = |body: &&[u8]| [b"\xff\xe1", &(body.len() as u16 + 2).to_be_bytes()[..], body].concat();
    let jpeg = [b"\xff\xd8", &segments.iter().map(app1).collect::<Vec<_>>().concat()[..], b"\xff\xda\0\x02"].concat();
    of_jpeg(&jpeg, &mut Vec::new()).orientation().to_exif()
}

fn of_exif(tiff: &[u8]) -> u8 {
    of(&[&[EXIF, tiff].concat()])
}

#[test]
fn a_short_is_read_in_both_byte_orders_and_behind_up_to_two_prefixes() {
    for value in 1..=8 {
        assert_eq!(of_exif(&short(value)), value);
    }
    assert_eq!(of_exif(b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"), 6);
    assert_eq!(of_exif(&[EXIF, &short(6)].concat()), 6);
    assert_eq!(of_exif(&[EXIF, EXIF, &short(6)].concat()), 1);
    let headed = |head: &[u8; 4]| of_exif(&[&head[..], &short(6)[4..]].concat());
    assert_eq!([b"MM*\0", b"MM\0-", b"XX\0*"].map(headed), [6, 1, 1]);
}

#[test]
fn numbers_of_any_type_count_and_bytes_do_not() {
    let far = 26u32.to_be_bytes();
    let at_hand: [(u16, [u8; 4], u8); 11] = [
        (1, [6, 0, 0, 0], 1),
        (2, *b"6\0\0\0", 1),
        (3, [0, 6, 0, 0], 6),
        (4, [0, 0, 0, 6], 6),
        (6, [6, 0, 0, 0], 6),
        (7, [6, 0, 0, 0], 1),
        (8, [0, 6, 0, 0], 6),
        (9, [0, 0, 0, 6], 6),
        (11, 6f32.to_be_bytes(), 6),
        (13, [0, 0, 0, 6], 6),
        (14, [0, 0, 0, 6], 1),
    ];
    for (kind, value, expected) in at_hand {
        assert_eq!(of_exif(&tiff(&[entry(ORIENTATION, kind, 1, value)], &[0; 4])), expected, "type {kind}");
    }
    let elsewhere: [(u16, [u8; 8], u8); 5] = [
        (5, [0, 0, 0, 6, 0, 0, 0, 1], 6),
        (10, [0, 0, 0, 12, 0, 0, 0, 2], 6),
        (5, [0, 0, 0, 6, 0, 0, 0, 0], 1),
        (12, 6f64.to_be_bytes(), 6),
        (16, 6u64.to_be_bytes(), 6),
    ];
    for (kind, value, expected) in elsewhere {
        let tail = [&[0; 4][..], &value].concat();
        assert_eq!(of_exif(&tiff(&[entry(ORIENTATION, kind, 1, far)], &tail)), expected, "type {kind}");
    }
}

#[test]
fn of_several_values_the_first_counts_and_of_several_tags_the_first_that_can_be_read() {
    let tag = |kind, value| entry(ORIENTATION, kind, 1, [0, value, 0, 0]);
    assert_eq!(of_exif(&tiff(&[entry(ORIENTATION, 3, 2, [0, 6, 0, 3])], &[0; 4])), 6);
    assert_eq!(of_exif(&tiff(&[entry(ORIENTATION, 3, 3, 26u32.to_be_bytes())], &[0, 0, 0, 0, 0, 6, 0, 1, 0, 1])), 6);
    assert_eq!(of_exif(&tiff(&[entry(ORIENTATION, 3, 3, 26u32.to_be_bytes())], &[0, 0, 0, 0, 0, 6])), 1, "cut short");
    assert_eq!(of_exif(&tiff(&[tag(3, 6), tag(3, 3)], &[0; 4])), 6);
    assert_eq!(of_exif(&tiff(&[entry(ORIENTATION, 1, 1, [6, 0, 0, 0]), tag(3, 3)], &[0; 4])), 1, "bytes are read");
    assert_eq!(of_exif(&tiff(&[tag(99, 6), tag(3, 3)], &[0; 4])), 3);
    assert_eq!(of_exif(&tiff(&[entry(ORIENTATION, 3, 0, [0, 6, 0, 0])], &[0; 4])), 1, "no value");
}

#[test]
fn what_makes_no_sense_is_ignored() {
    assert_eq!([0, 9, 255].map(|value| of_exif(&short(value))), [1, 1, 1]);
    let tiff = short(6);
    for end in 0..tiff.len() {
        let expected = if end < 8 + 2 + 12 { 1 } else { 6 };
        assert_eq!(of_exif(&tiff[..end]), expected, "cut at {end}");
    }
    let mut away = tiff.clone();
    away[6] = 3;
    assert_eq!(of_exif(&away), 1, "a directory beyond the end");
    let mut many = tiff.clone();
    many[9] = 9;
    assert_eq!(of_exif(&many), 6, "more entries than there are");
    assert_eq!(of_exif(b""), 1);
}

#[test]
fn segments_of_exif_are_put_together() {
    let tiff = short(6);
    let part = |part: &[u8]| [EXIF, part].concat();
    assert_eq!(of(&[&part(&tiff[..15]), &part(&tiff[15..])]), 6);
    assert_eq!(of(&[&part(&tiff), &part(&short(3))]), 6);
    assert_eq!(of(&[&part(&tiff[..5]), &part(&tiff[5..19]), &part(&tiff[19..])]), 6);
}

#[test]
fn xmp_counts_where_exif_has_no_orientation() {
    let xmp = |text: &str| [XMP, text.as_bytes()].concat();
    let exif = |tiff: &[u8]| [EXIF, tiff].concat();
    let attribute = xmp("<a tiff:Orientation=\"6\"/>");
    assert_eq!(of(&[&attribute]), 6);
    assert_eq!(of(&[&xmp("<tiff:Orientation>6</tiff:Orientation>")]), 6);
    assert_eq!(of(&[&xmp("<a tiff:Orientation='3' tiff:Orientation=\"6\"/>")]), 6);
    assert_eq!(of(&[&xmp("<a tiff:Orientation=\"9\"/>")]), 1);
    assert_eq!(of(&[&exif(&short(3)), &attribute]), 3);
    assert_eq!(of(&[&exif(&tiff(&[entry(0x110, 3, 1, [0, 3, 0, 0])], &[0; 4])), &attribute]), 6, "another tag");
    assert_eq!(
        of(&[&exif(&tiff(&[entry(ORIENTATION, 1, 1, [3, 0, 0, 0])], &[0; 4])), &attribute]),
        1,
        "a tag that does not count"
    );
}

#[test]
fn a_webps_metadata_is_what_its_header_announces() {
    let chunk = |name: &[u8; 4], body: &[u8]| {
        let padding = &b"\0"[..body.len() % 2];
        [&name[..], &(body.len() as u32).to_le_bytes(), body, padding].concat()
    };
    let of = |flags: u8, exif: &[&[u8]]| {
        let header = chunk(b"VP8X", &[flags, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let exif: Vec<u8> = exif.iter().flat_map(|exif| chunk(b"EXIF", exif)).collect();
        let file = [b"RIFF\0\0\0\0WEBP", &header[..], &chunk(b"VP8L", b"x"), &exif].concat();
        of_webp(&file).orientation().to_exif()
    };
    assert_eq!(of(8, &[&short(6)]), 6);
    assert_eq!(of(8, &[&[EXIF, &short(6)].concat()]), 6);
    assert_eq!(of(8, &[&short(6), &short(3)]), 6);
    assert_eq!(of(0, &[&short(6)]), 1, "not announced");
}

//! Files that numpy wrote (see `tests/data/npy/make.py`).

use half::f16;

use super::*;
use crate::layout::Element as FieldElement;
use crate::staging::SampleBuffer;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/npy").join(name).with_extension("npy")
}

/// The bytes of all samples, one after the other.
fn bytes(source: &NpySource) -> Vec<u8> {
    let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
    let read = |index| {
        source.read(&SampleContext::of(index), &mut sample.writer()).expect("read");
        sample.bytes(0).expect("the first field").to_vec()
    };
    (0..source.len()).flat_map(read).collect()
}

fn open(name: &str) -> NpySource {
    NpySource::open(path(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// The first 24 elements as numpy was told to write them.
fn expected(element: FieldElement) -> Vec<u8> {
    let (all, signed) = (0..24u8, |k: u8| 3 * i32::from(k) - 20);
    let float = |k: u8| signed(k) as f32 / 2.0 - 0.25;
    match element {
        FieldElement::U8 => all.map(|k| 3 * k).collect(),
        FieldElement::Bool => all.map(|k| u8::from(k % 3 == 0)).collect(),
        FieldElement::U16 => all.flat_map(|k| (3 * u16::from(k)).to_ne_bytes()).collect(),
        FieldElement::F16 => all.flat_map(|k| f16::from_f32(float(k)).to_ne_bytes()).collect(),
        FieldElement::I32 => all.flat_map(|k| signed(k).to_ne_bytes()).collect(),
        FieldElement::F32 => all.flat_map(|k| float(k).to_ne_bytes()).collect(),
        FieldElement::I64 => all.flat_map(|k| i64::from(signed(k)).to_ne_bytes()).collect(),
        other => panic!("numpy has no {other}"),
    }
}

#[test]
fn every_supported_type_arrives_as_numpy_wrote_it() {
    for (name, element) in [
        ("u1", FieldElement::U8),
        ("b1", FieldElement::Bool),
        ("u2", FieldElement::U16),
        ("f2", FieldElement::F16),
        ("i4", FieldElement::I32),
        ("f4", FieldElement::F32),
        ("i8", FieldElement::I64),
    ] {
        let source = open(&format!("samples-{name}"));
        let layout = match element {
            FieldElement::U8 => SampleLayout::image(2, 3, 1),
            element => SampleLayout::array(element, &[2, 3]),
        };
        assert_eq!((source.len(), source.layout()), (4, layout.expect("a layout")), "{name}");
        assert_eq!(bytes(&source), expected(element), "{name}");
    }
}

#[test]
fn every_version_and_way_of_writing_is_read() {
    for name in ["version-1", "version-2", "version-3"] {
        assert_eq!(bytes(&open(name)), expected(FieldElement::F32), "{name}");
    }
    assert_eq!(bytes(&open("mapped")), expected(FieldElement::I32));
    assert_eq!(bytes(&open("fortran-column")), expected(FieldElement::F32)[..16]);
}

#[test]
fn images_with_channels_first_are_those_with_channels_last() {
    let last = open("images-nhwc");
    let open_first = |name: &str| NpySource::open_with(path(name), NpyOptions::channels_first());
    let first = open_first("images-nchw").expect("images");
    assert_eq!((first.layout(), first.len()), (last.layout(), last.len()));
    assert_eq!(first.layout(), SampleLayout::image(5, 7, 3).expect("images"));
    assert_eq!(bytes(&first), bytes(&last));
    assert!(first.direct().is_none() && last.direct().is_some());
    let grey = open_first("images-n1hw").expect("images");
    assert_eq!((grey.layout(), grey.direct().is_some()), (SampleLayout::image(5, 7, 1).expect("images"), true));
    assert_eq!(bytes(&grey)[..24], expected(FieldElement::U8));
    let stored = open("images-nchw");
    assert_eq!(stored.layout(), SampleLayout::bytes(&[3, 5, 7]).expect("bytes"));
    assert_ne!(stored.digest(), first.digest(), "other samples of the same file");
    for other in ["images-nhwc", "samples-u1", "samples-f4"] {
        let error = open_first(other).expect_err("refused").to_string();
        assert!(error.contains("no images with channels first") && error.contains(other), "{error}");
    }
}

#[test]
fn labels_of_every_integer_type_and_order_are_read() {
    let label = |name: &str, k: i64| match name.trim_start_matches("big-") {
        "b1" => k % 2,
        name if name.starts_with('u') => 5 * k,
        _ => 5 * k - 7,
    };
    for name in [
        "b1",
        "i1",
        "u1",
        "i2",
        "u2",
        "i4",
        "u4",
        "i8",
        "u8",
        "big-i2",
        "big-u2",
        "big-i4",
        "big-u4",
        "big-i8",
        "big-u8",
        "column",
        "column-big",
    ] {
        let read = labels::read(&path(&format!("labels-{name}"))).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read, (0..4).map(|k| label(name, k)).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn what_numpy_writes_and_no_field_holds_is_refused_by_name() {
    let refused = |name: &str| NpySource::open(path(&format!("refused-{name}"))).expect_err(name).to_string();
    for (name, dtype) in [
        ("i1", "|i1"),
        ("i2", "<i2"),
        ("u4", "<u4"),
        ("u8", "<u8"),
        ("f8", "<f8"),
        ("c8", "<c8"),
        ("S3", "|S3"),
        ("U2", "<U2"),
        ("M8", "<M8[s]"),
        ("object", "|O"),
    ] {
        let error = refused(name);
        assert!(error.contains(&format!("elements of type `{dtype}`; supported are `|u1`")), "{error}");
        assert!(error.contains(&format!("refused-{name}.npy: ")), "{error}");
    }
    for (name, dtype) in [("u2", ">u2"), ("f2", ">f2"), ("i4", ">i4"), ("f4", ">f4"), ("i8", ">i8")] {
        let error = refused(&format!("big-{name}"));
        assert!(error.contains(&format!("big-endian elements (`{dtype}`)")), "{error}");
    }
    for (name, reason) in [
        ("fortran", "Fortran order"),
        ("structured", "structured element types are not supported"),
        ("scalar", "a single value"),
        ("empty", "no samples"),
        ("empty-samples", "zero"),
    ] {
        assert!(refused(name).contains(reason), "{}", refused(name));
    }
}

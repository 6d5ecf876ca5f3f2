//! Both decoders against what libjpeg-turbo made of stored files (see `tests/data/jpeg/make.py`).

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

#[path = "../../../../tests/support/skip.rs"]
mod skip;
pub(super) use skip::skip;

/// A line of `expected.txt`.
struct Expected {
    name: String,
    divisor: u32,
    size: (u32, u32),
    channels: usize,
    hash: u64,
}

pub(super) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/jpeg")
}

pub(super) fn file(name: &str) -> Vec<u8> {
    fs::read(folder().join(name).with_extension("jpg")).expect("a stored file")
}

fn expected() -> Vec<Expected> {
    let text = fs::read_to_string(folder().join("expected.txt")).expect("the list of what is expected");
    let line = |line: &str| {
        let [name, divisor, width, height, channels, hash] = line.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        Some(Expected {
            name: name.to_owned(),
            divisor: divisor.parse().ok()?,
            size: (width.parse().ok()?, height.parse().ok()?),
            channels: channels.parse().ok()?,
            hash: u64::from_str_radix(hash, 16).ok()?,
        })
    };
    text.lines().map(|text| line(text).expect(text)).collect()
}

/// The 64-bit FNV-1a hash.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The pixels as they are stored, CMYK included.
pub(super) fn raw(file: &[u8], divisor: u32, chosen: Chosen) -> Result<(Decoded, Vec<u8>), ImageProblem> {
    let mut pixels = Vec::new();
    let decoded = decode_stored(
        file,
        chosen,
        1 << 24,
        |width, height| Wanted::whole(divisor, (width, height)),
        &mut Memory::default(),
        &mut pixels,
    )?;
    Ok((decoded, pixels))
}

pub(super) fn turbojpeg(test: &str) -> Option<Chosen> {
    match turbo::library() {
        Ok(library) => Some(Chosen::Turbo(library)),
        Err(reason) => {
            skip(test, reason);
            None
        }
    }
}

#[test]
fn every_form_is_decoded_to_the_bit_as_libjpeg_turbo_did() {
    let expected = expected();
    assert!(expected.len() > 190, "{}", expected.len());
    for Expected { name, divisor, size, channels, hash: pixels } in expected {
        let decoded = raw(&file(&name), divisor, Chosen::Rust);
        if name == "arithmetic" {
            let refused = decoded.err().expect("refused").to_string();
            assert_eq!(refused, "cannot be decoded: arithmetic-coded JPEG is not supported");
            continue;
        }
        let (decoded, got) = decoded.unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!((decoded.size, decoded.channels), (size, channels), "{name} 1/{divisor}");
        assert_eq!(hash(&got), pixels, "{name} 1/{divisor}");
        assert_eq!(decoded.damage, Damage { blocks: decoded.damage.blocks, ..Damage::default() }, "{name}");
    }
}

#[test]
fn the_systems_libjpeg_turbo_decodes_as_the_stored_one_did() {
    let Some(turbo) = turbojpeg("the_systems_libjpeg_turbo_decodes_as_the_stored_one_did") else { return };
    for Expected { name, divisor, size, channels, hash: pixels } in expected() {
        let (decoded, got) = raw(&file(&name), divisor, turbo).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!((decoded.size, decoded.channels), (size, channels), "{name} 1/{divisor}");
        if hash(&got) != pixels && name != "arithmetic" {
            // Another version may round differently, by a little.
            let (_, rust) = raw(&file(&name), divisor, Chosen::Rust).expect("decoded");
            assert!(got.iter().zip(&rust).all(|(a, b)| a.abs_diff(*b) <= 2), "{name} 1/{divisor}");
        }
    }
}

#[test]
fn the_fastest_of_both_decoders_gives_the_same_bytes_at_every_fraction() {
    let test = "the_fastest_of_both_decoders_gives_the_same_bytes_at_every_fraction";
    let Some(turbo @ Chosen::Turbo(library)) = turbojpeg(test) else { return };
    for name in ["sampling-420", "sampling-444", "progressive-420", "grey", "cmyk", "arithmetic", "restarts-every-row"]
    {
        for divisor in [1, 2, 4, 8] {
            let decoded =
                |chosen| raw(&file(name), divisor, chosen).unwrap_or_else(|problem| panic!("{name}: {problem}")).1;
            let (fastest, turbo) = (decoded(Chosen::Fastest(library)), decoded(turbo));
            assert!(fastest.iter().zip(&turbo).all(|(a, b)| a.abs_diff(*b) <= 2), "{name} 1/{divisor}");
            assert_eq!(fastest.len(), turbo.len());
        }
    }
}

#[test]
fn the_adobe_marker_decides_what_components_mean() {
    // Without a JFIF header, which means YCbCr.
    let rgb = file("rgb");
    let adobe = rgb.windows(5).position(|bytes| bytes == b"Adobe").expect("a marker") + 11;
    let with = |transform: u8| {
        let mut bytes = rgb.clone();
        bytes[adobe] = transform;
        raw(&bytes, 1, Chosen::Rust).expect("decoded").1
    };
    assert_eq!(with(0), raw(&rgb, 1, Chosen::Rust).expect("decoded").1);
    assert_ne!(with(1), with(0));
    assert_eq!(with(1), with(2), "unknown ones are YCbCr");
    let cmyk = file("cmyk");
    let adobe = cmyk.windows(5).position(|bytes| bytes == b"Adobe").expect("a marker") + 11;
    let with = |transform: u8| {
        let mut bytes = cmyk.clone();
        bytes[adobe] = transform;
        raw(&bytes, 1, Chosen::Rust).expect("decoded").1
    };
    assert_eq!(with(2), raw(&file("ycck"), 1, Chosen::Rust).expect("decoded").1);
    assert_eq!(with(5), with(2), "unknown ones are YCCK");
    assert_ne!(with(0), with(2));
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let refused = |bytes: &[u8]| raw(bytes, 1, Chosen::Rust).err().expect("refused").to_string();
    let jpeg = file("sampling-420");
    let at = |marker: u8| jpeg.windows(2).position(|bytes| bytes == [0xff, marker]).expect("a segment");
    let changed = |changes: &[(usize, u8)]| {
        let mut bytes = jpeg.clone();
        changes.iter().for_each(|&(at, value)| bytes[at] = value);
        refused(&bytes)
    };
    let frame = at(0xc0);
    assert!(changed(&[(frame + 1, 0xc3)]).contains("lossless JPEG"));
    assert!(changed(&[(frame + 1, 0xc5)]).contains("hierarchical JPEG"));
    assert!(changed(&[(frame + 4, 12)]).contains("samples of 12 bits"));
    assert!(changed(&[(frame + 5, 0), (frame + 6, 0)]).contains("45 x 0 pixels"));
    assert!(changed(&[(frame + 9, 2)]).contains("2 components"));
    assert!(changed(&[(frame + 11, 0x50)]).contains("5 x 0"));
    assert!(changed(&[(frame + 11, 0x31), (frame + 14, 0x21)]).contains("do not divide"));
    assert!(changed(&[(frame + 11, 0x44)]).contains("more than 10 blocks"));
    assert!(changed(&[(at(0xc4) + 5, 9)]).contains("Huffman table"));
    assert!(changed(&[(at(0xda) + 6, 0x33)]).contains("Huffman table is missing"));
    assert!(changed(&[(frame + 12, 3)]).contains("quantisation table is missing"));
}

#[test]
fn more_scans_than_any_encoder_makes_are_refused() {
    let jpeg = file("scans-bits");
    let last = jpeg.windows(2).rposition(|bytes| bytes == [0xff, 0xda]).expect("a scan");
    // A refinement without data, again and again.
    let scan = b"\xff\xda\0\x08\x01\x01\0\x01\x3f\x10";
    let bomb = [&jpeg[..last], &scan.repeat(600), &jpeg[last..]].concat();
    let problem = raw(&bomb, 1, Chosen::Rust).err().expect("refused").to_string();
    assert!(problem.contains("more than 500 scans"), "{problem}");
}

#[test]
fn a_progressive_image_without_all_its_scans_is_refused() {
    let jpeg = file("progressive-420");
    let scans: Vec<usize> = (0..jpeg.len() - 1).filter(|&at| jpeg[at..at + 2] == [0xff, 0xda]).collect();
    let cut = [&jpeg[..scans[scans.len() - 1]], b"\xff\xd9"].concat();
    let problem = raw(&cut, 1, Chosen::Rust).err().expect("refused").to_string();
    assert!(problem.contains("scans are incomplete"), "{problem}");
}

#[test]
fn memory_and_results_are_the_same_whatever_was_decoded_before() {
    let mut memory = Memory::default();
    let mut pixels = Vec::new();
    for name in
        ["fine", "scans-bits", "size-1x1", "sampling-411", "grey", "cmyk", "fine", "scans-separate", "sampling-420"]
    {
        let file = file(name);
        let decode = |memory: &mut Memory, pixels: &mut Vec<u8>| {
            decode_stored(
                &file,
                Chosen::Rust,
                1 << 24,
                |width, height| Wanted::whole(1, (width, height)),
                memory,
                pixels,
            )
            .expect("decoded")
        };
        decode(&mut memory, &mut pixels);
        assert_eq!(pixels, raw(&file, 1, Chosen::Rust).expect("decoded").1, "{name}");
    }
}

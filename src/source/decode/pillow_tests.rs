//! Files that Pillow wrote, against what Pillow makes of them (see `tests/data/pillow/make.py`).

use std::fs;
use std::path::Path;

use super::*;

/// The 64-bit FNV-1a hash.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn every_file_becomes_what_pillow_makes_of_it_or_is_refused_as_there() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pillow");
    let expected = fs::read_to_string(folder.join("expected.txt")).expect("the list of what is expected");
    let mut wrong = Vec::new();
    for line in expected.lines() {
        let [name, width, height, hashed] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let size = [height, width].map(|side| side.parse::<u32>().expect("a number"));
        for decoder in [Decoder::Auto, Decoder::Rust] {
            let options = DecodeOptions { decoder, ..DecodeOptions::default() };
            let target = Target::new((size[0], size[1]), 3, Fit::Stretch, 1 << 20, options).expect("a decoder");
            let mut pixels = vec![0; target.sample_bytes()];
            let read = target.read(&folder.join(name), &mut SampleWriter::over(&mut pixels));
            let got = match &read {
                Ok(()) => format!("{:016x}", hash(&pixels)),
                Err(_) => "refused".to_owned(),
            };
            if got != hashed {
                let reason = read.err().map(|error| error.to_string()).unwrap_or_default();
                wrong.push(format!("{name} by {decoder}: {got}, not {hashed} {reason}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(expected.lines().count() > 80);
}

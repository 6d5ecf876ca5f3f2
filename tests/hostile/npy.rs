//! `.npy` files whose headers lie.

use std::fs;
use std::path::{Path, PathBuf};

use gpufeed::source::{NpyType, write_npy};
use gpufeed::{NpySource, SampleBuffer, SampleContext, Source};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::{alone, cases, within};

/// What opening may take beyond the file's own size: its header's text, parsed, and messages.
const BESIDES: usize = 256 << 10;

/// A file that is written anew for each case.
struct Case {
    folder: TempDir,
    path: PathBuf,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("samples.npy");
        Self { folder, path }
    }

    /// Opens these bytes as samples and as labels, and reads all that they claim to hold.
    fn open(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).expect("written");
        within(bytes.len() * 2 + BESIDES, || {
            if let Ok(source) = NpySource::open(&self.path) {
                assert!(source.layout().byte_len() <= bytes.len(), "a sample is larger than the file");
                read_all(&source);
            }
        });
    }

    fn labels(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).expect("written");
        let samples = self.folder.path().join("one.npy");
        write_npy(&samples, NpyType::U8, &[1, 2], &[1, 2]).expect("written");
        // An i64 for each byte of the file at most.
        within(bytes.len() * 9 + BESIDES, || {
            if let Ok(source) = NpySource::open(&samples).expect("whole").with_labels_npy(&self.path) {
                read_all(&source);
            }
        });
    }
}

fn read_all(source: &NpySource) {
    let mut sample = SampleBuffer::new(source.layout()).expect("no more than the file");
    for index in 0..source.len() {
        source.read(&SampleContext::of(index), &mut sample.writer()).expect("the file has the length it promises");
    }
}

/// A file as it should be.
fn whole(path: &Path) -> Vec<u8> {
    write_npy(path, NpyType::U8, &[5, 4, 3, 3], &(0..180).collect::<Vec<u8>>()).expect("written");
    fs::read(path).expect("as it was written")
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_bytes_are_refused_or_are_a_file(bytes in prop::collection::vec(any::<u8>(), 0..400), magic in any::<bool>()) {
        let _turn = alone();
        let case = Case::new();
        let bytes = if magic { [b"\x93NUMPY\x01\0", &bytes[..]].concat() } else { bytes };
        case.open(&bytes);
        case.labels(&bytes);
    }

    #[test]
    fn a_damaged_file_is_refused_or_is_another_one(
        damage in prop::collection::vec((0usize..320, any::<u8>()), 1..6),
        cut in prop::option::of(0usize..320),
        more in 0usize..20,
    ) {
        let _turn = alone();
        let case = Case::new();
        let mut bytes = whole(&case.path);
        for (at, value) in damage {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(cut.unwrap_or(usize::MAX));
        bytes.extend(std::iter::repeat_n(b'9', more));
        case.open(&bytes);
        case.labels(&bytes);
    }

    #[test]
    fn a_header_that_claims_more_than_there_is_costs_nothing(
        version in 1u8..4,
        claimed in any::<u32>(),
        dims in prop::collection::vec(any::<u64>(), 0..7),
        dtype in prop::sample::select(vec!["|u1", "<f4", "<i8", "<f8", ">u2", "|V9999999"]),
    ) {
        let _turn = alone();
        let dims: String = dims.iter().map(|dim| format!("{dim}, ")).collect();
        let text = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({dims}), }}\n");
        let honest = claimed % 2 == 0;
        let length = if honest { text.len() as u32 } else { claimed };
        let length = length.to_le_bytes();
        let length = if version == 1 { &length[..2] } else { &length[..] };
        let bytes = [b"\x93NUMPY", &[version, 0][..], length, text.as_bytes(), &[0; 64]].concat();
        let case = Case::new();
        case.open(&bytes);
        case.labels(&bytes);
    }
}

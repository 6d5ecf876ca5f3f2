//! Samples and labels of `.npy` files.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::staging::SampleBuffer;

fn label(source: &NpySource, index: u64) -> Option<i64> {
    let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
    source.read(&SampleContext::of(index), &mut sample.writer()).expect("there");
    sample.label()
}

/// A folder with one file in it: this array, followed by as many bytes as asked for.
fn saved(dtype: NpyType, shape: &[usize], bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("samples.npy");
    write_npy(&path, dtype, shape, bytes).expect("written");
    (folder, path)
}

fn layout_of(dtype: NpyType, shape: &[usize]) -> SampleLayout {
    let bytes = vec![0; shape.iter().product::<usize>() * dtype.bytes()];
    let (_folder, path) = saved(dtype, shape, &bytes);
    NpySource::open(path).expect("a source").layout()
}

fn resize(path: &Path, change: i64) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("the file");
    let len = file.metadata().expect("its length").len();
    file.set_len(len.checked_add_signed(change).expect("a length")).expect("resized");
}

#[test]
fn the_shape_and_type_say_what_a_sample_is() {
    assert_eq!(layout_of(NpyType::U8, &[2, 5, 6, 3]), SampleLayout::image(5, 6, 3).expect("an image"));
    assert_eq!(layout_of(NpyType::U8, &[2, 5, 6, 2]), SampleLayout::bytes(&[5, 6, 2]).expect("bytes"));
    assert_eq!(layout_of(NpyType::U8, &[2, 5, 6]), SampleLayout::image(5, 6, 1).expect("grey"));
    assert_eq!(layout_of(NpyType::U8, &[2, 5]), SampleLayout::bytes(&[5]).expect("bytes"));
    assert_eq!(layout_of(NpyType::U8, &[2]), SampleLayout::bytes(&[]).expect("scalars"));
    assert_eq!(layout_of(NpyType::F32, &[2, 5, 6]), SampleLayout::f32(&[5, 6]).expect("floats"));
}

#[test]
fn a_truncated_file_is_refused_with_its_missing_bytes() {
    let (_folder, path) = saved(NpyType::U8, &[10, 2, 2, 3], &[0; 120]);
    resize(&path, -7);
    let error = NpySource::open(&path).expect_err("truncated").to_string();
    assert!(error.contains("samples.npy: truncated: 7 of 248 bytes are missing"), "{error}");
}

#[test]
fn bytes_after_the_end_are_refused() {
    let (_folder, path) = saved(NpyType::F32, &[10, 2], &[0; 80]);
    resize(&path, 3);
    let error = NpySource::open(&path).expect_err("too long").to_string();
    assert!(error.contains("3 bytes after the array's end"), "{error}");
}

#[test]
fn a_file_that_shrinks_while_open_names_the_sample_and_the_file() {
    let (_folder, path) = saved(NpyType::U8, &[10, 4], &[9; 40]);
    let source = NpySource::open(&path).expect("whole");
    resize(&path, -6);
    let mut memory = [0; 4];
    let error =
        source.read(&SampleContext::of(7), &mut SampleWriter::over(&mut memory)).expect_err("changed").to_string();
    assert!(error.contains("samples.npy: the file was changed after it was opened"), "{error}");
    let error =
        source.read(&SampleContext::of(8), &mut SampleWriter::over(&mut memory)).expect_err("cut off").to_string();
    assert!(error.contains("samples.npy: reading sample 8:") && error.contains("2 bytes early"), "{error}");
}

#[test]
fn labels_come_from_a_second_file_of_the_same_length() {
    let (folder, path) = saved(NpyType::U8, &[3, 4], &[0; 12]);
    let labels = folder.path().join("labels.npy");
    let open = || NpySource::open(&path).expect("a source").with_labels_npy(&labels);
    assert!(open().expect_err("no such file").to_string().contains("labels.npy"));
    let bytes = [-1i64, 1 << 40, 3].map(i64::to_le_bytes).concat();
    write_npy(&labels, NpyType::I64, &[3], &bytes).expect("written");
    let source = open().expect("three labels");
    assert_eq!((0..3).map(|i| label(&source, i)).collect::<Vec<_>>(), [Some(-1), Some(1 << 40), Some(3)]);
    write_npy(&labels, NpyType::U8, &[3], &[7, 8, 255]).expect("written");
    assert_eq!(label(&open().expect("three labels"), 2), Some(255));
    write_npy(&labels, NpyType::U8, &[2], &[7, 8]).expect("written");
    assert!(open().expect_err("too few").to_string().contains("2 labels were given for 3 samples"));
    write_npy(&labels, NpyType::U8, &[1, 3], &[7, 8, 9]).expect("written");
    assert!(open().expect_err("a table").to_string().contains("(N,) or (N, 1), not [1, 3]"));
    write_npy(&labels, NpyType::F32, &[3], &[0; 12]).expect("written");
    assert!(open().expect_err("floats").to_string().contains("`<f4`"));
}

#[test]
fn a_copy_has_the_same_digest_and_other_labels_another() {
    let digest = |bytes: &[u8], labels: Option<&[u8]>| {
        let (folder, path) = saved(NpyType::U8, &[3, 4], bytes);
        let source = NpySource::open(&path).expect("a source");
        let Some(labels) = labels else { return source.digest().expect("a digest") };
        write_npy(folder.path().join("l.npy"), NpyType::U8, &[3], labels).expect("written");
        source.with_labels_npy(folder.path().join("l.npy")).expect("labels").digest().expect("a digest")
    };
    assert_eq!(digest(&[1; 12], Some(&[0, 1, 2])), digest(&[1; 12], Some(&[0, 1, 2])));
    assert_ne!(digest(&[1; 12], Some(&[0, 1, 2])), digest(&[1; 12], Some(&[0, 2, 1])));
    assert_ne!(digest(&[1; 12], None), digest(&[1; 12], Some(&[0, 0, 0])));
    assert_ne!(digest(&[1; 12], None), digest(&[2; 12], None));
}

#[test]
fn what_is_no_regular_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let error = NpySource::open(folder.path()).expect_err("a folder").to_string();
    assert!(error.contains("not a regular file"), "{error}");
    let error = NpySource::open(folder.path().join("none.npy")).expect_err("nothing there").to_string();
    assert!(error.contains("none.npy"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_sample_is_its_row_of_the_array(len in 1usize..9, dims in prop::collection::vec(1usize..5, 0..4)) {
        let row: usize = dims.iter().product();
        let bytes: Vec<u8> = (0..len * row).map(|i| (i * 31 % 251) as u8).collect();
        let shape: Vec<usize> = [&[len], &dims[..]].concat();
        let (_folder, path) = saved(NpyType::U8, &shape, &bytes);
        let source = NpySource::open(path).expect("a source");
        prop_assert_eq!(source.len(), len as u64);
        for (index, expected) in bytes.chunks_exact(row).enumerate() {
            let mut memory = vec![0; row];
            source.read(&SampleContext::of(index as u64), &mut SampleWriter::over(&mut memory)).expect("read");
            prop_assert_eq!(&memory[..], expected);
        }
    }
}

//! libwebp and the decoder that is built in, on the same files.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// Files that Pillow wrote, of every kind.
fn files() -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/webp");
    let paths = fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|is| is == "webp")).collect();
    paths.sort_unstable();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("read"))).collect()
}

/// libwebp, where it is installed. Skipped in sight otherwise.
#[allow(clippy::print_stderr)]
fn library(test: &str) -> Option<&'static Library> {
    match libwebp::library() {
        Ok(library) => Some(library),
        Err(reason) => {
            eprintln!("skipped: {test}: {reason}");
            None
        }
    }
}

fn decoded(file: &[u8], library: Option<&Library>) -> Result<Vec<u8>, ImageProblem> {
    let mut pixels = vec![1; 7];
    decode(file, library, 1 << 20, &mut pixels).map(|_| pixels)
}

#[test]
fn both_decoders_give_the_same_bytes() {
    let files = files();
    assert!(files.len() >= 12);
    let Some(library) = library("both_decoders_give_the_same_bytes") else { return };
    for (path, file) in files {
        let name = path.display();
        let (rust, system) = (decoded(&file, None).expect("decoded"), decoded(&file, Some(library)).expect("decoded"));
        let most = rust.iter().zip(&system).map(|(a, b)| a.abs_diff(*b)).max();
        assert_eq!((rust.len(), most), (system.len(), Some(0)), "{name}");
    }
}

#[test]
fn a_cut_or_broken_image_is_an_error_or_the_same_bytes_of_both() {
    let Some(library) = library("a_cut_or_broken_image_is_an_error_or_the_same_bytes_of_both") else { return };
    // Of the animation only the first frame is read, which ends long before the file does.
    for (path, file) in files().into_iter().filter(|(path, _)| !path.ends_with("animation.webp")) {
        let cut = &file[..file.len() - file.len() / 3];
        assert!(decoded(cut, Some(library)).is_err(), "{}", path.display());
        assert!(decoded(cut, None).is_err(), "{}", path.display());
        for at in (30..file.len()).step_by(file.len() / 30 + 1) {
            let mut broken = file.clone();
            broken[at] ^= 0x10;
            if let (Ok(rust), Ok(system)) = (decoded(&broken, None), decoded(&broken, Some(library))) {
                assert!(rust == system, "{}, byte {at}", path.display());
            }
        }
    }
}

#[test]
fn a_size_that_the_library_does_not_see_is_refused_before_it_writes() {
    let Some(library) = library("a_size_that_the_library_does_not_see_is_refused_before_it_writes") else { return };
    let file = &files().into_iter().find(|(path, _)| path.ends_with("lossless.webp")).expect("there").1;
    let mut out = vec![7; 40 * 23 * 3];
    assert!(!library.decode(file, (40, 23), 3, &mut out));
    assert!(out.iter().all(|&byte| byte == 7));
}

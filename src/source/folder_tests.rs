//! Finding, ordering and labelling images.

use image::{Rgb, RgbImage};
use tempfile::TempDir;

use super::*;
use crate::staging::SampleBuffer;

/// A folder with these files: each image is one pixel whose red is its place in the list; others are empty.
fn folder(files: &[&str]) -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (red, name) in files.iter().enumerate() {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        if is_image(&path) {
            let pixel = RgbImage::from_pixel(1, 1, Rgb([red as u8, 0, 0]));
            pixel.save_with_format(path, image::ImageFormat::Png).expect("written");
        } else {
            fs::write(path, "").expect("written");
        }
    }
    root
}

fn open(root: &TempDir) -> Result<FolderSource, FolderError> {
    FolderSource::open(root.path(), FolderOptions { height: 1, width: 1, ..FolderOptions::default() })
}

fn read(source: &FolderSource, index: u64) -> SampleBuffer {
    let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
    source.read(&SampleContext::of(index), &mut sample.writer()).expect("a sample");
    sample
}

/// The first byte of every sample.
fn reds(source: &FolderSource) -> Vec<u8> {
    (0..source.len()).map(|index| read(source, index).bytes(0).expect("an image")[0]).collect()
}

#[test]
fn images_are_found_by_extension_in_any_case_and_ordered_by_path() {
    let root = folder(&["b.PNG", "a.jpeg", "B.webp", "notes.txt", "c.JPG", ".hidden.png", "png"]);
    let source = open(&root).expect("four images");
    assert_eq!(reds(&source), [2, 1, 0, 4], "upper case first, whatever is in the files");
    assert_eq!(source.path(1), Some(root.path().join("a.jpeg").as_path()));
    assert_eq!(source.path(4), None);
    assert_eq!((read(&source, 0).label(), source.classes().len()), (None, 0));
    assert_eq!(source.layout(), SampleLayout::image(1, 1, 3).expect("an image"));
}

#[test]
fn sub_folders_are_classes() {
    let root = folder(&["dog/1.png", "cat-b/1.png", "cat/x/2.png", "cat/1.png", "empty/none.txt", ".git/1.png"]);
    let source = open(&root).expect("four images");
    assert_eq!(source.classes(), ["cat", "cat-b", "dog", "empty"]);
    assert_eq!(reds(&source), [3, 2, 1, 0]);
    let labels: Vec<_> = (0..4).map(|index| read(&source, index).label()).collect();
    assert_eq!(labels, [Some(0), Some(0), Some(1), Some(2)]);
}

#[test]
fn images_beside_class_folders_are_refused_by_name() {
    let error = open(&folder(&["cat/1.png", "stray.png"])).expect_err("mixed").to_string();
    assert!(error.contains("stray.png has no class"), "{error}");
    assert!(open(&folder(&["1.png", "notes/readme.txt"])).expect("no images below").classes().is_empty());
}

#[test]
fn a_folder_without_images_is_named() {
    let root = folder(&["a/readme.txt"]);
    let error = open(&root).expect_err("no images").to_string();
    assert!(error.starts_with(&format!("{}: no images", root.path().display())), "{error}");
    let missing = FolderSource::open(root.path().join("none"), FolderOptions::default());
    assert!(missing.expect_err("missing").to_string().contains("none: "));
}

#[test]
fn an_image_that_went_away_is_an_error_with_its_name() {
    let root = folder(&["1.png", "2.png"]);
    let source = open(&root).expect("two images");
    fs::remove_file(root.path().join("2.png")).expect("removed");
    let error = source.read(&SampleContext::of(1), &mut SampleWriter::over(&mut [0; 3])).expect_err("gone").to_string();
    assert!(error.contains("2.png: cannot be read"), "{error}");
    let error = source.read(&SampleContext::of(2), &mut SampleWriter::over(&mut [0; 3])).expect_err("never there");
    assert!(error.is::<OutOfRange>(), "{error}");
}

#[test]
fn options_that_make_no_image_are_refused() {
    let root = folder(&["1.png"]);
    for options in [
        FolderOptions { channels: 2, ..FolderOptions::default() },
        FolderOptions { height: 0, ..FolderOptions::default() },
    ] {
        assert!(matches!(FolderSource::open(root.path(), options), Err(FolderError::Layout(_))));
    }
}

#[test]
#[cfg(unix)]
fn links_are_followed_unless_they_lead_back() {
    use std::os::unix::fs::symlink;
    let (root, elsewhere) = (folder(&["a/1.png"]), folder(&["2.png"]));
    symlink(elsewhere.path(), root.path().join("b")).expect("linked");
    assert_eq!(open(&root).expect("two classes").classes(), ["a", "b"]);
    symlink(root.path(), elsewhere.path().join("back")).expect("linked");
    let error = open(&root).expect_err("endless").to_string();
    assert!(error.contains("back: this link leads back"), "{error}");
}

//! Finding, ordering and labelling images.

use image::{Rgb, RgbImage};
use tempfile::TempDir;

use super::*;
use crate::source::{ImageOptions, LeftOutReason};
use crate::staging::SampleBuffer;

/// A folder with these files: each image is one pixel whose red is its position in the list; others are empty.
fn folder(files: &[&str]) -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (red, name) in files.iter().enumerate() {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        if ["png", "jpg", "jpeg", "jfif", "webp"].iter().any(|ending| name.to_lowercase().ends_with(ending)) {
            let pixel = RgbImage::from_pixel(1, 1, Rgb([red as u8, 0, 0]));
            pixel.save_with_format(path, image::ImageFormat::Png).expect("written");
        } else {
            fs::write(path, "").expect("written");
        }
    }
    root
}

/// Samples of one pixel.
fn tiny() -> ImageOptions {
    ImageOptions { height: 1, width: 1, ..ImageOptions::default() }
}

fn open(root: &TempDir) -> Result<FolderSource, FolderError> {
    FolderSource::open(root.path(), FolderOptions { images: tiny(), classes: None })
}

fn read(source: &FolderSource, index: u64) -> Result<(), SourceError> {
    let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
    source.read(&SampleContext::of(index), &mut sample.writer())
}

/// The first byte of every sample.
fn reds(source: &FolderSource) -> Vec<u8> {
    let first = |index| {
        let mut sample = SampleBuffer::new(source.layout()).expect("a few bytes");
        source.read(&SampleContext::of(index), &mut sample.writer()).expect("a sample");
        assert_eq!(sample.label(), source.label(index));
        sample.bytes("image").expect("an image")[0]
    };
    (0..source.len()).map(first).collect()
}

#[test]
fn images_are_found_by_extension_or_content_and_ordered_by_path() {
    let root = folder(&["b.PNG", "a.jpeg", "B.webp", "notes.txt", "c.JPG", ".hidden.png", "png", "d.jfif"]);
    let source = open(&root).expect("six images");
    assert_eq!(reds(&source), [2, 1, 0, 4, 7, 6], "upper case first, whatever is in the files");
    assert_eq!(source.path(1), Some(root.path().join("a.jpeg")));
    assert_eq!(source.path(6), None);
    assert_eq!((source.label(0), source.classes().len()), (None, 0));
    assert_eq!(source.layout(), SampleLayout::image(1, 1, 3).expect("an image"));
}

/// The names of the classes, and their numbers of samples.
fn classes(source: &FolderSource) -> Vec<(&str, u64)> {
    source.classes().iter().map(|class| (class.name.as_str(), class.samples)).collect()
}

/// What was left out: the reason, the kind, and the number.
fn left_out(source: &FolderSource) -> Vec<(LeftOutReason, String, u64)> {
    source.summary().left_out.into_iter().map(|entry| (entry.reason, entry.kind, entry.count)).collect()
}

#[test]
fn sub_folders_with_images_are_classes_and_the_others_are_named() {
    let root = folder(&["dog/1.png", "cat-b/1.png", "cat/x/2.png", "cat/1.png", "empty/none.txt", ".git/1.png"]);
    let source = open(&root).expect("four images");
    assert_eq!(classes(&source), [("cat", 2), ("cat-b", 1), ("dog", 1)]);
    assert_eq!(reds(&source), [3, 2, 1, 0]);
    let labels: Vec<_> = (0..5).map(|index| source.label(index)).collect();
    assert_eq!(labels, [Some(0), Some(0), Some(1), Some(2), None]);
    let expected = [
        (LeftOutReason::NoImages, "empty".to_owned(), 1),
        (LeftOutReason::NoImage, ".txt".to_owned(), 1),
        (LeftOutReason::Hidden, String::new(), 1),
    ];
    assert_eq!(left_out(&source), expected);
}

#[test]
fn a_folder_that_a_system_keeps_for_itself_moves_no_label() {
    let labels = |more: &[&str]| {
        let root = folder(&[&["cat/1.png", "dog/1.png"], more].concat());
        let source = open(&root).expect("two images");
        (0..source.len()).map(|index| source.label(index).expect("a label")).collect::<Vec<_>>()
    };
    assert_eq!(labels(&["@eaDir/cat/thumb.png", "cat/@eaDir/1.png/thumb.jpg", "lost+found/x.png"]), [0, 1]);
    assert_eq!(labels(&["__MACOSX/cat/._1.png", "annotations/a.json"]), [0, 1]);
}

#[test]
fn a_list_of_classes_fixes_the_labels() {
    let root = folder(&["cat/1.png", "cow/1.png", "cow/2.png", "dog/1.png"]);
    let open = |names: &[&str]| {
        let classes = Some(names.iter().map(|&name| name.to_owned()).collect());
        FolderSource::open(root.path(), FolderOptions { images: tiny(), classes })
    };
    let source = open(&["dog", "bird", "cat"]).expect("two classes");
    assert_eq!(classes(&source), [("dog", 1), ("bird", 0), ("cat", 1)]);
    assert_eq!((0..2).map(|index| source.label(index)).collect::<Vec<_>>(), [Some(2), Some(0)]);
    assert_eq!(reds(&source), [0, 3]);
    assert_eq!(left_out(&source), [(LeftOutReason::NotInClassList, "cow".to_owned(), 2)]);
    let error = open(&["dog", "cat", "dog"]).expect_err("twice").to_string();
    assert_eq!(error, "the list of classes has `dog` twice");
    let error = open(&["bird"]).expect_err("no image").to_string();
    assert!(error.contains("no images") && error.contains("2 images of `cow`, which is not in the list"), "{error}");
}

#[test]
fn images_beside_class_folders_are_refused_by_name() {
    let error = open(&folder(&["cat/1.png", "stray.png"])).expect_err("mixed").to_string();
    assert!(error.contains("stray.png has no class"), "{error}");
    assert!(open(&folder(&["1.png", "notes/readme.txt"])).expect("no images below").classes().is_empty());
    let options = FolderOptions { classes: Some(vec!["cat".to_owned()]), ..FolderOptions::default() };
    let error = FolderSource::open(folder(&["1.png"]).path(), options).expect_err("no class").to_string();
    assert!(error.contains("1.png has no class"), "{error}");
}

#[test]
fn a_folder_without_images_is_named() {
    let root = folder(&["a/readme.txt"]);
    let error = open(&root).expect_err("no images").to_string();
    assert!(error.starts_with(&format!("{}: no images", root.path().display())), "{error}");
    assert!(error.contains("; there is `a` holds") || error.contains("1 .txt file: a/readme.txt"), "{error}");
    let missing = FolderSource::open(root.path().join("none"), FolderOptions::default());
    assert!(missing.expect_err("missing").to_string().contains("none: "));
}

#[test]
fn an_image_that_went_away_is_an_error_with_its_name() {
    let root = folder(&["1.png", "2.png"]);
    let source = open(&root).expect("two images");
    fs::remove_file(root.path().join("2.png")).expect("removed");
    let error = read(&source, 1).expect_err("gone").to_string();
    assert!(error.contains("2.png: cannot be read"), "{error}");
    let error = read(&source, 2).expect_err("never there");
    assert!(error.is::<OutOfRange>(), "{error}");
}

#[test]
fn options_that_make_no_image_are_refused() {
    let root = folder(&["1.png"]);
    for images in [ImageOptions { channels: 2, ..tiny() }, ImageOptions { height: 0, ..tiny() }] {
        let options = FolderOptions { images, classes: None };
        assert!(matches!(FolderSource::open(root.path(), options), Err(FolderError::Layout(_))));
    }
}

#[test]
fn a_digest_is_that_of_names_sizes_and_classes() {
    let digest = |files: &[&str]| open(&folder(files)).expect("images").digest().expect("a digest");
    assert_eq!(digest(&["a/1.png", "b/2.png"]), digest(&["a/1.png", "b/2.png", "b/notes.txt"]));
    assert_ne!(digest(&["a/1.png", "b/2.png"]), digest(&["a/1.png", "b/3.png"]));
    assert_ne!(digest(&["a/1.png", "b/2.png"]), digest(&["a/1.png", "c/2.png"]));
    let root = folder(&["1.png", "2.png"]);
    let before = open(&root).expect("images").digest();
    fs::write(root.path().join("2.png"), "shorter").expect("written");
    assert_ne!(open(&root).expect("images").digest(), before);
}

#[test]
#[cfg(unix)]
fn links_are_followed_unless_they_lead_back_or_nowhere() {
    use std::os::unix::fs::symlink;
    let (root, elsewhere) = (folder(&["a/1.png"]), folder(&["2.png"]));
    symlink(elsewhere.path(), root.path().join("b")).expect("linked");
    assert_eq!(classes(&open(&root).expect("two classes")), [("a", 1), ("b", 1)]);
    symlink(root.path(), elsewhere.path().join("back")).expect("linked");
    symlink("nowhere", elsewhere.path().join("gone")).expect("linked");
    symlink("nowhere", elsewhere.path().join("gone.png")).expect("linked");
    let source = open(&root).expect("three images");
    let expected = [(LeftOutReason::BrokenLink, String::new(), 1), (LeftOutReason::LinkLoop, String::new(), 1)];
    assert_eq!(left_out(&source), expected);
    assert_eq!((source.len(), source.path(2)), (3, Some(root.path().join("b/gone.png"))));
    let error = read(&source, 2).expect_err("nowhere").to_string();
    assert!(error.contains("gone.png: cannot be read"), "{error}");
}

#[test]
#[cfg(unix)]
fn a_folder_that_cannot_be_listed_is_left_out() {
    use std::os::unix::fs::PermissionsExt;
    let root = folder(&["a/1.png", "b/1.png"]);
    let locked = root.path().join("b");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).expect("locked");
    let allowed = fs::read_dir(&locked).is_ok();
    let source = open(&root);
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).expect("unlocked");
    // The superuser may list anything.
    if !allowed {
        let left_out = left_out(&source.expect("one image"));
        assert_eq!((left_out[1].0, left_out[1].2), (LeftOutReason::UnreadableFolder, 1));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_no_unicode_or_hold_control_characters_are_found_and_shown() {
    use std::os::unix::ffi::OsStrExt;
    let root = folder(&["a\n\x1b[31m/1.png"]);
    let odd = std::ffi::OsStr::from_bytes(b"\xff.png");
    fs::copy(root.path().join("a\n\x1b[31m/1.png"), root.path().join("a\n\x1b[31m").join(odd)).expect("copied");
    let source = open(&root).expect("two images");
    assert_eq!(source.path(1).expect("a path").file_name(), Some(odd));
    fs::remove_file(source.path(0).expect("a path")).expect("removed");
    let error = read(&source, 0).expect_err("gone").to_string();
    assert!(error.contains("a\\n\\u{1b}[31m/1.png"), "{error}");
}

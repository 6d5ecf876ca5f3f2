//! Files that change while they are read.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gpufeed::backend::host::HostBackend;
use gpufeed::source::{FileError, NpyError, NpyType, write_npy};
use gpufeed::{Backend, LoadError, Loader, LoaderOptions, NpySource, Source};
use tempfile::TempDir;

pub(crate) const SAMPLES: usize = 64;
const BYTES: usize = 5000;

/// A `.npy` file that was written a while ago, so that any change shows in its time.
pub(crate) fn samples() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("samples.npy");
    let bytes: Vec<u8> = (0..SAMPLES * BYTES).map(|at| (at / BYTES) as u8).collect();
    write_npy(&path, NpyType::U8, &[SAMPLES, BYTES], &bytes).expect("written");
    let then = SystemTime::now() - Duration::from_secs(100);
    File::options().write(true).open(&path).and_then(|file| file.set_modified(then)).expect("its time is set");
    (folder, path)
}

pub(crate) type Change = (&'static str, fn(&Path));

fn writable(path: &Path) -> File {
    OpenOptions::new().write(true).open(path).expect("it is there")
}

pub(crate) const CHANGES: [Change; 4] = [
    ("shrinks to nothing", |path| writable(path).set_len(0).expect("cut")),
    ("shrinks by a sample", |path| writable(path).set_len((SAMPLES * BYTES) as u64 - 4000).expect("cut")),
    ("grows", |path| {
        OpenOptions::new().append(true).open(path).and_then(|mut file| file.write_all(&[0; 9])).expect("longer");
    }),
    ("is rewritten in place", |path| writable(path).write_all_at(&[99; BYTES], 1000).expect("rewritten")),
];

pub(crate) fn whole(path: &Path) -> Arc<dyn Source> {
    Arc::new(NpySource::open(path).expect("a whole file"))
}

/// Whether an error is that the file was changed or is too short, and says which file.
pub(crate) fn tells(error: &LoadError) -> bool {
    let LoadError::Sample { source, .. } = error else { return false };
    let typed = source.downcast_ref::<FileError>();
    matches!(typed, Some(FileError::Changed { .. } | FileError::Read { .. }))
        && source.to_string().contains("samples.npy")
}

/// A loader over a file that changes once everything that was begun is done.
pub(crate) fn changed<B: Backend>(
    backend: &B,
    options: &LoaderOptions,
    change: fn(&Path),
    open: fn(&Path) -> Arc<dyn Source>,
) -> Vec<LoadError> {
    let (_folder, path) = samples();
    let source = open(&path);
    let mut loader = Loader::new(backend, source, options.clone()).expect("the loader opens");
    let mut epoch = loader.epoch(0);
    let mut good = 0;
    // Every tensor is held, so that nothing is read meanwhile.
    let held: Vec<_> =
        std::iter::from_fn(|| epoch.try_next()).map_while(Result::ok).inspect(|batch| good += batch.len()).collect();
    assert_eq!(held.len(), options.outputs);
    held.iter().for_each(|batch| batch.wait().expect("the device is there"));
    change(&path);
    drop(held);
    let errors: Vec<LoadError> = epoch.filter_map(Result::err).collect();
    assert!(!errors.is_empty(), "{good} samples were good, and the rest too");
    errors
}

#[test]
fn a_file_that_changes_while_workers_read_it_is_an_error() {
    let _turn = crate::alone();
    let options = LoaderOptions { batch_size: 2, slots: 1, outputs: 2, workers: 2, ..LoaderOptions::default() };
    for (what, change) in CHANGES {
        let errors = changed(&HostBackend::new(), &options, change, whole);
        // One batch may have been read ahead into the slot.
        assert!(errors.len() >= SAMPLES / 2 - 3, "{what}: {} errors", errors.len());
        assert!(errors.iter().all(tells), "{what}: {errors:?}");
    }
}

/// Labels that were being written are a list of another length, and never more than the header promises.
#[test]
fn labels_that_grow_are_refused() {
    let _turn = crate::alone();
    let (folder, path) = samples();
    let labels = folder.path().join("labels.npy");
    write_npy(&labels, NpyType::U8, &[SAMPLES], &[1; SAMPLES]).expect("written");
    OpenOptions::new().append(true).open(&labels).and_then(|mut file| file.write_all(&[0; 9])).expect("longer");
    let refused = NpySource::open(&path).expect("whole").with_labels_npy(&labels).map(|_| ());
    assert!(matches!(refused, Err(NpyError::TrailingBytes { extra: 9, .. })), "{refused:?}");
}

#[cfg(feature = "images")]
#[test]
fn an_image_that_vanishes_or_becomes_something_else_is_named_and_the_others_arrive() {
    let _turn = crate::alone();
    use gpufeed::source::{FolderSource, ImageOptions};

    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a.png", "b.png", "c.png", "d.png", "e.png"] {
        image::RgbImage::new(8, 8).save(folder.path().join(name)).expect("written");
    }
    let options = ImageOptions { height: 8, width: 8, ..ImageOptions::default() };
    let source = Arc::new(FolderSource::open(folder.path(), options.into()).expect("five images"));
    let at = |name: &str| folder.path().join(name);
    fs::remove_file(at("b.png")).expect("it was there");
    fs::remove_file(at("c.png")).and_then(|()| fs::create_dir(at("c.png"))).expect("a folder instead");
    fs::remove_file(at("d.png")).expect("it was there");
    // Opening a pipe would wait for its other end for ever.
    let pipe = std::process::Command::new("mkfifo").arg(at("d.png")).status();
    let pipe = pipe.is_ok_and(|status| status.success());
    let options = LoaderOptions { batch_size: 1, workers: 2, ..LoaderOptions::default() };
    let mut loader = Loader::new(&HostBackend::new(), source, options).expect("the loader opens");
    let results: Vec<Result<u64, String>> =
        loader.epoch(0).map(|batch| batch.map(|batch| batch.number()).map_err(|error| error.to_string())).collect();
    assert_eq!((&results[0], &results[4]), (&Ok(0), &Ok(4)));
    for (number, name) in [(1, "b.png"), (2, "c.png"), (3, "d.png")] {
        let error = results[number].as_ref().expect_err("it is gone");
        assert!(error.contains(name) && error.contains("cannot be read"), "{error}");
    }
    assert!(pipe, "mkfifo is part of every Unix");
}

//! A file that remembers what was chosen, for whoever asks for that.
//!
//! Whatever is wrong with the file is a warning in the log and one more measurement, never an error. It is replaced as a whole, so
//! that processes that write at once lose each other's additions at most.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::{AdapterInfo, Strategy};
use crate::loader::LoaderOptions;
use crate::source::Source;

const FORMAT: &str = "gpufeed-auto/1";
/// The oldest entries go first.
const MAX_ENTRIES: usize = 256;
/// A larger file is none of ours.
const MAX_BYTES: u64 = 1 << 20;

/// What a choice holds for. A driver, an option or a version that differs is measured anew.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Key {
    version: String,
    debug_build: bool,
    cores: usize,
    adapter: String,
    name: String,
    driver: String,
    driver_info: String,
    sample: String,
    in_memory: bool,
    preprocess: String,
    batch_size: usize,
    slots: usize,
    outputs: usize,
    fingerprints: bool,
    shuffled: bool,
    /// Of the consumer, in microseconds.
    #[serde(default)]
    compute_us: u64,
    /// What others had to beat.
    default: (Strategy, usize),
    pinned: (Option<Strategy>, Option<usize>),
}

/// A choice that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Choice {
    key: Key,
    pub(super) strategy: Strategy,
    pub(super) workers: usize,
    pub(super) why: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Contents {
    format: String,
    /// The latest last.
    choices: Vec<Choice>,
}

impl Key {
    /// `options` with the strategy and the workers that others have to beat.
    pub(super) fn new(
        adapter: &AdapterInfo,
        source: &dyn Source,
        options: &LoaderOptions,
        pinned: (Option<Strategy>, Option<usize>),
        compute: Duration,
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            debug_build: cfg!(debug_assertions),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            adapter: adapter.id.clone(),
            name: adapter.name.clone(),
            driver: adapter.driver.clone(),
            driver_info: adapter.driver_info.clone(),
            sample: source.layout().to_string(),
            in_memory: source.direct().is_some(),
            preprocess: format!("{:?}", options.preprocess),
            batch_size: options.batch_size,
            slots: options.slots,
            outputs: options.outputs,
            fingerprints: options.fingerprints,
            shuffled: options.seed.is_some(),
            compute_us: u64::try_from(compute.as_micros()).unwrap_or(u64::MAX),
            default: (options.strategy.unwrap_or(Strategy::Memcpy), options.workers),
            pinned,
        }
    }
}

/// What was chosen for this key.
pub(super) fn find(file: &Path, key: &Key) -> Option<Choice> {
    let choices = read(file).unwrap_or_else(|reason| {
        log::warn!("{}: {reason}; measuring anew", file.display());
        Vec::new()
    });
    choices.into_iter().rev().find(|choice| choice.key == *key && choice.is_valid())
}

/// Remembers a choice.
pub(super) fn keep(file: &Path, key: Key, (strategy, workers): (Strategy, usize), why: &str) {
    // What cannot be read was reported when it was looked into, and is replaced.
    let mut choices = read(file).unwrap_or_default();
    choices.retain(|choice| choice.key != key);
    choices.push(Choice { key, strategy, workers, why: why.to_owned() });
    let surplus = choices.len().saturating_sub(MAX_ENTRIES);
    choices.drain(..surplus);
    if let Err(error) = replace(file, &Contents { format: FORMAT.to_owned(), choices }) {
        log::warn!("{}: what was chosen cannot be kept: {error}", file.display());
    }
}

impl Choice {
    /// Whether a loader can be made so: the file may have been written by anybody.
    fn is_valid(&self) -> bool {
        let options = LoaderOptions { workers: self.workers, ..LoaderOptions::default() };
        options.validate().is_ok()
    }
}

/// The choices in a file; none if there is no file.
fn read(file: &Path) -> Result<Vec<Choice>, String> {
    let mut text = String::new();
    match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        opened => opened.and_then(|open| open.take(MAX_BYTES + 1).read_to_string(&mut text)),
    }
    .map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    let contents: Contents = serde_json::from_str(&text).map_err(|error| format!("it holds no choices: {error}"))?;
    if contents.format != FORMAT {
        return Err(format!("its format is `{}` and not `{FORMAT}`", contents.format));
    }
    Ok(contents.choices)
}

/// Writes beside the file and renames, so that a reader sees the old one or the new one.
fn replace(file: &Path, contents: &Contents) -> io::Result<()> {
    let text = serde_json::to_string_pretty(contents)?;
    let beside = beside(file);
    let written = OpenOptions::new().write(true).create_new(true).open(&beside).and_then(|mut open| {
        open.write_all(text.as_bytes())?;
        open.sync_all()
    });
    written.and_then(|()| fs::rename(&beside, file)).inspect_err(|_| {
        // It may not have been made at all.
        let _ = fs::remove_file(&beside);
    })
}

/// A name that nobody else writes to.
fn beside(file: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}-{number}.new", process::id()));
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::host::host_info;
    use crate::layout::SampleLayout;
    use crate::source::SyntheticSource;

    fn key(change: impl FnOnce(&mut AdapterInfo, &mut LoaderOptions)) -> Key {
        let source = SyntheticSource::new(SampleLayout::bytes(&[8]).expect("bytes"), 10);
        let (mut adapter, mut options) = (host_info(), LoaderOptions::default());
        change(&mut adapter, &mut options);
        Key::new(&adapter, &source, &options, (None, None), Duration::ZERO)
    }

    #[test]
    fn a_choice_is_found_for_its_key_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("auto.json");
        let same = || key(|_, _| ());
        assert_eq!(find(&file, &same()), None);
        keep(&file, same(), (Strategy::MappedRing, 3), "it is fast");
        let found = find(&file, &same()).expect("kept");
        assert_eq!((found.strategy, found.workers, found.why.as_str()), (Strategy::MappedRing, 3, "it is fast"));
        for other in [
            key(|adapter, _| adapter.driver_info = "2.0".to_owned()),
            key(|adapter, _| adapter.driver = "another".to_owned()),
            key(|adapter, _| adapter.name = "another".to_owned()),
            key(|_, options| options.batch_size = 7),
            key(|_, options| options.preprocess = crate::preprocess::Normalize::imagenet().into()),
        ] {
            assert_eq!(find(&file, &other), None, "{other:?}");
            keep(&file, other, (Strategy::Memcpy, 1), "another");
        }
        assert_eq!(find(&file, &same()), Some(found), "the others did not replace it");
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1, "nothing is left beside it");
    }

    #[test]
    fn a_file_of_somebody_else_is_read_as_nothing_and_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("auto.json");
        let choice = Choice { key: key(|_, _| ()), strategy: Strategy::WriteBuffer, workers: 0, why: String::new() };
        let foreign = Contents { format: FORMAT.to_owned(), choices: vec![choice] };
        let large = " ".repeat(MAX_BYTES as usize + 1);
        for text in ["", "{", "[]", r#"{"format":"x","choices":[]}"#, "\u{0}", &large] {
            fs::write(&file, text).expect("written");
            assert_eq!(find(&file, &key(|_, _| ())), None);
        }
        fs::write(&file, serde_json::to_string(&foreign).expect("JSON")).expect("written");
        assert_eq!(find(&file, &key(|_, _| ())), None, "no loader can be made so");
        fs::write(&file, [0xff, 0xfe]).expect("written");
        keep(&file, key(|_, _| ()), (Strategy::Memcpy, 2), "");
        assert_eq!(find(&file, &key(|_, _| ())).map(|choice| choice.workers), Some(2));
    }

    #[test]
    fn a_folder_that_does_not_exist_is_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("missing").join("auto.json");
        keep(&file, key(|_, _| ()), (Strategy::Memcpy, 2), "");
        assert_eq!(find(&file, &key(|_, _| ())), None);
    }

    #[test]
    fn many_who_write_at_once_leave_a_file_that_can_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("auto.json");
        std::thread::scope(|scope| {
            for writer in 1..=4 {
                let file = &file;
                scope.spawn(move || {
                    for batch_size in 1..=10 {
                        let key = key(|_, options| options.batch_size = 100 * writer + batch_size);
                        keep(file, key, (Strategy::Memcpy, writer), "");
                        read(file).expect("whole");
                    }
                });
            }
        });
        assert!(!read(&file).expect("whole").is_empty());
    }
}

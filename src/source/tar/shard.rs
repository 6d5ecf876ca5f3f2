//! One archive: its index, and its file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::entries::Entries;
use super::error::TarError;
use super::fault::{Broken, Fault};
use super::group::{Grouper, Name, Rules, image_rank};
use super::label::LabelRule;
use super::members::{End, Kind, Members};
use crate::source::left_out::Tally;
use crate::source::record_file::{RecordFile, Stamp};
use crate::source::{FileError, LeftOutReason};

/// How many shards are kept open. Others are opened for each sample, so that thousands of shards need no more files than a
/// process may have.
const MAX_OPEN: usize = 128;
/// How many shards are looked through at once, where there are as many cores.
const MAX_THREADS: usize = 16;

/// One archive.
#[derive(Debug)]
pub(super) struct Shard {
    path: PathBuf,
    stamp: Stamp,
    open: Option<RecordFile>,
    pub(super) entries: Entries,
}

impl Shard {
    /// Finds the samples of an archive.
    fn index(path: &Path, rules: &Rules, keep_open: bool) -> Result<(Self, Tally), TarError> {
        let file = RecordFile::open(path)?;
        let (mut entries, left_out) = index(&file, rules).map_err(|fault| broken(&file, fault))?;
        entries.shrink();
        let stamp = file.stamp();
        Ok((Self { path: path.into(), stamp, open: keep_open.then_some(file), entries }, left_out))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Hands out the open file.
    ///
    /// # Errors
    /// It cannot be opened, or is not what it was.
    pub(super) fn with_file<T>(&self, read: impl FnOnce(&RecordFile) -> T) -> Result<T, FileError> {
        let reopened;
        let file = match &self.open {
            Some(file) => file,
            None => {
                reopened = RecordFile::open(&self.path)?;
                &reopened
            }
        };
        let result = read(file);
        // Asked afterwards: what was read until then is of the file that was looked through.
        if self.open.is_none() && file.stamp() != self.stamp {
            return Err(FileError::Changed { path: self.path.clone() });
        }
        file.unchanged().map(|()| result)
    }

    /// As it is with more shards than are held open.
    #[cfg(test)]
    pub(super) fn close(&mut self) {
        self.open = None;
    }

    /// The name of a member of sample `at`.
    pub(super) fn member_name(&self, at: usize) -> Option<Vec<u8>> {
        let header = self.entries.place(at)?.header();
        let member = self.with_file(|file| Members::starting_at(file, header).next().ok().flatten());
        member.ok().flatten().map(|member| member.name)
    }
}

/// Finds the samples of all archives, several at once, and what was left out of them.
pub(super) fn index_all(paths: &[PathBuf], rules: &Rules) -> Result<(Vec<Shard>, Tally), TarError> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(paths.len()));
    let work = || {
        while let Some((number, path)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, paths.get(at)?)))
        {
            let shard = Shard::index(path, rules, number < MAX_OPEN);
            let failed = shard.is_err();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((number, shard));
            if failed {
                next.store(paths.len(), Ordering::Relaxed);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS).min(paths.len());
    thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    let (mut shards, mut left_out) = (Vec::with_capacity(paths.len()), Tally::default());
    for (_, shard) in done {
        let (shard, tally) = shard?;
        left_out.merge(tally, &format!("{}: ", shard.path.to_string_lossy()));
        shards.push(shard);
    }
    Ok((shards, left_out))
}

fn index(file: &RecordFile, rules: &Rules) -> Result<(Entries, Tally), Fault> {
    let mut members = Members::starting_at(file, 0);
    let mut grouper = Grouper::new(rules);
    let mut offset = 0;
    while let Some(member) = members.next()? {
        offset = member.header;
        let content = || members.content(&member).map(<[u8]>::to_vec).map_err(Broken::from);
        grouper.add(&member, content).map_err(|broken| Fault { offset, broken })?;
    }
    grouper.finish_sample().map_err(|broken| Fault { offset, broken })?;
    let ends = members.end().map_err(|error| Fault { offset, broken: error.into() })?;
    let odd = match ends {
        End::Marked => None,
        End::Unmarked => Some(LeftOutReason::NoArchiveEnd),
        End::Followed => Some(LeftOutReason::AfterArchiveEnd),
    };
    if let Some(reason) = odd {
        grouper.left_out.add(reason, String::new(), 1, b"");
    }
    Ok((grouper.entries, grouper.left_out))
}

/// Where labels are in the first archive with images.
pub(super) fn find_label_rule(paths: &[PathBuf], image: Option<&str>) -> Result<LabelRule, TarError> {
    for path in paths {
        let file = RecordFile::open(path)?;
        let found = label_rule(&file, image).map_err(|fault| broken(&file, fault))?;
        if let Some(rule) = found {
            return Ok(rule);
        }
    }
    Ok(LabelRule::None)
}

/// Where labels are; `None` if there is no image.
fn label_rule(file: &RecordFile, image: Option<&str>) -> Result<Option<LabelRule>, Fault> {
    let mut members = Members::starting_at(file, 0);
    let (mut current, mut has_image, mut any_image) = (Vec::new(), false, false);
    let mut best: Option<(u8, LabelRule)> = None;
    while let Some(member) = members.next()? {
        let Name::Part(key, suffix) = Name::of(&member.name) else { continue };
        if key != current {
            if has_image && best.is_some() {
                break;
            }
            (current, has_image, best) = (key.to_owned(), false, None);
        }
        if image_rank(image, &suffix).is_some() {
            (has_image, any_image) = (true, true);
        } else if member.kind == Kind::File && ["cls", "json", "txt"].contains(&suffix.as_str()) {
            let content = members.content(&member);
            let content = content.map_err(|error| Fault { offset: member.data, broken: error.into() })?;
            let found = LabelRule::found(&suffix, content);
            best = best.into_iter().chain(found).min_by_key(|(number, _)| *number);
        }
    }
    let rule = best.filter(|_| has_image).map_or(LabelRule::None, |(_, rule)| rule);
    Ok(any_image.then_some(rule))
}

/// An archive's fault as an error that names it.
fn broken(file: &RecordFile, Fault { offset, broken }: Fault) -> TarError {
    let path = file.path().to_owned();
    match broken {
        Broken::Checksum | Broken::HeaderCut if offset == 0 => TarError::NotTar { path, hint: other_format(file) },
        broken => TarError::Damaged { path, offset, reason: broken.to_string() },
    }
}

/// What a file is that is no archive.
fn other_format(file: &RecordFile) -> String {
    const KNOWN: [(&[u8], &str); 6] = [
        (b"\x1f\x8b", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ", "xz"),
        (b"BZh", "bzip2"),
        (b"PK\x03\x04", "zip"),
        (b"\x04\x22\x4d\x18", "lz4"),
    ];
    let mut start = vec![0; file.len().min(8) as usize];
    if file.read_at(0, &mut start).is_err() {
        return String::new();
    }
    let known = KNOWN.iter().find(|(magic, _)| start.starts_with(magic));
    known.map_or_else(String::new, |(_, name)| {
        format!(" but compressed by {name}; unpack it: samples are read at any position, which compression prevents")
    })
}

//! The paths of many files in little memory.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// Files below one root, in the order they were added: a file takes its name's bytes and four more, and its folder's path
/// is kept once for all that lie in it side by side.
#[derive(Default)]
pub(super) struct PathList {
    root: PathBuf,
    folders: Vec<Folder>,
    runs: Vec<Run>,
    /// Where each file's name ends, counted from where its run's names begin.
    ends: Vec<u32>,
    names: Vec<u8>,
}

struct Folder {
    /// From the root, with `/` between names; empty for the root itself.
    path: Box<[u8]>,
    label: Option<u32>,
}

/// Files that follow each other and lie in one folder.
struct Run {
    first: usize,
    names: usize,
    folder: usize,
}

/// A state of the list to go back to.
pub(super) struct Mark {
    folders: usize,
    runs: usize,
    files: usize,
    names: usize,
}

impl PathList {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Adds a folder and tells its number.
    pub(super) fn add_folder(&mut self, path: &[u8]) -> usize {
        self.folders.push(Folder { path: path.into(), label: None });
        self.folders.len() - 1
    }

    /// Adds a file of a folder.
    pub(super) fn add(&mut self, folder: usize, name: &[u8]) {
        let fits =
            |run: &&Run| run.folder == folder && u32::try_from(self.names.len() - run.names + name.len()).is_ok();
        let names = match self.runs.last().filter(fits) {
            Some(run) => run.names,
            None => {
                self.runs.push(Run { first: self.ends.len(), names: self.names.len(), folder });
                self.names.len()
            }
        };
        self.names.extend_from_slice(name);
        // A name is at most a few hundred bytes long, so the first of a run always fits.
        self.ends.push((self.names.len() - names) as u32);
    }

    pub(super) fn mark(&self) -> Mark {
        let (folders, runs) = (self.folders.len(), self.runs.len());
        Mark { folders, runs, files: self.ends.len(), names: self.names.len() }
    }

    /// How many files were added since.
    pub(super) fn since(&self, mark: &Mark) -> usize {
        self.ends.len() - mark.files
    }

    /// Takes everything out that was added since. The mark was taken where another folder's files begin.
    pub(super) fn go_back(&mut self, mark: &Mark) {
        self.folders.truncate(mark.folders);
        self.runs.truncate(mark.runs);
        self.ends.truncate(mark.files);
        self.names.truncate(mark.names);
    }

    /// Labels everything that was added since.
    pub(super) fn label_since(&mut self, mark: &Mark, label: u32) {
        self.folders[mark.folders..].iter_mut().for_each(|folder| folder.label = Some(label));
    }

    /// Frees what was held for more files.
    pub(super) fn finish(&mut self) {
        self.folders.shrink_to_fit();
        self.runs.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.names.shrink_to_fit();
    }

    /// The folder and the name of a file.
    fn file(&self, index: usize) -> Option<(&Folder, &[u8])> {
        let end = *self.ends.get(index)? as usize;
        let run = &self.runs[self.runs.partition_point(|run| run.first <= index).checked_sub(1)?];
        let start = if index == run.first { 0 } else { self.ends[index - 1] as usize };
        Some((&self.folders[run.folder], &self.names[run.names + start..run.names + end]))
    }

    /// A file's path from the root, with `/` between names.
    pub(super) fn relative(&self, index: usize) -> Option<Vec<u8>> {
        self.file(index).map(|(folder, name)| below(&folder.path, name))
    }

    /// A file's path.
    pub(super) fn path(&self, index: usize) -> Option<PathBuf> {
        self.relative(index).map(|path| self.root.join(to_os(&path)))
    }

    pub(super) fn label(&self, index: usize) -> Option<u32> {
        self.file(index)?.0.label
    }

    /// The folder of the first file that lies outside of every labelled folder.
    pub(super) fn first_unlabelled(&self) -> Option<usize> {
        self.runs.iter().find(|run| self.folders[run.folder].label.is_none()).map(|run| run.first)
    }

    /// Bytes held.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        self.names.capacity()
            + 4 * self.ends.capacity()
            + size_of::<Run>() * self.runs.capacity()
            + self.folders.iter().map(|folder| folder.path.len()).sum::<usize>()
            + size_of::<Folder>() * self.folders.capacity()
    }
}

impl fmt::Debug for PathList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathList").field("root", &self.root).field("files", &self.len()).finish_non_exhaustive()
    }
}

/// The path of `name` in a folder, both from the root.
pub(super) fn below(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// The bytes of a name; `None` where it is no Unicode on a system whose names are.
#[cfg(unix)]
pub(super) fn to_bytes(name: &OsStr) -> Option<&[u8]> {
    Some(std::os::unix::ffi::OsStrExt::as_bytes(name))
}

/// The bytes of a name; `None` where it is no Unicode on a system whose names are.
#[cfg(not(unix))]
pub(super) fn to_bytes(name: &OsStr) -> Option<&[u8]> {
    name.to_str().map(str::as_bytes)
}

#[cfg(unix)]
pub(super) fn to_os(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
pub(super) fn to_os(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_labels_come_back_in_the_order_they_were_added() {
        let mut list = PathList::new(Path::new("root"));
        let (root, mark) = (list.add_folder(b""), list.mark());
        list.add(root, b"a.png");
        let sub = list.add_folder(b"b/c");
        list.add(sub, b"1.png");
        list.add(sub, b"2.png");
        list.add(root, b"z");
        list.finish();
        let paths: Vec<_> = (0..5).map(|index| list.path(index)).collect();
        let expected = ["root/a.png", "root/b/c/1.png", "root/b/c/2.png", "root/z"].map(|path| Some(path.into()));
        assert_eq!(paths[..4], expected);
        assert_eq!((&paths[4], list.len(), list.since(&mark)), (&None, 4, 4));
        assert_eq!((list.label(0), list.label(4), list.first_unlabelled()), (None, None, Some(0)));
        list.label_since(&mark, 7);
        assert_eq!((list.label(1), list.label(0)), (Some(7), None), "the root was there before");
    }

    #[test]
    fn going_back_leaves_no_trace() {
        let mut list = PathList::new(Path::new(""));
        let first = list.add_folder(b"a");
        list.add(first, b"1");
        let mark = list.mark();
        let second = list.add_folder(b"b");
        list.add(second, b"2");
        list.go_back(&mark);
        let third = list.add_folder(b"c");
        list.add(third, b"3");
        assert_eq!((list.len(), list.path(1)), (2, Some("c/3".into())));
    }

    #[test]
    fn a_file_takes_its_name_and_four_bytes() {
        let mut list = PathList::new(Path::new("root"));
        for class in 0..100 {
            let folder = list.add_folder(format!("n{class:08}").as_bytes());
            (0..1000).for_each(|file| list.add(folder, format!("n{class:08}_{file:06}.JPEG").as_bytes()));
        }
        list.finish();
        let a_file = list.heap_bytes() as f64 / 100_000.0;
        assert!(a_file < 21.0 + 4.1, "{a_file} bytes a file");
    }
}

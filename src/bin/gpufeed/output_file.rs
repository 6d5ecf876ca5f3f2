//! Files that the command writes: never one that it reads, and never half of one under its name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use gpufeed::Source;
use gpufeed::source::FileIdentity;

/// The files that a command reads.
#[derive(Default)]
pub struct Inputs {
    paths: Vec<PathBuf>,
    source: Option<Arc<dyn Source>>,
}

impl Inputs {
    /// What was given on the command line.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { paths: paths.into_iter().collect(), source: None }
    }

    /// What is opened at `path`, with the labels that may lie beside it.
    pub fn with_source(mut self, path: &Path, source: &Arc<dyn Source>) -> Self {
        self.paths.extend([path.to_owned(), path.with_extension("labels.npy")]);
        self.source = Some(Arc::clone(source));
        self
    }

    /// The input that is the file at `output`, by whatever name.
    fn that_is(&self, output: &Path) -> Option<PathBuf> {
        // What is not there is nobody's.
        let identity = FileIdentity::of(output).ok()?;
        let is_it = |path: &PathBuf| FileIdentity::of(path).is_ok_and(|input| input == identity);
        let given = self.paths.iter().find(|path| is_it(path)).cloned();
        given.or_else(|| self.source.as_ref()?.files().find(is_it))
    }
}

/// A file to be written, which is none of the inputs.
#[derive(Clone, Debug)]
pub struct OutputFile {
    option: &'static str,
    path: PathBuf,
}

impl OutputFile {
    /// The file that `option` names. Nothing is created yet.
    ///
    /// # Errors
    /// It is one of the inputs, directly or through links.
    pub fn new(option: &'static str, path: &Path, inputs: &Inputs) -> Result<Self> {
        if let Some(input) = inputs.that_is(path) {
            bail!("{option} {}: this is {}, which is read: choose another file", path.display(), input.display());
        }
        Ok(Self { option, path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is a file to be replaced.
    pub fn exists(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok()
    }

    /// Whether what is there, if anything, is a regular file, and not `/dev/stdout` or a pipe.
    pub fn is_regular(&self) -> bool {
        fs::metadata(&self.path).map_or(true, |there| there.is_file())
    }

    /// Starts writing: beside the file, or into it where it is no regular one (`/dev/stdout`, a pipe).
    ///
    /// # Errors
    /// What the system says, with the file's name.
    pub fn begin(&self) -> Result<Part> {
        self.named(Part::beside(&self.path))
    }

    /// Starts writing under the file's own name, for others to follow. There must be no such file.
    ///
    /// # Errors
    /// What the system says, with the file's name.
    pub fn begin_in_place(&self) -> Result<Part> {
        self.named(Part::in_place(&self.path, OpenOptions::new().write(true).create_new(true)))
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// What the system says, with the file's name. What was there is still there then.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut part = self.begin()?;
        self.named(part.write_all(bytes))?;
        self.finish(part)
    }

    /// As [`write`](Self::write), and it is on the disk: a loss of power leaves the old file or the new one.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_durably(&self, bytes: &[u8]) -> Result<()> {
        let mut part = self.begin()?;
        self.named(part.write_all(bytes).and_then(|()| part.file.sync_all()))?;
        self.finish(part)
    }

    /// Gives what was written the file's name.
    ///
    /// # Errors
    /// What the system says, with the file's name. What was there is still there then.
    pub fn finish(&self, part: Part) -> Result<()> {
        self.named(part.finish())
    }

    fn named<T>(&self, result: io::Result<T>) -> Result<T> {
        result.with_context(|| format!("{} {}: it cannot be written", self.option, self.path.display()))
    }
}

/// A file that is being written. Dropped unfinished, it leaves nothing under its name.
#[derive(Debug)]
pub struct Part {
    file: File,
    /// Where the bytes are, and what they are to be called.
    rename: Option<(PathBuf, PathBuf)>,
}

impl Part {
    /// Beside `path`, under a name that nobody else has.
    pub fn beside(path: &Path) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let there = fs::metadata(path).ok();
        if there.as_ref().is_some_and(|there| !there.is_file()) || path.starts_with("/dev") {
            return Self::in_place(path, OpenOptions::new().write(true));
        }
        if there.as_ref().is_some_and(|there| there.permissions().readonly()) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is there, and read-only"));
        }
        // A link stays, and what it leads to is replaced.
        let target = if there.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        loop {
            let mut beside = std::ffi::OsString::from(".");
            beside.push(&name);
            beside.push(format!(".{}-{}.part", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
            let beside = target.with_file_name(beside);
            match OpenOptions::new().write(true).create_new(true).open(&beside) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(file) => {
                    let part = Self { file, rename: Some((beside, target)) };
                    if let Some(there) = there {
                        part.file.set_permissions(there.permissions())?;
                    }
                    return Ok(part);
                }
            }
        }
    }

    fn in_place(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        Ok(Self { file: options.open(path)?, rename: None })
    }

    /// Puts the whole file where it belongs.
    pub fn finish(mut self) -> io::Result<()> {
        let Some((beside, target)) = self.rename.clone() else { return Ok(()) };
        fs::rename(beside, target)?;
        self.rename = None;
        Ok(())
    }

    /// Whether it is written beside the file that it will replace.
    pub fn is_beside(&self) -> bool {
        self.rename.is_some()
    }

    /// Another handle to the same file.
    pub fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some((beside, _)) = self.rename.take() {
            // Whoever drops it unfinished has an error to report already.
            let _ = fs::remove_file(beside);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("listed").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_file_is_there_whole_or_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let output = OutputFile::new("--out", &path, &Inputs::default()).expect("no input");
        let mut part = output.begin().expect("begun");
        part.write_all(b"half").expect("written");
        assert!(!output.exists());
        drop(part);
        assert!(names(folder.path()).is_empty());
        output.write(b"first").expect("written");
        output.begin().and_then(|mut part| Ok(part.write_all(b"half")?)).expect("dropped");
        assert_eq!(
            (fs::read(&path).expect("there"), names(folder.path())),
            (b"first".to_vec(), vec!["out".to_owned()])
        );
        output.write(b"second").expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"second");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_stays_a_link_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("real"), "old").expect("written");
        fs::set_permissions(at("real"), fs::Permissions::from_mode(0o640)).expect("set");
        symlink("real", at("link")).expect("linked");
        OutputFile::new("--out", &at("link"), &Inputs::default())
            .and_then(|output| output.write(b"new"))
            .expect("written");
        assert!(fs::symlink_metadata(at("link")).expect("there").is_symlink());
        assert_eq!(fs::read(at("real")).expect("there"), b"new");
        assert_eq!(fs::metadata(at("real")).expect("there").permissions().mode() & 0o777, 0o640);
        fs::set_permissions(at("real"), fs::Permissions::from_mode(0o440)).expect("set");
        let refused = OutputFile::new("--out", &at("link"), &Inputs::default()).and_then(|output| output.write(b"x"));
        assert!(format!("{:#}", refused.expect_err("read-only")).contains("read-only"));
    }

    #[test]
    #[cfg(unix)]
    fn an_input_is_known_by_every_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("data.npy"), "data").expect("written");
        fs::hard_link(at("data.npy"), at("hard")).expect("linked");
        std::os::unix::fs::symlink("hard", at("soft")).expect("linked");
        let inputs = Inputs::new([at("data.npy"), at("none")]);
        for name in ["data.npy", "hard", "soft", "./soft"] {
            let error = OutputFile::new("--trace", &at(name), &inputs).expect_err("an input").to_string();
            assert!(error.contains("data.npy, which is read"), "{error}");
        }
        assert!(OutputFile::new("--trace", &at("other"), &inputs).is_ok());
        assert!(OutputFile::new("--trace", &at("none"), &inputs).is_ok());
    }
}

//! Where everything of `cargo xtask platforms` lies.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::target_dir;

/// A path in the folder that holds what was downloaded, built and logged.
pub fn at(path: &str) -> PathBuf {
    target_dir().join("platforms").join(path)
}

/// Makes something in a folder beside its own, and moves it there once it is whole, so that what was broken off is made anew. Does nothing
/// where it is there.
pub fn once(name: &str, make: impl FnOnce(&Path) -> Result<(), String>) -> Result<PathBuf, String> {
    let whole = at(name);
    if whole.is_dir() {
        return Ok(whole);
    }
    let part = at(&format!("{name}.part"));
    let told = |error: io::Error| format!("{}: {error}", part.display());
    if part.exists() {
        fs::remove_dir_all(&part).map_err(told)?;
    }
    fs::create_dir_all(&part).map_err(told)?;
    make(&part)?;
    fs::rename(&part, &whole).map_err(told)?;
    Ok(whole)
}

/// The files below a folder.
pub fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir() && !path.is_symlink());
    let found = files.into_iter().find(|path| path.file_name().is_some_and(|own| own == name));
    found.or_else(|| folders.iter().find_map(|folder| find(folder, name)))
}

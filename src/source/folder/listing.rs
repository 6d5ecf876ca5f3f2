//! One folder's entries, in the order of their names.

use std::fs::{self, DirEntry, FileType, Metadata};
use std::io::{self, Read};
use std::path::Path;

use super::paths::to_bytes;
use crate::source::decode::EXTENSIONS;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    /// A file, or a broken link that is named like an image: it is an image that cannot be read.
    Image,
    /// A file that is no image by its name, and may be one by its first bytes.
    PerhapsImage,
    OtherFile,
    BrokenLink,
    NoFile,
    Hidden,
}

/// A folder's entries: names side by side, so that a folder of a million files is listed in little memory.
#[derive(Debug, Default)]
pub(super) struct Listing {
    names: Vec<u8>,
    entries: Vec<(usize, usize, Kind)>,
    /// How many entries have names that are no Unicode, where names have to be.
    pub(super) unnamed: u64,
}

impl Listing {
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let mut listing = Self::default();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match to_bytes(&entry.file_name()) {
                Some(name) => listing.push(name, kind(&entry, name)),
                None => listing.unnamed += 1,
            }
        }
        let names = &listing.names;
        listing.entries.sort_unstable_by_key(|&(start, end, _)| &names[start..end]);
        Ok(listing)
    }

    fn push(&mut self, name: &[u8], kind: Kind) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.entries.push((start, self.names.len(), kind));
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], Kind)> {
        self.entries.iter().map(|&(start, end, kind)| (&self.names[start..end], kind))
    }
}

fn kind(entry: &DirEntry, name: &[u8]) -> Kind {
    if name.starts_with(b".") {
        return Kind::Hidden;
    }
    let extension = extension(name);
    let named_like_an_image = extension.as_deref().is_some_and(|extension| EXTENSIONS.contains(&extension));
    let of = |file: FileType| match file {
        file if file.is_dir() => Kind::Folder,
        file if !file.is_file() => Kind::NoFile,
        _ if named_like_an_image => Kind::Image,
        _ if extension.as_deref().is_none_or(|extension| PERHAPS_IMAGES.contains(&extension)) => Kind::PerhapsImage,
        _ => Kind::OtherFile,
    };
    match entry.file_type() {
        Ok(file) if !file.is_symlink() => of(file),
        // Asked of the system only where it was not told with the name.
        _ => match fs::metadata(entry.path()).as_ref().map(Metadata::file_type) {
            Ok(file) => of(file),
            Err(_) if named_like_an_image => Kind::Image,
            Err(_) => Kind::BrokenLink,
        },
    }
}

/// Extensions of pictures that are not read, and which files of the formats that are read get by mistake.
const PERHAPS_IMAGES: [&str; 14] =
    ["bmp", "dib", "gif", "tif", "tiff", "heic", "heif", "avif", "jp2", "jxl", "ico", "img", "image", "pic"];

/// A name's extension, in lower case.
pub(super) fn extension(name: &[u8]) -> Option<String> {
    let name = String::from_utf8_lossy(name);
    let (stem, extension) = name.rsplit_once('.')?;
    (!stem.is_empty() && !extension.is_empty()).then(|| extension.to_lowercase())
}

/// Whether a file starts as a JPEG, a PNG or a WebP image does.
pub(super) fn starts_as_image(path: &Path) -> io::Result<bool> {
    let mut start = [0; 12];
    let mut len = 0;
    let mut file = fs::File::open(path)?;
    while len < start.len() {
        match file.read(&mut start[len..])? {
            0 => break,
            more => len += more,
        }
    }
    let start = &start[..len];
    let webp = start.starts_with(b"RIFF") && start.get(8..12) == Some(b"WEBP");
    Ok(start.starts_with(b"\xff\xd8\xff") || start.starts_with(b"\x89PNG\r\n\x1a\n") || webp)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn entries_are_sorted_and_known_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["b.JPG", "a.jfif", "c.JPE", "d.bmp", "e", "f.txt", ".x.png", "g.webp", "h.", "tar.gz"] {
            fs::write(folder.path().join(name), "").expect("written");
        }
        fs::create_dir(folder.path().join("i.png")).expect("created");
        let listing = Listing::of(folder.path()).expect("listed");
        let found: Vec<_> = listing.entries().map(|(name, kind)| (String::from_utf8_lossy(name), kind)).collect();
        let expected = [
            (".x.png", Kind::Hidden),
            ("a.jfif", Kind::Image),
            ("b.JPG", Kind::Image),
            ("c.JPE", Kind::Image),
            ("d.bmp", Kind::PerhapsImage),
            ("e", Kind::PerhapsImage),
            ("f.txt", Kind::OtherFile),
            ("g.webp", Kind::Image),
            ("h.", Kind::PerhapsImage),
            ("i.png", Kind::Folder),
            ("tar.gz", Kind::OtherFile),
        ];
        assert_eq!(found, expected.map(|(name, kind)| (name.into(), kind)));
    }

    #[test]
    fn images_are_told_by_their_first_bytes() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let starts = |bytes: &[u8]| {
            fs::write(file.path(), bytes).expect("written");
            starts_as_image(file.path()).expect("read")
        };
        assert!(starts(b"\xff\xd8\xff\xe0") && starts(b"\x89PNG\r\n\x1a\n....") && starts(b"RIFF1234WEBPVP8 "));
        assert!(!starts(b"") && !starts(b"RIFF1234WAVE") && !starts(b"GIF89a") && !starts(b"\xff\xd8"));
    }
}

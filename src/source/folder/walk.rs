//! Finding the images of a folder and of the folders below it.

use std::io;
use std::path::Path;

use super::listing::{Kind, Listing, extension, starts_as_image};
use super::paths::{PathList, below, to_os};
use crate::source::left_out::Tally;
use crate::source::{FileIdentity, LeftOutReason};

/// Folders that file managers, archivers and file systems keep for themselves.
const SYSTEM: [&[u8]; 5] = [b"lost+found", b"@eaDir", b"__MACOSX", b"$RECYCLE.BIN", b"System Volume Information"];

/// A walk through a folder, in the order of paths.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) found: PathList,
    pub(super) left_out: Tally,
    /// The folders around the one that is looked into.
    around: Vec<FileIdentity>,
}

impl Walk {
    pub(super) fn new(root: &Path) -> Self {
        Self { found: PathList::new(root), left_out: Tally::default(), around: Vec::new() }
    }

    /// Looks into the root itself. Its sub-folders are passed to `sub_folder` with their names.
    ///
    /// # Errors
    /// The root cannot be listed.
    pub(super) fn root(&mut self, sub_folder: &mut dyn FnMut(&mut Self, &[u8])) -> io::Result<()> {
        let identity = FileIdentity::of(self.found.root())?;
        let listing = Listing::of(self.found.root())?;
        self.around.push(identity);
        self.entries(b"", &listing, sub_folder);
        Ok(())
    }

    /// Looks into a folder below the root.
    pub(super) fn folder(&mut self, path: &[u8]) {
        let full = self.full(path);
        let opened = FileIdentity::of(&full).and_then(|identity| {
            if self.around.contains(&identity) {
                return Ok(None);
            }
            Listing::of(&full).map(|listing| Some((identity, listing)))
        });
        match opened {
            Ok(Some((identity, listing))) => {
                self.around.push(identity);
                self.entries(path, &listing, &mut |walk, name| walk.folder(&below(path, name)));
                self.around.pop();
            }
            Ok(None) => self.left_out.add(LeftOutReason::LinkLoop, String::new(), 1, path),
            Err(error) => self.left_out.add(LeftOutReason::UnreadableFolder, error.kind().to_string(), 1, path),
        }
    }

    fn full(&self, path: &[u8]) -> std::path::PathBuf {
        self.found.root().join(to_os(path))
    }

    fn entries(&mut self, folder: &[u8], listing: &Listing, sub_folder: &mut dyn FnMut(&mut Self, &[u8])) {
        if listing.unnamed > 0 {
            self.left_out.add(LeftOutReason::Name, String::new(), listing.unnamed, folder);
        }
        let mut number = None;
        for (name, kind) in listing.entries() {
            match kind {
                Kind::Folder if SYSTEM.contains(&name) => self.leave_out(LeftOutReason::SystemFolder, folder, name),
                Kind::Folder => sub_folder(self, name),
                _ if self.is_image(kind, folder, name) => {
                    let number = *number.get_or_insert_with(|| self.found.add_folder(folder));
                    self.found.add(number, name);
                }
                _ => {}
            }
        }
    }

    /// Whether a file is an image; if not, it is counted.
    fn is_image(&mut self, kind: Kind, folder: &[u8], name: &[u8]) -> bool {
        let reason = match kind {
            Kind::Image => return true,
            Kind::PerhapsImage => match starts_as_image(&self.full(&below(folder, name))) {
                Ok(true) => return true,
                Ok(false) => LeftOutReason::NoImage,
                Err(_) => LeftOutReason::UnreadableFile,
            },
            Kind::OtherFile | Kind::Folder => LeftOutReason::NoImage,
            Kind::BrokenLink => LeftOutReason::BrokenLink,
            Kind::NoFile => LeftOutReason::NoFile,
            Kind::Hidden => LeftOutReason::Hidden,
        };
        self.leave_out(reason, folder, name);
        false
    }

    fn leave_out(&mut self, reason: LeftOutReason, folder: &[u8], name: &[u8]) {
        let kind = match reason {
            LeftOutReason::NoImage => {
                extension(name).map_or("extensionless".to_owned(), |extension| format!(".{extension}"))
            }
            LeftOutReason::SystemFolder => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        };
        self.left_out.add(reason, kind, 1, &below(folder, name));
    }
}

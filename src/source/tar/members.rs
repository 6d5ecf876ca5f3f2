//! The members of an archive by their headers alone: ustar, old tar, pax and GNU.

use std::io;

use ::tar::{EntryType, Header};

use super::extension::Extensions;
use super::fault::{Broken, Fault};
use super::window::Window;
use crate::source::record_file::RecordFile;

/// Everything in an archive starts at a multiple of this.
pub(super) const BLOCK: u64 = 512;
/// The most bytes of one extension header.
const MAX_EXTENSION: u64 = 1 << 20;

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    /// A hard or symbolic link.
    Link,
    /// A file of which only parts are stored.
    Sparse,
    Folder,
    /// A pipe, a device, a volume's label.
    Other,
}

/// A member of an archive.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: Vec<u8>,
    pub(super) kind: Kind,
    /// Where the first of its headers is.
    pub(super) header: u64,
    /// Where its content is.
    pub(super) data: u64,
    pub(super) size: u64,
}

/// How an archive ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By blocks of zeros.
    Marked,
    /// Without them.
    Unmarked,
    /// By blocks of zeros, and something after them.
    Followed,
}

/// The members of an archive, one after the other.
pub(super) struct Members<'a> {
    window: Window<'a>,
    at: u64,
}

impl<'a> Members<'a> {
    /// All members from the one whose first header is at `offset`.
    pub(super) fn starting_at(file: &'a RecordFile, offset: u64) -> Self {
        Self { window: Window::new(file), at: offset }
    }

    /// The next member; none at the archive's end.
    pub(super) fn next(&mut self) -> Result<Option<Member>, Fault> {
        let first = self.at;
        let mut extensions = Extensions::default();
        loop {
            let offset = self.at;
            let at = |broken| Fault { offset, broken };
            let Some(header) = self.header().map_err(at)? else {
                return if offset == first { Ok(None) } else { Err(at(Broken::NoMember)) };
            };
            let size = header.entry_size().map_err(|_| at(Broken::Size))?;
            match header.entry_type() {
                EntryType::GNULongName => extensions.add_long_name(self.extension(size).map_err(at)?),
                EntryType::XHeader => {
                    let records = self.extension(size).map_err(at)?;
                    extensions.add_pax(&records).map_err(at)?;
                }
                // Of no concern: where links lead to, and what all members have in common.
                EntryType::GNULongLink | EntryType::XGlobalHeader => drop(self.extension(size).map_err(at)?),
                _ => return self.member(first, &header, size, extensions).map(Some).map_err(at),
            }
        }
    }

    /// A member's content, of which there are at most [`MAX_EXTENSION`] bytes: for labels.
    pub(super) fn content(&mut self, member: &Member) -> io::Result<&[u8]> {
        self.window.get(member.data, member.size.min(MAX_EXTENSION) as usize)
    }

    /// The header here, with its checksum checked; none at the archive's end.
    fn header(&mut self) -> Result<Option<Header>, Broken> {
        let block = self.window.get(self.at, BLOCK as usize)?;
        if block.iter().all(|&byte| byte == 0) {
            return Ok(None);
        }
        let whole = <&[u8; BLOCK as usize]>::try_from(block).map_err(|_| Broken::HeaderCut)?;
        let header = Header::from_byte_slice(whole).clone();
        let told = header.cksum().map_err(|_| Broken::Checksum)?;
        if told != checksum(whole, u32::from) && told != checksum(whole, |byte| byte.cast_signed() as u32) {
            return Err(Broken::Checksum);
        }
        Ok(Some(header))
    }

    /// The content of the extension header here. Leaves it behind.
    fn extension(&mut self, size: u64) -> Result<Vec<u8>, Broken> {
        if size > MAX_EXTENSION {
            return Err(Broken::LongExtension(size));
        }
        let content = self.window.get(self.at + BLOCK, size as usize)?.to_vec();
        if (content.len() as u64) < size {
            return Err(Broken::HeaderCut);
        }
        self.at += BLOCK + size.next_multiple_of(BLOCK);
        Ok(content)
    }

    /// The member whose own header is here. Leaves it behind.
    fn member(&mut self, first: u64, header: &Header, size: u64, mut extensions: Extensions) -> Result<Member, Broken> {
        let name = extensions.name().unwrap_or_else(|| header.path_bytes().into_owned());
        let kind = match header.entry_type() {
            EntryType::GNUSparse => Kind::Sparse,
            EntryType::Regular | EntryType::Continuous if extensions.sparse => Kind::Sparse,
            // So did tar before it knew folders.
            EntryType::Regular if name.ends_with(b"/") => Kind::Folder,
            EntryType::Regular | EntryType::Continuous => Kind::File,
            EntryType::Link | EntryType::Symlink => Kind::Link,
            EntryType::Directory => Kind::Folder,
            _ => Kind::Other,
        };
        // What has no content may have a size all the same.
        let stored = match header.entry_type() {
            EntryType::Link | EntryType::Symlink | EntryType::Directory => 0,
            EntryType::Char | EntryType::Block | EntryType::Fifo => 0,
            _ => extensions.size.unwrap_or(size),
        };
        let data = self.at + BLOCK + self.sparse_blocks(header)? * BLOCK;
        let end = data.checked_add(stored).filter(|&end| end <= self.window.file.len());
        let Some(end) = end else {
            let name = String::from_utf8_lossy(&name).into_owned();
            return Err(Broken::MemberCut { name, size: stored });
        };
        self.at = end.next_multiple_of(BLOCK);
        Ok(Member { name, kind, header: first, data, size: stored })
    }

    /// How many blocks with more of a sparse file's map follow its header.
    fn sparse_blocks(&mut self, header: &Header) -> Result<u64, Broken> {
        const MORE_FOLLOW: usize = 504;
        let mut more = header.as_gnu().is_some_and(|gnu| header.entry_type().is_gnu_sparse() && gnu.is_extended());
        let mut blocks = 0;
        while more {
            blocks += 1;
            let block = self.window.get(self.at + blocks * BLOCK, BLOCK as usize)?;
            more = *block.get(MORE_FOLLOW).ok_or(Broken::HeaderCut)? != 0;
        }
        Ok(blocks)
    }

    /// How the archive ends, once there is no further member. Reads what follows the end.
    pub(super) fn end(&mut self) -> io::Result<End> {
        const AT_ONCE: usize = 1 << 20;
        let len = self.window.file.len();
        if len.saturating_sub(self.at) < BLOCK {
            return Ok(End::Unmarked);
        }
        while self.at < len {
            let block = self.window.get(self.at, AT_ONCE)?;
            if block.iter().any(|&byte| byte != 0) {
                return Ok(End::Followed);
            }
            self.at += block.len() as u64;
        }
        Ok(End::Marked)
    }
}

/// The sum of a header's bytes, of which those of the checksum itself count as spaces. Old writers added up signed bytes.
fn checksum(header: &[u8; BLOCK as usize], number: impl Fn(u8) -> u32) -> u32 {
    const SPACES: u32 = 8 * 32;
    let sum = |bytes: &[u8]| bytes.iter().fold(0u32, |sum, &byte| sum.wrapping_add(number(byte)));
    SPACES.wrapping_add(sum(&header[..148])).wrapping_add(sum(&header[156..]))
}

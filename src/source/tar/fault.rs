//! What can be wrong with an archive, and where.

use std::io;

/// What is wrong with an archive.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("no tar header (its checksum is wrong)")]
    Checksum,
    #[error("a tar header whose size is no number")]
    Size,
    #[error("pax records that are none")]
    Pax,
    #[error("an extension header of {0} bytes")]
    LongExtension(u64),
    #[error("an extension header, and no member that it describes")]
    NoMember,
    #[error("the archive ends within this header")]
    HeaderCut,
    #[error("the archive ends within this member (`{name}`, {size} bytes)")]
    MemberCut { name: String, size: u64 },
    #[error("a member beyond 2 TiB")]
    TooFar,
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// Where it is wrong.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) offset: u64,
    pub(super) broken: Broken,
}

//! Locking memory, and the limit on it: C functions.

#![allow(unsafe_code)]

/// `RLIMIT_MEMLOCK` in bytes: `Some(None)` where there is no limit, `None` where the system knows none.
#[cfg(unix)]
pub fn limit() -> Option<Option<u64>> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes the two numbers of the structure that it is given.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    #[allow(clippy::useless_conversion)] // The type differs between systems.
    let bytes = || u64::try_from(limit.rlim_cur).ok();
    (asked == 0).then(|| if limit.rlim_cur == libc::RLIM_INFINITY { None } else { bytes() })
}

/// Whether this much memory can be page-locked. It is unlocked and given back at once.
#[cfg(unix)]
pub fn locks(bytes: usize) -> bool {
    let (null, protection) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: a new anonymous mapping at an address of the system's choice concerns nobody.
    let address = unsafe { libc::mmap(null, bytes, protection, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: the range is the mapping just made, which only this function knows.
    let locked = unsafe { libc::mlock(address, bytes) } == 0;
    // SAFETY: as above, and nothing points into it.
    unsafe { libc::munmap(address, bytes) };
    locked
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub fn limit() -> Option<Option<u64>> {
    None
}

/// Nothing is known.
#[cfg(not(unix))]
pub fn locks(_: usize) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_page_can_be_locked_and_all_of_memory_cannot() {
        assert!(limit().is_some());
        assert!(locks(4096));
        assert!(!locks(1 << 50));
    }
}

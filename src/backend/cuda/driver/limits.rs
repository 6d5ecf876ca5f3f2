//! The process's own limit on locked memory.

/// What `ulimit -l` says, in bytes; `None` where there is no limit, or none that is known.
#[cfg(unix)]
pub(in super::super) fn memlock() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes the two numbers of the structure that it is given.
    let asked = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
    if asked != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    #[allow(clippy::useless_conversion)] // The type differs between systems.
    u64::try_from(limit.rlim_cur).ok()
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub(in super::super) fn memlock() -> Option<u64> {
    None
}

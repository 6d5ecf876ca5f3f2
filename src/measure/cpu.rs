//! CPU time that this process has used.

#![allow(unsafe_code)] // getrusage and GetProcessTimes are C functions

use std::time::Duration;

/// User and system time that all threads of this process have used so far; `None` where the platform does not say.
#[cfg(unix)]
#[must_use]
pub fn process_cpu() -> Option<Duration> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the pointer is valid for writing one `rusage`, which is all that getrusage does with it.
    let status = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    if status != 0 {
        return None;
    }
    // SAFETY: getrusage reported success, so it has filled the struct.
    let usage = unsafe { usage.assume_init() };
    duration(&usage.ru_utime)?.checked_add(duration(&usage.ru_stime)?)
}

#[cfg(unix)]
fn duration(time: &libc::timeval) -> Option<Duration> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let micros = u64::try_from(time.tv_usec).ok()?;
    Duration::from_secs(seconds).checked_add(Duration::from_micros(micros))
}

/// User and system time that all threads of this process have used so far; `None` where the platform does not say.
#[cfg(windows)]
#[must_use]
pub fn process_cpu() -> Option<Duration> {
    use windows_sys::Win32::Foundation::FILETIME;
    use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};
    const NONE: FILETIME = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    let (mut created, mut ended, mut kernel, mut user) = (NONE, NONE, NONE, NONE);
    // SAFETY: this is a constant that stands for the process, and needs no closing.
    let process = unsafe { GetCurrentProcess() };
    // SAFETY: each pointer is valid for writing one FILETIME.
    let told = unsafe { GetProcessTimes(process, &raw mut created, &raw mut ended, &raw mut kernel, &raw mut user) };
    // In steps of 100 ns.
    let span = |time: FILETIME| {
        let steps = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        Duration::from_nanos(steps.saturating_mul(100))
    };
    (told != 0).then(|| span(kernel) + span(user))
}

/// User and system time that all threads of this process have used so far; `None` where the platform does not say.
#[cfg(not(any(unix, windows)))]
#[must_use]
pub fn process_cpu() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(any(unix, windows))]
    fn cpu_time_only_ever_grows() {
        let before = process_cpu();
        let sum = (0..1_000_000u64).fold(0u64, |sum, n| std::hint::black_box(sum.wrapping_add(n)));
        std::hint::black_box(sum);
        assert!(before.is_some() && process_cpu() >= before);
    }
}

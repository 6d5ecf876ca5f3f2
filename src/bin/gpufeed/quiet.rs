//! Keeps drivers' libraries from writing errors of their own where a user looks for ours.

/// Mesa's GL looks for a Wayland display, and libwayland prints `error: XDG_RUNTIME_DIR is invalid or not set` where there
/// is no such variable: over ssh, in containers, under cron. With a folder that does not exist it finds no display and
/// says nothing.
///
/// Called first of all in `main`: child processes inherit it.
#[cfg(all(unix, not(target_os = "macos")))]
#[allow(unsafe_code)]
pub fn set_runtime_dir() {
    const NAME: &str = "XDG_RUNTIME_DIR";
    let usable = std::env::var_os(NAME).is_some_and(|value| value.as_encoded_bytes().starts_with(b"/"));
    if !usable {
        // SAFETY: no other thread exists yet that could read the environment.
        unsafe { std::env::set_var(NAME, "/nonexistent/gpufeed") };
    }
}

/// There is nothing to be quiet about.
#[cfg(not(all(unix, not(target_os = "macos"))))]
pub fn set_runtime_dir() {}

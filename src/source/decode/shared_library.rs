//! Libraries of the system, loaded at run time and for as long as the process lives.

#![allow(unsafe_code)]

use libloading::Library;

/// Loads the first of these that is there, or says why the best of them is not.
///
/// # Safety
/// None of them runs code of consequence when it is loaded.
pub(super) unsafe fn load(names: &[&str]) -> Result<&'static Library, String> {
    let mut reason = None;
    for name in names {
        // SAFETY: the caller's promise.
        match unsafe { Library::new(*name) } {
            Ok(library) => return Ok(Box::leak(Box::new(library))),
            Err(error) => _ = reason.get_or_insert(error.to_string()),
        }
    }
    Err(reason.unwrap_or_default())
}

/// A function of a library.
///
/// # Safety
/// It is of type `F`.
pub(super) unsafe fn symbol<F: Copy>(library: &'static Library, name: &str) -> Result<F, String> {
    // SAFETY: the caller's promise, and the library stays loaded.
    unsafe { library.get::<F>(name) }.map(|symbol| *symbol).map_err(|error| error.to_string())
}

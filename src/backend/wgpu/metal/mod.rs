//! What wgpu does not offer on Metal: host memory that stays mapped, memory of the program's own, and a second queue.

#[cfg(target_vendor = "apple")]
mod raw;

use super::native::Native;

/// What Metal offers; nothing on other systems.
pub(super) fn native() -> Option<&'static dyn Native> {
    #[cfg(target_vendor = "apple")]
    return Some(&raw::Metal);
    #[cfg(not(target_vendor = "apple"))]
    None
}

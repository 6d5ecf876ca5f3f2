//! What wgpu does not offer on DX12: host memory that stays mapped, memory of the program's own, and a queue for copies.

#[cfg(windows)]
mod raw;

use super::native::Native;

/// What DX12 offers; nothing on other systems.
pub(super) fn native() -> Option<&'static dyn Native> {
    #[cfg(windows)]
    return Some(&raw::Dx12);
    #[cfg(not(windows))]
    None
}

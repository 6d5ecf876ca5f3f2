//! The whole pages around bytes of host memory. Pure arithmetic on addresses.

use std::ffi::c_void;
use std::ops::Range;

use super::ImportError;
use crate::memory::StableHostMemory;

/// The whole pages that hold a range of memory: their address and bytes. `align` is what the device asks for.
///
/// # Errors
/// [`ImportError::Refused`] where there are no such bytes, or what the device asks for may be another's.
pub(in crate::backend::wgpu) fn whole_pages(
    memory: &dyn StableHostMemory,
    range: &Range<usize>,
    align: usize,
) -> Result<(*mut c_void, u64), ImportError> {
    let no = |reason: &str| ImportError::Refused(reason.to_owned());
    if range.start >= range.end || range.end > memory.len() {
        return Err(no("there are no such bytes"));
    }
    let base = memory.address().as_ptr();
    let [first, end] = [range.start, range.end].map(|offset| base.addr().checked_add(offset));
    let bytes = first.zip(end).map(|(first, end)| first..end).ok_or_else(|| no("it ends beyond the address space"))?;
    let whole = around(&bytes, align, memory.granule()).ok_or_else(|| {
        no("its address or size is not aligned as the driver needs it: load the data into a `HostArena`")
    })?;
    Ok((base.with_addr(whole.start).cast(), (whole.end - whole.start) as u64))
}

/// The addresses to import for the bytes at `bytes`, from one multiple of `align` to another: what a device asks of memory that it
/// imports. Of the memory, all that shares a block of `granule` bytes with it is mapped; both are powers of two.
///
/// `None` where what the device asks for goes beyond that: there may be nothing, or another's memory.
fn around(bytes: &Range<usize>, align: usize, granule: usize) -> Option<Range<usize>> {
    let start = bytes.start & !(align - 1);
    let end = bytes.end.checked_next_multiple_of(align)?;
    let exact = (start, end) == (bytes.start, bytes.end);
    (align <= granule || exact).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4 << 10;
    const LARGE: usize = 64 << 10;

    #[test]
    fn bytes_are_widened_to_what_the_device_asks_for_where_that_is_mapped() {
        assert_eq!(around(&(PAGE + 1..3 * PAGE - 1), PAGE, PAGE), Some(PAGE..3 * PAGE));
        // An arena begins and ends at multiples of 64 KiB, so any part of it can be widened to them.
        assert_eq!(around(&(LARGE + PAGE..LARGE + PAGE + 5), LARGE, LARGE), Some(LARGE..2 * LARGE));
        assert_eq!(around(&(PAGE..PAGE + 5), 16 << 10, LARGE), Some(0..16 << 10));
    }

    #[test]
    fn what_may_not_be_mapped_is_not_imported() {
        assert_eq!(around(&(LARGE + PAGE..2 * LARGE), LARGE, PAGE), None);
        assert_eq!(around(&(LARGE..2 * LARGE), LARGE, PAGE), Some(LARGE..2 * LARGE), "nothing is added");
        assert_eq!(around(&(usize::MAX - 5..usize::MAX), PAGE, PAGE), None, "it ends beyond the address space");
    }
}

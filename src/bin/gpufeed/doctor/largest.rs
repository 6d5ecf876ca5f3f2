//! The largest size that something still works with, found by trying. Pure but for what tries.

/// Sizes closer than this are one.
const STEP: u64 = 4096;

/// The largest multiple of 4 KiB up to `most` for which `fits` holds, to a sixteenth of its size: doubled from 4 KiB until it fails or is
/// `most`, then halved in between. 0 where nothing fits.
pub fn largest(most: u64, mut fits: impl FnMut(u64) -> bool) -> u64 {
    let most = most / STEP * STEP;
    let (mut good, mut bad) = (0, None);
    let mut size = STEP;
    while bad.is_none() && good < most {
        let next = size.min(most);
        if fits(next) {
            good = next
        } else {
            bad = Some(next)
        }
        size = size.saturating_mul(2);
    }
    while let Some(above) = bad {
        let middle = (good + (above - good) / 2) / STEP * STEP;
        if middle <= good || above - good <= good / 16 {
            break;
        }
        if fits(middle) { good = middle } else { bad = Some(middle) }
    }
    good
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_size_is_found_to_a_sixteenth_and_never_beyond_the_most() {
        for (limit, most) in
            [(65_536, 1 << 30), (1_000_000, 1 << 30), (123, 1 << 30), (u64::MAX, 1 << 20), (5 << 20, 5 << 20)]
        {
            let mut tried = 0;
            let found = largest(most, |size| {
                tried += 1;
                assert!(size <= most && size % STEP == 0);
                size <= limit
            });
            let whole = limit.min(most) / STEP * STEP;
            assert!(found <= whole && found >= whole - whole / 15, "{limit}: {found}");
            assert!(tried < 30);
        }
        assert_eq!(largest(1 << 30, |size| size <= 65_536), 65_536, "a power of two is found exactly");
    }
}

//! Batches that do not fit one binding.

use super::VECTOR_ALIGN;

/// The smallest number of items of `item_bytes` whose bytes are a multiple of `align` (a power of two).
fn samples_aligned(item_bytes: usize, align: usize) -> usize {
    let shared = 1usize << item_bytes.trailing_zeros().min(align.trailing_zeros());
    align.checked_div(shared).unwrap_or(1)
}

/// Splits `samples` into runs that each fit a binding: no item of `item_bytes` bytes (one entry a bound buffer) exceeds
/// `limit` within a run, and every run starts at a multiple of `align` bytes in each buffer.
///
/// Returns samples a run, or `None` where not even the smallest aligned run fits.
#[must_use]
pub fn samples_per_binding(samples: usize, item_bytes: &[usize], limit: usize, align: usize) -> Option<usize> {
    let unit = item_bytes.iter().map(|&bytes| samples_aligned(bytes, align)).max().unwrap_or(1);
    let usable = limit.checked_sub(VECTOR_ALIGN)?;
    let most = item_bytes.iter().map(|&bytes| usable.checked_div(bytes).unwrap_or(usize::MAX)).min()?;
    if samples <= most {
        return Some(samples);
    }
    let rounded = most.checked_div(unit)?.checked_mul(unit)?;
    (rounded > 0).then_some(rounded)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn bindings_are_split_at_aligned_samples_or_refused() {
        assert_eq!(samples_per_binding(8, &[100, 400], 1 << 20, 256), Some(8));
        // 1581 is odd, so only every 256th sample is 256-aligned.
        assert_eq!(samples_per_binding(1000, &[1581, 6324], 2_000_000, 256), Some(256));
        assert_eq!(samples_per_binding(1000, &[1581, 6324], 1_000_000, 256), None);
        let samples = samples_per_binding(256, &[150_528, 602_112], 128 << 20, 32).unwrap();
        assert!(samples < 256 && samples * 602_112 <= 128 << 20);
    }
}

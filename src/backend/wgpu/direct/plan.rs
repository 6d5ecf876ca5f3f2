//! How memory is cut into imports and windows, and where a sample is found. Pure arithmetic.
//!
//! A device limits what one import may hold, and what one binding of it may reach. Neighbouring cuts share the bytes of one
//! sample, so that a sample that starts in one ends there, wherever samples start.

use std::ops::Range;

/// Imports of a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Imports {
    sample: usize,
    step: usize,
    len: usize,
}

impl Imports {
    /// Cuts `len` bytes into imports of at most `most` bytes, the alignment on both sides included. `None` where not even one
    /// sample fits. A sample is not empty, and no larger than the memory.
    pub(super) fn new(len: usize, sample: usize, most: u64, align: usize) -> Option<Self> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        // An address that is not aligned costs one unit at each end.
        let usable = most.checked_sub(align.checked_mul(2)?)?;
        let step = if len <= usable { len } else { usable.checked_sub(sample)? / align * align };
        (step > 0 && sample > 0 && sample <= len).then_some(Self { sample, step, len })
    }

    /// Bytes of the memory, by import.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Self { sample, step, len } = *self;
        let count = (len - sample) / step + 1;
        (0..count).map(move |at| at * step..((at + 1).saturating_mul(step).saturating_add(sample)).min(len))
    }

    /// The import that holds the sample at this byte, and the sample's first byte within it; `None` where there is no sample.
    pub(super) fn find(&self, offset: u64) -> Option<(usize, u64)> {
        let offset = usize::try_from(offset).ok().filter(|&offset| offset <= self.len - self.sample)?;
        let import = offset / self.step;
        Some((import, (offset - import * self.step) as u64))
    }
}

/// Windows onto one import's buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    step: u64,
    limit: u64,
    count: usize,
    size: u64,
}

impl Windows {
    /// Windows of at most `limit` bytes that start at multiples of `align`. Samples of `sample` bytes start before the byte
    /// `end` of the buffer's `size`. `None` where a sample and an alignment do not fit.
    pub(super) fn new(size: u64, end: u64, sample: u64, limit: u64, align: u64) -> Option<Self> {
        let limit = limit - limit % align.max(4);
        let step = if size <= limit { size } else { limit.checked_sub(sample)? / align * align };
        let count = usize::try_from(end.saturating_sub(1).checked_div(step)? + 1).ok()?;
        Some(Self { step, limit, count, size })
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of the buffer, by window.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u64>> + use<> {
        let Self { step, limit, count, size } = *self;
        (0..count as u64).map(move |at| at * step..(at * step).saturating_add(limit).min(size))
    }

    /// The window of the sample that starts at this byte of the buffer, and its first byte within the window.
    pub(super) fn find(&self, byte: u64) -> (usize, u32) {
        // A window is addressed in 32 bits, as the caller's limit says.
        let window = byte / self.step;
        (window as usize, (byte - window * self.step) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_lies_within_one_import_and_one_window() {
        let imports = [
            (10_000, 1581, 9_500, 256),
            (10_000, 1581, 1 << 20, 4096),
            (4096, 4096, 12_288, 4096),
            (9000, 1, 1000, 64),
        ];
        for (len, sample, most, align) in imports {
            let plan = Imports::new(len, sample, most, align).expect("it fits");
            let ranges: Vec<_> = plan.ranges().collect();
            assert!(ranges.iter().all(|range| range.len() + 2 * align <= most as usize && range.end <= len));
            for offset in 0..=len - sample {
                let (import, within) = plan.find(offset as u64).expect("a sample");
                assert_eq!(ranges[import].start + within as usize, offset);
                assert!(offset + sample <= ranges[import].end);
            }
            assert_eq!((plan.find((len - sample + 1) as u64), plan.find(u64::MAX)), (None, None));
        }
    }

    #[test]
    fn windows_start_aligned_and_hold_whole_samples() {
        for (size, lead, sample, limit) in
            [(65_536, 100, 1581, 8192), (65_536, 0, 100, 1 << 20), (12_288, 4095, 1, 4097)]
        {
            let windows = Windows::new(size, size - lead - sample + 1, sample, limit, 256).expect("it fits");
            let ranges: Vec<_> = windows.ranges().collect();
            assert!(ranges.iter().all(|range| range.start % 256 == 0 && range.end - range.start <= limit));
            assert_eq!(ranges.len(), windows.count());
            for byte in lead..=size - lead - sample {
                let (window, within) = windows.find(byte);
                assert_eq!(ranges[window].start + u64::from(within), byte);
                assert!(byte + sample <= ranges[window].end, "{byte} {:?}", ranges[window]);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_told() {
        assert_eq!(Imports::new(10_000, 1581, 2000, 256), None);
        assert_eq!(Imports::new(100, 101, 1 << 20, 256), None);
        assert_eq!(Windows::new(65_536, 60_000, 4000, 4096, 256), None);
    }
}

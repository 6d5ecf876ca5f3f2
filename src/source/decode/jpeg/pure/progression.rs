//! How much of each coefficient the scans of a progressive image have brought.

use crate::source::decode::jpeg::header::ScanHeader;
use crate::source::decode::jpeg::refusal::Refusal;

/// Coefficients of low frequency that libjpeg estimates from the neighbouring blocks where they are not known in full.
const ESTIMATED: usize = 10;

/// For each component and coefficient, the bits still left out; `None` before its first scan.
pub(super) struct Progression {
    left_out: [[Option<u8>; 64]; 4],
}

impl Default for Progression {
    fn default() -> Self {
        Self { left_out: [[None; 64]; 4] }
    }
}

impl Progression {
    /// Notes a scan. Returns how many coefficients it brings out of order, which libjpeg tolerates.
    ///
    /// # Errors
    /// Parameters that no scan can have.
    pub(super) fn note(&mut self, scan: &ScanHeader) -> Result<u64, Refusal> {
        let &ScanHeader { first, last, high, low, .. } = scan;
        let dc = first == 0;
        let possible = if dc { last == 0 } else { first <= last && last < 64 && scan.components().len() == 1 };
        if !possible || low > 13 || (high != 0 && high != low + 1) {
            return Err(Refusal::Progression);
        }
        let mut wrong = 0;
        for part in scan.components() {
            let left_out = &mut self.left_out[part.index];
            wrong += u64::from(!dc && left_out[0].is_none());
            for coefficient in &mut left_out[usize::from(first)..=usize::from(last)] {
                wrong += u64::from(coefficient.unwrap_or(0) != high);
                *coefficient = Some(low);
            }
        }
        Ok(wrong)
    }

    /// # Errors
    /// Where libjpeg would estimate what the scans of the first `count` components have not brought.
    pub(super) fn check(&self, count: usize) -> Result<(), Refusal> {
        let complete = |left_out: &[Option<u8>; 64]| left_out[..ESTIMATED].iter().all(|&left_out| left_out == Some(0));
        if self.left_out[..count].iter().all(complete) { Ok(()) } else { Err(Refusal::IncompleteProgression) }
    }
}

//! What became of a platform.

use std::time::Duration;

/// Counts of tests; what was skipped is among what passed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Tally {
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// What became of a platform.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Its tests ran on this driver.
    Ran { driver: String, tally: Tally },
    /// Nothing ran: it was compiled by this compiler.
    Compiled { compiler: String },
    /// It could not be built, or its tests did not end as tests do.
    Failed { reason: String },
    /// This machine has no way to it.
    NotReachable { reason: String },
}

impl Outcome {
    /// Whether this is no reason for the whole to fail. What cannot be reached is none.
    pub fn is_good(&self) -> bool {
        match self {
            Self::Ran { tally, .. } => tally.failed == 0 && tally.passed > tally.skipped,
            Self::Compiled { .. } | Self::NotReachable { .. } => true,
            Self::Failed { .. } => false,
        }
    }
}

/// A line of the table.
#[derive(Debug)]
pub struct Line {
    pub key: &'static str,
    pub outcome: Outcome,
    pub took: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_on_which_nothing_ran_is_no_success() {
        let ran =
            |passed, failed, skipped| Outcome::Ran { driver: "a".to_owned(), tally: Tally { passed, failed, skipped } };
        assert!(ran(5, 0, 4).is_good());
        assert!(!ran(5, 1, 0).is_good() && !ran(4, 0, 4).is_good() && !ran(0, 0, 0).is_good());
        assert!(Outcome::NotReachable { reason: "a".to_owned() }.is_good());
        assert!(!Outcome::Failed { reason: "a".to_owned() }.is_good());
    }
}

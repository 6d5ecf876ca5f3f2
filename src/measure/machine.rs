//! The machine and the moment that a report is of.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::host_memory::physical_memory;
use super::processor;

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Host {
    /// The operating system.
    pub os: String,
    /// The processor's architecture.
    pub arch: String,
    /// Threads that can run at once.
    pub cores: usize,
    /// The processor's name, where known.
    pub cpu: Option<String>,
    /// Bytes of memory, where known.
    pub memory: Option<u64>,
}

impl Host {
    /// This machine.
    #[must_use]
    pub fn here() -> Self {
        Self {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            cpu: processor::name(),
            memory: physical_memory(),
        }
    }
}

/// A moment as RFC 3339 in UTC, to the second.
#[must_use]
pub fn rfc_3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil_from_days(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of a day counted from 1970-01-01.
///
/// Counts in eras of 400 years that begin on a 1 March, so that leap days come last in their year (Howard Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms").
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // March is 0 and months alternate 31 and 30 days, but for July and August, and December and January.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year_of_era + era * 400 + next_year, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn days_become_dates_over_leap_years_and_centuries() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_782, (2024, 2, 29)),
            (20_088, (2024, 12, 31)),
            (20_089, (2025, 1, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(civil_from_days(day), date, "day {day}");
        }
    }

    #[test]
    fn every_day_is_the_one_after_the_last() {
        let mut before = civil_from_days(0);
        for day in 1..200_000 {
            let date = civil_from_days(day);
            let next = date == (before.0, before.1, before.2 + 1)
                || date == (before.0, before.1 + 1, 1)
                || date == (before.0 + 1, 1, 1);
            assert!(next, "{before:?} then {date:?}");
            before = date;
        }
    }

    #[test]
    fn a_moment_is_written_to_the_second() {
        let time = UNIX_EPOCH + Duration::from_millis(1_709_251_199_900);
        assert_eq!(rfc_3339(time), "2024-02-29T23:59:59Z");
    }
}

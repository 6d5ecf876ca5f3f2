//! Which times can be believed. Pure arithmetic: what physics forbids is no measurement.
//!
//! Some drivers have timestamps and return nonsense: zeros, marks that do not enclose the work between them (a software GL marks when a
//! command was recorded), or ticks of another length than they claim. A device that reports its work as finished too early
//! makes a host's clock wrong in the same way.

use std::time::Duration;

/// No memory moves more: the first-level caches of an H200 together move some 33 TB/s, its memory 4.8.
const MAX_BYTES_PER_SECOND: f64 = 100e12;
/// No batch takes longer.
const MAX_SECONDS: f64 = 60.0;
/// What part of the host's time for long work alone on the device the device itself must have measured: the rest is the way through
/// the driver.
const MIN_SHARE: f64 = 0.1;
/// How much the two clocks may differ over the same time, as a part of it and in seconds.
const MAX_DRIFT: f64 = 1e-3;
const SLACK: f64 = 1e-3;

/// Bytes a second, if anything can move so many.
pub(super) fn rate(bytes: u64, seconds: f64) -> Option<f64> {
    let rate = bytes as f64 / seconds;
    (seconds > 0.0 && rate <= MAX_BYTES_PER_SECOND).then_some(rate)
}

/// Whether `seconds`, of a clock that counts in steps of `tick` seconds, are enough to move `bytes` bytes once.
pub(super) fn suffices(seconds: f64, tick: f64, bytes: u64) -> bool {
    (seconds + tick) * MAX_BYTES_PER_SECOND >= bytes as f64
}

/// The marks in seconds of the device's clock, if these can be times.
pub(super) fn seconds<const N: usize>(marks: [u64; N], tick: f64) -> Option<[f64; N]> {
    let (first, last) = (*marks.first()?, *marks.last()?);
    let took = last.checked_sub(first)? as f64 * tick;
    let sane = first != 0 && marks.is_sorted() && took > 0.0 && took < MAX_SECONDS;
    sane.then(|| marks.map(|mark| mark as f64 * tick))
}

/// Whether the device's clock and the host's agree on work that ran alone and took long: the host's time has the device's in it, and is
/// not many times longer.
pub(super) fn agree(device: f64, host: Duration) -> bool {
    let host = host.as_secs_f64();
    (host * MIN_SHARE..=host * (1.0 + MAX_DRIFT) + SLACK).contains(&device)
}

/// Whether a device's marks lie where the host saw the work begin and end, every one by the same distance between the two clocks.
#[derive(Debug, Default)]
pub(super) struct ClockWindow {
    /// The distances that are possible after all marks so far, and the host's time of the last.
    offsets: Option<(f64, f64, f64)>,
    /// The end of the last work.
    end: f64,
}

impl ClockWindow {
    /// Work that the device says it did in `device`, and that the host sent and saw finished at the ends of `host`; both in seconds of
    /// their own clocks. False where these clocks cannot be of the same time.
    pub(super) fn admits(&mut self, device: (f64, f64), host: (f64, f64)) -> bool {
        // One queue does one thing after the other.
        let ordered = device.0 >= self.end;
        self.end = device.1;
        let (mut low, mut high) = (host.0 - device.0 - SLACK, host.1 - device.1 + SLACK);
        if let Some((least, most, at)) = self.offsets {
            let drift = (host.1 - at).max(0.0) * MAX_DRIFT;
            (low, high) = (low.max(least - drift), high.min(most + drift));
        }
        self.offsets = Some((low, high, host.1));
        ordered && low <= high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_are_no_times_are_none() {
        assert_eq!(seconds([1024, 3072, 4096], 1.0 / 1024.0), Some([1.0, 3.0, 4.0]));
        assert_eq!(seconds([1024, 1024, 4096], 1.0 / 1024.0), Some([1.0, 1.0, 4.0]));
        for marks in [[0, 0, 0], [0, 5, 9], [7, 7, 7], [7, 6, 9], [7, 9, 8], [1, 2, u64::MAX]] {
            assert_eq!(seconds(marks, 1e-3), None);
        }
    }

    #[test]
    fn a_rate_that_no_memory_has_is_none() {
        assert_eq!(rate(1 << 30, 0.5), Some((1u64 << 31) as f64));
        // What a software GL was seen to claim: 2,028,169 GB/s.
        assert_eq!(rate(2_028_169_000_000_000, 1.0), None);
        for seconds in [0.0, -1.0, f64::NAN] {
            assert_eq!(rate(1, seconds), None);
        }
        assert!(suffices(1e-3, 1e-9, 38 << 20) && !suffices(1e-9, 1e-9, 38 << 20));
        assert!(suffices(0.0, 1e-6, 1 << 20), "a coarse clock may see a small copy take no time");
    }

    #[test]
    fn clocks_agree_where_the_device_worked_most_of_the_hosts_time() {
        let host = Duration::from_millis(10);
        assert!(agree(9e-3, host) && agree(4e-3, host) && agree(10e-3, host));
        assert!(!agree(1e-6, host), "marks that enclose nothing");
        assert!(!agree(0.5, host), "ticks of another length");
    }

    #[test]
    fn marks_lie_between_the_hosts_sending_and_seeing_by_one_distance() {
        let mut window = ClockWindow::default();
        let work = |at: f64| ((500.0 + at, 500.001 + at), (at - 1e-4, at + 2e-3));
        for at in [0.0, 0.01, 1.0, 100.0] {
            let (device, host) = work(at);
            assert!(window.admits(device, host), "at {at}");
        }
        // The device's clock stood still, or ran, for a second.
        for wrong in [-1.0, 1.0] {
            let mut window = ClockWindow::default();
            let ((first, first_host), (second, host)) = (work(0.0), work(10.0));
            assert!(window.admits(first, first_host));
            assert!(!window.admits((second.0 + wrong, second.1 + wrong), host), "by {wrong}");
        }
        let mut window = ClockWindow::default();
        assert!(window.admits((5.0, 5.001), (0.0, 0.01)) && !window.admits((5.0005, 5.0015), (0.0005, 0.02)));
        let mut window = ClockWindow::default();
        assert!(!window.admits((5.0, 6.0), (0.0, 0.5)), "longer than the host waited");
    }
}

//! How much work takes how long on a device that has nothing else to do.

use std::time::{Duration, Instant};

use crate::backend::Consumer;
use crate::error::DeviceError;

/// Work of a known length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::measure) struct Work {
    pub(in crate::measure) iterations: u32,
    /// Seconds that it takes alone, as measured.
    pub(in crate::measure) alone_s: f64,
}

/// This close is close enough: what is reported is what was measured, and not what was asked for.
const CLOSE: f64 = 0.01;
/// A device whose work takes this much longer than wanted has a low clock: those of idle cards are a fraction of their best.
const AWAKE: f64 = 0.1;
/// A device of which so many times more iterations take no longer, after so many, has stopped counting them.
const STOPPED: (f64, u32) = (4.0, 1 << 14);
/// Turns of the search, at most: a clock that rises takes one more, a noisy machine all of them.
const TURNS: usize = 10;
/// Iterations that every device does within a millisecond.
const FIRST: u32 = 64;
/// Launches of one burst, and how long they take together about.
const LAUNCHES: (f64, f64) = (1.0, 64.0);
const LENGTH: Duration = Duration::from_millis(5);

/// Finds the work that takes about `wanted` alone on the consumer's device, and looks for it no longer than `most`. A kernel's start is
/// part of it. A machine that does much else makes it less exact, and what it takes is measured in any case.
///
/// # Errors
/// The device's error; [`DeviceError::Refused`] where no number of iterations is so long.
pub(in crate::measure) fn calibrate<C: Consumer>(
    consumer: &mut C,
    wanted: Duration,
    most: Duration,
) -> Result<Work, DeviceError> {
    let start = Instant::now();
    let mut search = Search::new(wanted.as_secs_f64());
    let mut next = Some(FIRST);
    for _ in 0..TURNS {
        let Some(iterations) = next else { break };
        // What else the machine does only ever makes it longer.
        let measured = bursts::<C, 3>(consumer, iterations, wanted)?[0];
        next = search.next(iterations, measured);
        if start.elapsed() > most {
            break;
        }
    }
    let (iterations, at_best) = search.closest;
    if !search.stopped {
        return Ok(Work { iterations, alone_s: time_alone(consumer, iterations, wanted)? });
    }
    let message = format!(
        "no work on it takes {} us alone: {iterations} iterations take {:.0} us, and more take no longer",
        wanted.as_micros(),
        at_best * 1e6
    );
    Err(DeviceError::Refused { message })
}

/// Seconds that the work takes alone: the median of some bursts.
///
/// # Errors
/// The device's error.
pub(in crate::measure) fn time_alone<C: Consumer>(
    consumer: &mut C,
    iterations: u32,
    about: Duration,
) -> Result<f64, DeviceError> {
    Ok(bursts::<C, 5>(consumer, iterations, about)?[2])
}

/// Works until that takes about as long as was wanted when it was calibrated, since the clock of a device that had little to do is low
/// for a while. False where it still takes longer after `most`: on a device that got slower for good, or is not alone.
///
/// # Errors
/// The device's error.
pub(in crate::measure) fn wake<C: Consumer>(
    consumer: &mut C,
    work: Work,
    wanted: Duration,
    most: Duration,
) -> Result<bool, DeviceError> {
    let start = Instant::now();
    loop {
        if bursts::<C, 1>(consumer, work.iterations, wanted)?[0] <= wanted.as_secs_f64() * (1.0 + AWAKE) {
            return Ok(true);
        }
        if start.elapsed() >= most {
            return Ok(false);
        }
    }
}

/// Seconds of one launch in bursts of launches that follow each other, the shortest first.
fn bursts<C: Consumer, const N: usize>(
    consumer: &mut C,
    iterations: u32,
    about: Duration,
) -> Result<[f64; N], DeviceError> {
    consumer.set_iterations(iterations)?;
    let mut run = |launches: u32| {
        let start = Instant::now();
        (0..launches).try_for_each(|_| consumer.work())?;
        consumer.finish()?;
        Ok::<_, DeviceError>(start.elapsed().as_secs_f64() / f64::from(launches))
    };
    let expected = run(1)?.clamp(about.as_secs_f64() / 4.0, about.as_secs_f64() * 4.0).max(1e-6);
    #[allow(clippy::cast_sign_loss)] // Within the bounds of launches.
    let launches = (LENGTH.as_secs_f64() / expected).clamp(LAUNCHES.0, LAUNCHES.1) as u32;
    let mut measured = [0.0; N];
    for seconds in &mut measured {
        *seconds = run(launches)?;
    }
    measured.sort_by(f64::total_cmp);
    Ok(measured)
}

/// Looks for the number of iterations that takes a wanted time, on a line through what was measured last. Pure.
struct Search {
    wanted: f64,
    last: Option<(u32, f64)>,
    /// What came nearest, with its time.
    closest: (u32, f64),
    /// Whether more iterations take no longer, and still too short.
    stopped: bool,
}

impl Search {
    fn new(wanted: f64) -> Self {
        Self { wanted, last: None, closest: (FIRST, 0.0), stopped: false }
    }

    /// What to try after so many iterations took `measured` seconds; `None` if that is it.
    fn next(&mut self, iterations: u32, measured: f64) -> Option<u32> {
        // Of times by their ratio: twice as long is as far off as half as long.
        let off = |seconds: f64| (seconds / self.wanted).ln().abs();
        if off(measured) < off(self.closest.1) {
            self.closest = (iterations, measured);
        }
        if (measured / self.wanted - 1.0).abs() < CLOSE {
            return None;
        }
        let before = self.last.replace((iterations, measured)).unwrap_or((0, 0.0));
        let (from, at) = (f64::from(iterations), measured.max(1e-9));
        let more = from >= STOPPED.0 * f64::from(before.0) && before.0 >= STOPPED.1;
        self.stopped = more && measured < 1.5 * before.1 && measured < self.wanted / 2.0;
        if self.stopped {
            return None;
        }
        // A start costs time, and iterations cost it evenly.
        let slope = (at - before.1) / (from - f64::from(before.0));
        let on_the_line = from + (self.wanted - at) / slope;
        let proportional = from * self.wanted / at;
        let next = if slope > 0.0 && on_the_line.is_finite() { on_the_line } else { proportional };
        #[allow(clippy::cast_sign_loss)] // From one up.
        let next = next.clamp((from / 16.0).max(1.0), (from * 16.0).min(f64::from(u32::MAX))) as u32;
        (next != iterations).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Backend;
    use crate::backend::host::HostBackend;

    const ENOUGH: Duration = Duration::from_secs(60);

    /// The turns it takes and the iterations it ends with, where a launch of `n` iterations takes `time(n)`.
    fn search(wanted: f64, time: impl Fn(u32) -> f64) -> (usize, u32) {
        let (mut search, mut iterations) = (Search::new(wanted), FIRST);
        let mut turns = 0;
        while let Some(next) = search.next(iterations, time(iterations)) {
            (iterations, turns) = (next, turns + 1);
            assert!(turns < 100, "it does not end");
        }
        (turns, iterations)
    }

    #[test]
    fn work_is_found_on_the_line_that_starts_and_iterations_make() {
        // 7 us a start and 20 ns an iteration.
        let (turns, iterations) = search(1e-3, |n| 7e-6 + 20e-9 * f64::from(n));
        assert!((49_000..=50_300).contains(&iterations) && turns <= 5, "{iterations} after {turns}");
        let (turns, iterations) = search(50e-6, |n| 7e-6 + 20e-9 * f64::from(n));
        assert!((2_100..=2_200).contains(&iterations) && turns <= 4, "{iterations} after {turns}");
    }

    #[test]
    fn one_measurement_that_is_far_off_is_not_the_last_word() {
        // The fourth is of a machine that did something else.
        let mut search = Search::new(1e-3);
        let (mut iterations, mut turns) = (FIRST, 0);
        for _ in 0..TURNS {
            turns += 1;
            let disturbed = if turns == 4 { 30.0 } else { 1.0 };
            let measured = disturbed * (7e-6 + 20e-9 * f64::from(iterations));
            let Some(next) = search.next(iterations, measured) else { break };
            iterations = next;
        }
        let (found, _) = search.closest;
        assert!((49_000..=50_300).contains(&found), "{found} after {turns}");
    }

    #[test]
    fn a_device_that_stops_counting_has_no_such_work() {
        // As where a driver ends a loop after some turns.
        struct Stops(u32);
        impl crate::backend::sealed::Sealed for Stops {}
        impl Consumer for Stops {
            type Tensor = crate::backend::host::HostTensor;
            fn set_iterations(&mut self, iterations: u32) -> Result<(), DeviceError> {
                self.0 = iterations.min(100);
                Ok(())
            }
            fn work(&mut self) -> Result<(), DeviceError> {
                std::thread::sleep(Duration::from_micros(self.0.into()));
                Ok(())
            }
            fn consume(&mut self, _: &Self::Tensor, _: &crate::TensorDesc) -> Result<(), DeviceError> {
                self.work()
            }
            fn finish(&mut self) -> Result<(), DeviceError> {
                Ok(())
            }
            fn seen(&mut self) -> Result<crate::backend::Seen, DeviceError> {
                Ok(crate::backend::Seen::default())
            }
        }
        let refused = calibrate(&mut Stops(0), Duration::from_secs(1), ENOUGH).expect_err("it stops");
        assert!(refused.to_string().contains("no work on it takes 1000000 us alone"), "{refused}");
    }

    /// Of which each launch takes some milliseconds, the first ones more.
    struct Drowsy {
        launches: u32,
        slow: u32,
    }

    impl crate::backend::sealed::Sealed for Drowsy {}
    impl Consumer for Drowsy {
        type Tensor = crate::backend::host::HostTensor;
        fn set_iterations(&mut self, _: u32) -> Result<(), DeviceError> {
            Ok(())
        }
        fn work(&mut self) -> Result<(), DeviceError> {
            std::thread::sleep(Duration::from_millis(if self.launches < self.slow { 400 } else { 1 }));
            self.launches += 1;
            Ok(())
        }
        fn consume(&mut self, _: &Self::Tensor, _: &crate::TensorDesc) -> Result<(), DeviceError> {
            self.work()
        }
        fn finish(&mut self) -> Result<(), DeviceError> {
            Ok(())
        }
        fn seen(&mut self) -> Result<crate::backend::Seen, DeviceError> {
            Ok(crate::backend::Seen::default())
        }
    }

    #[test]
    fn a_device_that_was_idle_is_worked_awake_and_a_slow_one_is_not_waited_for() {
        // Slow enough that a machine which does much else does not matter.
        let (wanted, work) = (Duration::from_millis(200), Work { iterations: 1, alone_s: 0.2 });
        let mut drowsy = Drowsy { launches: 0, slow: 4 };
        assert_eq!(wake(&mut drowsy, work, wanted, ENOUGH), Ok(true));
        assert!(drowsy.launches > 4, "{}", drowsy.launches);
        let mut slow = Drowsy { launches: 0, slow: u32::MAX };
        assert_eq!(wake(&mut slow, work, wanted, Duration::ZERO), Ok(false));
    }

    #[test]
    fn the_host_finds_work_that_is_about_as_long_as_asked() {
        let mut consumer = HostBackend::new().consumer().expect("the host computes");
        let work =
            calibrate(&mut consumer, Duration::from_millis(1), ENOUGH).expect("the CPU does as much as is asked");
        // Not how long, which a busy machine decides: that it is the measured time of a real number of iterations.
        assert!(work.iterations > 1 && work.alone_s > 0.0, "{work:?}");
    }
}

//! Evidence as a sentence.

use super::bottleneck::Bottleneck;
use super::evidence::Evidence;

impl Evidence {
    /// The figures that speak for a stage.
    pub(super) fn describe(&self, bottleneck: Bottleneck) -> String {
        let &Self { workers, source, device, either, consumer, submission, other, next, .. } = self;
        match bottleneck {
            Bottleneck::Startup => "most of the time went into getting under way".to_owned(),
            Bottleneck::Source => format!(
                "the workers were reading {} of the time, and the device had nothing to do for {}",
                percent(workers),
                percent(source)
            ),
            Bottleneck::Slots => format!(
                "the device waited for the source {} of the time, the source for the device {}, and both worked {}",
                percent(source),
                percent(device),
                percent(either)
            ),
            Bottleneck::Copy | Bottleneck::Kernel | Bottleneck::Device => self.describe_device(),
            Bottleneck::Submission => format!(
                "the loader's own thread was busy {} of the time, {} of that taking memory and submitting",
                percent(submission + other),
                percent(submission / (submission + other).max(f64::MIN_POSITIVE))
            ),
            Bottleneck::Outputs => format!(
                "the loader waited for an output {} of the time, the user for a batch {}, and the device worked {}",
                percent(consumer),
                percent(next),
                percent(self.occupancy.in_flight.min(1.0))
            ),
            Bottleneck::Consumer => format!(
                "a batch was ready and no output free {} of the time, and the user waited only {}",
                percent(consumer),
                percent(next)
            ),
        }
    }

    fn describe_device(&self) -> String {
        let &Self { device, either, other, .. } = self;
        let clock = self.copy.zip(self.kernel).map(|(copy, kernel)| {
            format!("; by its own clock it copied {}, and its kernels ran {}", percent(copy), percent(kernel))
        });
        let busy = percent(device + either + if device + either < other { other } else { 0.0 });
        let idle = if device < 0.005 {
            String::new()
        } else {
            format!(", and the workers had nothing to do for {}", percent(device))
        };
        format!("batches were on the device {busy} of the time{idle}{}", clock.unwrap_or_default())
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

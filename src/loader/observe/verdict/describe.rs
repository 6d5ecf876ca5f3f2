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
            Bottleneck::NotHidden => self.describe_turns(),
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
                "a batch was ready and no output free {} of the time, and the user waited {}{}",
                percent(consumer),
                percent(next),
                self.compute
                    .map(|compute| format!("; its work kept the device {}", percent(compute)))
                    .unwrap_or_default()
            ),
        }
    }

    fn describe_turns(&self) -> String {
        let own = self.copy.zip(self.kernel).map(|(copy, kernel)| percent((copy + kernel).min(1.0)));
        let own = own.map(|own| format!("the device copied and computed for the loader {own} of the time")).into_iter();
        let compute = self.compute.map(|compute| format!("the user's own work alone takes {}", percent(compute)));
        let hidden = self.hidden.map(|hidden| format!("{} of the shorter cost no time of its own", percent(hidden)));
        let waited = format!("batches were on their way {}", percent(self.device + self.either));
        own.chain(compute).chain(hidden).chain([waited]).collect::<Vec<_>>().join(", ")
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

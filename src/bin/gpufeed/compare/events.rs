//! What happens, as it happens: a bar on a terminal, else a line each.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use gpufeed::AdapterInfo;
use gpufeed::measure::Event;
use gpufeed::measure::report::Settings;
use indicatif::{ProgressBar, ProgressStyle};

use super::table::flags;
use crate::{output, units};

/// Follows one device.
pub struct EventPrinter {
    bar: Option<ProgressBar>,
    device: String,
    flags: String,
}

impl EventPrinter {
    pub fn new(adapter: &AdapterInfo, configurations: usize, debug_build: bool) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(configurations as u64);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        let flags = flags(adapter.is_software(), debug_build);
        let flags = if flags.is_empty() { flags } else { format!(" ({flags})") };
        Self { bar, device: adapter.id.clone(), flags }
    }

    pub fn event(&self, event: &Event) {
        let text = format!("{}: {}", self.device, self.describe(event));
        match &self.bar {
            Some(bar) if lasting(event) => bar.println(text),
            Some(bar) => bar.set_message(text),
            None if matches!(event, Event::Verifying { .. }) => {}
            None => output::note(text),
        }
    }

    fn describe(&self, event: &Event) -> String {
        match event {
            Event::Calibrated { compute_us, alone_us } => {
                format!(
                    "a consumer of {compute_us} µs: its work takes {} µs alone{}",
                    units::digits(*alone_us),
                    self.flags
                )
            }
            Event::Verifying { settings } => format!("{}: verifying", name(settings)),
            Event::Verified { settings, verified } => format!(
                "{}: verified, {} samples in {}, {}",
                name(settings),
                verified.samples,
                units::count(verified.batches, "batch", "batches"),
                units::count(verified.tensors, "whole tensor", "whole tensors")
            ),
            Event::Unsupported { settings, reason } => format!("{}: not available: {reason}", settings.strategy),
            Event::Failed { settings, message } => format!("{}: failed: {message}", name(settings)),
            Event::Timed { settings, round, of, samples_s, gb_s } => format!(
                "{}: round {round} of {of}: {} samples/s, {} GB/s{}",
                name(settings),
                units::digits(*samples_s),
                units::digits(*gb_s),
                self.flags
            ),
            other => format!("{other:?}"),
        }
    }
}

/// Whether it should stay on the screen.
fn lasting(event: &Event) -> bool {
    !matches!(event, Event::Verifying { .. } | Event::Timed { .. })
}

fn name(settings: &Settings) -> String {
    let Settings { strategy, batch_size, workers, slots, compute_us, hand_over, .. } = settings;
    let used = if settings.is_idle() { String::new() } else { format!(", compute {compute_us} µs, {hand_over}") };
    format!("{strategy} (batch {batch_size}, {workers} workers, {slots} slots{used})")
}

impl Drop for EventPrinter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

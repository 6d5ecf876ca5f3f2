//! The progress bar on standard error.

use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::units;

const TEMPLATE: &str = "{wide_bar} {pos}/{len} {prefix}  {msg}  {eta} left";

/// A bar of samples, with the rate so far. Hidden where standard error is no terminal.
pub struct SampleBar {
    bar: ProgressBar,
    noun: &'static str,
    sample_bytes: u64,
    start: Instant,
}

impl SampleBar {
    pub fn new(samples: u64, noun: &'static str, sample_bytes: u64) -> Self {
        let bar = ProgressBar::new(samples);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style);
        }
        bar.set_prefix(noun);
        Self { bar, noun, sample_bytes, start: Instant::now() }
    }

    pub fn add(&self, samples: u64) {
        self.bar.inc(samples);
        // Saves making the text where nobody sees it.
        if !self.bar.is_hidden() {
            self.bar.set_message(self.rate());
        }
    }

    fn rate(&self) -> String {
        let rate = self.bar.position() as f64 / self.start.elapsed().as_secs_f64();
        let gb = rate * self.sample_bytes as f64 / 1e9;
        format!("{} {}/s, {} GB/s", units::digits(rate), self.noun, units::digits(gb))
    }
}

impl Drop for SampleBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

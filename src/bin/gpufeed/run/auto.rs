//! `--strategy auto` and `--workers auto`: what is measured before the run.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use gpufeed::measure::Trial;
use gpufeed::{AnyBackend, AnyLoader, AutoOptions, LoaderOptions, OpenError, Source, Strategy, Tuned};
use serde::Serialize;

const AUTO: &str = "auto";

/// Something given, or left to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrAuto<T> {
    Auto,
    Given(T),
}

impl<T> OrAuto<T> {
    pub fn given(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Given(value) => Some(value),
        }
    }
}

impl FromStr for OrAuto<NonZeroUsize> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            AUTO => Ok(Self::Auto),
            number => number.parse().map(Self::Given).map_err(|_| "expected a number from 1, or auto".to_owned()),
        }
    }
}

/// A parser of strategies that takes `auto` as well, and lists them all in the help.
pub fn strategy_or_auto() -> impl TypedValueParser<Value = OrAuto<Strategy>> {
    let auto = PossibleValue::new(AUTO).help("measured before the run, in less than two seconds; the report says why");
    let named = Strategy::ALL.iter().map(|s| PossibleValue::new(s.key()).help(s.describe()));
    PossibleValuesParser::new(std::iter::once(auto).chain(named)).try_map(|name| match name.as_str() {
        AUTO => Ok(OrAuto::Auto),
        name => name.parse().map(OrAuto::Given),
    })
}

/// What is left to be measured, if anything.
#[derive(Clone, Debug)]
pub struct Auto {
    pub strategy: bool,
    pub workers: bool,
    pub cache: Option<PathBuf>,
    /// What the application will compute for each batch.
    pub compute: Duration,
}

impl Auto {
    /// Opens a loader, with what was measured to be best if that was asked for.
    pub fn open(
        &self,
        device: &AnyBackend,
        source: &Arc<dyn Source>,
        options: LoaderOptions,
    ) -> Result<(AnyLoader, Option<Tuned>), OpenError> {
        if !self.strategy && !self.workers {
            return Ok((device.loader(Arc::clone(source), options)?, None));
        }
        let default = options.strategy.unwrap_or_else(|| device.default_strategy());
        let auto = AutoOptions {
            strategy: (!self.strategy).then_some(default),
            workers: (!self.workers).then_some(options.workers),
            cache: self.cache.clone(),
            compute: self.compute,
            ..AutoOptions::default()
        };
        let tuned = device.tune(source, options, &auto)?;
        Ok((device.loader(Arc::clone(source), tuned.options.clone())?, Some(tuned)))
    }
}

/// What a report has of it.
#[derive(Debug, Serialize)]
pub struct AutoReport {
    pub why: String,
    from_cache: bool,
    /// Whether a batch of what was chosen was compared with the source.
    checked: bool,
    took_s: f64,
    /// What the consumer of the trials computed for each batch.
    compute_us: u64,
    trials: Vec<Trial>,
}

impl AutoReport {
    pub fn new(tuned: &Tuned) -> Self {
        let Tuned { why, from_cache, checked, took, compute, trials, .. } = tuned;
        Self {
            why: why.clone(),
            from_cache: *from_cache,
            checked: *checked,
            took_s: took.as_secs_f64(),
            compute_us: u64::try_from(compute.as_micros()).unwrap_or(u64::MAX),
            trials: trials.clone(),
        }
    }
}

//! What a check finds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How things stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// As it should be.
    Ok,
    /// It could not be found out.
    Unknown,
    /// It costs something that most can live with.
    Note,
    /// It stands between this machine and the speed of the link.
    Wrong,
}

impl State {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "?",
            Self::Note => "note",
            Self::Wrong => "WRONG",
        }
    }
}

/// What one check finds on this machine or on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The check's key.
    pub check: String,
    /// The device's id, where it is about one.
    pub device: Option<String>,
    pub state: State,
    /// What is, with its numbers.
    pub what: String,
    /// What it costs, where that is known.
    pub cost: Option<String>,
    /// How to mend it.
    pub mend: Option<String>,
    /// The numbers by name; bytes, counts, or decimal GB/s and samples/s as the name says.
    pub figures: BTreeMap<String, f64>,
}

impl Finding {
    pub fn new(check: &str, state: State, what: impl Into<String>) -> Self {
        let (check, what) = (check.to_owned(), what.into());
        Self { check, device: None, state, what, cost: None, mend: None, figures: BTreeMap::new() }
    }

    pub fn on(mut self, device: &str) -> Self {
        self.device = Some(device.to_owned());
        self
    }

    pub fn cost(mut self, cost: impl Into<String>) -> Self {
        self.cost = Some(cost.into());
        self
    }

    pub fn mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = Some(mend.into());
        self
    }

    pub fn figure(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.to_owned(), value);
        self
    }
}

//! Figures by their keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The figures of a configuration or of a round, by the keys of the [columns](super::COLUMNS).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<String, Option<f64>>);

impl Figures {
    /// A figure; `None` where it was not measured.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<f64> {
        self.0.get(key).copied().flatten()
    }
}

impl FromIterator<(&'static str, Option<f64>)> for Figures {
    fn from_iter<I: IntoIterator<Item = (&'static str, Option<f64>)>>(figures: I) -> Self {
        Self(figures.into_iter().map(|(key, figure)| (key.to_owned(), figure)).collect())
    }
}

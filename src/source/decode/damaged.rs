//! Damaged images that were delivered nevertheless.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::jpeg::Damage;

/// So many are remembered by name.
const MAX_NAMED: usize = 32;

/// The images that were damaged inside and delivered as far as they could be decoded. Reading one again counts again.
#[derive(Debug, Default)]
pub struct DamagedImages {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: u64,
    named: Vec<DamagedImage>,
}

/// A damaged image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedImage {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub damage: String,
}

impl DamagedImages {
    pub(super) fn add(&self, path: &Path, damage: &Damage) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count += 1;
        if state.named.iter().any(|named| named.path == path) {
            return;
        }
        let damage = damage.to_string();
        if state.named.len() < MAX_NAMED {
            log::warn!("{}: damaged, decoded as far as possible: {damage}", path.display());
            state.named.push(DamagedImage { path: path.into(), damage });
        }
    }

    /// How many times a damaged image was delivered.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// The first of them, each once, in the order they were read.
    #[must_use]
    pub fn named(&self) -> Vec<DamagedImage> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).named.clone()
    }
}

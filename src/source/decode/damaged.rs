//! Damaged images that were delivered nevertheless.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use super::Origin;
use super::jpeg::Damage;
use crate::source::shown::shown_member;

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
    /// The file, or the archive that it is in.
    pub path: PathBuf,
    /// Its name in the archive, if it is in one.
    pub member: Option<String>,
    /// What is wrong with it.
    pub damage: String,
}

impl DamagedImages {
    pub(super) fn add(&self, Origin { path, member }: Origin, damage: &Damage) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.count += 1;
        if state.named.iter().any(|named| named.path == path && named.member == member) {
            return;
        }
        let damage = damage.to_string();
        if state.named.len() < MAX_NAMED {
            log::warn!("{}: damaged, decoded as far as possible: {damage}", shown_member(&path, member.as_deref()));
            state.named.push(DamagedImage { path, member, damage });
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

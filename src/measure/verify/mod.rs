//! Checking what a loader delivers, batch by batch.

mod check;
mod oracle;
mod run;

pub(super) use check::Checker;
pub(super) use run::{Checked, Extent, check_timed, verify};

//! What there is to choose from.

use crate::backend::Strategy;

/// A strategy with a number of workers.
pub(super) type Candidate = (Strategy, usize);

/// What there is to choose from.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    /// The default first, those that read the source's memory last: preparing large memory takes long.
    pub(super) strategies: Vec<Strategy>,
    /// Whether the number of workers is open.
    pub(super) workers: bool,
    pub(super) cores: usize,
}

/// Whether a candidate is still in the running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CandidateStatus {
    Running,
    /// Clearly slower than another.
    Slower,
    /// Too few batches came in its time.
    TooSlow,
    /// It cannot run, or delivers errors; why.
    Failed(String),
}

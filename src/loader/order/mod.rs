//! Which samples are in which batch: computed from a few numbers, so that any place in it can be gone to.

pub(super) mod permutation;
pub(super) mod resume;
pub(super) mod sampler;
pub(super) mod share;
pub(super) mod subset;

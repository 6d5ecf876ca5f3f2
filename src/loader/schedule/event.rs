//! What the schedule is told, and what it says.

/// An epoch that is wanted: batches `first` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::loader) struct EpochPlan {
    /// Tells it apart from others; later ones have larger numbers.
    pub(in crate::loader) id: u64,
    pub(in crate::loader) first: u64,
    pub(in crate::loader) end: u64,
}

/// What bounds the batches that are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::loader) enum Shape {
    /// Workers fill slots.
    Staged { slots: usize, unordered: bool },
    /// The device reads the source: at most `depth` batches are in flight.
    Direct { depth: usize },
}

/// A batch of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::loader) struct BatchId {
    pub(in crate::loader) epoch: u64,
    pub(in crate::loader) number: u64,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::loader) enum Event {
    /// An epoch is wanted; whatever is left of others is given up.
    Start(EpochPlan),
    /// An epoch is wanted after the one under way.
    Follow(EpochPlan),
    /// Nothing more is to be begun; what is begun is wanted.
    WindDown,
    /// Nothing is wanted any more.
    Stop,
    /// A slot's last region has ended.
    SlotEnded { slot: usize },
    /// An output came back.
    OutputReturned,
    /// The device was asked: so many submissions have not finished, and slots may be free.
    Polled { in_flight: usize },
    /// The device is lost. If a batch was being submitted, it is lost with it.
    Lost,
    /// `Begin` took this slot.
    Begun { slot: usize },
    /// `Begin` found no free slot.
    NoSlot,
    /// `Begin` failed: an error takes the batch's place.
    BeginFailed,
    /// `Submit` has put the batch on its way.
    Submitted,
    /// `Submit` or `Fail` found no free output.
    NoOutput,
    /// `Submit` or `Fail` has delivered an error, or nothing, in place of the batch; its slot is free.
    Unsent,
    /// As `Unsent`, with an error that ends the epoch.
    EpochFailed,
    /// Any other action was performed.
    Done,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::loader) enum Action {
    /// Take a slot and have it filled.
    Begin(BatchId),
    /// Submit and deliver a batch that is ready; it has a slot if it was filled.
    Submit { batch: BatchId, slot: Option<usize> },
    /// Deliver why a batch could not be begun.
    Fail(BatchId),
    /// Ask the workers to give a slot up.
    Cancel { slot: usize },
    /// Give back a slot that has ended and is not wanted.
    Discard { slot: usize },
    /// Report that the device is lost, instead of this batch.
    ReportLoss { batch: u64 },
}

/// What has to happen before there is anything to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::loader) enum Lack {
    /// A batch is ready: an output must come back.
    Output,
    /// A slot must be filled.
    Fill,
    /// The device must finish something, so that the next batch can begin.
    Device,
    /// A slot must be filled, or the device must finish something.
    Either,
    /// Nothing is left to begin; the device works on the last batches.
    Drain,
    /// Nothing is under way.
    Epoch,
}

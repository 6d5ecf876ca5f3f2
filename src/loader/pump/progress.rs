//! Where the pump is in its epoch, and how epochs and losses begin and end.

use std::sync::Arc;
use std::time::Instant;

use super::super::assembly::Assembly;
use super::super::observe::metrics::BatchTimestamps;
use super::super::window::Window;
use super::super::worker::Job;
use super::{Begin, Pump};
use crate::backend::{Lane, SubmissionId};
use crate::error::{DeviceError, LoadError, Stage};
use crate::layout::BatchLayout;
use crate::staging::Fill;

/// A batch between `begin` and `submit`.
pub(super) enum Begun {
    Filling { fill: Fill, at: Instant, handed_out: Instant, ended: Option<Instant> },
    Failed(DeviceError),
}

/// Where the pump is in its epoch.
pub(in crate::loader) struct Progress {
    pub(super) assemblies: Vec<Arc<Assembly>>,
    pub(super) window: Window<Begun>,
    /// The epoch under way.
    pub(super) epoch: Option<Begin>,
    pub(super) next_epoch: Option<Begin>,
    pub(super) discarding: bool,
    pub(super) starved_since: Option<Instant>,
    pub(super) lost: Option<DeviceError>,
    pub(super) lost_told: bool,
    pub(super) lost_at: u64,
    pub(super) in_flight: Vec<(SubmissionId, BatchTimestamps)>,
    pub(super) finished: Vec<SubmissionId>,
    /// Regions between being cut and being handed out.
    pub(super) cut: Vec<Job>,
}

impl Progress {
    /// For batches of at most `samples` samples.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`].
    pub(in crate::loader) fn new(
        layout: &BatchLayout,
        slots: usize,
        samples: usize,
        unordered: bool,
    ) -> Result<Self, DeviceError> {
        let assembly = |_| Ok(Arc::new(Assembly::new(layout, samples)?));
        Ok(Self {
            assemblies: (0..slots).map(assembly).collect::<Result<_, DeviceError>>()?,
            window: Window::new(slots, unordered),
            epoch: None,
            next_epoch: None,
            discarding: false,
            starved_since: None,
            lost: None,
            lost_told: false,
            lost_at: 0,
            in_flight: Vec::with_capacity(slots),
            finished: Vec::with_capacity(slots),
            cut: Vec::new(),
        })
    }

    pub(super) fn generation(&self) -> u64 {
        self.epoch.as_ref().map_or(0, |epoch| epoch.generation)
    }

    pub(super) fn slot_ended(&mut self, slot: usize, now: Instant) {
        if let Some(Begun::Filling { ended, .. }) = self.window.ready(slot) {
            *ended = Some(now);
        }
    }
}

impl<L: Lane> Pump<L> {
    pub(super) fn start_next_epoch(&mut self) {
        if !self.progress.window.is_empty() {
            return;
        }
        if let Some(epoch) = self.progress.next_epoch.take() {
            self.progress.window.restart(epoch.first, epoch.sampler.batches());
            let sampler = &epoch.sampler;
            self.bad_limit.restart(sampler.samples(), sampler.samples_before(epoch.first), epoch.bad);
            self.progress.epoch = Some(epoch);
            self.progress.discarding = false;
            self.progress.lost_told = false;
            self.progress.lost_at = 0;
            self.progress.starved_since = None;
        }
    }

    /// Gives up the epoch: no new batches, and what is being filled will not be sent.
    pub(super) fn discard(&mut self) {
        self.progress.discarding = true;
        self.progress.window.stop();
        self.progress.assemblies.iter().for_each(|assembly| assembly.cancel());
    }

    /// The device is gone: nothing more is begun, and the user is told once an epoch.
    pub(super) fn lose(&mut self, error: DeviceError) {
        self.progress.lost_at = self.progress.window.front();
        self.discard();
        self.progress.discarding = false;
        self.progress.lost.get_or_insert(error);
        self.outputs.lose();
    }

    pub(super) fn tell_loss(&mut self) {
        let progress = &self.progress;
        let (Some(error), false, Some(_)) = (&progress.lost, progress.lost_told, &progress.epoch) else { return };
        if progress.discarding {
            return;
        }
        let source = error.clone();
        self.progress.lost_told = true;
        let batch = self.progress.lost_at;
        self.tell(LoadError::Device { batch, stage: Stage::Device, source });
    }
}

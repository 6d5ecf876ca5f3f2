//! The one thread that talks to the device: it takes slots, hands them to the workers, submits them in order and
//! delivers the tensors.
//!
//! It blocks in three ways, so that whoever waits for it is always woken: on its inbox when nothing is in flight; on its inbox
//! with a short timeout when the device may finish something that nobody reports; and on the device when a free slot is
//! all it lacks.

mod direct;
mod ending;
mod fill;
mod observe;
mod progress;
mod send;

pub(super) use direct::Direct;
pub(super) use observe::Observer;
pub(super) use progress::Progress;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bad::{BadSample, BadSampleLimit};
use super::host_fields::HostFields;
use super::observe::activity::Activity;
use super::observe::metrics::Metrics;
use super::order::sampler::Sampler;
use super::outputs::{Output, OutputPool};
use super::spin_wait;
use super::worker::Job;
use crate::backend::{Lane, MemoryUse, Wait};
use crate::error::{DeviceError, LoadError, PumpState, Stage};
use crate::layout::BatchLayout;

/// How often the device is asked while something else could also happen.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// What the pump is told.
pub(super) enum ToPump {
    /// Deliver an epoch; whatever is left of the one before is given up.
    Start(Begin),
    /// Give the epoch up.
    Stop,
    /// The last region of this slot has ended.
    SlotEnded(usize),
    /// An output came back while there was none.
    Wake,
    /// Run this on the pump's thread.
    Call(Box<dyn FnOnce() + Send>),
    /// Tell what memory the lane holds.
    Memory(flume::Sender<MemoryUse>),
    /// Begin no further batch of this epoch, and tell how many it has then; `None` if the device is lost.
    WindDown { generation: u64, reply: flume::Sender<Option<u64>> },
    /// Wait for the device; tell whether it was lost, and at which batch.
    Idle(flume::Sender<Result<(), (u64, DeviceError)>>),
    /// The user has taken a tensor for good: make another.
    Replace { indices: Vec<u64>, host: HostFields },
    /// Finish what is in flight and end.
    Shutdown { deadline: Instant },
}

/// An epoch to deliver, from batch `first` on.
pub(super) struct Begin {
    pub(super) generation: u64,
    pub(super) first: u64,
    /// Bad samples of the batches before that.
    pub(super) bad: u64,
    pub(super) sampler: Sampler,
}

/// What the pump delivers. Every delivery carries an output, so that their number bounds how far the pump runs ahead.
pub(super) struct Delivery<T> {
    pub(super) generation: u64,
    /// `None` with an error that takes no batch's place.
    pub(super) output: Option<Output<T>>,
    pub(super) result: Result<Delivered, LoadError>,
    /// The batch's samples that could not be read.
    pub(super) bad: Vec<BadSample>,
}

impl<T> Delivery<T> {
    /// One that takes no batch's place.
    pub(super) fn told(generation: u64, result: Result<Delivered, LoadError>) -> Self {
        Self { generation, output: None, result, bad: Vec::new() }
    }
}

/// A batch on its way or ready.
pub(super) struct Delivered {
    pub(super) number: u64,
    /// None, if all of the batch's samples were left out.
    pub(super) samples: usize,
    /// How many of them repeat others.
    pub(super) padding: usize,
    /// When it was submitted.
    pub(super) at: Instant,
}

pub(super) struct Pump<L: Lane> {
    // Dropped before the lane: fills that nobody writes have ended then, and the lane frees their memory.
    pub(super) progress: Progress,
    pub(super) lane: L,
    pub(super) layout: BatchLayout,
    pub(super) workers: usize,
    pub(super) inbox: flume::Receiver<ToPump>,
    pub(super) jobs: flume::Sender<Job>,
    pub(super) deliveries: flume::Sender<Delivery<L::Tensor>>,
    pub(super) outputs: Arc<OutputPool<L::Tensor>>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) activity: Arc<Activity>,
    pub(super) bad_limit: BadSampleLimit,
    /// Whether bad samples are left out.
    pub(super) skips: bool,
    pub(super) observer: Observer,
    /// The time, while nothing takes any.
    pub(super) clock: Option<Instant>,
    /// Set where the device reads the source's memory by itself; then there are no fills.
    pub(super) direct: Option<Direct>,
}

impl<L: Lane> Pump<L> {
    /// Serves until it is told to shut down or everybody else is gone.
    pub(super) fn run(mut self) {
        let deadline = self.serve();
        self.shut_down(deadline);
    }

    fn serve(&mut self) -> Option<Instant> {
        // Whether the device was looked at since anything else happened.
        let mut looked = false;
        loop {
            while let Ok(message) = self.inbox.try_recv() {
                if let Some(deadline) = self.handle(message) {
                    return Some(deadline);
                }
            }
            self.advance(looked);
            let waited = self.wait();
            looked = matches!(waited, Ok(None));
            match waited {
                Ok(Some(message)) => {
                    if let Some(deadline) = self.handle(message) {
                        return Some(deadline);
                    }
                }
                Ok(None) => {}
                Err(flume::RecvError::Disconnected) => return None,
            }
        }
    }

    /// Takes one message; the deadline if it is the last.
    fn handle(&mut self, message: ToPump) -> Option<Instant> {
        if !matches!(message, ToPump::SlotEnded(_) | ToPump::Wake) {
            self.clock = None;
        }
        match message {
            ToPump::Start(epoch) => {
                self.discard();
                self.progress.next_epoch = Some(epoch);
            }
            ToPump::Stop => {
                self.progress.next_epoch = None;
                self.discard();
            }
            ToPump::SlotEnded(slot) => self.slot_ended(slot),
            ToPump::Wake => {}
            ToPump::Call(call) => call(),
            ToPump::Memory(reply) => {
                // Whoever asked may have given up.
                let _ = reply.send(self.lane.memory());
            }
            ToPump::WindDown { generation, reply } => {
                let _ = reply.send(self.wind_down(generation));
            }
            ToPump::Idle(reply) => {
                let _ = reply.send(self.wait_idle());
            }
            ToPump::Replace { indices, host } => match self.lane.output() {
                Ok(tensor) => self.outputs.put(Output { tensor, indices, host }),
                Err(error) => {
                    // Told first: whoever finds no tensor left finds the reason.
                    self.irreplaceable(error);
                    self.outputs.shrink();
                }
            },
            ToPump::Shutdown { deadline } => return Some(deadline),
        }
        None
    }

    /// Waits for the next message, or for the device, which was looked at where there is none.
    fn block(&mut self) -> Result<Option<ToPump>, flume::RecvError> {
        self.tell_activity(PumpState::Idle);
        if self.lane.in_flight() == 0 {
            return spin_wait::recv(&self.inbox).map(Some);
        }
        let window = &self.progress.window;
        let depth = self.direct.as_ref().is_none_or(|direct| self.lane.in_flight() >= direct.depth);
        let wants_slot = window.to_begin().is_some() && self.progress.lost.is_none() && depth;
        if wants_slot && window.filling() == 0 && !window.is_ready() {
            self.tell_activity(PumpState::AwaitsDevice);
            let (start, before) = (Instant::now(), self.lane.in_flight());
            self.reap(self.direct.as_ref().map_or(Wait::One, Direct::wait));
            if let Some(direct) = &mut self.direct {
                direct.waited(start.elapsed(), before - self.lane.in_flight());
            }
            return Ok(None);
        }
        match self.inbox.recv_timeout(POLL_INTERVAL) {
            Ok(message) => Ok(Some(message)),
            Err(flume::RecvTimeoutError::Timeout) => {
                self.reap(Wait::Poll);
                Ok(None)
            }
            Err(flume::RecvTimeoutError::Disconnected) => Err(flume::RecvError::Disconnected),
        }
    }

    fn tell_activity(&self, state: PumpState) {
        self.activity.pump(state, self.progress.window.filling(), self.lane.in_flight());
    }

    /// Does all that can be done now.
    fn advance(&mut self, mut looked: bool) {
        self.tell_activity(PumpState::InDriver);
        loop {
            if self.lane.in_flight() > 0 && !looked {
                self.reap(Wait::Poll);
            }
            looked = false;
            let mut sent = false;
            while self.send_front() {
                sent = true;
            }
            self.start_next_epoch();
            while self.begin_next() || self.submit_direct() {}
            // What was sent may have ended at once, and its slot is free then.
            if !sent {
                break;
            }
        }
        self.tell_loss();
    }

    /// Tells the user, who may be waiting for the very tensor, that one that was taken out cannot be replaced.
    fn irreplaceable(&mut self, source: DeviceError) {
        if matches!(source, DeviceError::Lost { .. }) {
            self.lose(source);
            return;
        }
        let error = LoadError::Device { batch: self.progress.window.front(), stage: Stage::Begin, source };
        self.tell(error);
    }

    /// Delivers an error that takes no batch's place.
    fn tell(&self, error: LoadError) {
        // Without a receiver the loader is being dropped.
        let _ = self.deliveries.send(Delivery::told(self.progress.generation(), Err(error)));
    }

    /// Notes what the device has finished.
    fn reap(&mut self, wait: Wait) {
        let result = self.lane.reap(wait, &mut self.progress.finished);
        self.clock = None;
        if !self.progress.finished.is_empty() {
            self.look();
        }
        let now = self.clock;
        for id in self.progress.finished.drain(..) {
            self.activity.moved();
            let at = self.progress.in_flight.iter().position(|(submission, _)| *submission == id);
            if let (Some(at), Some(now)) = (at, now) {
                let (_, times) = self.progress.in_flight.swap_remove(at);
                self.metrics.finished(&times, now);
                self.observer.finished(id, &times, now);
            }
        }
        self.look_at_the_clock();
        match result {
            Ok(()) => {}
            Err(error @ DeviceError::Lost { .. }) => {
                if self.progress.lost.is_none() {
                    self.lose(error);
                }
            }
            Err(error) => log::error!("the device reported: {error}"),
        }
    }

    fn deliver(&self, output: Output<L::Tensor>, result: Result<Delivered, LoadError>) {
        self.deliver_with(output, result, Vec::new());
    }

    fn deliver_with(&self, output: Output<L::Tensor>, result: Result<Delivered, LoadError>, bad: Vec<BadSample>) {
        let delivery = Delivery { generation: self.progress.generation(), output: Some(output), result, bad };
        // Without a receiver the loader is being dropped, and a shutdown message follows.
        let _ = self.deliveries.send(delivery);
    }
}

impl<L: Lane> Drop for Pump<L> {
    /// After this no call is run and no output is pooled: whoever waits for either must not.
    fn drop(&mut self) {
        self.outputs.close();
    }
}

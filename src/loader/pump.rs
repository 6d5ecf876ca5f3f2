//! The one thread that talks to the device: it takes slots, hands them to the workers, submits them in order and
//! delivers the tensors.
//!
//! It blocks in three ways, so that whoever waits for it is always woken: on its inbox when nothing is in flight; on its inbox
//! with a short timeout when the device may finish something that nobody reports; and on the device when a free slot is
//! all it lacks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::assembly::Assembly;
use super::metrics::{Metrics, Passage};
use super::outputs::{Output, OutputPool};
use super::patience;
use super::sampler::Sampler;
use super::window::Window;
use super::worker::Job;
use crate::backend::{Feed, Lane, MemoryUse, SubmissionId, Wait};
use crate::error::{DeviceError, LoadError, Stage};
use crate::layout::BatchLayout;
use crate::staging::{Fill, Finish};

/// How often the device is asked while something else could also happen.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// What the pump is told.
pub(super) enum ToPump {
    /// Deliver an epoch; whatever is left of the one before is given up.
    Start { generation: u64, sampler: Sampler },
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
    /// Finish what is in flight and end.
    Shutdown { deadline: Instant },
}

/// What the pump delivers. Every delivery carries an output, so that their number bounds how far the pump runs ahead.
pub(super) struct Delivery<T> {
    pub(super) generation: u64,
    pub(super) output: Output<T>,
    pub(super) result: Result<Delivered, LoadError>,
}

/// A batch on its way or ready.
pub(super) struct Delivered {
    pub(super) number: u64,
    pub(super) samples: usize,
}

/// A batch between `begin` and `submit`.
enum Begun {
    Filling { fill: Fill, at: Instant, handed_out: Instant, ended: Option<Instant> },
    Failed(DeviceError),
}

pub(super) struct Pump<L: Lane> {
    pub(super) lane: L,
    pub(super) layout: BatchLayout,
    pub(super) workers: usize,
    pub(super) inbox: flume::Receiver<ToPump>,
    pub(super) jobs: flume::Sender<Job>,
    pub(super) deliveries: flume::Sender<Delivery<L::Tensor>>,
    pub(super) outputs: Arc<OutputPool<L::Tensor>>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) progress: Progress,
}

/// Where the pump is in its epoch.
pub(super) struct Progress {
    assemblies: Vec<Arc<Assembly>>,
    window: Window<Begun>,
    generation: u64,
    sampler: Option<Sampler>,
    next_epoch: Option<(u64, Sampler)>,
    discarding: bool,
    starved_since: Option<Instant>,
    lost: Option<DeviceError>,
    lost_told: bool,
    lost_at: u64,
    in_flight: Vec<(SubmissionId, Passage)>,
    finished: Vec<SubmissionId>,
    /// Regions between being cut and being handed out.
    cut: Vec<Job>,
}

impl Progress {
    pub(super) fn new(slots: usize, batch_size: usize) -> Self {
        Self {
            assemblies: (0..slots).map(|_| Arc::new(Assembly::new(batch_size))).collect(),
            window: Window::new(0, slots),
            generation: 0,
            sampler: None,
            next_epoch: None,
            discarding: false,
            starved_since: None,
            lost: None,
            lost_told: false,
            lost_at: 0,
            in_flight: Vec::with_capacity(slots),
            finished: Vec::with_capacity(slots),
            cut: Vec::new(),
        }
    }

    fn slot_ended(&mut self, slot: usize) {
        if let Some(Begun::Filling { ended, .. }) = self.window.ready(slot) {
            *ended = Some(Instant::now());
        }
    }
}

impl<L: Lane> Pump<L> {
    /// Serves until it is told to shut down or everybody else is gone.
    pub(super) fn run(mut self) {
        let deadline = self.serve();
        self.shut_down(deadline);
    }

    fn serve(&mut self) -> Option<Instant> {
        loop {
            while let Ok(message) = self.inbox.try_recv() {
                if let Some(deadline) = self.handle(message) {
                    return Some(deadline);
                }
            }
            self.advance();
            match self.block() {
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
        match message {
            ToPump::Start { generation, sampler } => {
                self.discard();
                self.progress.next_epoch = Some((generation, sampler));
            }
            ToPump::Stop => self.discard(),
            ToPump::SlotEnded(slot) => self.progress.slot_ended(slot),
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
            ToPump::Shutdown { deadline } => return Some(deadline),
        }
        None
    }

    /// Waits for the next message, or for the device.
    fn block(&mut self) -> Result<Option<ToPump>, flume::RecvError> {
        if self.lane.in_flight() == 0 {
            return patience::recv(&self.inbox).map(Some);
        }
        let window = &self.progress.window;
        let wants_slot = window.to_begin().is_some() && self.progress.lost.is_none();
        if wants_slot && window.filling() == 0 && !window.front_is_ready() {
            self.reap(Wait::One);
            return Ok(None);
        }
        match self.inbox.recv_timeout(POLL_INTERVAL) {
            Ok(message) => Ok(Some(message)),
            Err(flume::RecvTimeoutError::Timeout) => Ok(None),
            Err(flume::RecvTimeoutError::Disconnected) => Err(flume::RecvError::Disconnected),
        }
    }

    /// Does all that can be done now.
    fn advance(&mut self) {
        loop {
            if self.lane.in_flight() > 0 {
                self.reap(Wait::Poll);
            }
            let mut sent = false;
            while self.send_front() {
                sent = true;
            }
            self.start_next_epoch();
            while self.begin_next() {}
            // What was sent may have ended at once, and its slot is free then.
            if !sent {
                break;
            }
        }
        self.tell_loss();
    }

    fn start_next_epoch(&mut self) {
        if !self.progress.window.is_empty() {
            return;
        }
        if let Some((generation, sampler)) = self.progress.next_epoch.take() {
            self.progress.window.restart(sampler.batches());
            self.progress.generation = generation;
            self.progress.sampler = Some(sampler);
            self.progress.discarding = false;
            self.progress.lost_told = false;
            self.progress.lost_at = 0;
            self.progress.starved_since = None;
        }
    }

    /// Gives up the epoch: no new batches, and what is being filled will not be sent.
    fn discard(&mut self) {
        self.progress.discarding = true;
        self.progress.window.stop();
        self.progress.assemblies.iter().for_each(|assembly| assembly.cancel());
    }

    /// Begins nothing more of an epoch, and delivers what is begun: how many batches that makes in all.
    fn wind_down(&mut self, generation: u64) -> Option<u64> {
        if self.progress.lost.is_some() {
            return None;
        }
        if self.progress.generation != generation {
            // It still waits for an earlier epoch to leave the window, and has begun nothing.
            self.progress.next_epoch = None;
            return Some(0);
        }
        self.progress.window.stop();
        Some(self.progress.window.end())
    }

    /// Waits for everything that was submitted.
    fn wait_idle(&mut self) -> Result<(), (u64, DeviceError)> {
        if self.lane.in_flight() > 0 && self.progress.lost.is_none() {
            self.reap(Wait::All);
        }
        self.progress.lost.clone().map_or(Ok(()), |error| Err((self.progress.lost_at, error)))
    }

    /// Takes a slot and hands it to the workers; false if that is not possible now.
    fn begin_next(&mut self) -> bool {
        let progress = &mut self.progress;
        let (Some(number), Some(sampler), None) = (progress.window.to_begin(), progress.sampler, &progress.lost) else {
            return false;
        };
        let start = Instant::now();
        let fill = match self.lane.begin() {
            Ok(Some(fill)) => fill,
            Ok(None) => {
                progress.starved_since.get_or_insert(start);
                return false;
            }
            Err(error @ DeviceError::Lost { .. }) => {
                self.lose(error);
                return false;
            }
            Err(error) => {
                progress.window.begun(None, Begun::Failed(error));
                return true;
            }
        };
        let begun = Instant::now();
        let waited = progress.starved_since.take().map(|since| start - since);
        self.metrics.begun(begun - start, waited);
        self.hand_out(fill, start, begun, sampler, number);
        true
    }

    /// Cuts a slot into regions and gives them to the workers.
    fn hand_out(&mut self, mut fill: Fill, at: Instant, handed_out: Instant, sampler: Sampler, number: u64) {
        let slot = fill.slot();
        let assembly = &self.progress.assemblies[slot];
        assembly.start(sampler.batch(number));
        let samples = assembly.samples();
        // All regions are cut before the first is handed out: a worker that ends the last open region reports the slot.
        self.progress.cut.extend(self.layout.runs(samples, self.workers).map(|run| {
            let region = fill.cut(self.layout.run_bytes(&run, samples).len());
            Job { assembly: Arc::clone(assembly), slot, run, region }
        }));
        self.progress.window.begun(Some(slot), Begun::Filling { fill, at, handed_out, ended: None });
        let mut lost_worker = false;
        for job in self.progress.cut.drain(..) {
            // Workers outlive the pump; were one not to, its region is dropped here, which cancels the batch.
            lost_worker |= self.jobs.send(job).is_err();
        }
        if lost_worker {
            self.progress.slot_ended(slot);
        }
    }

    /// Sends the oldest batch, if it is ready and there is an output for it.
    fn send_front(&mut self) -> bool {
        if !self.progress.window.front_is_ready() {
            return false;
        }
        if self.progress.discarding || self.progress.lost.is_some() {
            self.discard_front();
            return true;
        }
        let Some(output) = self.outputs.take() else { return false };
        let Some((number, begun)) = self.progress.window.take_ready() else { return false };
        match begun {
            Begun::Failed(source) => {
                self.deliver(output, Err(LoadError::Device { batch: number, stage: Stage::Begin, source }));
            }
            Begun::Filling { fill, at, handed_out, ended } => {
                let ended = ended.unwrap_or(handed_out);
                self.finish_fill(fill, Passage { begun: at, submitted: at }, ended - handed_out, output, number);
            }
        }
        true
    }

    fn finish_fill(
        &mut self,
        fill: Fill,
        passage: Passage,
        fill_time: Duration,
        mut output: Output<L::Tensor>,
        number: u64,
    ) {
        let slot = fill.slot();
        let assembly = Arc::clone(&self.progress.assemblies[slot]);
        match fill.finish() {
            Finish::Filled(filled) => {
                assembly.copy_out(&mut output.indices, &mut output.labels);
                let samples = assembly.samples();
                let start = Instant::now();
                let Output { tensor, indices, labels } = output;
                match self.lane.submit(Feed::Staged(filled), samples, tensor) {
                    Ok(submitted) => {
                        let now = Instant::now();
                        self.metrics.submitted(assembly.read_time(), fill_time, now - start);
                        self.progress.in_flight.push((submitted.id, Passage { submitted: now, ..passage }));
                        let output = Output { tensor: submitted.tensor, indices, labels };
                        self.deliver(output, Ok(Delivered { number, samples }));
                    }
                    Err(rejected) => {
                        let output = Output { tensor: rejected.tensor, indices, labels };
                        self.reject(output, number, rejected.error);
                    }
                }
            }
            Finish::Cancelled(cancelled) => {
                self.lane.cancel(cancelled);
                match assembly.take_failure() {
                    Some(failure) => self.deliver(output, Err(failure.into_error(number))),
                    None => {
                        let reason = "a worker ended without its batch".to_owned();
                        self.deliver(output, Err(LoadError::Stopped { reason }));
                    }
                }
            }
            Finish::Open(fill) => {
                // The slot was reported ended, so this is a defect of the loader; the slot is lost, the user is told.
                drop(fill);
                let reason = format!("slot {slot} was reported ended while it is being filled");
                self.deliver(output, Err(LoadError::Stopped { reason }));
            }
        }
    }

    fn reject(&mut self, output: Output<L::Tensor>, number: u64, source: DeviceError) {
        if matches!(source, DeviceError::Lost { .. }) {
            self.outputs.put(output);
            self.lose(source);
        } else {
            self.deliver(output, Err(LoadError::Device { batch: number, stage: Stage::Submit, source }));
        }
    }

    /// Takes the oldest batch out without sending it.
    fn discard_front(&mut self) {
        if let Some((_, Begun::Filling { fill, .. })) = self.progress.window.take_ready() {
            match fill.finish() {
                Finish::Filled(filled) => self.lane.cancel(filled.cancel()),
                Finish::Cancelled(cancelled) => self.lane.cancel(cancelled),
                Finish::Open(_) => {}
            }
        }
    }

    fn deliver(&self, output: Output<L::Tensor>, result: Result<Delivered, LoadError>) {
        let delivery = Delivery { generation: self.progress.generation, output, result };
        // Without a receiver the loader is being dropped, and a shutdown message follows.
        let _ = self.deliveries.send(delivery);
    }

    /// The device is gone: nothing more is begun, and the user is told once an epoch.
    fn lose(&mut self, error: DeviceError) {
        self.progress.lost_at = self.progress.window.front();
        self.discard();
        self.progress.discarding = false;
        self.progress.lost.get_or_insert(error);
    }

    fn tell_loss(&mut self) {
        let progress = &self.progress;
        let (Some(error), false, Some(_)) = (&progress.lost, progress.lost_told, progress.sampler) else { return };
        if progress.discarding {
            return;
        }
        let source = error.clone();
        let Some(output) = self.outputs.take() else { return };
        self.progress.lost_told = true;
        let batch = self.progress.lost_at;
        self.deliver(output, Err(LoadError::Device { batch, stage: Stage::Device, source }));
    }

    /// Notes what the device has finished.
    fn reap(&mut self, wait: Wait) {
        let result = self.lane.reap(wait, &mut self.progress.finished);
        let now = Instant::now();
        for id in self.progress.finished.drain(..) {
            if let Some(at) = self.progress.in_flight.iter().position(|(submission, _)| *submission == id) {
                let (_, passage) = self.progress.in_flight.swap_remove(at);
                self.metrics.finished(passage, now);
            }
        }
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

    /// Ends the workers, waits for open slots until the deadline, then for the device, and frees everything.
    ///
    /// Order: regions end first (their memory is the lane's), then the device finishes, then the outputs and the lane go.
    fn shut_down(mut self, deadline: Option<Instant>) {
        self.discard();
        loop {
            while self.progress.window.front_is_ready() {
                self.discard_front();
            }
            if self.progress.window.is_empty() {
                break;
            }
            let message = match deadline {
                Some(deadline) => self.inbox.recv_deadline(deadline).ok(),
                None => self.inbox.recv().ok(),
            };
            match message {
                Some(ToPump::SlotEnded(slot)) => self.progress.slot_ended(slot),
                Some(ToPump::Call(call)) => call(),
                Some(_) => {}
                None => {
                    log::error!("a worker is still reading at the deadline: its slot and its thread are left behind");
                    break;
                }
            }
        }
        if self.lane.in_flight() > 0 && self.progress.lost.is_none() {
            self.reap(Wait::All);
        }
    }
}

impl<L: Lane> Drop for Pump<L> {
    /// After this no call is run and no output is pooled: whoever waits for either must not.
    fn drop(&mut self) {
        self.outputs.close();
    }
}

//! The one thread that talks to the device. It performs what the [schedule](super::schedule) says: takes slots, hands them to the
//! workers, submits what they filled and delivers the tensors.
//!
//! ```text
//! message ---> handle ---> Schedule::on ---> Action ---> perform: begin, submit, discard, ...
//!                               ^                            |
//!                               +--------- Event <-----------+        no action left: wait
//! ```

mod direct;
mod epochs;
mod feeding;
mod message;
mod observer;
mod outlet;
mod prepared;
mod staged;
mod waiting;

pub(super) use direct::Direct;
pub(super) use epochs::Epochs;
pub(super) use feeding::Feeding;
pub(super) use message::{Begin, Delivered, Delivery, ToPump};
pub(super) use observer::Observer;
pub(super) use outlet::Outlet;
pub(super) use staged::Staged;

use std::time::Instant;

use super::account::OutputAccount;
use super::bad::BadSample;
use super::host_fields::HostFields;
use super::outputs::Output;
use super::schedule::{Action, BatchId, Event, Schedule};
use crate::backend::{Lane, SubmissionId, Wait};
use crate::error::{DeviceError, LoadError, PumpState, Stage};
use prepared::{Prepared, Unsent};

pub(super) struct Pump<L: Lane> {
    // Dropped before the lane: fills that nobody writes have ended then, and the lane frees their memory.
    pub(super) feeding: Feeding,
    pub(super) outlet: Outlet<L::Tensor>,
    pub(super) lane: L,
    pub(super) schedule: Schedule,
    pub(super) epochs: Epochs,
    pub(super) inbox: flume::Receiver<ToPump>,
    pub(super) account: OutputAccount,
    pub(super) observer: Observer,
    /// Why the device is lost.
    pub(super) loss: Option<DeviceError>,
    /// Submissions that the device has just finished; used again.
    pub(super) finished: Vec<SubmissionId>,
    /// Whether something was done since the device was last asked.
    pub(super) ask_device: bool,
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
                // It may have been sent since the clock was read.
                self.observer.time_passes();
                if let Some(deadline) = self.handle(message) {
                    return Some(deadline);
                }
            }
            // What has just been submitted may have ended at once, and its slot is free then.
            while std::mem::take(&mut self.ask_device) && self.schedule.in_flight() > 0 {
                self.poll(Wait::Poll);
            }
            match self.wait() {
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
        self.ask_device = true;
        if !matches!(message, ToPump::SlotEnded(_) | ToPump::Wake) {
            self.observer.time_passes();
        }
        match message {
            ToPump::Start(epoch) => {
                self.feeding.forget_failures();
                self.observer.epoch_starts();
                self.outlet.serve(epoch.generation);
                let plan = self.epochs.start(epoch);
                self.drive(Event::Start(plan));
            }
            ToPump::Follow(epoch) => {
                let plan = self.epochs.follow(epoch);
                self.drive(Event::Follow(plan));
            }
            ToPump::Stop => self.drive(Event::Stop),
            ToPump::SlotEnded(slot) => {
                self.observer.slot_ended();
                if self.feeding.slot_ended(slot, self.observer.now()) {
                    self.drive(Event::SlotEnded { slot });
                }
            }
            ToPump::Wake => self.drive(Event::OutputReturned),
            ToPump::Call(call) => call(),
            ToPump::Memory(reply) => {
                // Whoever asked may have given up.
                let _ = reply.send(self.account.held(self.lane.memory(), self.outlet.outputs().taken()));
            }
            ToPump::WindDown(reply) => {
                self.drive(Event::WindDown);
                let _ = reply.send(self.schedule.end());
            }
            ToPump::Idle(reply) => {
                let _ = reply.send(self.wait_idle());
            }
            ToPump::Replace { indices, host } => self.replace(indices, host),
            ToPump::Shutdown { deadline } => return Some(deadline),
        }
        None
    }

    /// Has the schedule take an event in, and does what it says until it says nothing.
    fn drive(&mut self, event: Event) {
        let mut action = self.schedule.on(event);
        if action.is_some() {
            self.report_state(PumpState::InDriver);
        }
        while let Some(next) = action {
            let event = self.perform(next);
            action = self.schedule.on(event);
        }
    }

    fn perform(&mut self, action: Action) -> Event {
        match action {
            Action::Begin(batch) => {
                let begun = self.feeding.begin(batch, &mut self.lane, &self.epochs, &mut self.observer);
                begun.unwrap_or_else(|error| self.lost(error))
            }
            Action::Submit { batch, slot } => self.submit(batch, slot),
            Action::Fail(batch) => {
                let Some(output) = self.outlet.take() else { return Event::NoOutput };
                self.outlet.deliver(output, Err(self.feeding.take_failure(batch)), Vec::new());
                Event::Unsent
            }
            Action::Cancel { slot } => {
                self.feeding.cancel(slot);
                Event::Done
            }
            Action::Discard { slot } => {
                self.feeding.discard(slot, &mut self.lane);
                Event::Done
            }
            Action::ReportLoss { batch } => {
                if let Some(source) = self.loss.clone() {
                    self.outlet.report(LoadError::Device { batch, stage: Stage::Device, source });
                }
                Event::Done
            }
        }
    }

    /// Submits a batch that is ready, and delivers it; or delivers why it cannot be.
    fn submit(&mut self, batch: BatchId, slot: Option<usize>) -> Event {
        let Some(Output { tensor, mut indices, mut host, tags }) = self.outlet.take() else { return Event::NoOutput };
        let (lists, number) = ((&mut indices, &mut host), batch.number);
        let prepared = self.feeding.prepare(batch, slot, &mut self.lane, &mut self.epochs, &mut self.observer, lists);
        let Prepared { input, samples, padding, bad, read_time, times } = match prepared {
            Ok(prepared) => prepared,
            Err(unsent) => {
                let Unsent { result, bad, ends_epoch } = *unsent;
                self.outlet.deliver(Output { tensor, indices, host, tags }, result, bad);
                return if ends_epoch { Event::EpochFailed } else { Event::Unsent };
            }
        };
        match self.lane.submit(input, samples, tensor) {
            Ok(submitted) => {
                let at = self.observer.submitted(submitted.id, read_time, times);
                self.ask_device = true;
                let output = Output { tensor: submitted.tensor, indices, host, tags };
                self.outlet.deliver_submitted(submitted.id, output, Delivered { number, samples, padding, at }, bad);
                match self.outlet.release(&mut self.lane) {
                    Ok(()) => Event::Submitted,
                    Err(error) => self.lost(error),
                }
            }
            Err(rejected) => {
                self.observer.time_passes();
                self.reject(Output { tensor: rejected.tensor, indices, host, tags }, number, rejected.error, bad)
            }
        }
    }

    /// Delivers why the device did not take a batch, with what was bad of it all the same.
    fn reject(&mut self, output: Output<L::Tensor>, batch: u64, source: DeviceError, bad: Vec<BadSample>) -> Event {
        if matches!(source, DeviceError::Lost { .. }) {
            self.outlet.outputs().put(output);
            return self.lost(source);
        }
        self.outlet.deliver(output, Err(LoadError::Device { batch, stage: Stage::Submit, source }), bad);
        Event::Unsent
    }

    /// The device is gone: nothing more is begun, and the user learns of it once an epoch.
    fn lost(&mut self, error: DeviceError) -> Event {
        self.loss.get_or_insert(error);
        self.outlet.release_all();
        self.outlet.outputs().lose();
        Event::Lost
    }

    /// Makes another tensor in place of one that was taken out.
    fn replace(&mut self, indices: Vec<u64>, host: HostFields) {
        let taken = self.outlet.outputs().taken();
        match self.account.check(self.lane.memory(), taken).and_then(|()| self.lane.output()) {
            Ok(tensor) => {
                self.outlet.outputs().put(Output { tensor, indices, host, tags: Vec::new() });
                return self.drive(Event::OutputReturned);
            }
            // Reported first: whoever finds no tensor left finds the reason.
            Err(error @ DeviceError::Lost { .. }) => {
                let event = self.lost(error);
                self.drive(event);
            }
            Err(source) => {
                self.outlet.report(LoadError::Device { batch: self.schedule.front(), stage: Stage::Begin, source });
            }
        }
        self.outlet.outputs().shrink();
    }

    /// Asks the device what it has finished, and goes on with what that makes possible.
    fn poll(&mut self, wait: Wait) {
        let result = self.reap(wait);
        self.reaped(result);
    }

    /// Asks the device what it has finished, or waits until it has finished something.
    fn reap(&mut self, wait: Wait) -> Result<(), DeviceError> {
        let state = if wait == Wait::Poll { PumpState::InDriver } else { PumpState::AwaitsDevice };
        self.report_state(state);
        self.lane.reap(wait, &mut self.finished)
    }

    /// Goes on with what the device has finished.
    fn reaped(&mut self, result: Result<(), DeviceError>) {
        self.observer.finished(&self.finished);
        self.finished.clear();
        self.observer.measured(&mut self.lane);
        match result.and(self.outlet.release(&mut self.lane)) {
            Ok(()) => {}
            Err(error @ DeviceError::Lost { .. }) => {
                let event = self.lost(error);
                self.drive(event);
            }
            Err(error) => log::error!("the device reported: {error}"),
        }
        self.drive(Event::Polled { in_flight: self.lane.in_flight() });
        if self.outlet.outputs().is_guarded() {
            // Nobody reports the end of a guard.
            self.drive(Event::OutputReturned);
        }
    }

    fn report_state(&self, state: PumpState) {
        self.observer.state(state, self.schedule.filling(), self.schedule.in_flight());
    }

    /// Waits for everything that was submitted.
    fn wait_idle(&mut self) -> Result<(), (u64, DeviceError)> {
        if self.lane.in_flight() > 0 && self.loss.is_none() {
            self.poll(Wait::All);
        }
        self.loss.clone().map_or(Ok(()), |error| Err((self.schedule.front(), error)))
    }

    /// Ends the workers, waits for open slots until the deadline, then for the device, and frees everything.
    ///
    /// Order: regions end first (their memory is the lane's), then the device finishes, then the outputs and the lane go.
    fn shut_down(mut self, deadline: Option<Instant>) {
        self.drive(Event::Stop);
        while !self.schedule.is_settled() {
            let message = match deadline {
                Some(deadline) => self.inbox.recv_deadline(deadline).ok(),
                None => self.inbox.recv().ok(),
            };
            match message {
                Some(ToPump::SlotEnded(slot)) => self.drive(Event::SlotEnded { slot }),
                Some(ToPump::Call(call)) => call(),
                Some(_) => {}
                None => {
                    log::error!("a worker is still reading at the deadline: its slot and its thread are left behind");
                    break;
                }
            }
        }
        if self.lane.in_flight() > 0 && self.loss.is_none() {
            self.poll(Wait::All);
        }
    }
}

//! What the pump waits for when nothing is to be done.
//!
//! It waits in four ways, so that whoever waits for it is always woken: on its inbox where only a message can help; on its inbox with
//! a short timeout where the device may finish something that nobody reports; on the device where it alone can help; and, for a short
//! time each, on a batch that arrives on a queue of its own.

use std::time::{Duration, Instant};

use super::super::observe::metrics::Cause;
use super::super::schedule::Lack;
use super::super::spin_wait;
use super::{Pump, ToPump};
use crate::backend::{Lane, Wait};
use crate::error::{DeviceError, PumpState};

/// How often the device is asked while something else could also happen.
const POLL_INTERVAL: Duration = Duration::from_micros(200);
/// How often the inbox is looked into while a batch arrives.
const ARRIVAL_INTERVAL: Duration = Duration::from_micros(100);

/// What ended a wait.
enum Woken {
    Message(ToPump),
    /// The device was asked, and this came of it.
    Device(Result<(), DeviceError>),
}

impl<L: Lane> Pump<L> {
    /// Waits for the next message or for the device, and counts what for.
    pub(super) fn wait(&mut self) -> Result<Option<ToPump>, flume::RecvError> {
        self.report_state(PumpState::Idle);
        if self.schedule.lacks_slot() {
            self.observer.lacks_slot();
        }
        let lack = self.schedule.lack();
        let woken = match self.cause(lack) {
            Some(cause) => {
                let start = self.observer.now();
                let woken = self.block(lack);
                // What follows from it is no part of the wait.
                self.observer.waited(cause, start);
                woken?
            }
            None => {
                self.observer.between_epochs();
                self.block(lack)?
            }
        };
        Ok(match woken {
            Woken::Message(message) => Some(message),
            Woken::Device(result) => {
                self.reaped(result);
                None
            }
        })
    }

    /// What the time counts for that it takes until there is something to do; `None` between epochs.
    fn cause(&self, lack: Lack) -> Option<Cause> {
        match lack {
            // If all are on their way, it is not the user who keeps them.
            Lack::Output if self.schedule.in_flight() >= self.outlet.outputs().size() => Some(Cause::Device),
            Lack::Output => Some(Cause::Consumer),
            Lack::Fill => Some(Cause::Source),
            Lack::Either => Some(Cause::Either),
            Lack::Device => Some(Cause::Device),
            Lack::Drain => Some(Cause::Idle),
            Lack::Epoch => None,
        }
    }

    fn block(&mut self, lack: Lack) -> Result<Woken, flume::RecvError> {
        if self.outlet.is_holding() {
            return self.block_for_arrival();
        }
        if lack == Lack::Device {
            let (start, before) = (Instant::now(), self.schedule.in_flight());
            self.ask_device = false;
            let result = self.reap(self.feeding.wait());
            self.feeding.waited(start.elapsed(), before.saturating_sub(self.lane.in_flight()));
            return Ok(Woken::Device(result));
        }
        let device_may_help = self.schedule.in_flight() > 0 || self.schedule.lacks_slot();
        if !device_may_help && !self.outlet.outputs().is_guarded() {
            return spin_wait::recv(&self.inbox).map(Woken::Message);
        }
        match self.inbox.recv_timeout(POLL_INTERVAL) {
            Ok(message) => Ok(Woken::Message(message)),
            Err(flume::RecvTimeoutError::Timeout) => Ok(Woken::Device(self.reap(Wait::Poll))),
            Err(flume::RecvTimeoutError::Disconnected) => Err(flume::RecvError::Disconnected),
        }
    }

    /// As [`block`](Self::block), while a batch is on its way that is to be delivered when it arrives. The device wakes this thread, and
    /// messages wait a little.
    fn block_for_arrival(&mut self) -> Result<Woken, flume::RecvError> {
        match self.inbox.try_recv() {
            Ok(message) => Ok(Woken::Message(message)),
            Err(flume::TryRecvError::Empty) => {
                self.lane.await_arrival(ARRIVAL_INTERVAL);
                Ok(Woken::Device(self.reap(Wait::Poll)))
            }
            Err(flume::TryRecvError::Disconnected) => Err(flume::RecvError::Disconnected),
        }
    }
}

//! Winding down and shutting down.

use std::time::Instant;

use super::{Pump, ToPump};
use crate::backend::{Lane, Wait};
use crate::error::{DeviceError, PumpState};

impl<L: Lane> Pump<L> {
    /// Begins nothing more of an epoch, and delivers what is begun: how many batches that makes in all.
    pub(super) fn wind_down(&mut self, generation: u64) -> Option<u64> {
        if self.progress.lost.is_some() {
            return None;
        }
        if self.progress.generation() != generation {
            // It still waits for an earlier epoch to leave the window, and has begun nothing.
            self.progress.next_epoch = None;
            return Some(0);
        }
        self.progress.window.stop();
        Some(self.progress.window.end())
    }

    /// Waits for everything that was submitted.
    pub(super) fn wait_idle(&mut self) -> Result<(), (u64, DeviceError)> {
        self.tell_activity(PumpState::AwaitsDevice);
        if self.lane.in_flight() > 0 && self.progress.lost.is_none() {
            self.reap(Wait::All);
        }
        if self.lane.in_flight() > 0 && self.progress.lost.is_none() {
            let message = "it does not finish what was submitted".to_owned();
            return Err((self.progress.window.front(), DeviceError::Refused { message }));
        }
        self.progress.lost.clone().map_or(Ok(()), |error| Err((self.progress.lost_at, error)))
    }

    /// Ends the workers, waits for open slots until the deadline, then for the device, and frees everything.
    ///
    /// Order: regions end first (their memory is the lane's), then the device finishes, then the outputs and the lane go.
    pub(super) fn shut_down(mut self, deadline: Option<Instant>) {
        self.discard();
        loop {
            while self.progress.window.is_ready() {
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
                Some(ToPump::SlotEnded(slot)) => self.progress.slot_ended(slot, Instant::now()),
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

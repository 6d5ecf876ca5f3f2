//! The two halves of a batch whose copies go beside wgpu's queue.

use std::time::Duration;

use super::super::lane::WgpuLane;
use super::super::native::{KeepAlive, Region, TransferTicket};
use super::super::tensor::WgpuTensor;
use super::super::work::{Ended, Work};
use super::{PATIENCE, Transfer, Transfers, no_transfers};
use crate::backend::{SubmissionId, Wait, check_filled};
use crate::error::DeviceError;
use crate::preprocess::Preprocess;
use crate::staging::Filled;

impl WgpuLane {
    /// Sends the first half of a filled slot.
    pub(in super::super) fn transfer_slot(
        &mut self,
        filled: &Filled,
        samples: usize,
        output: &WgpuTensor,
    ) -> Result<SubmissionId, DeviceError> {
        let (slot, memory) = (filled.slot(), self.slots.send(filled)?);
        // Lent again only once the slot is free.
        self.staging.cancel(slot, memory);
        let bytes = self.spec.layout.copy_bytes(samples) as u64;
        let regions = [Region { src_offset: 0, dst_offset: 0, size: bytes }];
        let sent = check_filled(&self.spec.layout, filled, samples).and_then(|()| {
            let (transfers, from) = self.transfers.as_mut().zip(self.staging.raw(slot)).ok_or_else(no_transfers)?;
            let to = transfers.target(slot, output)?;
            transfers.send(&to, std::iter::once((from, &regions[..])))
        });
        let keep = self.staging.keep(slot);
        self.sent_beside(sent, slot, samples, output, keep)
    }

    /// Sends the first half of a batch whose samples were found in imported memory. `slot` is claimed.
    pub(in super::super) fn transfer_found(
        &mut self,
        slot: usize,
        samples: usize,
        output: &WgpuTensor,
    ) -> Result<SubmissionId, DeviceError> {
        let bytes = self.spec.layout.payload(1) as u64;
        let (sent, keep) = match (&mut self.transfers, &mut self.direct) {
            (Some(transfers), Some(direct)) => {
                let to = transfers.target(slot, output);
                (to.and_then(|to| transfers.send(&to, direct.gather(bytes))), Some(direct.keep(slot)))
            }
            _ => (Err(no_transfers()), None),
        };
        self.sent_beside(sent, slot, samples, output, keep)
    }

    /// Notes a batch whose first half was sent, or frees its slot.
    fn sent_beside(
        &mut self,
        sent: Result<TransferTicket, DeviceError>,
        slot: usize,
        samples: usize,
        output: &WgpuTensor,
        keep: Option<KeepAlive>,
    ) -> Result<SubmissionId, DeviceError> {
        let ticket = match sent {
            Ok(ticket) => ticket,
            Err(error) => {
                self.slots.free(slot, None);
                return Err(error);
            }
        };
        let (id, ended) = (self.completions.next_id(), Ended::default());
        let (work, done) = (Work::new(None, ended.clone()), ended.on_drop(keep.clone()));
        let transfer = Transfer { id, slot, ticket, samples, output: output.clone(), work: work.clone(), done };
        if self.beside.is_some() {
            self.send_second(transfer).inspect_err(|_| self.end_transfer(slot, ticket, keep))?;
        } else if let Some(transfers) = &mut self.transfers {
            transfers.under_way.push_back(transfer);
        }
        output.written_by(work.clone());
        self.completions.push(id, Some(slot), work);
        Ok(id)
    }

    /// Sends the second half of a batch whose first half was sent before, and is waited for on the device.
    fn send_second(&mut self, transfer: Transfer) -> Result<(), DeviceError> {
        let backend = self.backend.clone();
        let sent = backend.scope(|| self.record_arrived(transfer)).flatten();
        if let (Err(_), Some(transfers)) = (&sent, &self.transfers) {
            transfers.queue.unstage();
        }
        sent
    }

    /// Waits for a first half whose second half could not be sent, and frees its slot.
    fn end_transfer(&mut self, slot: usize, ticket: TransferTicket, keep: Option<KeepAlive>) {
        match self.transfers.as_ref().map_or(Ok(true), |transfers| transfers.queue.wait(ticket, PATIENCE)) {
            Ok(true) | Err(DeviceError::Lost { .. }) => self.slots.free(slot, None),
            _ => {
                log::error!("the device does not say that a transfer has ended: what it reads is left behind");
                self.slots.give_up(slot);
                Box::leak(Box::new(keep));
            }
        }
    }

    /// Whether a wait is for a batch of which the second half was not sent. Those are the last of all.
    pub(in super::super) fn awaits_arrival(&self, wait: Wait) -> bool {
        let arriving = self.transfers.as_ref().map_or(0, Transfers::len);
        let awaited = |wait| self.completions.awaited(wait).count();
        arriving > 0 && awaited(wait) + arriving > awaited(Wait::All)
    }

    /// Waits for the transfer that was sent first, at most for this long.
    pub(in super::super) fn await_oldest(&self, at_most: Duration) -> Result<(), DeviceError> {
        self.transfers.as_ref().map_or(Ok(()), |transfers| transfers.wait(at_most))
    }

    /// Sends the second half of every batch whose copies have ended.
    ///
    /// # Errors
    /// [`DeviceError::Lost`]. Any other error is of its batch: see [`Transfers::has_arrived`].
    pub(in super::super) fn send_arrived(&mut self) -> Result<(), DeviceError> {
        while let Some(transfers) = &mut self.transfers
            && let Some(transfer) = transfers.next_arrived()?
        {
            let (id, backend) = (transfer.id, self.backend.clone());
            let sent = backend.scope(|| self.record_arrived(transfer)).flatten();
            if let (Err(error), Some(transfers)) = (sent, &mut self.transfers) {
                transfers.failed(id, error)?;
            }
        }
        Ok(())
    }

    /// Records what is left to do with a batch that has arrived, and sends it.
    fn record_arrived(&mut self, transfer: Transfer) -> Result<(), DeviceError> {
        let Transfer { id, slot, ticket, samples, output, work, done } = transfer;
        let transfers = self.transfers.as_ref().ok_or_else(no_transfers)?;
        let desc = wgpu::CommandEncoderDescriptor { label: Some("gpufeed batch") };
        let mut encoder = self.backend.device().create_command_encoder(&desc);
        let payload = self.spec.layout.payload(samples) as u64;
        // There is no copy to be timed on this queue.
        let timed = self.timing.as_ref().map(|timing| (timing, timing.start(id, payload, &mut encoder)));
        if let Some((timing, set)) = timed {
            timing.copied(set, &mut encoder);
        }
        let arrived = transfers.target(slot, &output)?;
        if let (Preprocess::Raw, Some(arrival)) = (&self.spec.preprocess, transfers.arrivals.get(slot)) {
            let bytes = self.spec.layout.copy_bytes(samples) as u64;
            encoder.copy_buffer_to_buffer(&arrival.buffer, 0, output.target(), 0, bytes);
        }
        let arrival = transfers.arrivals.get(slot).map(|arrival| &arrival.buffer);
        if let Some(arrival) = arrival {
            self.record_records(slot, &mut encoder, arrival, samples);
        }
        self.record_fields(&mut encoder, arrival, &output, samples);
        if let Some(bindings) = output.bindings(slot) {
            self.kernels.encode(&mut encoder, bindings, samples);
        }
        if let Some((timing, set)) = timed {
            timing.end(set, &mut encoder);
        }
        let keep: KeepAlive = std::sync::Arc::new((done, arrived.keep(), transfers.queue.keep()));
        // What arrives is no memory of wgpu's.
        let step = self.record_step(None, samples, &output)?;
        let commands = std::iter::once(encoder.finish()).chain(step);
        match &self.beside {
            // Nobody else's work waits there.
            Some(_) => transfers.queue.stage_ahead(ticket)?,
            None => transfers.queue.stage(ticket)?,
        }
        let sent = self.backend.send(commands, Some(keep), || {
            if let Some((timing, set)) = timed {
                timing.sent(set);
            }
        })?;
        work.was_sent(sent.ticket());
        Ok(())
    }
}

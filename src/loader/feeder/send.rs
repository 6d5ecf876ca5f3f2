//! The way of frames: checked, into a slot, to the device.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::super::batch::Batch;
use super::super::outputs::Output;
use super::Feeder;
use super::error::{FeedError, FillError};
use super::frame::{AsFrame, Frame};
use super::writer::FrameWriter;
use crate::backend::{Backend, Input, Lane, SubmissionId, Wait};
use crate::error::DeviceError;
use crate::staging::{Fill, Filled, Finish, Region};

/// Writes one frame.
pub(super) type Write<'w, E> = &'w mut dyn FnMut(&mut FrameWriter<'_>) -> Result<(), E>;

/// Why frames are not in a slot.
pub(super) enum NotSent<E> {
    Error(FillError<E>),
    /// The closure's.
    Panic(Box<dyn Any + Send>),
}

impl<E> NotSent<E> {
    /// The error, once all is put back. A panic goes on.
    pub(super) fn into_error(self) -> FillError<E> {
        match self {
            Self::Error(error) => error,
            Self::Panic(panic) => resume_unwind(panic),
        }
    }
}

impl<E> From<FillError<E>> for NotSent<E> {
    fn from(error: FillError<E>) -> Self {
        Self::Error(error)
    }
}

impl<E> From<DeviceError> for NotSent<E> {
    fn from(error: DeviceError) -> Self {
        Self::Error(error.into())
    }
}

impl<B: Backend> Feeder<B> {
    /// The frames, which are asked for once.
    pub(super) fn check<'f, F: AsFrame>(&self, frames: &'f [F]) -> Result<Vec<Frame<'f>>, FeedError> {
        self.check_count(frames.len())?;
        let frames: Vec<Frame<'f>> = frames.iter().map(AsFrame::as_frame).collect();
        let layout = &self.frame;
        frames.iter().enumerate().try_for_each(|(number, frame)| frame.check(number, layout))?;
        Ok(frames)
    }

    pub(super) fn check_count(&self, got: usize) -> Result<(), FeedError> {
        match self.layout.batch_size() {
            most if got == 0 || got > most => Err(FeedError::Count { got, most }),
            _ => Ok(()),
        }
    }

    /// Feeds frames that were checked.
    pub(super) fn feed_checked(&mut self, frames: &[Frame<'_>]) -> Result<Batch<B>, FeedError> {
        let mut write = self.copying(frames);
        self.feed_with(frames.len(), &mut write).map_err(into_feed_error)
    }

    /// What copies frames that were checked.
    pub(super) fn copying<'f>(
        &self,
        frames: &'f [Frame<'_>],
    ) -> impl FnMut(&mut FrameWriter<'_>) -> io::Result<()> + use<'f, B> {
        let layout = self.frame.clone();
        move |writer| {
            let frame = frames.get(writer.position()).ok_or(io::ErrorKind::NotFound)?;
            writer.set_tag(frame.tag());
            frame.write(&layout, writer)
        }
    }

    /// Feeds frames if a slot is free now.
    pub(super) fn try_feed<E>(&mut self, count: usize, write: Write<'_, E>) -> Result<Option<Batch<B>>, FillError<E>> {
        let mut output = self.take_output()?;
        let sent = match self.take_slot() {
            Ok(Some(fill)) => self.send(fill, count, &mut output, write),
            Ok(None) => {
                self.outputs.put(output);
                return Ok(None);
            }
            Err(error) => Err(error.into()),
        };
        match sent {
            Ok(id) => Ok(Some(self.batch(id, output))),
            Err(error) => {
                self.outputs.put(output);
                Err(error.into_error())
            }
        }
    }

    /// The batch of a submission to one of the feeder's own outputs.
    pub(super) fn batch(&self, id: SubmissionId, output: Output<B::Tensor>) -> Batch<B> {
        let (pool, tensors) = (Arc::clone(&self.outputs), Arc::clone(&self.tensors));
        Batch::new(output, pool, tensors, id, 0, Instant::now()).with_geometries(self.geometries.clone())
    }

    /// Fills the slot and submits it.
    pub(super) fn send<E>(
        &mut self,
        fill: Fill,
        count: usize,
        output: &mut Output<B::Tensor>,
        write: Write<'_, E>,
    ) -> Result<SubmissionId, NotSent<E>> {
        self.begin_lists(count, output);
        let filled = self.fill(fill, count, output, write)?;
        match self.lane.submit(Input::Staged(filled), count, output.tensor.clone()) {
            Ok(submitted) => Ok(self.sent(submitted.id, count, output)),
            Err(rejected) => Err(rejected.error.into()),
        }
    }

    /// Notes a submission.
    pub(super) fn sent(&mut self, id: SubmissionId, count: usize, output: &Output<B::Tensor>) -> SubmissionId {
        self.pending.push((id, output.tensor.clone()));
        self.fed += count as u64;
        id
    }

    /// The indices of the next frames, and tags that nobody has set.
    pub(super) fn begin_lists(&self, count: usize, output: &mut Output<B::Tensor>) {
        output.indices.clear();
        output.indices.extend(self.fed..self.fed + count as u64);
        output.tags.clear();
        output.tags.resize(count, 0);
    }

    /// Has the frames written. The slot is free again where that fails.
    fn fill<E>(
        &mut self,
        mut fill: Fill,
        count: usize,
        output: &mut Output<B::Tensor>,
        write: Write<'_, E>,
    ) -> Result<Filled, NotSent<E>> {
        let mut region = fill.take_region(&self.layout, count);
        let written = catch_unwind(AssertUnwindSafe(|| self.write_all(&mut region, output, write)));
        if matches!(written, Ok(Ok(()))) {
            region.commit();
        } else {
            region.abandon();
        }
        match (fill.finish(), written) {
            (Finish::Filled(filled), Ok(Ok(()))) => Ok(filled),
            (finish, written) => {
                if let Finish::Cancelled(cancelled) = finish {
                    self.lane.cancel(cancelled);
                }
                Err(match written {
                    Err(panic) => NotSent::Panic(panic),
                    Ok(Err(error)) => error.into(),
                    Ok(Ok(())) => refused("the slot is still being filled").into(),
                })
            }
        }
    }

    /// Has every frame of a region written.
    fn write_all<E>(
        &self,
        region: &mut Region,
        output: &mut Output<B::Tensor>,
        write: Write<'_, E>,
    ) -> Result<(), FillError<E>> {
        let count = output.tags.len();
        for (position, tag) in output.tags.iter_mut().enumerate() {
            let mut sample = region.writer(position, output.host.bytes_mut());
            if let Some(geometries) = &self.geometries {
                let written = geometries.write(self.fed + position as u64, 0, &mut sample);
                written.map_err(|error| refused(&error.to_string()))?;
            }
            let mut writer = FrameWriter::new(sample, position, tag);
            write(&mut writer).map_err(|error| FillError::Frame { frame: position, error })?;
            writer.finish()?;
        }
        output.host.pack(count);
        Ok(())
    }

    /// A free output, or a new one in place of one that was taken out.
    pub(super) fn take_output(&mut self) -> Result<Output<B::Tensor>, FeedError> {
        if let Some(output) = self.outputs.take() {
            return Ok(output);
        }
        if self.outputs.size() >= self.wanted_outputs {
            return Err(FeedError::AllTensorsLeased { outputs: self.wanted_outputs });
        }
        self.account.check(self.lane.memory(), self.outputs.taken())?;
        let output = Output::for_feeder(self.lane.output()?, &self.layout)?;
        self.outputs.grow();
        Ok(output)
    }

    /// Whether a slot is kept, which it is from now on if one is free.
    pub(super) fn has_slot(&mut self) -> Result<bool, DeviceError> {
        self.slot = self.take_slot()?;
        Ok(self.slot.is_some())
    }

    /// A slot, if one is free now.
    pub(super) fn take_slot(&mut self) -> Result<Option<Fill>, DeviceError> {
        if let Some(kept) = self.slot.take() {
            return Ok(Some(kept));
        }
        if self.lane.in_flight() > 0 {
            self.reap(Wait::Poll)?;
        }
        self.lane.begin()
    }

    /// Gives a kept slot back, unsent.
    pub(super) fn give_slot_back(&mut self) {
        let Some(fill) = self.slot.take() else { return };
        match fill.finish() {
            Finish::Filled(filled) => self.lane.cancel(filled.cancel()),
            Finish::Cancelled(cancelled) => self.lane.cancel(cancelled),
            Finish::Open(_) => {}
        }
    }

    pub(super) fn reap(&mut self, wait: Wait) -> Result<(), DeviceError> {
        let result = self.lane.reap(wait, &mut self.finished);
        self.pending.retain(|(id, _)| !self.finished.contains(id));
        self.finished.clear();
        result
    }
}

/// The error of frames that were checked, so that copying them cannot fail.
pub(super) fn into_feed_error(error: FillError<io::Error>) -> FeedError {
    match error {
        FillError::Feed(error) => error,
        FillError::Frame { frame, error } => refused(&format!("frame {frame} was not copied: {error}")).into(),
    }
}

fn refused(message: &str) -> DeviceError {
    DeviceError::Refused { message: message.to_owned() }
}

//! Receiving with a little patience before blocking.

use std::time::Instant;

/// How often a channel is looked at before its thread blocks. Each look gives the processor away, so that on a machine with
/// few cores the sender gets it; all of them take some ten microseconds, about what one blocked hand-over costs.
const LOOKS: usize = 16;

/// Receives a message. A short look around saves the wake-up where the sender is about to send.
pub(super) fn recv<T>(channel: &flume::Receiver<T>) -> Result<T, flume::RecvError> {
    match look(channel)? {
        Some(message) => Ok(message),
        None => channel.recv(),
    }
}

/// As [`recv`]; `None` at the deadline.
pub(super) fn recv_deadline<T>(channel: &flume::Receiver<T>, deadline: Instant) -> Result<Option<T>, flume::RecvError> {
    match look(channel)? {
        Some(message) => Ok(Some(message)),
        None => match channel.recv_deadline(deadline) {
            Ok(message) => Ok(Some(message)),
            Err(flume::RecvTimeoutError::Timeout) => Ok(None),
            Err(flume::RecvTimeoutError::Disconnected) => Err(flume::RecvError::Disconnected),
        },
    }
}

fn look<T>(channel: &flume::Receiver<T>) -> Result<Option<T>, flume::RecvError> {
    for _ in 0..LOOKS {
        match channel.try_recv() {
            Ok(message) => return Ok(Some(message)),
            Err(flume::TryRecvError::Disconnected) => return Err(flume::RecvError::Disconnected),
            Err(flume::TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    Ok(None)
}

//! Receiving with a little patience before blocking.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How often a channel is looked at before its thread blocks. Each look gives the processor away, so that on a machine with
/// few cores the sender gets it; all of them take some ten microseconds, about what one blocked hand-over costs.
const MAX_SPINS: usize = 16;
/// A wait that no number of looks would have saved.
const LONG: Duration = Duration::from_micros(100);

thread_local! {
    /// Whether this thread's last wait was a long one. The next is likely to be, and looks would only burn time.
    static WAITED_LONG: Cell<bool> = const { Cell::new(false) };
}

/// Receives a message. A short look around saves the wake-up where the sender is about to send.
pub(super) fn recv<T>(channel: &flume::Receiver<T>) -> Result<T, flume::RecvError> {
    spin_then(channel, || channel.recv())
}

/// As [`recv`]; `None` at the deadline.
pub(super) fn recv_deadline<T>(channel: &flume::Receiver<T>, deadline: Instant) -> Result<Option<T>, flume::RecvError> {
    let received = spin_then(channel, || match channel.recv_deadline(deadline) {
        Ok(message) => Ok(message),
        // Hung up stays hung up: the next look tells.
        Err(_) => Err(flume::RecvError::Disconnected),
    });
    match received {
        Ok(message) => Ok(Some(message)),
        Err(_) if channel.is_disconnected() && channel.is_empty() => Err(flume::RecvError::Disconnected),
        Err(_) => Ok(None),
    }
}

/// Looks, and then blocks.
fn spin_then<T>(
    channel: &flume::Receiver<T>,
    block: impl FnOnce() -> Result<T, flume::RecvError>,
) -> Result<T, flume::RecvError> {
    let start = Instant::now();
    let received = match look(channel) {
        Ok(None) => block(),
        Ok(Some(message)) => Ok(message),
        Err(error) => Err(error),
    };
    WAITED_LONG.set(start.elapsed() > LONG);
    received
}

fn look<T>(channel: &flume::Receiver<T>) -> Result<Option<T>, flume::RecvError> {
    let looks = if WAITED_LONG.get() { 1 } else { MAX_SPINS };
    for _ in 0..looks {
        match channel.try_recv() {
            Ok(message) => return Ok(Some(message)),
            Err(flume::TryRecvError::Disconnected) => return Err(flume::RecvError::Disconnected),
            Err(flume::TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    Ok(None)
}

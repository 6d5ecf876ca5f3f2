//! Receiving with a little patience before blocking.

/// How often a channel is looked at before its thread blocks. Each look gives the processor away, so that on a machine with
/// few cores the sender gets it; all of them take some ten microseconds, about what one blocked hand-over costs.
const LOOKS: usize = 16;

/// Receives a message. A short look around saves the wake-up where the sender is about to send.
pub(super) fn recv<T>(channel: &flume::Receiver<T>) -> Result<T, flume::RecvError> {
    for _ in 0..LOOKS {
        match channel.try_recv() {
            Ok(message) => return Ok(message),
            Err(flume::TryRecvError::Disconnected) => return Err(flume::RecvError::Disconnected),
            Err(flume::TryRecvError::Empty) => std::thread::yield_now(),
        }
    }
    channel.recv()
}

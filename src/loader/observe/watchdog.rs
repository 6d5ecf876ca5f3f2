//! A thread that looks whether anything moves while the user waits, and tells the user if not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::pump::Delivery;
use super::activity::Activity;
use crate::error::LoadError;

/// How often it looks within the time that nothing may move.
const MAX_SPINS: u32 = 8;

/// Looks until `stop` is hung up, and counts the time that the user waits while nothing moves. The deliveries are held weakly: that the
/// pump has gone must show.
pub(in crate::loader) fn watch<T>(
    activity: &Arc<Activity>,
    timeout: Duration,
    deliveries: &flume::WeakSender<Delivery<T>>,
    stop: &flume::Receiver<()>,
) {
    let nap = (timeout / MAX_SPINS).max(Duration::from_millis(1));
    let (mut seen, mut looked, mut still) = (activity.moves(), Instant::now(), Duration::ZERO);
    while matches!(stop.recv_timeout(nap), Err(flume::RecvTimeoutError::Timeout)) {
        let (moves, elapsed) = (activity.moves(), looked.elapsed());
        looked += elapsed;
        if moves != seen {
            (seen, still) = (moves, Duration::ZERO);
        } else if activity.is_waiting() {
            still += elapsed;
        }
        if still < timeout {
            continue;
        }
        let Some(deliveries) = deliveries.upgrade() else { return };
        // What is there already only has to be taken.
        if activity.is_waiting() && deliveries.is_empty() {
            let stall = activity.stall(still);
            log::error!("{stall}");
            let error = LoadError::Stalled(Box::new(stall));
            // Without a receiver the loader is being dropped.
            let _ = deliveries.send(Delivery::report(activity.generation(), error));
        }
        still = Duration::ZERO;
    }
}

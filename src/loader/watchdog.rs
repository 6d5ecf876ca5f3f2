//! A thread that looks whether anything moves while the user waits, and tells the user if not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::activity::Activity;
use super::pump::Delivery;
use crate::error::LoadError;

/// How often it looks within the time that nothing may move.
const LOOKS: u32 = 8;

/// Looks until `stop` is hung up. The deliveries are held weakly: that the pump has gone must show.
pub(super) fn watch<T>(
    activity: &Arc<Activity>,
    timeout: Duration,
    deliveries: &flume::WeakSender<Delivery<T>>,
    stop: &flume::Receiver<()>,
) {
    let nap = (timeout / LOOKS).max(Duration::from_millis(1));
    let (mut seen, mut since) = (activity.moves(), Instant::now());
    while matches!(stop.recv_timeout(nap), Err(flume::RecvTimeoutError::Timeout)) {
        let moves = activity.moves();
        if moves != seen || !activity.is_waiting() {
            (seen, since) = (moves, Instant::now());
            continue;
        }
        let still = since.elapsed();
        if still >= timeout {
            let stall = activity.stall(still);
            log::error!("{stall}");
            let Some(deliveries) = deliveries.upgrade() else { return };
            let result = Err(LoadError::Stalled(Box::new(stall)));
            // Without a receiver the loader is being dropped.
            let _ = deliveries.send(Delivery { generation: activity.generation(), output: None, result });
            since = Instant::now();
        }
    }
}

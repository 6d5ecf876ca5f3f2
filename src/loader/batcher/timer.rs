//! One thread that rings when a batch is due, for asynchronous callers, who have no clock of their own. Started when the first of
//! them waits.

use std::sync::OnceLock;
use std::time::Instant;

/// Rings a bell at chosen moments. The thread ends when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Timer {
    alarms: OnceLock<Option<flume::Sender<Instant>>>,
}

impl Timer {
    /// Has the bell rung at this moment, or earlier. False if there is no thread to do so.
    pub(super) fn set(&self, at: Instant, bell: &flume::Sender<()>) -> bool {
        let alarms = self.alarms.get_or_init(|| start(bell.clone()));
        alarms.as_ref().is_some_and(|alarms| alarms.send(at).is_ok())
    }
}

fn start(bell: flume::Sender<()>) -> Option<flume::Sender<Instant>> {
    let (alarms, received) = flume::unbounded();
    let thread = std::thread::Builder::new().name("gpufeed-timer".to_owned()).spawn(move || ring(&received, &bell));
    match thread {
        Ok(_) => Some(alarms),
        Err(error) => {
            log::error!("no thread to tell when a batch is due: {error}; asynchronous callers will block");
            None
        }
    }
}

/// Rings at the earliest of the moments that were received, and forgets the others: whoever hears it looks, and sets another.
fn ring(alarms: &flume::Receiver<Instant>, bell: &flume::Sender<()>) {
    let mut next: Option<Instant> = None;
    loop {
        let received = match next {
            None => alarms.recv().map_err(|_| flume::RecvTimeoutError::Disconnected),
            Some(at) => alarms.recv_deadline(at),
        };
        match received {
            Ok(at) => next = Some(next.map_or(at, |earlier| earlier.min(at))),
            Err(flume::RecvTimeoutError::Timeout) => {
                next = None;
                // A bell that rings already will be heard.
                let _ = bell.try_send(());
            }
            Err(flume::RecvTimeoutError::Disconnected) => return,
        }
    }
}

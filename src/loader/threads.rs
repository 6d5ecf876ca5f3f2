//! Starting and ending the loader's threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::observe::activity::Activity;
use super::observe::watchdog;
use super::pump::{Delivery, Pump, ToPump};
use super::worker::{Job, Worker};
use crate::backend::Lane;
use crate::error::{OpenError, panic_message};

/// The loader's threads. Each holds a sender of `alive` that is dropped when it ends.
pub(super) struct Threads {
    handles: Vec<JoinHandle<()>>,
    alive: Option<flume::Sender<()>>,
    ended: flume::Receiver<()>,
    /// Hung up to end the watchdog.
    watched: Option<flume::Sender<()>>,
    timeout: Duration,
    pump_panic: Arc<Mutex<Option<String>>>,
}

impl Threads {
    /// A year: more cannot always be added to a point in time.
    const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

    pub(super) fn new(timeout: Duration) -> Self {
        let (alive, ended) = flume::bounded(0);
        Self {
            handles: Vec::new(),
            alive: Some(alive),
            ended,
            watched: None,
            timeout: timeout.min(Self::LONGEST),
            pump_panic: Arc::default(),
        }
    }

    pub(super) fn start_workers(
        &mut self,
        workers: impl Iterator<Item = Worker>,
        jobs: &flume::Receiver<Job>,
        pump: &flume::Sender<ToPump>,
    ) -> Result<(), OpenError> {
        for worker in workers {
            let (jobs, pump) = (jobs.clone(), pump.clone());
            self.start(format!("gpufeed-worker-{}", worker.number), move || worker.work(&jobs, &pump))?;
        }
        Ok(())
    }

    pub(super) fn start_pump<L: Lane>(&mut self, pump: Pump<L>) -> Result<(), OpenError> {
        let panic = Arc::clone(&self.pump_panic);
        self.start("gpufeed-pump".to_owned(), move || {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| pump.run())) {
                let message = format!("it panicked: {}", panic_message(payload));
                log::error!("the loader's pump stopped: {message}");
                *panic.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(message);
            }
        })
    }

    pub(super) fn start_watchdog<T: Send + 'static>(
        &mut self,
        activity: Arc<Activity>,
        timeout: Duration,
        deliveries: flume::WeakSender<Delivery<T>>,
    ) -> Result<(), OpenError> {
        let (watched, stop) = flume::bounded(0);
        self.watched = Some(watched);
        self.start("gpufeed-watchdog".to_owned(), move || watchdog::watch(&activity, timeout, &deliveries, &stop))
    }

    fn start(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> Result<(), OpenError> {
        let alive = self.alive.clone();
        let thread = move || {
            run();
            drop(alive);
        };
        let handle = Builder::new()
            .name(name)
            .spawn(thread)
            .map_err(|error| OpenError::Thread { message: error.to_string() })?;
        self.handles.push(handle);
        Ok(())
    }

    /// Why the pump ended, if it panicked.
    pub(super) fn pump_panic(&self) -> Option<String> {
        self.pump_panic.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// When waiting for the threads must end.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// Joins every thread, or leaves behind those that have not ended shortly after the deadline.
    pub(super) fn join(&mut self, deadline: Instant) {
        self.alive = None;
        self.watched = None;
        // The pump frees the device's memory after its own deadline.
        let grace = self.timeout.min(Duration::from_secs(1));
        let all_ended =
            matches!(self.ended.recv_deadline(deadline + grace), Err(flume::RecvTimeoutError::Disconnected));
        for handle in self.handles.drain(..) {
            if all_ended || handle.is_finished() {
                // A worker's panic was caught and reported; the pump's too.
                let _ = handle.join();
            } else {
                let name = handle.thread().name().unwrap_or("unnamed").to_owned();
                log::error!("thread {name} is left behind: it did not end within {:?}", self.timeout);
            }
        }
    }
}

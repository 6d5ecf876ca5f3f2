//! Whether a run goes on, and where it is when it does not.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::process;

/// No step of a run may take longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where a run is. Clones watch the same run.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Mutex<Step>>);

#[derive(Debug)]
struct Step {
    what: &'static str,
    number: u64,
    since: Instant,
}

impl Watch {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(Step { what: "starting", number: 0, since: Instant::now() })))
    }

    /// The run begins this step, or is still at it.
    pub fn at(&self, what: &'static str, number: u64) {
        let mut step = self.step();
        if (step.what, step.number) != (what, number) {
            *step = Step { what, number, since: Instant::now() };
        }
    }

    /// Waits for the run's thread.
    ///
    /// # Errors
    /// What went wrong: its panic, or the step that hangs and what every thread does.
    pub fn wait(&self, run: JoinHandle<()>) -> Result<(), String> {
        while !run.is_finished() {
            std::thread::park_timeout(Duration::from_micros(500));
            let step = self.step();
            if step.since.elapsed() > PATIENCE && !run.is_finished() {
                let threads = process::threads().join("\n    ");
                return Err(format!("hangs while {} {}; threads:\n    {threads}", step.what, step.number));
            }
        }
        run.join().map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            let step = self.step();
            format!("{} (while {} {})", text.unwrap_or_default(), step.what, step.number)
        })
    }

    fn step(&self) -> MutexGuard<'_, Step> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

//! Following a run: the counters as lines of JSON while it runs, and a trace of what ran when.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use gpufeed::loader::{Monitor, Occupancy};
use gpufeed::{LoaderOptions, LoaderStats, Trace};
use serde::Serialize;

use crate::output;
use crate::units::parse_period;

#[derive(Debug, Args)]
#[command(next_help_heading = "Observing")]
pub struct ObserveArgs {
    /// Measure afterwards how fast it would be if each stage were free; takes some seconds. The device's own clock then
    /// tells copies and kernels apart
    #[arg(long)]
    pub explain: bool,
    /// Record what runs when, for ui.perfetto.dev or chrome://tracing
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write the counters into this file while it runs, a line of JSON a device each time, and at its end
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// How often
    #[arg(long, value_name = "SECONDS", default_value = "1", requires = "metrics", value_parser = parse_period)]
    metrics_every: Duration,
}

/// What is recorded of a run.
pub struct Observed {
    trace: Option<(Arc<Trace>, File, PathBuf)>,
    metrics: Option<(File, PathBuf)>,
    every: Duration,
    timing: bool,
}

impl ObserveArgs {
    /// Makes the files, so that what cannot be written is reported before anything is loaded.
    pub fn prepare(&self) -> Result<Observed> {
        let trace = self.trace.as_deref().map(create).transpose()?;
        Ok(Observed {
            trace: trace.map(|(file, path)| (Arc::new(Trace::default()), file, path)),
            metrics: self.metrics.as_deref().map(create).transpose()?,
            every: self.metrics_every,
            timing: self.explain,
        })
    }
}

fn create(path: &Path) -> Result<(File, PathBuf)> {
    let file = File::create(path).with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok((file, path.to_owned()))
}

impl Observed {
    /// Has a loader take part.
    pub fn apply(&self, options: &mut LoaderOptions) {
        options.timing = self.timing;
        options.trace = self.trace.as_ref().map(|(trace, ..)| Arc::clone(trace));
    }

    /// Starts writing lines.
    ///
    /// `monitors` are those of the loaders, each with its device's id.
    pub fn start(&mut self, monitors: Vec<(String, Monitor)>) -> Result<Option<Lines>> {
        let Some((file, path)) = self.metrics.take() else { return Ok(None) };
        Lines::start(file, path, monitors, self.every).map(Some)
    }

    /// Writes the trace.
    pub fn finish(self) -> Result<()> {
        let Some((trace, file, path)) = self.trace else { return Ok(()) };
        trace.write(file).with_context(|| format!("{}: cannot be written", path.display()))?;
        if trace.dropped() > 0 {
            output::note(format_args!(
                "note: {}: holds the first {} events; {} later ones found no room",
                path.display(),
                trace.len(),
                trace.dropped()
            ));
        }
        Ok(())
    }
}

/// One line.
#[derive(Debug, Serialize)]
struct Line<'a> {
    /// Seconds since 1970, UTC.
    time: f64,
    /// Seconds since loading began.
    elapsed_s: f64,
    device: &'a str,
    /// The epoch under way.
    epoch: Option<u64>,
    /// Whether this is the device's last line.
    last: bool,
    data_readiness: f64,
    occupancy: Occupancy,
    stats: LoaderStats,
}

/// The thread that writes lines.
pub struct Lines {
    stop: Sender<()>,
    thread: JoinHandle<std::io::Result<()>>,
    path: PathBuf,
}

impl Lines {
    fn start(file: File, path: PathBuf, monitors: Vec<(String, Monitor)>, every: Duration) -> Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let start = Instant::now();
        let write = move || {
            let mut out = BufWriter::new(file);
            loop {
                let last = stopped.recv_timeout(every) != Err(RecvTimeoutError::Timeout);
                write_lines(&mut out, &monitors, start, last)?;
                if last {
                    return Ok(());
                }
            }
        };
        let thread = Builder::new().name("gpufeed-metrics".to_owned()).spawn(write)?;
        Ok(Self { stop, thread, path })
    }

    /// Writes the last lines.
    pub fn finish(self) -> Result<()> {
        drop(self.stop);
        let written = self.thread.join().map_err(|_| anyhow!("the thread that writes metrics panicked"))?;
        written.with_context(|| format!("{}: cannot be written", self.path.display()))
    }
}

fn write_lines(
    out: &mut impl Write,
    monitors: &[(String, Monitor)],
    start: Instant,
    last: bool,
) -> std::io::Result<()> {
    for (device, monitor) in monitors {
        let stats = monitor.stats();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let line = Line {
            time: now.as_secs_f64(),
            elapsed_s: start.elapsed().as_secs_f64(),
            device,
            epoch: monitor.epoch(),
            last,
            data_readiness: stats.data_readiness(),
            occupancy: stats.occupancy(),
            stats,
        };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    // Whoever follows the file sees whole lines.
    out.flush()
}

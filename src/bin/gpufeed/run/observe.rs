//! Following a run: the counters as lines of JSON while it runs, and a trace of what ran when.

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
use crate::output_file::{Inputs, OutputFile, Part};
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
    /// Write the counters into this file while it runs, a line of JSON a device each time, and at its end; a file that is
    /// there already is replaced at the end
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    /// How often
    #[arg(long, value_name = "SECONDS", default_value = "1", requires = "metrics", value_parser = parse_period)]
    metrics_every: Duration,
}

/// What is recorded of a run.
pub struct Observed {
    trace: Option<(Arc<Trace>, Writing)>,
    metrics: Option<Writing>,
    every: Duration,
    timing: bool,
}

/// A file, and what was begun of it.
struct Writing {
    output: OutputFile,
    part: Option<Part>,
}

impl Writing {
    /// Gives the file its name. A run that failed leaves a file that was there as it was.
    fn finish(self, failed: bool) -> Result<()> {
        let Some(part) = self.part else { return Ok(()) };
        if failed && self.output.exists() && part.is_beside() {
            output::note(format_args!("note: {}: left as it was, as the run failed", self.output.path().display()));
            return Ok(());
        }
        self.output.finish(part)
    }
}

impl ObserveArgs {
    /// The files that were asked for.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = [("--trace", &self.trace), ("--metrics", &self.metrics)];
        files.into_iter().filter_map(|(option, path)| Some((option, path.as_deref()?)))
    }

    /// Checks the files, and makes none.
    pub fn prepare(&self, inputs: &Inputs) -> Result<Observed> {
        let writing = |option, path: &Option<PathBuf>| {
            let output = path.as_deref().map(|path| OutputFile::new(option, path, inputs)).transpose()?;
            Ok::<_, anyhow::Error>(output.map(|output| Writing { output, part: None }))
        };
        let trace = writing("--trace", &self.trace)?;
        Ok(Observed {
            trace: trace.map(|writing| (Arc::new(Trace::default()), writing)),
            metrics: writing("--metrics", &self.metrics)?,
            every: self.metrics_every,
            timing: self.explain,
        })
    }
}

impl Observed {
    /// Has a loader take part.
    pub fn apply(&self, options: &mut LoaderOptions) {
        options.timing = self.timing;
        options.trace = self.trace.as_ref().map(|(trace, ..)| Arc::clone(trace));
    }

    /// Begins the files, so that what cannot be written is reported before anything is loaded, and starts writing lines.
    ///
    /// `monitors` are those of the loaders, each with its device's id.
    pub fn start(&mut self, monitors: Vec<(String, Monitor)>) -> Result<Option<Lines>> {
        if let Some((_, trace)) = &mut self.trace {
            trace.part = Some(trace.output.begin()?);
        }
        let Some(mut writing) = self.metrics.take() else { return Ok(None) };
        let output = &writing.output;
        // Where nothing can be lost, others may follow the lines as they come.
        writing.part = Some(if output.exists() { output.begin()? } else { output.begin_in_place()? });
        Lines::start(writing, monitors, self.every).map(Some)
    }

    /// Writes the trace.
    pub fn finish(self, failed: bool) -> Result<()> {
        let Some((trace, mut writing)) = self.trace else { return Ok(()) };
        let path = writing.output.path().to_owned();
        if let Some(part) = &mut writing.part {
            trace.write(part).with_context(|| format!("--trace {}: it cannot be written", path.display()))?;
        }
        writing.finish(failed)?;
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
    writing: Writing,
}

impl Lines {
    fn start(writing: Writing, monitors: Vec<(String, Monitor)>, every: Duration) -> Result<Self> {
        let file = writing.part.as_ref().map(Part::handle).transpose()?.context("no file was begun")?;
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
        Ok(Self { stop, thread, writing })
    }

    /// Writes the last lines.
    pub fn finish(self, failed: bool) -> Result<()> {
        drop(self.stop);
        let written = self.thread.join().map_err(|_| anyhow!("the thread that writes metrics panicked"))?;
        let path = self.writing.output.path();
        written.with_context(|| format!("--metrics {}: it cannot be written", path.display()))?;
        self.writing.finish(failed)
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

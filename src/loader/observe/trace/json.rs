//! A trace as a file: the Trace Event Format's complete events, by process (a loader) and thread (a track).

use std::fmt::Display;
use std::io::{self, BufWriter, Write};
use std::sync::atomic::Ordering;

use super::{Event, Shared, Trace, Track, What, lock};
use crate::loader::observe::metrics::Cause;

impl Trace {
    /// Writes the events as JSON: those there are now.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut out = BufWriter::new(out);
        let shared = lock(&self.shared);
        write!(
            out,
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped_events\":{},\"capacity\":{}}},\"traceEvents\":[",
            self.dropped(),
            self.most
        )?;
        let events = in_order(&shared);
        let mut first = true;
        let mut track = None;
        for (loader, traced) in shared.loaders.iter().enumerate() {
            name(&mut out, &mut first, "process_name", loader, 0, &traced.name)?;
        }
        for event in &events {
            if track != Some((event.loader, event.track)) {
                track = Some((event.loader, event.track));
                name(&mut out, &mut first, "thread_name", event.loader as usize, event.track.id(), event.track.name())?;
                sort(&mut out, event)?;
            }
            span(&mut out, event)?;
        }
        out.write_all(b"\n]}\n")?;
        out.flush()
    }
}

/// By track and start, on the trace's clock. On the track of a slot what is in flight ends, at the latest, where the slot is filled
/// again: some are free before the CPU sees that their batch has ended.
fn in_order(shared: &Shared) -> Vec<Event> {
    let mut events = Vec::new();
    for buffer in &shared.buffers {
        let buffer = lock(buffer);
        buffer.full.iter().chain([&buffer.open]).for_each(|chunk| events.extend_from_slice(chunk));
    }
    for event in &mut events {
        if let (What::Copy | What::Kernel, Some(traced)) = (event.what, shared.loaders.get(event.loader as usize)) {
            let behind = traced.behind.load(Ordering::Relaxed);
            event.start = event.start.saturating_add_signed(behind);
            event.end = event.end.saturating_add_signed(behind);
        }
    }
    events.sort_by_key(|event| (event.loader, event.track, event.start, event.end));
    for at in 1..events.len() {
        let (before, after) = events.split_at_mut(at);
        if let (Some(last), Some(next)) = (before.last_mut(), after.first())
            && last.what == What::InFlight
            && (last.loader, last.track) == (next.loader, next.track)
        {
            last.end = last.end.min(next.start);
        }
    }
    events
}

/// A name for a process or a thread.
fn name(
    out: &mut impl Write,
    first: &mut bool,
    kind: &str,
    loader: usize,
    id: u64,
    name: impl Display,
) -> io::Result<()> {
    let comma = if std::mem::take(first) { "" } else { "," };
    let name: String = name.to_string().chars().flat_map(escaped).collect();
    let pid = loader + 1;
    write!(
        out,
        "{comma}\n{{\"ph\":\"M\",\"name\":\"{kind}\",\"pid\":{pid},\"tid\":{id},\"args\":{{\"name\":\"{name}\"}}}}"
    )
}

/// Where a track stands among the others.
fn sort(out: &mut impl Write, event: &Event) -> io::Result<()> {
    let (pid, id) = (event.loader + 1, event.track.id());
    write!(
        out,
        ",\n{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{pid},\"tid\":{id},\"args\":{{\"sort_index\":{id}}}}}"
    )
}

fn span(out: &mut impl Write, event: &Event) -> io::Result<()> {
    let &Event { loader, track, what, start, end, epoch, batch, run: (first, samples) } = event;
    let (took, pid, id) = (end.saturating_sub(start), loader + 1, track.id());
    write!(out, ",\n{{\"ph\":\"X\",\"name\":\"{}\",\"pid\":{pid},\"tid\":{id},", what.name())?;
    write!(out, "\"ts\":{}.{:03},\"dur\":{}.{:03}", start / 1000, start % 1000, took / 1000, took % 1000)?;
    match what {
        What::Wait(_) => {}
        What::Read => {
            write!(out, ",\"args\":{{\"epoch\":{epoch},\"batch\":{batch},\"first\":{first},\"samples\":{samples}}}")?
        }
        _ => write!(out, ",\"args\":{{\"epoch\":{epoch},\"batch\":{batch}}}")?,
    }
    out.write_all(b"}")
}

/// A character within a JSON string.
fn escaped(c: char) -> impl Iterator<Item = char> {
    let (slash, c) = match c {
        '"' | '\\' => (Some('\\'), c),
        c if c.is_control() => (None, ' '),
        c => (None, c),
    };
    slash.into_iter().chain([c])
}

impl Track {
    /// Its thread's number, which is its place from the top.
    fn id(self) -> u64 {
        match self {
            Self::Next => 1,
            Self::Pump => 2,
            Self::Copy => 3,
            Self::Kernel => 4,
            Self::Worker(number) => 100 + u64::from(number),
            Self::Slot(number) => 10_000 + u64::from(number),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Next => "user, in next".to_owned(),
            Self::Pump => "pump".to_owned(),
            Self::Copy => "GPU copy".to_owned(),
            Self::Kernel => "GPU kernel".to_owned(),
            Self::Worker(number) => format!("worker {number}"),
            Self::Slot(number) => format!("slot {number}"),
        }
    }
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Begin => "begin",
            Self::Submit => "submit",
            Self::Wait(Cause::Source) => "wait for the source",
            Self::Wait(Cause::Device) => "wait for the device",
            Self::Wait(Cause::Either) => "wait for source or device",
            Self::Wait(Cause::Consumer) => "wait for the user",
            Self::Wait(Cause::Idle) => "wait for the last batches",
            Self::Read => "read",
            Self::Filling => "filling",
            Self::Filled => "filled",
            Self::InFlight => "in flight",
            Self::Copy => "copy",
            Self::Kernel => "kernel",
        }
    }
}

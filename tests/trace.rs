//! A trace is a file that a timeline viewer reads: every batch has its spans, and none overlap on a track.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gpufeed::backend::host::{Faults, HostBackend};
use gpufeed::source::random_images;
use gpufeed::{Backend, Loader, LoaderOptions, Normalize, SampleLayout, Trace};
use serde_json::Value;

const BATCHES: u64 = 12;
const BATCH_SIZE: usize = 5;
/// Times are written to the nanosecond, in microseconds.
const ROUNDING: f64 = 0.002;

/// A span of the file.
#[derive(Clone, Debug)]
struct Span {
    name: String,
    track: String,
    process: u64,
    batch: Option<(u64, u64)>,
    samples: u64,
    start: f64,
    end: f64,
}

fn options(trace: &Arc<Trace>) -> LoaderOptions {
    LoaderOptions {
        batch_size: BATCH_SIZE,
        workers: 2,
        slots: 3,
        outputs: 3,
        preprocess: Normalize::imagenet().into(),
        trace: Some(Arc::clone(trace)),
        ..LoaderOptions::default()
    }
}

/// Loads two epochs and drops the loader.
fn load<B: Backend>(backend: &B, options: LoaderOptions) {
    let layout = SampleLayout::image(8, 8, 3).expect("a valid layout");
    let source = random_images(layout, BATCHES as usize * BATCH_SIZE - 1, 1).expect("images");
    let mut loader = Loader::new(backend, Arc::new(source), options).expect("the loader opens");
    for epoch in 0..2 {
        let mut batches = 0;
        loader.epoch(epoch).for_each(|batch| batches += u64::from(!batch.expect("a batch").is_empty()));
        assert_eq!(batches, BATCHES);
    }
    loader.wait_idle().expect("the device is there");
}

fn file(trace: &Trace) -> Value {
    let mut text = Vec::new();
    trace.write(&mut text).expect("memory takes it");
    serde_json::from_slice(&text).expect("it is JSON")
}

fn spans(file: &Value) -> Vec<Span> {
    assert_eq!(file["displayTimeUnit"], "ns");
    let events = file["traceEvents"].as_array().expect("an array");
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let thread = |event: &Value| (event["pid"].as_u64().expect("a number"), event["tid"].as_u64().expect("a number"));
    let names: BTreeMap<(u64, u64), String> = events
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| (thread(event), text(&event["args"]["name"])))
        .collect();
    let span = |event: &Value| {
        let (start, took) = (event["ts"].as_f64().expect("a time"), event["dur"].as_f64().expect("a time"));
        let args = &event["args"];
        Span {
            name: text(&event["name"]),
            track: names[&thread(event)].clone(),
            process: thread(event).0,
            batch: args["epoch"].as_u64().zip(args["batch"].as_u64()),
            samples: args["samples"].as_u64().unwrap_or_default(),
            start,
            end: start + took,
        }
    };
    events.iter().filter(|event| event["ph"] == "X").map(span).collect()
}

/// The only span of this name that a batch has.
fn only(spans: &[Span], batch: (u64, u64), name: &str) -> Span {
    let mut found = spans.iter().filter(|span| span.batch == Some(batch) && span.name == name);
    let (first, second) = (found.next(), found.next());
    assert!(second.is_none(), "batch {batch:?} has two spans `{name}`");
    first.unwrap_or_else(|| panic!("batch {batch:?} has no span `{name}`")).clone()
}

fn no_overlap_on_any_track(spans: &[Span]) {
    let mut tracks: BTreeMap<(u64, &str), Vec<&Span>> = BTreeMap::new();
    spans.iter().for_each(|span| tracks.entry((span.process, &span.track)).or_default().push(span));
    for ((_, track), mut spans) in tracks {
        spans.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.end.total_cmp(&b.end)));
        for pair in spans.windows(2) {
            assert!(pair[0].end <= pair[1].start + ROUNDING, "on {track} {:?} overlaps {:?}", pair[0], pair[1]);
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one list of claims about one trace")]
fn every_batch_has_its_spans_in_order_and_every_worker_its_track() {
    let trace = Arc::new(Trace::default());
    let slow = Duration::from_micros(700);
    load(&HostBackend::with_faults(Faults { copy: slow, kernel: slow, ..Faults::default() }), options(&trace));
    let file = file(&trace);
    let spans = spans(&file);
    assert_eq!((trace.dropped(), &file["otherData"]["dropped_events"]), (0, &0.into()));
    no_overlap_on_any_track(&spans);
    for batch in (0..2).flat_map(|epoch| (0..BATCHES).map(move |number| (epoch, number))) {
        let passed = ["begin", "filling", "filled", "submit", "in flight"].map(|name| only(&spans, batch, name));
        for pair in passed.windows(2) {
            assert!(pair[0].start <= pair[1].start + ROUNDING, "batch {batch:?}: {pair:?}");
        }
        let [_, filling, filled, submit, in_flight] = passed;
        assert!(filling.track.starts_with("slot ") && filling.track == filled.track && filled.track == in_flight.track);
        let reads: Vec<&Span> = spans.iter().filter(|span| span.batch == Some(batch) && span.name == "read").collect();
        let samples = BATCH_SIZE as u64 - u64::from(batch.1 == BATCHES - 1);
        assert_eq!(reads.iter().map(|read| read.samples).sum::<u64>(), samples, "{reads:?}");
        for read in reads {
            assert!(
                filling.start <= read.start + ROUNDING && read.end <= filling.end + ROUNDING,
                "{read:?} {filling:?}"
            );
        }
        // By the device's clock, aligned to the CPU's.
        let (copy, kernel) = (only(&spans, batch, "copy"), only(&spans, batch, "kernel"));
        assert!(submit.start <= copy.start + ROUNDING, "{submit:?} {copy:?}");
        assert!(copy.end <= kernel.start + ROUNDING, "{copy:?} {kernel:?}");
        // A slot is free when its copy has ended, and the track goes on with the batch that is filled into it next.
        let refilled = spans.iter().any(|next| {
            (&*next.track, next.name.as_str()) == (&*in_flight.track, "filling")
                && (next.start - in_flight.end).abs() <= ROUNDING
        });
        assert!(refilled || kernel.end <= in_flight.end + ROUNDING, "{kernel:?} {in_flight:?}");
        let next = only(&spans, batch, "next");
        assert!(submit.end <= next.end + ROUNDING, "{submit:?} {next:?}");
    }
    let mut tracks: Vec<&str> = spans.iter().map(|span| span.track.as_str()).collect();
    tracks.sort_unstable();
    tracks.dedup();
    let fixed = ["GPU copy", "GPU kernel", "pump", "slot 0", "slot 1", "slot 2", "user, in next"];
    assert!(fixed.iter().all(|name| tracks.contains(name)), "{tracks:?}");
    // On a machine that is busy one of two workers may do it all.
    let workers = tracks.iter().filter(|track| track.starts_with("worker ")).count();
    assert!((1..=2).contains(&workers) && tracks.len() == fixed.len() + workers, "{tracks:?}");
    assert!(spans.iter().any(|span| span.name.starts_with("wait for ")), "the pump waited for something");
}

#[test]
fn what_finds_no_room_is_counted_and_the_file_says_so() {
    let trace = Arc::new(Trace::with_capacity(20));
    load(&HostBackend::new(), options(&trace));
    // All room is the first thread's that records something, which may not need it all.
    assert!((1..=20).contains(&trace.len()), "{}", trace.len());
    assert!(trace.dropped() > 100, "{}", trace.dropped());
    let file = file(&trace);
    assert_eq!((spans(&file).len(), &file["otherData"]["dropped_events"]), (trace.len(), &trace.dropped().into()));
    assert_eq!(file["otherData"]["capacity"], 20);
}

#[test]
fn loaders_that_share_a_trace_have_tracks_of_their_own() {
    let trace = Arc::new(Trace::default());
    std::thread::scope(|scope| {
        (0..2).for_each(|_| _ = scope.spawn(|| load(&HostBackend::new(), options(&trace))));
    });
    let file = file(&trace);
    let all = spans(&file);
    no_overlap_on_any_track(&all);
    for process in [1, 2] {
        let own: Vec<Span> = all.iter().filter(|span| span.process == process).cloned().collect();
        (0..BATCHES).for_each(|number| _ = only(&own, (1, number), "submit"));
    }
    let names: Vec<&Value> = file["traceEvents"].as_array().expect("an array").iter().collect();
    let named = names.iter().filter(|event| event["name"] == "process_name");
    assert!(
        named.clone().count() == 2 && named.clone().all(|event| event["args"]["name"] == "host host memory, memcpy")
    );
}

#[cfg(feature = "wgpu")]
#[test]
#[allow(clippy::print_stderr)] // What is skipped is said.
fn a_devices_own_clock_is_aligned_to_the_cpus() {
    use gpufeed::backend::wgpu::WgpuBackend;
    let Ok(backend) = WgpuBackend::open("vulkan:0") else {
        return eprintln!("skipped: a_devices_own_clock_is_aligned_to_the_cpus: there is no Vulkan here");
    };
    let trace = Arc::new(Trace::default());
    load(&backend, options(&trace));
    let spans = spans(&file(&trace));
    no_overlap_on_any_track(&spans);
    let mut kernels = spans.iter().filter(|span| span.name == "kernel").peekable();
    if kernels.peek().is_none() {
        return eprintln!("skipped: a_devices_own_clock_is_aligned_to_the_cpus: the device has no clock");
    }
    for kernel in kernels {
        // The estimate of the clocks' distance is never too small.
        let submit = only(&spans, kernel.batch.expect("it is a batch's"), "submit");
        assert!(submit.start <= kernel.end + ROUNDING, "{submit:?} {kernel:?}");
    }
}

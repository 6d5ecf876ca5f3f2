//! Loaders under random faults for minutes: what `tests/faults` does, with larger samples, on every device here in turn, while the
//! process's memory and threads are watched. It ends with status 1 at the first wrong batch, hang or leak, and where memory grew.
//!
//! `cargo bench --bench soak -- --seconds 600`; the default is a minute.

#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../tests/support/counting.rs"]
mod counting;
#[path = "../tests/faults/device.rs"]
mod device;
#[path = "../tests/faults/harness.rs"]
mod harness;
#[path = "../tests/faults/pass.rs"]
mod pass;
#[path = "../tests/faults/plan.rs"]
mod plan;
#[path = "../tests/support/process.rs"]
mod process;
#[path = "../tests/support/random.rs"]
mod random;
#[path = "../tests/faults/run.rs"]
mod run;
#[path = "../tests/faults/source.rs"]
mod source;
#[path = "../tests/faults/watch.rs"]
mod watch;
#[path = "../tests/faults/witness.rs"]
mod witness;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use gpufeed::Strategy;
use plan::{Plan, Size};
use run::Tally;

const SIZE: Size = Size { samples: 600, batch: 40, bytes: 20_000, side: 48 };
const EVERY: Duration = Duration::from_secs(5);
/// What allocators and drivers may keep for themselves, in bytes of the heap and of resident memory.
const HEAP_GROWTH: i64 = 256 << 10;
/// What wgpu 30 keeps of each thread that ever opened an error scope on a device, a loader's pump and whoever opened it: 285 bytes
/// each, as long as the device lives. Bytes a run.
const HEAP_OF_WGPU: i64 = 400;
const RESIDENT_GROWTH: i64 = 64 << 20;
/// Drivers' own threads; of gpufeed's not one may be left after any run.
const THREADS_GROWTH: i64 = 2;

/// What the process holds between two runs.
#[derive(Clone, Copy, Default)]
struct Held {
    heap: i64,
    resident: i64,
    threads: usize,
}

impl Held {
    fn now() -> Self {
        let (heap, resident) = (counting::live(), process::resident_bytes() as i64);
        Self { heap, resident, threads: process::thread_count() }
    }
}

/// The devices to run on in turn.
struct Devices {
    #[cfg(feature = "wgpu")]
    vulkan: Option<gpufeed::backend::wgpu::WgpuBackend>,
}

impl Devices {
    fn open() -> Self {
        #[cfg(feature = "wgpu")]
        let vulkan = gpufeed::backend::wgpu::WgpuBackend::open("vulkan:0")
            .inspect_err(|error| println!("without Vulkan: {error}"))
            .ok();
        Self {
            #[cfg(feature = "wgpu")]
            vulkan,
        }
    }

    /// One run: two of three on the host.
    fn run(&self, seed: u64) -> Result<Tally, String> {
        #[cfg(feature = "wgpu")]
        if let (Some(vulkan), 0) = (&self.vulkan, seed % 3) {
            use device::FaultyDevice;
            let plan = Plan::new(seed, &vulkan.strategies(), SIZE);
            // One that is lost is of no use to the next run.
            let backend = match plan.loss {
                Some(_) => gpufeed::backend::wgpu::WgpuBackend::open("vulkan:0").map_err(|error| error.to_string())?,
                None => vulkan.clone(),
            };
            return harness::attempt(plan, backend, None);
        }
        let plan = Plan::new(seed, &[Strategy::Memcpy], SIZE);
        let backend = device::host(&plan);
        // Drivers free in their own time what an earlier run had, so that bytes are compared over many runs.
        harness::attempt(plan, backend, None)
    }
}

/// Seconds to run for; what cargo passes to every bench is no argument of ours.
fn seconds() -> u64 {
    let arguments: Vec<String> = std::env::args().collect();
    let after = arguments.iter().position(|argument| argument == "--seconds").and_then(|at| arguments.get(at + 1));
    after.map_or(60, |seconds| seconds.parse().expect("--seconds takes a number"))
}

fn main() -> ExitCode {
    match soak(Duration::from_secs(seconds())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("failed: {what}");
            ExitCode::FAILURE
        }
    }
}

fn soak(time: Duration) -> Result<(), String> {
    harness::quiet();
    let devices = Devices::open();
    let (start, mut shown) = (Instant::now(), Instant::now());
    let (mut total, mut history) = (Tally::default(), Vec::new());
    // Another part of the seeds each time.
    let first = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs()) << 20;
    for run in 0.. {
        let seed = first.wrapping_add(run);
        let Tally { epochs, batches, errors } = devices.run(seed)?;
        total.epochs += epochs;
        total.batches += batches;
        total.errors += errors;
        let held = Held::now();
        history.push(held);
        let over = start.elapsed() >= time;
        if over || shown.elapsed() >= EVERY {
            shown = Instant::now();
            let Tally { epochs, batches, errors } = total;
            println!(
                "{:5.0} s: {} runs, {epochs} epochs, {batches} batches, {errors} errors; heap {} KiB, resident {} MiB, {} threads",
                start.elapsed().as_secs_f64(),
                run + 1,
                held.heap >> 10,
                held.resident >> 20,
                held.threads
            );
        }
        if over {
            break;
        }
    }
    grown(&history)
}

/// Compares the least that was held in the second quarter, when everything has been used once, with the least in the last.
fn grown(history: &[Held]) -> Result<(), String> {
    let quarter = history.len() / 4;
    if quarter == 0 {
        return Err(format!("{} runs are too few to tell growth", history.len()));
    }
    let least = |from: usize, of: fn(&Held) -> i64| history[from..from + quarter].iter().map(of).min().unwrap_or(0);
    let growth = |of| least(history.len() - quarter, of) - least(quarter, of);
    let (heap, resident) = (growth(|held| held.heap), growth(|held| held.resident));
    let threads = growth(|held| held.threads as i64);
    println!("grown since the second quarter: heap {heap} bytes, resident {} KiB, {threads} threads", resident >> 10);
    let runs = (history.len() - 2 * quarter) as i64;
    if heap > HEAP_GROWTH + HEAP_OF_WGPU * runs || resident > RESIDENT_GROWTH || threads > THREADS_GROWTH {
        return Err("memory or threads grew".to_owned());
    }
    Ok(())
}

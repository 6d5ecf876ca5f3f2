//! What the Vulkan strategies reach on this machine's card, beside the ceilings of the same run.
//!
//! `cargo bench --bench device -- [DEVICE] [SECONDS]`: shuffled u8 images of 224x224x3 in memory, normalised to f32 or f16 NCHW. Each
//! lane is checked first: an untimed epoch by fingerprints, and a whole tensor against the oracle.

#![allow(clippy::print_stdout)] // The table is what it is for.

mod ceiling;
mod loader;
mod times;
mod write;

use std::sync::Arc;
use std::time::Duration;

use gpufeed::backend::wgpu::{Gather, HostCache, SlotReads, Tuning, WgpuBackend};
use gpufeed::{Backend, FloatType, HostArena, Normalize, Preprocess, SampleLayout, Strategy};

const IMAGES: usize = 8192;
/// With the last an f16 batch moves more bytes than an f32 batch with the one before.
const BATCH_SIZES: [usize; 3] = [64, 256, 512];
const WORKERS: usize = 8;
const SLOTS: usize = 4;
/// Until a card that had little to do runs at its speed.
const WARM_UP: Duration = Duration::from_millis(300);

/// What is measured on.
struct Bench {
    backend: WgpuBackend,
    memory: Arc<HostArena>,
    layout: SampleLayout,
    at_least: Duration,
}

/// One line of the table.
struct Row {
    name: String,
    batch: usize,
    /// u8 bytes a second.
    rate: f64,
    /// Bytes a second that the CPU can write into the slots, if there are any.
    write: Option<f64>,
    /// Of one core, all threads of the process together; not where the system does not tell.
    cpu: Option<f64>,
    /// Seconds a batch, by the device's own clock.
    device: Option<(f64, f64)>,
}

fn main() {
    // wgpu's errors outside of gpufeed's calls speak through the log.
    env_logger::init();
    // cargo passes `--bench`.
    let mut args = std::env::args().skip(1).filter(|arg| !arg.starts_with("--"));
    let device = args.next().unwrap_or_else(|| "vulkan:0".to_owned());
    let seconds: f64 = args.next().map_or(2.0, |text| text.parse().expect("seconds"));
    let layout = SampleLayout::image(224, 224, 3).expect("a valid layout");
    let images: usize = args.next().map_or(IMAGES, |text| text.parse().expect("images"));
    let memory = HostArena::new(images * layout.byte_len(), fill).expect("1.2 GB of memory");
    let backend = WgpuBackend::open(&device).expect("a device");
    let bench = Bench { backend, memory: Arc::new(memory), layout, at_least: Duration::from_secs_f64(seconds) };
    describe(&bench.backend);
    let link = bench.backend.copy_ceiling(256 << 20, bench.at_least).expect("the device copies");
    let on_device = bench.backend.kernel_ceiling(bench.at_least).expect("it copies").expect("it has kernels");
    println!(
        "host-to-device copy: {:.1} GB/s; copying kernel, read + write: {:.0} GB/s\n",
        link / 1e9,
        on_device / 1e9
    );
    println!(
        "| strategy | batch | images/s | GB/s | of link | write GB/s | of write | CPU | copy | kernel | kernel GB/s | of device | of a copy its size |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for preprocess in [Preprocess::from(Normalize::imagenet()), Normalize::imagenet().with_dtype(FloatType::F16).into()]
    {
        for batch in BATCH_SIZES.into_iter().filter(|&batch| batch <= images) {
            // A card that had nothing to do runs slowly at first.
            bench.backend.kernel_ceiling(WARM_UP).expect("the device computes");
            let copy = ceiling::one_dispatch(&bench.backend, moved(&bench, batch, &preprocess));
            let limits = Limits { link, on_device, copy };
            for (name, strategy, tuning) in lanes() {
                let options = loader::options(strategy, batch, &preprocess);
                let row = loader::measure(&bench, &bench.backend.with_tuning(tuning), &options);
                match row {
                    Ok(row) => print(&bench, &Row { name: name.to_owned(), ..row }, &preprocess, limits),
                    Err(reason) => println!("| {name} | {batch} | {reason} |"),
                }
            }
        }
    }
}

fn lanes() -> Vec<(&'static str, Strategy, Tuning)> {
    let tuned = |host_cache, slots, gather| Tuning { host_cache, slots, gather, ..Tuning::default() };
    let (cached, copy, kernel) = (HostCache::Cached, SlotReads::Copy, Gather::Kernel);
    vec![
        ("imported, kernel", Strategy::Imported, tuned(cached, copy, kernel)),
        ("imported, copy", Strategy::Imported, tuned(cached, copy, Gather::Copy)),
        ("system-ring, cached", Strategy::SystemRing, tuned(cached, copy, kernel)),
        ("system-ring, uncached", Strategy::SystemRing, tuned(HostCache::Uncached, copy, kernel)),
        ("system-ring, in place", Strategy::SystemRing, tuned(cached, SlotReads::InPlace, kernel)),
        ("mapped-ring", Strategy::MappedRing, Tuning::default()),
        ("write-buffer", Strategy::WriteBuffer, Tuning::default()),
    ]
}

fn fill(memory: &mut [u8]) {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for chunk in memory.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
}

fn describe(backend: &WgpuBackend) {
    let info = backend.info();
    let software = if info.is_software() { " (software: no evidence of any GPU's speed)" } else { "" };
    println!("{}: {}, {} {}{software}", info.id, info.name, info.driver, info.driver_info);
    for support in info.strategies.iter().filter(|support| support.memory.is_some()) {
        println!("{}: {}", support.strategy, support.memory.as_deref().unwrap_or_default());
    }
}

/// What a row is compared with.
#[derive(Clone, Copy)]
struct Limits {
    /// Bytes a second from the host's page-locked memory to the device.
    link: f64,
    /// Bytes read and written a second by copying kernels in a row.
    on_device: f64,
    /// Seconds of one copying kernel that moves as many bytes as the row's kernel.
    copy: Option<f64>,
}

/// Bytes that a batch's kernel reads and writes.
fn moved(bench: &Bench, batch: usize, preprocess: &Preprocess) -> usize {
    let layout = gpufeed::BatchLayout::new(bench.layout.clone(), batch).expect("a valid batch");
    layout.payload(batch) + preprocess.tensor(&layout, batch).byte_len()
}

fn print(bench: &Bench, row: &Row, preprocess: &Preprocess, limits: Limits) {
    let device = row.device.map_or_else(
        || " | | | | ".to_owned(),
        |(copy, kernel)| {
            let rate = moved(bench, row.batch, preprocess) as f64 / kernel;
            let same = limits.copy.map_or_else(String::new, |copy| format!("{:.2}", copy / kernel));
            let of_device = rate / limits.on_device;
            format!("{:.0} us | {:.1} us | {:.0} | {of_device:.2} | {same}", copy * 1e6, kernel * 1e6, rate / 1e9)
        },
    );
    let cpu = row.cpu.map_or_else(String::new, |cores| format!("{:.1}%", cores * 100.0));
    let write =
        row.write.map_or_else(|| " | ".to_owned(), |write| format!("{:.1} | {:.2}", write / 1e9, row.rate / write));
    let dtype = preprocess.tensor(&gpufeed::BatchLayout::new(bench.layout.clone(), 1).expect("a valid batch"), 1).dtype;
    println!(
        "| {}, {dtype} | {} | {:.0} | {:.1} | {:.2} | {write} | {cpu} | {device} |",
        row.name,
        row.batch,
        row.rate / bench.layout.byte_len() as f64,
        row.rate / 1e9,
        row.rate / limits.link,
    );
}

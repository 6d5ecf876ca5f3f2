//! What the Vulkan strategies reach on this machine's card, beside the ceilings of the same run.
//!
//! `cargo bench --bench device -- [DEVICE] [SECONDS]`: shuffled u8 images of 224x224x3 in memory, normalised to f32 or f16 NCHW. Each
//! lane is checked first: an untimed epoch by fingerprints, and a whole tensor against the oracle.

#![allow(clippy::print_stdout)] // The table is what it is for.

mod direct;
mod staged;

use std::sync::Arc;
use std::time::Duration;

use gpufeed::backend::wgpu::{Gather, HostCache, SlotReads, Tuning, WgpuBackend};
use gpufeed::source::HostArena;
use gpufeed::{Backend, FloatType, Normalize, Preprocess, SampleLayout, Strategy};

const IMAGES: usize = 8192;
const BATCH_SIZES: [usize; 2] = [64, 256];
const WORKERS: usize = 8;

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
    /// Of one core; not where it was not measured.
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
    println!("| strategy | batch | images/s | GB/s | of link | CPU | copy | kernel | kernel GB/s | of device |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for preprocess in [Preprocess::from(Normalize::imagenet()), Normalize::imagenet().with_dtype(FloatType::F16).into()]
    {
        for batch in BATCH_SIZES.into_iter().filter(|&batch| batch <= images) {
            for (name, strategy, tuning) in lanes() {
                let row = match strategy {
                    Strategy::Imported => direct::measure(&bench, tuning, batch, &preprocess),
                    _ => staged::measure(&bench, tuning, strategy, batch, &preprocess),
                };
                match row {
                    Ok(row) => print(&bench, &Row { name: name.to_owned(), ..row }, &preprocess, link, on_device),
                    Err(reason) => println!("| {name} | {batch} | {reason} |"),
                }
            }
        }
    }
}

fn lanes() -> Vec<(&'static str, Strategy, Tuning)> {
    let tuned = |host_cache, slots, gather| Tuning { host_cache, slots, gather };
    let (cached, copy, kernel) = (HostCache::Cached, SlotReads::Copy, Gather::Kernel);
    vec![
        ("imported, kernel", Strategy::Imported, tuned(cached, copy, kernel)),
        ("imported, copy", Strategy::Imported, tuned(cached, copy, Gather::Copy)),
        ("system-ring, cached", Strategy::SystemRing, tuned(cached, copy, kernel)),
        ("system-ring, uncached", Strategy::SystemRing, tuned(HostCache::Uncached, copy, kernel)),
        ("system-ring, in place", Strategy::SystemRing, tuned(cached, SlotReads::InPlace, kernel)),
        ("mapped-ring", Strategy::MappedRing, Tuning::default()),
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

fn print(bench: &Bench, row: &Row, preprocess: &Preprocess, link: f64, on_device: f64) {
    let layout = gpufeed::BatchLayout::new(bench.layout, row.batch).expect("a valid batch");
    let moved = (layout.payload(row.batch) + preprocess.tensor(&layout, row.batch).byte_len()) as f64;
    let device = row.device.map_or_else(
        || " | | | ".to_owned(),
        |(copy, kernel)| {
            let rate = moved / kernel;
            format!("{:.0} us | {:.0} us | {:.0} | {:.2}", copy * 1e6, kernel * 1e6, rate / 1e9, rate / on_device)
        },
    );
    let cpu = row.cpu.map_or_else(String::new, |cores| format!("{:.0}%", cores * 100.0));
    let dtype = preprocess.tensor(&layout, 1).dtype;
    println!(
        "| {}, {dtype} | {} | {:.0} | {:.1} | {:.2} | {cpu} | {device} |",
        row.name,
        row.batch,
        row.rate / bench.layout.byte_len() as f64,
        row.rate / 1e9,
        row.rate / link,
    );
}

//! A strategy as its users run it: a whole loader, in turn with what its workers can write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gpufeed::backend::wgpu::WgpuBackend;
use gpufeed::measure::process_cpu;
use gpufeed::preprocess::{error_bound, expected, fingerprint};
use gpufeed::{Batch, Element, Loader, LoaderOptions, MemorySource, Normalize, Preprocess, Strategy};

use crate::write::Ceiling;
use crate::{Bench, Row, SLOTS, WORKERS, times};

/// Slices of loader and ceiling in turn, so that both see the same machine.
const TURNS: u32 = 4;

pub fn measure(bench: &Bench, backend: &WgpuBackend, options: &LoaderOptions) -> Result<Row, String> {
    let source = Arc::new(
        MemorySource::in_arena(Arc::clone(&bench.memory), bench.layout.clone()).map_err(|error| error.to_string())?,
    );
    let open = |options: LoaderOptions| {
        Loader::new(backend, source.clone(), options).map_err(|error| error.to_string().replace('\n', " "))
    };
    verify(bench, &mut open(LoaderOptions { fingerprints: true, ..options.clone() })?);
    let mut loader = open(options.clone())?;
    loader.epoch(1).for_each(|batch| drop(batch.expect("no error")));
    let strategy = loader.strategy();
    let mut ceiling = (!strategy.is_direct()).then(|| Ceiling::new(bench, backend, strategy, options.batch_size));
    let (mut took, mut cpu, mut bytes, mut epoch) = (Duration::ZERO, Some(Duration::ZERO), 0, 2);
    for _ in 0..TURNS {
        if let Some(ceiling) = &mut ceiling {
            ceiling.slice(bench, bench.at_least / TURNS);
        }
        let (start, before) = (Instant::now(), process_cpu());
        while start.elapsed() < bench.at_least / TURNS {
            bytes += loader.epoch(epoch).map(|batch| batch.expect("no error").len()).sum::<usize>();
            epoch += 1;
        }
        loader.wait_idle().expect("the device is there");
        took += start.elapsed();
        cpu = cpu.zip(process_cpu().zip(before)).map(|(sum, (after, before))| sum + (after - before));
    }
    drop(loader);
    Ok(Row {
        name: String::new(),
        batch: options.batch_size,
        rate: (bytes * bench.layout.byte_len()) as f64 / took.as_secs_f64(),
        write: ceiling.map(|ceiling| ceiling.rate()),
        cpu: cpu.map(|used| used.as_secs_f64() / took.as_secs_f64()),
        device: times::measure(bench, backend, strategy, options),
    })
}

/// What all strategies are run with.
pub fn options(strategy: Strategy, batch_size: usize, preprocess: &Preprocess) -> LoaderOptions {
    LoaderOptions {
        batch_size,
        slots: SLOTS,
        outputs: 4,
        workers: WORKERS,
        strategy: Some(strategy),
        preprocess: preprocess.clone(),
        seed: Some(1),
        ..LoaderOptions::default()
    }
}

/// Fingerprints of an epoch, and a whole tensor against the oracle.
fn verify(bench: &Bench, loader: &mut Loader<WgpuBackend>) {
    let size = bench.layout.byte_len();
    let sample = |&index: &u64| &bench.memory.bytes()[index as usize * size..][..size];
    let preprocess = loader.options().preprocess.clone();
    for batch in loader.epoch(0) {
        let batch = batch.expect("no error");
        let want: Vec<u64> = batch.indices().iter().map(|index| fingerprint(sample(index))).collect();
        assert_eq!(batch.fingerprints().expect("it can be read"), Some(want), "batch {}", batch.number());
        if let (0, Preprocess::Normalize(normalize)) = (batch.number(), &preprocess) {
            let pixels: Vec<u8> = batch.indices().iter().flat_map(sample).copied().collect();
            verify_tensor(bench, &batch, normalize, &pixels);
        }
    }
}

fn verify_tensor(bench: &Bench, batch: &Batch<WgpuBackend>, normalize: &Normalize, pixels: &[u8]) {
    let image = bench.layout.as_image().expect("an image");
    let bytes = batch.read().expect("it can be read");
    for (at, want) in expected(normalize, image, pixels).expect("valid").into_iter().enumerate() {
        let got = match batch.dtype() {
            Element::F16 => half::f16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]).to_f64(),
            _ => f64::from(f32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().expect("four bytes"))),
        };
        let channel = at % bench.layout.byte_len() / image.plane();
        let pixel = ((want - normalize.bias(channel)) / normalize.scale(channel)).round() as u8;
        assert!((got - want).abs() <= error_bound(normalize, channel, pixel), "{at}: {got} for {want}");
    }
}

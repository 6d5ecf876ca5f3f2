//! Reports for tests.

use super::machine::Host;
use super::outcome::Verified;
use super::report::{
    Ceilings, Configuration, Data, DeviceReport, DeviceStatus, GpuRates, HandOver, Report, Round, Settings, Status,
};
use crate::backend::host::host_info;
use crate::backend::{Footprint, GpuTimes, Strategy};
use crate::loader::LoaderStats;

/// A round of one second; samples of a thousandth of a gigabyte.
pub(crate) fn round(samples_s: f64) -> Round {
    let samples = samples_s as u64;
    Round {
        seconds: 1.0,
        batches: samples / 8,
        samples,
        bytes: samples * 1_000_000,
        samples_s,
        gb_s: samples_s / 1e3,
        cpu_s_per_gb: Some(0.25),
        staging_gb_s: Some(2.0),
        waited_s: 0.0,
        stats: LoaderStats { batches: samples / 8, samples, source_s: 0.5, ..LoaderStats::default() },
    }
}

pub(crate) fn measured(strategy: Strategy, batch_size: usize, rates: &[f64]) -> Configuration {
    let times = GpuTimes { copy_s: 0.2, kernel_s: 0.1, batches: 9 };
    Configuration {
        status: Status::Measured,
        footprint: Some(Footprint { staging: 4, device: 5, outputs: 6, host: 7 }),
        verified: Some(Verified { batches: 10, samples: 640, tensors: 3 }),
        rounds: rates.iter().copied().map(round).collect(),
        gpu: Some(GpuRates { times, copy_gb_s: Some(6.0), kernel_gb_s: Some(30.0) }),
        ..Configuration::new(Settings {
            strategy,
            sample_bytes: 1_000_000,
            batch_size,
            workers: 2,
            slots: 4,
            outputs: 3,
            compute_us: 0,
            hand_over: HandOver::Queued,
        })
    }
}

pub(crate) fn device(configurations: Vec<Configuration>) -> DeviceReport {
    let mut ceilings: Vec<Ceilings> = Vec::new();
    for sizes in configurations.iter().map(|c| c.settings) {
        if !ceilings.iter().any(|c| c.batch_size == sizes.batch_size) {
            ceilings.push(Ceilings {
                sample_bytes: sizes.sample_bytes,
                batch_size: sizes.batch_size,
                workers: sizes.workers,
                host_memcpy_samples: vec![4.0, 4.0, 5.0],
                host_memcpy_gb_s: None,
                device_copy_gb_s: Some(8.0),
                batch_copy_gb_s: None,
                pageable_copy_gb_s: Some(1.0),
                device_copy_error: None,
            });
        }
    }
    let report = DeviceReport::new(&host_info(), &[]);
    DeviceReport { ceilings, kernel_ceiling_gb_s: Some(40.0), configurations, seconds: 3.5, ..report }
}

/// A report with everything in it that a report can have.
pub(crate) fn report() -> Report {
    let unsupported = Configuration {
        status: Status::Unsupported { reason: "no | mapping, \"here\"".into() },
        ..measured(Strategy::DirectMap, 64, &[])
    };
    let failed = Configuration {
        status: Status::Failed { message: "batch 3 is wrong".into(), wrong_data: true },
        ..measured(Strategy::FreshMapped, 64, &[])
    };
    let fast = measured(Strategy::MappedRing, 64, &[2000.0, 2010.0, 1990.0]);
    let slow = measured(Strategy::WriteBuffer, 64, &[1000.0, 1001.0, 999.0]);
    let mut busy = measured(Strategy::MappedRing, 64, &[1600.0, 1610.0, 1590.0]);
    busy.settings.compute_us = 3000;
    busy.compute_alone_us = Some(3010.0);
    let mut first = device(vec![fast, slow, unsupported, failed, busy]);
    first.summarise();
    let crashed = DeviceStatus::Crashed { message: "signal 11".into() };
    let crashed = DeviceReport { status: crashed, ..device(Vec::new()) };
    let data = Data {
        synthetic: true,
        name: "random images".into(),
        layout: "u8 images of 224x224x3".into(),
        images: true,
        sample_bytes: 150_528,
        samples: 512,
        preprocess: "normalised to f32, NCHW".into(),
        seed: Some(1),
    };
    let host = Host { os: "linux".into(), arch: "x86_64".into(), cores: 2, cpu: Some("A CPU".into()), memory: Some(1) };
    Report {
        gpufeed: "0.1.0".to_owned(),
        date: "2024-02-29T23:59:59Z".to_owned(),
        host,
        debug_build: true,
        devices: vec![first, crashed],
        ..Report::new(data, vec!["gpufeed".into(), "compare".into()])
    }
}

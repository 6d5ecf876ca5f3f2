//! Device reports for tests.

use gpufeed::measure::Verified;
use gpufeed::measure::report::{Ceilings, Data, DeviceReport, HandOver, Report, Round, Settings, Status};
use gpufeed::{DeviceType, LoaderStats, Strategy};

/// A round of one second, all of which the device was busy.
fn round(samples_s: f64) -> Round {
    let mut stats = LoaderStats::default();
    (stats.batches, stats.active_s, stats.source_s, stats.gpu_s) = (10, 1.0, 0.5, 2.5);
    stats.waits.device_s = 0.9;
    Round {
        seconds: 1.0,
        batches: 10,
        samples: samples_s as u64,
        bytes: samples_s as u64 * 1_000_000,
        samples_s,
        gb_s: samples_s / 1e3,
        cpu_s_per_gb: Some(0.25),
        staging_gb_s: Some(2.0),
        waited_s: 0.0,
        stats,
    }
}

/// A software device on which each strategy had these rates, with each batch size.
pub fn device(id: &str, rates: &[(Strategy, usize, f64)]) -> DeviceReport {
    let adapter = crate::testing::adapter(|adapter| {
        (adapter.id, adapter.name) = (id.to_owned(), "Some Card".to_owned());
        adapter.device_type = DeviceType::Software;
    });
    let settings = |&(strategy, batch_size, _): &(Strategy, usize, f64)| Settings {
        strategy,
        sample_bytes: 12,
        batch_size,
        workers: 2,
        slots: 4,
        outputs: 4,
        compute_us: 0,
        hand_over: HandOver::Queued,
    };
    let mut device = DeviceReport::new(&adapter, &rates.iter().map(settings).collect::<Vec<_>>());
    for (row, (.., rate)) in device.configurations.iter_mut().zip(rates) {
        row.status = Status::Measured;
        row.verified = Some(Verified::default());
        row.rounds = [0.99, 1.0, 1.01].map(|drift| round(rate * drift)).to_vec();
        device.ceilings.push(Ceilings {
            sample_bytes: 12,
            batch_size: row.settings.batch_size,
            workers: 2,
            host_memcpy_samples: vec![4.0],
            device_copy_error: Some("no copy".to_owned()),
            ..Ceilings::default()
        });
    }
    device.summarise();
    device
}

pub fn report(devices: Vec<DeviceReport>) -> Report {
    let data = Data {
        synthetic: true,
        name: "random images in memory".to_owned(),
        layout: "u8 images of 2x2x3".to_owned(),
        images: true,
        sample_bytes: 12,
        samples: 100,
        preprocess: "delivered as they are".to_owned(),
        seed: None,
    };
    let mut report = Report::new(data, Vec::new());
    report.debug_build = true;
    report.devices = devices;
    report
}

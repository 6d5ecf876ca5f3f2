//! Device reports for tests.

use gpufeed::backend::host::host_info;
use gpufeed::measure::Verified;
use gpufeed::measure::report::{Ceilings, Data, DeviceReport, Host, Report, Round, SCHEMA, Settings, Status};
use gpufeed::{AdapterInfo, DeviceType, LoaderStats, Strategy};

/// A round of one second, all of which the device was busy.
fn round(images_s: f64) -> Round {
    Round {
        seconds: 1.0,
        batches: 10,
        samples: images_s as u64,
        bytes: images_s as u64 * 1_000_000,
        images_s,
        gb_s: images_s / 1e3,
        cpu_s_per_gb: Some(0.25),
        staging_gb_s: Some(2.0),
        stats: LoaderStats { source_s: 0.5, gpu_s: 2.5, ..LoaderStats::default() },
    }
}

/// A software device on which each strategy had these rates, with each batch size.
pub fn device(id: &str, rates: &[(Strategy, usize, f64)]) -> DeviceReport {
    let name = "Some Card".to_owned();
    let adapter = AdapterInfo { id: id.to_owned(), name, device_type: DeviceType::Software, ..host_info() };
    let settings = |&(strategy, batch_size, _): &(Strategy, usize, f64)| Settings {
        strategy,
        batch_size,
        workers: 2,
        slots: 4,
        outputs: 4,
    };
    let mut device = DeviceReport::new(&adapter, &rates.iter().map(settings).collect::<Vec<_>>());
    for (row, (.., rate)) in device.configurations.iter_mut().zip(rates) {
        row.status = Status::Measured;
        row.verified = Some(Verified::default());
        row.rounds = [0.99, 1.0, 1.01].map(|drift| round(rate * drift)).to_vec();
        device.ceilings.push(Ceilings {
            batch_size: row.settings.batch_size,
            workers: 2,
            host_memcpy_samples: vec![4.0],
            host_memcpy_gb_s: None,
            device_copy_gb_s: None,
            pageable_copy_gb_s: None,
            device_copy_error: Some("no copy".to_owned()),
        });
    }
    device.summarise();
    device
}

pub fn report(devices: Vec<DeviceReport>) -> Report {
    Report {
        schema: SCHEMA.to_owned(),
        gpufeed: "0.1.0".to_owned(),
        date: String::new(),
        host: Host { cpu: Some("A CPU".to_owned()), ..Host::here() },
        debug_build: true,
        command: Vec::new(),
        data: Data {
            synthetic: true,
            name: "random images in memory".to_owned(),
            layout: "u8 images of 2x2x3".to_owned(),
            images: true,
            sample_bytes: 12,
            samples: 100,
            preprocess: "delivered as they are".to_owned(),
            seed: None,
        },
        interrupted: false,
        devices,
    }
}

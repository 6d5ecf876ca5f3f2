//! One line for each round, for spreadsheets and data frames; rows without numbers say why.

use std::fmt::Write;

use super::Exporter;
use crate::measure::report::{Configuration, DeviceReport, DeviceStatus, Report, Round, Status};

/// Comma-separated values with a header line (RFC 4180). One line a round; a configuration without rounds, and a device
/// without configurations, is one line with empty numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv;

const HEADER: [&str; 32] = [
    "date",
    "gpufeed",
    "debug_build",
    "device",
    "device_name",
    "driver",
    "software",
    "strategy",
    "batch_size",
    "workers",
    "slots",
    "outputs",
    "state",
    "reason",
    "round",
    "seconds",
    "batches",
    "images_s",
    "gb_s",
    "cpu_s_per_gb",
    "staging_gb_s",
    "host_memcpy_gb_s",
    "device_copy_gb_s",
    "latency_p50_us",
    "latency_p95_us",
    "latency_p99_us",
    "wait_p50_us",
    "wait_p95_us",
    "wait_p99_us",
    "gpu_copy_gb_s",
    "gpu_kernel_gb_s",
    "kernel_ceiling_gb_s",
];

impl Exporter for Csv {
    fn export(&self, report: &Report) -> String {
        let mut out = String::new();
        line(&mut out, &HEADER.map(str::to_owned));
        for device in &report.devices {
            if device.configurations.is_empty() {
                line(&mut out, &[about(report, device), no_settings(device), no_round()].concat());
            }
            for configuration in &device.configurations {
                let start = [about(report, device), settings(configuration)].concat();
                if configuration.rounds.is_empty() {
                    line(&mut out, &[start.clone(), no_round()].concat());
                }
                for (number, one) in configuration.rounds.iter().enumerate() {
                    line(&mut out, &[start.clone(), round(number, one, device, configuration)].concat());
                }
            }
        }
        out
    }
}

fn about(report: &Report, device: &DeviceReport) -> Vec<String> {
    let adapter = &device.adapter;
    vec![
        report.date.clone(),
        report.gpufeed.clone(),
        report.debug_build.to_string(),
        adapter.id.clone(),
        adapter.name.clone(),
        format!("{} {}", adapter.driver, adapter.driver_info).trim().to_owned(),
        device.software.to_string(),
    ]
}

fn settings(configuration: &Configuration) -> Vec<String> {
    let settings = &configuration.settings;
    let (state, reason) = match &configuration.status {
        Status::Measured => ("measured", ""),
        Status::NotReached => ("not-reached", ""),
        Status::Unsupported { reason } => ("unsupported", reason.as_str()),
        Status::Failed { message, .. } => ("failed", message.as_str()),
    };
    let sizes = [settings.batch_size, settings.workers, settings.slots, settings.outputs];
    std::iter::once(settings.strategy.to_string())
        .chain(sizes.map(|size| size.to_string()))
        .chain([state.to_owned(), reason.to_owned()])
        .collect()
}

fn no_settings(device: &DeviceReport) -> Vec<String> {
    let (state, reason) = match &device.status {
        DeviceStatus::Ok => ("not-reached", String::new()),
        DeviceStatus::Interrupted => ("interrupted", String::new()),
        DeviceStatus::Crashed { message } => ("crashed", message.clone()),
        DeviceStatus::Timeout { seconds } => ("timeout", format!("killed after {seconds} s")),
        DeviceStatus::Error { message } => ("error", message.clone()),
    };
    [vec![String::new(); 5], vec![state.to_owned(), reason]].concat()
}

fn no_round() -> Vec<String> {
    vec![String::new(); HEADER.len() - 14]
}

fn round(number: usize, round: &Round, device: &DeviceReport, configuration: &Configuration) -> Vec<String> {
    let sizes = &configuration.settings;
    let ceilings = device.ceilings.iter().find(|c| (c.batch_size, c.workers) == (sizes.batch_size, sizes.workers));
    let optional = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let mut fields = vec![
        (number + 1).to_string(),
        round.seconds.to_string(),
        round.batches.to_string(),
        round.images_s.to_string(),
        round.gb_s.to_string(),
        optional(round.cpu_s_per_gb),
        optional(round.staging_gb_s),
        optional(ceilings.and_then(|c| c.host_memcpy_gb_s)),
        optional(ceilings.and_then(|c| c.device_copy_gb_s)),
    ];
    for percentiles in [round.stats.latency, round.stats.wait] {
        fields.extend([percentiles.p50_us, percentiles.p95_us, percentiles.p99_us].map(|us| us.to_string()));
    }
    let gpu = configuration.gpu;
    fields.push(optional(gpu.and_then(|gpu| gpu.copy_gb_s)));
    fields.push(optional(gpu.and_then(|gpu| gpu.kernel_gb_s)));
    fields.push(optional(device.kernel_ceiling_gb_s));
    fields
}

fn line(out: &mut String, fields: &[String]) {
    let quoted: Vec<String> = fields.iter().map(|field| quote(field)).collect();
    // Writing to a string does not fail.
    let _ = write!(out, "{}\r\n", quoted.join(","));
}

fn quote(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::report;

    #[test]
    fn every_round_is_a_line_and_what_has_none_says_why() {
        let text = Csv.export(&report());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 3 + 3 + 1 + 1 + 1);
        assert!(lines[1].starts_with("2024-02-29T23:59:59Z,0.1.0,true,host,host memory,none,true,mapped-ring,64,2,4,3,measured,,1,1,250,2000,2,0.25,2,4,8,"));
        assert!(lines[1].ends_with(",6,30,40"), "{}", lines[1]);
        assert!(lines[7].contains("direct-map,64,2,4,3,unsupported,\"no | mapping, \"\"here\"\"\",,"), "{}", lines[7]);
        assert!(lines[8].contains("failed,batch 3 is wrong,,"));
        assert!(lines[9].contains("crashed,signal 11,,"));
    }

    #[test]
    fn every_line_has_as_many_fields_as_the_header() {
        let mut report = report();
        report.devices[0].configurations[2].status = Status::NotReached;
        for line in Csv.export(&report).lines() {
            assert_eq!(line.split(',').count(), HEADER.len(), "{line}");
        }
    }
}

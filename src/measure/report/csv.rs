//! One line for each round, for spreadsheets and data frames; rows without numbers say why.

use std::fmt::Write;

use super::columns::keys;
use super::configuration::{Configuration, Status};
use super::device::{DeviceReport, DeviceStatus};
use super::exporter::Exporter;
use super::figures::Figures;
use super::measured::Measured;
use super::sizes::SIZES;
use super::whole::Report;

/// Comma-separated values with a header line (RFC 4180). One line a round; a configuration without rounds, and a device
/// without configurations, is one line with empty numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Csv;

const ABOUT: [&str; 7] = ["date", "gpufeed", "debug_build", "device", "device_name", "driver", "software"];

impl Exporter for Csv {
    fn export(&self, report: &Report) -> String {
        let mut out = String::new();
        line(&mut out, &header());
        for device in &report.devices {
            if device.configurations.is_empty() {
                line(&mut out, &[about(report, device), no_settings(device), no_round()].concat());
            }
            for configuration in &device.configurations {
                let start = [about(report, device), settings(configuration)].concat();
                if configuration.rounds.is_empty() {
                    line(&mut out, &[start.clone(), no_round()].concat());
                }
                for (index, one) in configuration.rounds.iter().enumerate() {
                    let figures = Measured::of(device, configuration, std::slice::from_ref(one)).figures();
                    line(&mut out, &[start.clone(), round(index + 1, &figures)].concat());
                }
            }
        }
        out
    }
}

fn header() -> Vec<String> {
    let settings = std::iter::once("strategy").chain(SIZES.iter().map(|size| size.key)).chain(["state", "reason"]);
    ABOUT.into_iter().chain(settings).chain(["round"]).chain(keys()).map(str::to_owned).collect()
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
    let sizes = SIZES.iter().map(|size| (size.of)(settings));
    std::iter::once(settings.strategy.to_string()).chain(sizes).chain([state.to_owned(), reason.to_owned()]).collect()
}

fn no_settings(device: &DeviceReport) -> Vec<String> {
    let (state, reason) = match &device.status {
        DeviceStatus::Ok => ("not-reached", String::new()),
        DeviceStatus::Interrupted => ("interrupted", String::new()),
        DeviceStatus::Crashed { message } => ("crashed", message.clone()),
        DeviceStatus::Timeout { seconds } => ("timeout", format!("killed after {seconds} s")),
        DeviceStatus::Error { message } => ("error", message.clone()),
    };
    [vec![String::new(); 1 + SIZES.len()], vec![state.to_owned(), reason]].concat()
}

fn no_round() -> Vec<String> {
    vec![String::new(); 1 + keys().count()]
}

fn round(number: usize, figures: &Figures) -> Vec<String> {
    let figure = |key| figures.get(key).map(|figure| figure.to_string()).unwrap_or_default();
    std::iter::once(number.to_string()).chain(keys().map(figure)).collect()
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
        assert_eq!(lines.len(), 1 + 3 + 3 + 1 + 1 + 3 + 1);
        let start = "2024-02-29T23:59:59Z,0.1.0,true,host,host memory,none,true,mapped-ring,1000000,64,2,4,3,0,queued,measured,,1,2000,,2,0.25,";
        assert!(lines[1].starts_with(start), "{}", lines[1]);
        let value = |key: &str| {
            let index = lines[0].split(',').position(|name| name == key).expect("a column");
            lines[1].split(',').nth(index).expect("as many as the header")
        };
        let keys = ["gpu_copy_gb_s", "gpu_kernel_percent_of_ceiling", "pageable_copy_gb_s", "round_batches"];
        assert_eq!(keys.map(value), ["6", "75", "1", "250"]);
        assert!(
            lines[7].contains("direct-map,1000000,64,2,4,3,0,queued,unsupported,\"no | mapping, \"\"here\"\"\",,"),
            "{}",
            lines[7]
        );
        assert!(lines[8].contains("failed,batch 3 is wrong,,"));
        assert!(lines[9].contains("mapped-ring,1000000,64,2,4,3,3000,queued,measured,,1,1600,"), "{}", lines[9]);
        assert!(lines[12].contains("crashed,signal 11,,"));
    }

    #[test]
    fn every_line_has_as_many_fields_as_the_header() {
        let mut report = report();
        report.devices[0].configurations[2].status = Status::NotReached;
        for line in Csv.export(&report).lines() {
            assert_eq!(line.split(',').count(), header().len(), "{line}");
        }
    }
}

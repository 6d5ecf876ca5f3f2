//! Tables for issues, pull requests and wikis.

use std::fmt::Write;

use super::Exporter;
use crate::measure::report::{Configuration, DeviceReport, DeviceStatus, Median, Report, Status, Verdict};

/// GitHub-flavoured Markdown: a table for each device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Markdown;

const HEADER: &str = "| strategy | batch | workers | slots | samples/s | GB/s | CPU s/GB | latency p50 / p95 / p99 ms \
                      | wait p50 / p95 / p99 ms | staging GB/s (× memcpy) | GPU copy GB/s | kernel GB/s (of ceiling) | of device copy | × memcpy |\n\
                      |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";

impl Exporter for Markdown {
    fn export(&self, report: &Report) -> String {
        let mut out = String::new();
        head(&mut out, report);
        for device in &report.devices {
            section(&mut out, report, device);
        }
        out
    }
}

// Writing to a string does not fail.
fn head(out: &mut String, report: &Report) {
    let (host, data) = (&report.host, &report.data);
    let cpu = host.cpu.as_deref().unwrap_or(&host.arch);
    let _ = writeln!(out, "# Staging strategies compared\n");
    let _ = writeln!(
        out,
        "gpufeed {}, {}, {} ({} cores, {}).",
        report.gpufeed,
        report.date,
        cell(cpu),
        host.cores,
        host.os
    );
    let _ = writeln!(
        out,
        "Data: {}, {} samples, {}; {}.",
        cell(&data.name),
        data.samples,
        cell(&data.layout),
        cell(&data.preprocess)
    );
    if report.debug_build {
        let _ = writeln!(out, "\n**Debug build: these numbers say little.**");
    }
    if report.interrupted {
        let _ = writeln!(out, "\n**Interrupted: this is what had been measured.**");
    }
    let _ = writeln!(out, "\nEvery number is of verified bytes. Devices are not compared with each other.");
}

fn section(out: &mut String, report: &Report, device: &DeviceReport) {
    let adapter = &device.adapter;
    let _ = writeln!(out, "\n## {}: {}\n", cell(&adapter.id), cell(&adapter.name));
    let driver = format!("{} {}", adapter.driver, adapter.driver_info);
    let software =
        if device.software { " **Software: computes on the CPU, and says nothing about any GPU.**" } else { "" };
    let _ = writeln!(out, "Driver: {}.{software}\n", cell(driver.trim()));
    match &device.status {
        DeviceStatus::Ok => {}
        DeviceStatus::Interrupted => _ = writeln!(out, "**Interrupted.**\n"),
        DeviceStatus::Crashed { message } => _ = writeln!(out, "**Crashed: {}**\n", cell(message)),
        DeviceStatus::Timeout { seconds } => _ = writeln!(out, "**Killed after {seconds:.0} s.**\n"),
        DeviceStatus::Error { message } => _ = writeln!(out, "**Failed: {}**\n", cell(message)),
    }
    if device.configurations.is_empty() {
        return;
    }
    out.push_str(HEADER);
    for configuration in &device.configurations {
        row(out, report, device, configuration);
    }
    if let Some(ceiling) = device.kernel_ceiling_gb_s {
        let _ = writeln!(out, "\nA kernel that only copies reaches {ceiling:.1} GB/s here, read and written.");
    }
    for configuration in &device.configurations {
        for doubt in &configuration.doubts {
            let _ = writeln!(out, "\nNot shown of `{}`: {}.", configuration.settings.strategy, cell(doubt));
        }
    }
    if let Some(winner) = &device.winner {
        let _ = writeln!(out, "\n{}", verdict(winner));
    }
}

fn row(out: &mut String, report: &Report, device: &DeviceReport, configuration: &Configuration) {
    let settings = &configuration.settings;
    let _ =
        write!(out, "| {} | {} | {} | {} | ", settings.strategy, settings.batch_size, settings.workers, settings.slots);
    let _ = match (&configuration.status, &configuration.median) {
        (Status::Measured, Some(median)) => {
            writeln!(out, "{}{} |", numbers(configuration, median), flags(report, device))
        }
        (Status::Unsupported { reason }, _) => writeln!(out, "not available: {} | | | | | | | | | |", cell(reason)),
        (Status::Failed { message, .. }, _) => writeln!(out, "**failed**: {} | | | | | | | | | |", cell(message)),
        _ => writeln!(out, "not measured | | | | | | | | | |"),
    };
}

fn numbers(configuration: &Configuration, median: &Median) -> String {
    let cpu = median.cpu_s_per_gb.map_or("-".to_owned(), |cpu| format!("{cpu:.2}"));
    let staging = configuration.staging.map_or("-".to_owned(), |staging| match staging.times_memcpy {
        Some(times) => format!("{:.2} (× {times:.2})", staging.gb_s),
        None => format!("{:.2}", staging.gb_s),
    });
    let share = configuration.percent_of_copy.map_or("-".to_owned(), |percent| format!("{percent:.0}%"));
    let times = configuration.times_memcpy.map_or("-".to_owned(), |times| format!("{times:.2}"));
    let known = |rate: Option<f64>| rate.map_or("-".to_owned(), |rate| format!("{rate:.1}"));
    let gpu = configuration.gpu;
    let copy = known(gpu.and_then(|gpu| gpu.copy_gb_s));
    let of = gpu.and_then(|gpu| gpu.kernel_of_ceiling).map(|percent| format!(" ({percent:.0}%)")).unwrap_or_default();
    let kernel = format!("{}{of}", known(gpu.and_then(|gpu| gpu.kernel_gb_s)));
    let ms = |p: crate::loader::Percentiles| {
        format!("{:.2} / {:.2} / {:.2}", p.p50_us / 1e3, p.p95_us / 1e3, p.p99_us / 1e3)
    };
    let rate = median.images_s;
    format!(
        "{:.0} ± {:.0} | {:.2} | {cpu} | {} | {} | {staging} | {copy} | {kernel} | {share} | {times}",
        rate.median,
        rate.spread,
        median.gb_s,
        ms(median.latency),
        ms(median.wait)
    )
}

/// What has to stand beside every number.
fn flags(report: &Report, device: &DeviceReport) -> String {
    let flags = [(device.software, "software"), (report.debug_build, "debug build")];
    let flags: Vec<&str> = flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect();
    if flags.is_empty() { String::new() } else { format!(" [{}]", flags.join(", ")) }
}

fn verdict(winner: &Verdict) -> String {
    let name = winner.settings.strategy;
    match (winner.runner_up, winner.ratio, winner.spread) {
        (Some(second), Some(ratio), Some(spread)) if winner.beyond_noise => {
            format!("**`{name}`** was {ratio:.2} ± {spread:.2} times faster than `{}`.", second.strategy)
        }
        (Some(second), Some(ratio), Some(spread)) => {
            format!("`{name}` and `{}` ({ratio:.2} ± {spread:.2}): no difference beyond the noise.", second.strategy)
        }
        _ => format!("`{name}` had no competitor."),
    }
}

/// Text that keeps to its cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::report;

    #[test]
    fn every_row_of_a_table_has_the_same_cells() {
        let text = Markdown.export(&report());
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 2 + 4, "{text}");
        for row in rows {
            assert_eq!(row.replace("\\|", "").matches('|').count(), 15, "{row}");
        }
    }

    #[test]
    fn numbers_are_flagged_and_what_has_none_says_why() {
        let text = Markdown.export(&report());
        assert!(text.contains("| mapped-ring | 64 | 2 | 4 | 2000 ± 15 | 2.00 | 0.25 |"), "{text}");
        assert!(text.contains("2.00 (× 0.50) | 6.0 | 30.0 (75%) | 25% | 0.50 [software, debug build] |"), "{text}");
        assert!(
            text.contains("not available: no \\| mapping") && text.contains("**failed**: batch 3 is wrong"),
            "{text}"
        );
        assert!(text.contains("**`mapped-ring`** was 2.00 ± 0.01 times faster than `write-buffer`."), "{text}");
        assert!(text.contains("**Crashed: signal 11**") && text.contains("Devices are not compared"), "{text}");
    }
}

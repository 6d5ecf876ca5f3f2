//! Tables for issues, pull requests and wikis.

use std::fmt::Write;

use super::columns::{Column, Table};
use super::configuration::{Configuration, Status};
use super::device::{DeviceReport, DeviceStatus, Winner};
use super::exporter::Exporter;
use super::sizes::{SIZES, Size};
use super::whole::Report;

/// GitHub-flavoured Markdown: a table for each device.
#[derive(Clone, Copy, Debug, Default)]
pub struct Markdown;

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
    let _ = writeln!(
        out,
        "\nEvery number is of verified bytes, beside a consumer that does nothing unless a table says otherwise. Devices are not \
         compared with each other."
    );
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
    let sizes = sizes(device);
    out.push_str(&header(&sizes));
    // What has no numbers is told once, whatever it was to be used for.
    let idle = |row: &&Configuration| row.settings.is_idle() || !row.is_measured();
    for configuration in device.configurations.iter().filter(idle) {
        row(out, (report, device), &sizes, configuration);
    }
    overlap(out, report, device);
    if let Some(ceiling) = device.kernel_ceiling_gb_s {
        let _ = writeln!(out, "\nA kernel that only copies reaches {ceiling:.1} GB/s here, read and written.");
    }
    for configuration in &device.configurations {
        for doubt in &configuration.doubts {
            let _ = writeln!(out, "\nNot shown of `{}`: {}.", configuration.settings.strategy, cell(doubt));
        }
    }
    if let Some(winner) = &device.winner {
        let _ = writeln!(out, "\n{}", lead(winner));
    }
}

/// The sizes that tables have. That of samples stands above them, where there is one.
fn sizes(device: &DeviceReport) -> Vec<&'static Size> {
    let mut samples = device.configurations.iter().map(|row| row.settings.sample_bytes);
    let first = samples.next();
    let one = samples.all(|bytes| Some(bytes) == first);
    let hidden = |size: &&Size| size.key == "outputs" || (one && size.key == "sample_bytes");
    SIZES.iter().filter(|size| !hidden(size) && !size.is_of_the_consumer()).collect()
}

fn columns() -> impl Iterator<Item = &'static Column> {
    Column::of(Table::Loader).chain(Column::of(Table::Clock))
}

fn header(sizes: &[&Size]) -> String {
    let titles: Vec<String> = std::iter::once("strategy".to_owned())
        .chain(sizes.iter().map(|size| size.title.to_owned()))
        .chain(columns().map(Column::heading))
        .collect();
    format!("| {} |\n|---|{}\n", titles.join(" | "), "--:|".repeat(titles.len() - 1))
}

fn row(out: &mut String, (report, device): (&Report, &DeviceReport), sizes: &[&Size], configuration: &Configuration) {
    let settings = &configuration.settings;
    let start: Vec<String> =
        std::iter::once(settings.strategy.to_string()).chain(sizes.iter().map(|size| (size.of)(settings))).collect();
    // What has no numbers has its reason instead of the first of them.
    let without = |reason: String| format!("{reason} |{}", " |".repeat(columns().count() - 1));
    let numbers = match &configuration.status {
        Status::Measured => {
            let cells: Vec<String> = columns().map(|column| column.text(&configuration.figures)).collect();
            format!("{}{} |", cells.join(" | "), flags(report, device))
        }
        Status::Unsupported { reason } => without(format!("not available: {}", cell(reason))),
        Status::Failed { message, .. } => without(format!("**failed**: {}", cell(message))),
        Status::NotReached => without("not measured".to_owned()),
    };
    let _ = writeln!(out, "| {} | {numbers}", start.join(" | "));
}

/// The table of what is hidden behind a consumer that computes, where one was measured.
fn overlap(out: &mut String, report: &Report, device: &DeviceReport) {
    let measured: Vec<&Configuration> = device.configurations.iter().filter(|row| row.is_measured()).collect();
    if measured.iter().all(|row| row.settings.is_idle()) {
        return;
    }
    let mut sizes = sizes(device);
    sizes.extend(SIZES.iter().filter(|size| size.key == "hand_over"));
    let titles: Vec<String> = std::iter::once("strategy".to_owned())
        .chain(sizes.iter().map(|size| size.title.to_owned()))
        .chain(Column::of(Table::Overlap).map(Column::heading))
        .collect();
    let _ = writeln!(out, "\nBeside a consumer that computes, and beside one that does nothing (0):\n");
    let _ = writeln!(out, "| {} |\n|---|{}", titles.join(" | "), "--:|".repeat(titles.len() - 1));
    for row in measured {
        let cells: Vec<String> = std::iter::once(row.settings.strategy.to_string())
            .chain(sizes.iter().map(|size| (size.of)(&row.settings)))
            .chain(Column::of(Table::Overlap).map(|column| column.text(&row.figures)))
            .collect();
        let _ = writeln!(out, "| {}{} |", cells.join(" | "), flags(report, device));
    }
}

/// What has to stand beside every number.
fn flags(report: &Report, device: &DeviceReport) -> String {
    let flags = [(device.software, "software"), (report.debug_build, "debug build")];
    let flags: Vec<&str> = flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect();
    if flags.is_empty() { String::new() } else { format!(" [{}]", flags.join(", ")) }
}

fn lead(winner: &Winner) -> String {
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
        let cells = |table: &[&str]| -> Vec<usize> {
            table.iter().map(|row| row.replace("\\|", "").matches('|').count()).collect()
        };
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!((cells(&rows[..6]), cells(&rows[6..])), (vec![15; 2 + 4], vec![11; 2 + 3]), "{text}");
    }

    #[test]
    fn numbers_are_flagged_and_what_has_none_says_why() {
        let text = Markdown.export(&report());
        assert!(
            text.contains("| strategy | batch | workers | slots | samples/s ± spread | GB/s | CPU s/GB |"),
            "{text}"
        );
        assert!(text.contains("| mapped-ring | 64 | 2 | 4 | 2000±14.8 | 2.00 | 0.25 |"), "{text}");
        assert!(text.contains("2.00 (0.50x) | 25% | 0.50x | 6.00 | 30.0 (75%) [software, debug build] |"), "{text}");
        assert!(
            text.contains("not available: no \\| mapping") && text.contains("**failed**: batch 3 is wrong"),
            "{text}"
        );
        assert!(text.contains("**`mapped-ring`** was 2.00 ± 0.01 times faster than `write-buffer`."), "{text}");
        let busy = "| mapped-ring | 64 | 2 | 4 | queued | 3010 | ";
        assert!(text.contains(busy) && text.contains("| strategy | batch | workers | slots | hand-over |"), "{text}");
        assert!(text.contains("**Crashed: signal 11**") && text.contains("Devices are not compared"), "{text}");
    }
}

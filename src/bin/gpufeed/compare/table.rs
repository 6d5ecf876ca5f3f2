//! A device's table.

use comfy_table::CellAlignment;
use gpufeed::measure::report::{
    Ceilings, Column, Configuration, DeviceReport, DeviceStatus, Report, SIZES, Size, Status, Table,
};
use gpufeed::{AdapterInfo, Api};

use crate::{devices, output, units};

/// The machine and the data.
pub fn head(report: &Report) -> String {
    let (host, data) = (&report.host, &report.data);
    let mut text = format!(
        "gpufeed {} on {} ({} cores, {})\n{}: {} samples, {}, {}; {}, {}",
        report.gpufeed,
        host.cpu.as_deref().unwrap_or("an unknown CPU"),
        host.cores,
        host.os,
        data.name,
        data.samples,
        data.layout,
        units::bytes(data.samples.saturating_mul(data.sample_bytes)),
        data.preprocess,
        data.seed.map_or_else(|| "in order".to_owned(), |seed| format!("shuffled by {seed}")),
    );
    if report.debug_build {
        text.push_str("\nDEBUG BUILD: the CPU's part is several times slower than in a release build.");
    }
    text
}

/// The device and what kind it is.
pub fn title(adapter: &AdapterInfo) -> String {
    let driver = match adapter.api {
        Api::Host => String::new(),
        _ => format!(", {}", format!("{} {}", adapter.driver, adapter.driver_info).trim()),
    };
    format!("{}: {}{driver} ({})", adapter.id, adapter.name, devices::kind(adapter))
}

/// What must stand beside each number.
pub fn flags(software: bool, debug_build: bool) -> String {
    let flags = [(software, "software"), (debug_build, "debug")];
    flags.into_iter().filter(|(set, _)| *set).map(|(_, flag)| flag).collect::<Vec<_>>().join("+")
}

/// Everything about one device: numbers, ceilings, what cannot run, and how it ended.
pub fn device(device: &DeviceReport, debug_build: bool) -> String {
    let flags = flags(device.software, debug_build);
    let measured: Vec<&Configuration> = device.configurations.iter().filter(|c| c.is_measured()).collect();
    let idle: Vec<&Configuration> = measured.iter().copied().filter(|c| c.settings.is_idle()).collect();
    let sizes = swept(&device.configurations);
    // What the batches are used for is told where it differs.
    let of_loaders: Vec<&Size> = sizes.iter().copied().filter(|size| !size.is_of_the_consumer()).collect();
    let mut parts = Vec::new();
    if !idle.is_empty() {
        parts.push(table("beside a consumer\nthat does nothing", Table::Loader, &idle, &of_loaders, &flags));
    }
    parts.extend(device.configurations.iter().filter_map(|c| without_numbers(c, &sizes)));
    let several = sizes.iter().any(|size| size.key == "sample_bytes");
    parts.extend(device.ceilings.iter().filter(|_| !measured.is_empty()).map(|c| ceilings(c, several, &flags)));
    if measured.len() > idle.len() {
        // What was asked for is as good as what the work takes, which has a column.
        let shown: Vec<&Size> = sizes.iter().copied().filter(|size| size.key != "compute_asked_us").collect();
        parts.push(table("what is hidden", Table::Overlap, &measured, &shown, &flags));
    }
    if !idle.is_empty() {
        parts.push(by_the_devices_clock(device, &idle, &of_loaders, &flags));
    }
    parts.extend(doubts(device));
    parts.extend(status(&device.status));
    parts.join("\n")
}

/// The sizes that differ, and so have columns.
fn swept(rows: &[Configuration]) -> Vec<&'static Size> {
    let differs = |size: &&Size| rows.iter().any(|row| (size.of)(&row.settings) != (size.of)(&rows[0].settings));
    SIZES.iter().filter(differs).collect()
}

/// The columns of a table, with a column of flags where there are any.
fn table(head: &str, which: Table, rows: &[&Configuration], sizes: &[&Size], flags: &str) -> String {
    let flag = (!flags.is_empty()).then_some(flags);
    let titles = Column::of(which).map(|column| column.title);
    let header: Vec<&str> = std::iter::once(head)
        .chain(sizes.iter().map(|size| size.title))
        .chain(titles)
        .chain(flag.map(|_| ""))
        .collect();
    let row = |row: &&Configuration| {
        std::iter::once(row.settings.strategy.to_string())
            .chain(sizes.iter().map(|size| (size.of)(&row.settings)))
            .chain(Column::of(which).map(|column| column.text(&row.figures)))
            .chain(flag.map(str::to_owned))
            .collect()
    };
    output::table(&header, CellAlignment::Right, rows.iter().map(row))
}

/// A row that has no numbers says why.
fn without_numbers(configuration: &Configuration, sizes: &[&Size]) -> Option<String> {
    let settings = &configuration.settings;
    let sizes: Vec<String> = sizes.iter().map(|size| format!("{} {}", size.title, (size.of)(settings))).collect();
    let (sizes, why) = match &configuration.status {
        // What cannot run cannot run in any size.
        Status::Unsupported { reason } => (String::new(), format!("not available: {reason}")),
        Status::Failed { message, wrong_data: true } => (sizes.join(" "), format!("WRONG DATA: {message}")),
        Status::Failed { message, .. } => (sizes.join(" "), format!("failed: {message}")),
        Status::NotReached => (sizes.join(" "), "not measured".to_owned()),
        Status::Measured => return None,
    };
    let name = format!("{} {sizes}", settings.strategy);
    Some(format!("  {:<17}  {why}", name.trim_end()))
}

fn ceilings(of: &Ceilings, several_sizes: bool, flags: &str) -> String {
    let known =
        |rate: Option<f64>| rate.map_or_else(|| "not known".to_owned(), |r| format!("{} GB/s", units::digits(r)));
    let device = match &of.device_copy_error {
        Some(error) => format!("not known ({error})"),
        None => known(of.device_copy_gb_s),
    };
    let pageable = of.pageable_copy_gb_s.map(|rate| format!(", from pageable memory {} GB/s", units::digits(rate)));
    let flags = if flags.is_empty() { String::new() } else { format!(" ({flags})") };
    let sample = if several_sizes { format!("samples of {} bytes, ", of.sample_bytes) } else { String::new() };
    format!(
        "  copying alone, {sample}batch {}, {} workers: the device's own copy {device}{}, host memcpy {} (a reference){flags}",
        of.batch_size,
        of.workers,
        pageable.unwrap_or_default(),
        known(of.host_memcpy_gb_s)
    )
}

/// What was measured and cannot be.
fn doubts(device: &DeviceReport) -> impl Iterator<Item = String> + '_ {
    let of_rows = device
        .configurations
        .iter()
        .flat_map(|row| row.doubts.iter().map(|why| format!("  not shown of {}: {why}", row.settings.strategy)));
    let of_ceiling = device.kernel_ceiling_error.iter().map(|why| format!("  ceiling of kernels: not known ({why})"));
    of_rows.chain(of_ceiling)
}

/// What the device's own clock says, configuration by configuration, and the ceiling of kernels.
fn by_the_devices_clock(device: &DeviceReport, measured: &[&Configuration], sizes: &[&Size], flags: &str) -> String {
    let timed: Vec<&Configuration> = measured.iter().copied().filter(|row| row.gpu.is_some()).collect();
    if timed.is_empty() {
        return "  GPU copies and kernels: not known, without a device's clock to be believed".to_owned();
    }
    let flagged = if flags.is_empty() { String::new() } else { format!(" ({flags})") };
    let ceiling = device
        .kernel_ceiling_gb_s
        .map(units::digits)
        .map(|rate| format!("\n  ceiling of kernels, by one that only copies, read and written: {rate} GB/s{flagged}"));
    let table = table("by its own clock", Table::Clock, &timed, sizes, flags);
    format!("{table}{}", ceiling.unwrap_or_default())
}

fn status(status: &DeviceStatus) -> Option<String> {
    Some(match status {
        DeviceStatus::Ok => return None,
        DeviceStatus::Interrupted => "  interrupted: this is what had been measured".to_owned(),
        DeviceStatus::Crashed { message } => format!("  CRASHED: {message}"),
        DeviceStatus::Timeout { seconds } => format!("  TIMEOUT: killed after {}", units::seconds(*seconds)),
        DeviceStatus::Error { message } => format!("  ERROR: {message}"),
    })
}

#[cfg(test)]
mod tests {
    use gpufeed::Strategy;
    use gpufeed::backend::GpuTimes;
    use gpufeed::measure::report::GpuRates;

    use super::*;
    use crate::compare::testing;

    #[test]
    fn every_line_with_a_number_is_flagged_and_what_has_none_says_why() {
        let rates = [(Strategy::MappedRing, 8, 200.0), (Strategy::WriteBuffer, 8, 100.0)];
        let mut report = testing::device("vulkan:0", &rates);
        report.ceilings.truncate(1);
        report.configurations[1].status = Status::Unsupported { reason: "no such thing".to_owned() };
        let text = device(&report, true);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("  mapped-ring") && lines[2].contains("200±"), "{text}");
        assert!(lines[2].contains("0.05x") && lines[2].ends_with("software+debug"), "{text}");
        assert_eq!(lines[3], "  write-buffer       not available: no such thing");
        assert!(lines[4].contains("memcpy 4.00 GB/s") && lines[4].ends_with("(software+debug)"), "{text}");
        assert!(
            !text.contains("batch  ") && text.contains("samples/s"),
            "sizes that are the same have no column: {text}"
        );
    }

    #[test]
    fn the_devices_own_clock_has_a_table_or_is_said_to_be_missing() {
        let mut report = testing::device("vulkan:0", &[(Strategy::MappedRing, 8, 200.0)]);
        assert!(device(&report, false).contains("GPU copies and kernels: not known"));
        report.kernel_ceiling_gb_s = Some(4000.0);
        let mut times = GpuTimes::default();
        (times.kernel_s, times.batches) = (1.0, 3);
        let rates = GpuRates { times, copy_gb_s: None, kernel_gb_s: Some(3000.0) };
        report.software = false;
        report.configurations[0].gpu = Some(rates);
        report.summarise();
        let text = device(&report, false);
        let line = text.lines().find(|line| line.contains("3000")).expect("a line with the rate");
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["mapped-ring", "-", "3000", "(75%)"], "{text}");
        assert!(text.contains("read and written: 4000 GB/s"), "{text}");
    }

    #[test]
    fn sizes_that_differ_have_columns() {
        let report =
            testing::device("vulkan:0", &[(Strategy::MappedRing, 8, 200.0), (Strategy::MappedRing, 64, 300.0)]);
        let text = device(&report, false);
        let header = text.lines().next().unwrap_or_default();
        assert!(header.contains("batch") && !header.contains("workers") && header.contains("samples/s"), "{text}");
    }

    #[test]
    fn a_device_that_broke_off_says_how() {
        let mut report = testing::device("vulkan:0", &[]);
        report.status = DeviceStatus::Crashed { message: "signal: 11".to_owned() };
        assert_eq!(device(&report, false), "  CRASHED: signal: 11");
        report.status = DeviceStatus::Timeout { seconds: 90.0 };
        assert_eq!(device(&report, false), "  TIMEOUT: killed after 90.0 s");
    }
}

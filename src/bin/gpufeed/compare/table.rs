//! A device's table.

use comfy_table::CellAlignment;
use gpufeed::loader::Percentiles;
use gpufeed::measure::Summary;
use gpufeed::measure::report::{
    Ceilings, Configuration, DeviceReport, DeviceStatus, Median, Report, Settings, Staging, Status,
};
use gpufeed::measure::stats::MIN_ROUNDS;
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
pub fn device(device: &DeviceReport, debug_build: bool, images: bool) -> String {
    let flags = flags(device.software, debug_build);
    let measured: Vec<&Configuration> = device.configurations.iter().filter(|c| c.is_measured()).collect();
    let swept = Swept::of(&device.configurations);
    let mut parts = Vec::new();
    if !measured.is_empty() {
        let rows = measured.iter().filter_map(|c| row(c, &swept, &flags));
        parts.push(output::table(&header(&swept, images, &flags), CellAlignment::Right, rows));
    }
    parts.extend(device.configurations.iter().filter_map(|c| without_numbers(c, &swept)));
    parts.extend(device.ceilings.iter().filter(|_| !measured.is_empty()).map(|c| ceilings(c, &flags)));
    if !measured.is_empty() {
        parts.push(by_the_devices_clock(device, &measured, &swept, &flags));
    }
    parts.extend(doubts(device));
    parts.extend(status(&device.status));
    parts.join("\n")
}

/// Which sizes differ, and so have columns.
struct Swept {
    batch_size: bool,
    workers: bool,
    slots: bool,
}

impl Swept {
    fn of(rows: &[Configuration]) -> Self {
        let differs = |of: fn(&Settings) -> usize| rows.iter().any(|row| of(&row.settings) != of(&rows[0].settings));
        Self { batch_size: differs(|s| s.batch_size), workers: differs(|s| s.workers), slots: differs(|s| s.slots) }
    }

    fn columns<T>(&self, batch_size: T, workers: T, slots: T) -> impl Iterator<Item = T> {
        [(self.batch_size, batch_size), (self.workers, workers), (self.slots, slots)]
            .into_iter()
            .filter_map(|(shown, value)| shown.then_some(value))
    }
}

fn header<'a>(swept: &Swept, images: bool, flags: &str) -> Vec<&'a str> {
    let rate = if images { "images/s\n± spread" } else { "samples/s\n± spread" };
    let columns = [
        rate,
        "GB/s",
        "CPU\ns/GB",
        "latency ms\np50/95/99",
        "wait ms\np50/95/99",
        "staging GB/s\n(x memcpy)",
        "of own\ncopy",
        "times\nmemcpy",
    ];
    let flag = (!flags.is_empty()).then_some("");
    std::iter::once("strategy").chain(swept.columns("batch", "workers", "slots")).chain(columns).chain(flag).collect()
}

fn row(configuration: &Configuration, swept: &Swept, flags: &str) -> Option<Vec<String>> {
    let Configuration { settings, median, staging, percent_of_copy, times_memcpy, .. } = configuration;
    let Median { images_s, gb_s, cpu_s_per_gb, latency, wait } = (*median)?;
    let dash = || "-".to_owned();
    let numbers = [
        format!("{}±{}", units::digits(images_s.median), spread(&images_s)),
        units::digits(gb_s),
        cpu_s_per_gb.map_or_else(dash, units::digits),
        milliseconds(latency),
        milliseconds(wait),
        staging.map_or_else(dash, |staging| staged(&staging)),
        percent_of_copy.map_or_else(dash, percent),
        times_memcpy.map_or_else(dash, times),
    ];
    let sizes = swept.columns(settings.batch_size, settings.workers, settings.slots).map(|size| size.to_string());
    let flag = (!flags.is_empty()).then(|| flags.to_owned());
    Some(std::iter::once(settings.strategy.to_string()).chain(sizes).chain(numbers).chain(flag).collect())
}

/// A few rounds have none that says anything.
fn spread(of: &Summary) -> String {
    if of.n < MIN_ROUNDS { "?".to_owned() } else { units::digits(of.spread) }
}

fn milliseconds(of: Percentiles) -> String {
    [of.p50_us, of.p95_us, of.p99_us].map(|us| units::digits(us / 1e3)).join("/")
}

fn staged(staging: &Staging) -> String {
    let times = staging.times_memcpy.map(|ratio| format!(" ({})", times(ratio))).unwrap_or_default();
    format!("{}{times}", units::digits(staging.gb_s))
}

/// A ratio to a reference, which may be passed.
fn times(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

/// Percent, with a decimal where there is not much before it.
pub fn percent(percent: f64) -> String {
    format!("{percent:.*}%", usize::from(percent < 9.95))
}

/// A row that has no numbers says why.
fn without_numbers(configuration: &Configuration, swept: &Swept) -> Option<String> {
    let settings = &configuration.settings;
    let sizes: Vec<String> = swept
        .columns(("batch", settings.batch_size), ("workers", settings.workers), ("slots", settings.slots))
        .map(|(name, size)| format!("{name} {size}"))
        .collect();
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

fn ceilings(of: &Ceilings, flags: &str) -> String {
    let known =
        |rate: Option<f64>| rate.map_or_else(|| "not known".to_owned(), |r| format!("{} GB/s", units::digits(r)));
    let device = match &of.device_copy_error {
        Some(error) => format!("not known ({error})"),
        None => known(of.device_copy_gb_s),
    };
    let pageable = of.pageable_copy_gb_s.map(|rate| format!(", from pageable memory {} GB/s", units::digits(rate)));
    let flags = if flags.is_empty() { String::new() } else { format!(" ({flags})") };
    format!(
        "  copying alone, batch {}, {} workers: the device's own copy {device}{}, host memcpy {} (a reference){flags}",
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
fn by_the_devices_clock(device: &DeviceReport, measured: &[&Configuration], swept: &Swept, flags: &str) -> String {
    let known = |rate: Option<f64>| rate.map_or_else(|| "-".to_owned(), units::digits);
    let row = |row: &&Configuration| {
        let (gpu, settings) = (row.gpu?, &row.settings);
        let sizes = swept.columns(settings.batch_size, settings.workers, settings.slots).map(|size| size.to_string());
        let share = gpu.kernel_of_ceiling.map_or_else(|| "-".to_owned(), percent);
        let rates = [known(gpu.copy_gb_s), known(gpu.kernel_gb_s), share];
        let flag = (!flags.is_empty()).then(|| flags.to_owned());
        Some(std::iter::once(settings.strategy.to_string()).chain(sizes).chain(rates).chain(flag).collect())
    };
    let rows: Vec<Vec<String>> = measured.iter().filter_map(row).collect();
    let flagged = if flags.is_empty() { String::new() } else { format!(" ({flags})") };
    if rows.is_empty() {
        return "  GPU copies and kernels: not known, without a device's clock to be believed".to_owned();
    }
    let ceiling = device.kernel_ceiling_gb_s.map(|rate| {
        format!(
            "\n  ceiling of kernels, by one that only copies, read and written: {} GB/s{flagged}",
            units::digits(rate)
        )
    });
    let columns = ["copy GB/s", "kernel GB/s", "of its ceiling"];
    let flag = (!flags.is_empty()).then_some("");
    let sizes = swept.columns("batch", "workers", "slots");
    let header: Vec<&str> = std::iter::once("by its own clock").chain(sizes).chain(columns).chain(flag).collect();
    format!("{}{}", output::table(&header, CellAlignment::Right, rows), ceiling.unwrap_or_default())
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
    use gpufeed::measure::GpuRates;

    use super::*;
    use crate::compare::testing;

    #[test]
    fn every_line_with_a_number_is_flagged_and_what_has_none_says_why() {
        let rates = [(Strategy::MappedRing, 8, 200.0), (Strategy::WriteBuffer, 8, 100.0)];
        let mut report = testing::device("vulkan:0", &rates);
        report.ceilings.truncate(1);
        report.configurations[1].status = Status::Unsupported { reason: "no such thing".to_owned() };
        let text = device(&report, true, true);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].starts_with("  mapped-ring") && lines[2].contains("200±"), "{text}");
        assert!(lines[2].contains("0.05x") && lines[2].ends_with("software+debug"), "{text}");
        assert_eq!(lines[3], "  write-buffer       not available: no such thing");
        assert!(lines[4].contains("memcpy 4.00 GB/s") && lines[4].ends_with("(software+debug)"), "{text}");
        assert!(
            !text.contains("batch  ") && text.contains("images/s"),
            "sizes that are the same have no column: {text}"
        );
    }

    #[test]
    fn the_devices_own_clock_has_a_table_or_is_said_to_be_missing() {
        let mut report = testing::device("vulkan:0", &[(Strategy::MappedRing, 8, 200.0)]);
        assert!(device(&report, false, true).contains("GPU copies and kernels: not known"));
        report.kernel_ceiling_gb_s = Some(4000.0);
        let rates = GpuRates { batches: 3, copy_gb_s: None, kernel_gb_s: Some(3000.0), kernel_of_ceiling: None };
        report.software = false;
        report.configurations[0].gpu = Some(rates);
        report.summarise();
        let text = device(&report, false, true);
        let line = text.lines().find(|line| line.contains("3000")).expect("a line with the rate");
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["mapped-ring", "-", "3000", "75%"], "{text}");
        assert!(text.contains("read and written: 4000 GB/s"), "{text}");
    }

    #[test]
    fn sizes_that_differ_have_columns() {
        let report =
            testing::device("vulkan:0", &[(Strategy::MappedRing, 8, 200.0), (Strategy::MappedRing, 64, 300.0)]);
        let text = device(&report, false, false);
        let header = text.lines().next().unwrap_or_default();
        assert!(header.contains("batch") && !header.contains("workers") && header.contains("samples/s"), "{text}");
    }

    #[test]
    fn a_device_that_broke_off_says_how() {
        let mut report = testing::device("vulkan:0", &[]);
        report.status = DeviceStatus::Crashed { message: "signal: 11".to_owned() };
        assert_eq!(device(&report, false, true), "  CRASHED: signal: 11");
        report.status = DeviceStatus::Timeout { seconds: 90.0 };
        assert_eq!(device(&report, false, true), "  TIMEOUT: killed after 90.0 s");
    }
}

//! What it comes to: who won on each device, by how much, and why.

use gpufeed::AdapterInfo;
use gpufeed::Strategy;
use gpufeed::measure::report::{Configuration, DeviceReport, DeviceStatus, Report, Settings, Status, Winner, percent};
use gpufeed::measure::{Ratio, describe_ratio};

use super::crossover;
use super::overlap;
use super::table::flags;
use crate::{output::paragraph, units};

/// A device's answer, before its table: which strategy, by how much, why, what to write in one's code, and how the others did.
pub fn device(device: &DeviceReport, report: &Report) -> String {
    let name = name(&device.adapter, report.debug_build);
    let mut lines: Vec<String> =
        failures(device).iter().map(|text| paragraph(2, &format!("{name}: {text}."))).collect();
    let Some(winner) = &device.winner else {
        lines.push(format!("  {name}: nothing was measured."));
        return lines.join("\n");
    };
    let best = row(device, &winner.settings);
    lines.push(paragraph(2, &format!("{name}: {}.", lead(device, winner))));
    lines.extend(best.map(|best| paragraph(4, &why(best, report))));
    lines.push(paragraph(4, &code(&winner.settings)));
    for other in others(device, winner) {
        lines.push(paragraph(4, &against(other, best)));
    }
    lines.extend(crossover::describe(device).iter().map(|text| paragraph(4, text)));
    lines.extend(overlap::winners(device).iter().map(|text| paragraph(4, text)));
    lines.join("\n")
}

/// The same in a few sentences, without the others; `None` where nothing was measured.
pub fn answer(device: &DeviceReport, report: &Report) -> Option<String> {
    let winner = device.winner.as_ref()?;
    let why = row(device, &winner.settings).map(|best| why(best, report)).unwrap_or_default();
    Some(
        [format!("{}. {why}", lead(device, winner))]
            .into_iter()
            .chain(crossover::describe(device))
            .collect::<Vec<_>>()
            .join(" "),
    )
}

/// What is said once all devices were measured.
pub fn closing(report: &Report) -> Option<String> {
    let mut lines = Vec::new();
    if report.devices.len() > 1 {
        lines.push("Devices are not compared with each other: each was measured against its own ceilings.");
    }
    lines.extend(overlap::hint(report));
    if report.interrupted {
        lines.push("Interrupted: this is what had been measured.");
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// The options of a loader with these settings.
fn code(settings: &Settings) -> String {
    let Settings { strategy, batch_size, workers, slots, .. } = settings;
    format!(
        "in your code: LoaderOptions {{ strategy: Some(Strategy::{strategy:?}), batch_size: {batch_size}, workers: {workers}, slots: {slots}, \
         ..Default::default() }}"
    )
}

/// Wrong data, and an end before everything was measured.
fn failures(device: &DeviceReport) -> Vec<String> {
    let wrong = device.configurations.iter().filter_map(|row| match &row.status {
        Status::Failed { message, wrong_data: true } => {
            Some(format!("{} DELIVERED WRONG DATA: {message}", row.settings.strategy))
        }
        _ => None,
    });
    let ended = match &device.status {
        DeviceStatus::Ok | DeviceStatus::Interrupted => None,
        DeviceStatus::Crashed { .. } => Some("it crashed before everything was measured".to_owned()),
        DeviceStatus::Timeout { .. } => Some("it hung and was killed before everything was measured".to_owned()),
        DeviceStatus::Error { message } => Some(format!("it failed before everything was measured: {message}")),
    };
    wrong.chain(ended).collect()
}

fn name(adapter: &AdapterInfo, debug_build: bool) -> String {
    let flags = flags(adapter.is_software(), debug_build);
    let flags = if flags.is_empty() { flags } else { format!(" ({flags})") };
    format!("{} {}{flags}", adapter.id, adapter.name)
}

fn row<'a>(device: &'a DeviceReport, settings: &Settings) -> Option<&'a Configuration> {
    device.configurations.iter().find(|configuration| configuration.settings == *settings)
}

/// The strategy, and its sizes if there are several.
fn called(device: &DeviceReport, settings: &Settings) -> String {
    let Settings { strategy, sample_bytes, batch_size, workers, slots, .. } = settings;
    let other_sizes = device.configurations.iter().any(|row| row.settings.sample_bytes != *sample_bytes);
    let sample = if other_sizes { format!("samples of {sample_bytes} bytes, ") } else { String::new() };
    if device.sweep.is_empty() {
        strategy.to_string()
    } else {
        format!("{strategy} ({sample}batch {batch_size}, {workers} workers, {slots} slots)")
    }
}

fn lead(device: &DeviceReport, winner: &Winner) -> String {
    let ours = called(device, &winner.settings);
    match (&winner.runner_up, winner.ratio, winner.spread) {
        (Some(second), Some(ratio), Some(spread)) => {
            let theirs = called(device, second);
            describe_ratio(&ours, &theirs, &Ratio { ratio, spread, rounds: winner.rounds })
        }
        (Some(second), ..) => format!("{ours} and {}: nothing to compare", called(device, second)),
        (None, ..) => format!("{ours} is the only strategy that was measured"),
    }
}

/// Throughput, its share of the ceiling, and what held it back.
fn why(best: &Configuration, report: &Report) -> String {
    let figure = |key| best.figures.get(key);
    let noun = if report.data.images { "images" } else { "samples" };
    let rate = figure("samples_s").zip(figure("gb_s"));
    let rate = rate.map(|(samples, gb)| format!("{} {noun}/s, {} GB/s", units::digits(samples), units::digits(gb)));
    let share = figure("percent_of_copy").map(|share| format!("{} of the device's own copy", percent(share)));
    let times = figure("times_memcpy").map(|times| format!("{times:.2} times the host's memcpy"));
    let parts: Vec<String> = [rate, share, times, held_back(best)].into_iter().flatten().collect();
    format!("{}: {}.", best.settings.strategy, parts.join("; "))
}

/// What held it back, as a loader's own verdict says it.
fn held_back(row: &Configuration) -> Option<String> {
    row.held_back.map(|found| found.describe())
}

/// Every other strategy with the sizes of the winner, or with its own if it was not measured with those.
fn others<'a>(device: &'a DeviceReport, winner: &Winner) -> Vec<&'a Configuration> {
    let here = |strategy: Strategy| {
        let rows = || device.configurations.iter().filter(move |c| c.is_measured() && c.settings.strategy == strategy);
        rows().find(|c| c.settings.same_sizes(&winner.settings)).or_else(|| rows().next())
    };
    let mut strategies: Vec<Strategy> = Vec::new();
    for configuration in &device.configurations {
        let strategy = configuration.settings.strategy;
        if strategy != winner.settings.strategy && !strategies.contains(&strategy) {
            strategies.push(strategy);
        }
    }
    strategies.into_iter().filter_map(here).collect()
}

fn against(other: &Configuration, best: Option<&Configuration>) -> String {
    let rates = |row: &Configuration| row.rounds.iter().map(|round| round.gb_s).collect::<Vec<_>>();
    let ratio = best.and_then(|best| Ratio::of(&rates(other), &rates(best)));
    let ratio = ratio.map(|r| format!("{:.2} ± {:.2} times as fast", r.ratio, r.spread));
    let allocates = other.allocates_per_batch.then(|| "allocates for every batch".to_owned());
    let parts: Vec<String> = [ratio, allocates, held_back(other)].into_iter().flatten().collect();
    format!("{}: {}.", other.settings.strategy, parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{device, report};

    #[test]
    fn the_winner_is_named_with_its_lead_and_with_what_held_it_back() {
        let rates = [(Strategy::WriteBuffer, 8, 100.0), (Strategy::MappedRing, 8, 200.0)];
        let report = report(vec![device("vulkan:0", &rates)]);
        let text = super::device(&report.devices[0], &report).replace("\n     ", "").replace("\n   ", "");
        assert!(text.contains("Some(Strategy::MappedRing), batch_size: 8, workers: 2, slots: 4,"), "{text}");
        assert!(
            !closing(&report).unwrap_or_default().contains("not compared"),
            "one device has nothing to be compared with"
        );
        let wins = "vulkan:0 Some Card (software+debug): mapped-ring was 2.00 ± 0.00 times faster than write-buffer.";
        assert!(text.contains(wins), "{text}");
        assert!(text.contains("0.05 times the host's memcpy; held back by the device"), "{text}");
        assert!(text.contains("write-buffer: 0.50 ± 0.00 times as fast; allocates for every batch"), "{text}");
    }

    #[test]
    fn devices_are_said_not_to_be_compared_and_nothing_is_said_to_be_nothing() {
        let report = report(vec![device("vulkan:0", &[]), device("gl:0", &[])]);
        let text = super::device(&report.devices[1], &report) + &closing(&report).expect("two devices");
        assert!(text.contains("gl:0 Some Card (software+debug): nothing was measured."), "{text}");
        assert!(text.contains("Devices are not compared with each other"), "{text}");
    }

    #[test]
    fn wrong_data_and_a_crash_come_first() {
        let mut found = device("vulkan:0", &[(Strategy::WriteBuffer, 8, 100.0), (Strategy::MappedRing, 8, 200.0)]);
        found.configurations[1].status = Status::Failed { message: "batch 3 is wrong".to_owned(), wrong_data: true };
        found.status = DeviceStatus::Crashed { message: String::new() };
        found.summarise();
        let text = super::device(&found, &report(vec![found.clone()]));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("mapped-ring DELIVERED WRONG DATA: batch 3 is wrong."), "{text}");
        assert!(lines[1].ends_with("it crashed before everything was measured."), "{text}");
        assert!(lines[2].ends_with("write-buffer is the only strategy that was measured."), "{text}");
    }
}

//! What consumers that compute change: who is fastest beside each, and what is hidden behind its work.

use gpufeed::measure::report::{Configuration, DeviceReport, Report, SIZES, Settings, Winner, percent};

use crate::units;

/// The fastest strategy beside each consumer that computes or waits, and what became of the one that is fastest beside none.
pub fn winners(device: &DeviceReport) -> Vec<String> {
    device.busy.iter().filter_map(|winner| beside(device, winner)).collect()
}

/// What to tell of a comparison beside a consumer that does nothing.
pub fn hint(report: &Report) -> Option<&'static str> {
    let rows = || report.devices.iter().flat_map(|device| &device.configurations).filter(|row| row.is_measured());
    let idle = rows().next().is_some() && rows().all(|row| row.settings.is_idle());
    idle.then_some(
        "All of it beside a consumer that does nothing; --compute 1000 also measures beside one that computes for a millisecond.",
    )
}

fn beside(device: &DeviceReport, winner: &Winner) -> Option<String> {
    let row =
        |settings: Settings| device.configurations.iter().find(|row| row.settings == settings && row.is_measured());
    let best = row(winner.settings)?;
    let settings = winner.settings;
    let mut parts = vec![format!("{} takes {}", settings.strategy, step(best))];
    match (&winner.runner_up, winner.ratio) {
        (Some(second), Some(ratio)) if winner.beyond_noise => {
            parts.push(format!("{} takes {ratio:.2} times as long, the next", second.strategy));
        }
        (Some(second), _) => parts.push(format!("{} is as fast, within the noise", second.strategy)),
        (None, _) => {}
    }
    let usual = device.winner.as_ref().map(|usual| usual.settings.strategy).filter(|&usual| usual != settings.strategy);
    if let Some(other) = usual.and_then(|strategy| row(Settings { strategy, ..settings })) {
        let best_idle = "the fastest beside a consumer that does nothing";
        parts.push(format!("{}, {best_idle}, takes {}", other.settings.strategy, step(other)));
    }
    Some(format!("Beside a consumer that {}: {}.", describe(device, &settings), parts.join("; ")))
}

/// What the consumer does, and with which sizes where there are several.
fn describe(device: &DeviceReport, settings: &Settings) -> String {
    let computes = match settings.compute_us {
        0 => "does nothing".to_owned(),
        compute => format!("computes for {compute} µs a batch"),
    };
    let waits = format!(", {}", settings.hand_over);
    let other_ways = device.configurations.iter().any(|row| row.settings.hand_over != settings.hand_over);
    let waits = if other_ways { waits } else { String::new() };
    let differs = |size: &gpufeed::measure::report::Size| {
        device.configurations.iter().any(|row| (size.of)(&row.settings) != (size.of)(settings))
    };
    let sizes = SIZES.iter().filter(|size| !size.is_of_the_consumer() && differs(size));
    let sizes: String = sizes.map(|size| format!(", {} {}", size.title, (size.of)(settings))).collect();
    format!("{computes}{waits}{sizes}")
}

/// `1034 µs a step, 1.03 times the ideal, with 97% hidden`.
fn step(row: &Configuration) -> String {
    let figure = |key| row.figures.get(key);
    let step = figure("step_us").map(|us| format!("{} µs a step", units::digits(us)));
    let ideal = figure("step_times_ideal").map(|times| format!("{times:.2} times the ideal"));
    let hidden = figure("hidden_percent").map(|share| format!("with {} hidden", percent(share)));
    [step, ideal, hidden].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use gpufeed::Strategy;

    use super::*;
    use crate::compare::testing::{device, report};

    /// Beside an idle consumer `imported` is faster, beside one that computes `system-ring` is.
    fn turned_round() -> DeviceReport {
        let (ring, imported) = (Strategy::SystemRing, Strategy::Imported);
        let rates = [(ring, 8, 100.0), (imported, 8, 120.0), (ring, 8, 99.0), (imported, 8, 60.0)];
        let mut found = device("vulkan:0", &rates);
        for row in &mut found.configurations[2..] {
            row.settings.compute_us = 1000;
            row.compute_alone_us = Some(1000.0);
        }
        found.summarise();
        found
    }

    #[test]
    fn who_is_fastest_beside_a_consumer_that_computes_is_told_beside_who_usually_is() {
        let told = winners(&turned_round());
        let start = "Beside a consumer that computes for 1000 µs a batch: system-ring takes ";
        assert!(told.len() == 1 && told[0].starts_with(start), "{told:?}");
        assert!(told[0].contains("imported takes 1.65 times as long, the next"), "{told:?}");
        assert!(told[0].contains("; imported, the fastest beside a consumer that does nothing, takes "), "{told:?}");
        assert!(told[0].contains(" µs a step") && told[0].contains("hidden"), "{told:?}");
    }

    #[test]
    fn a_comparison_without_one_says_so() {
        let idle = report(vec![device("vulkan:0", &[(Strategy::SystemRing, 8, 100.0)])]);
        assert!(
            hint(&idle).is_some_and(|text| text.contains("--compute 1000")) && winners(&idle.devices[0]).is_empty()
        );
        assert_eq!((hint(&report(vec![turned_round()])), hint(&report(Vec::new()))), (None, None));
    }
}

//! The summary in words, and the table of winners. Pure.

use gpufeed::measure::report::{DeviceReport, Report};

use super::sent::{Sent, memory_kind, missing_vendors, vendor};
use crate::compare::summary;

/// What must be said before any number.
pub fn notices(sent: &[Sent]) -> Vec<String> {
    let mut notices = Vec::new();
    let named = |wanted: &dyn Fn(&Report) -> bool| -> Vec<&str> {
        sent.iter().filter(|sent| wanted(&sent.report)).map(|sent| sent.name.as_str()).collect()
    };
    let debug = named(&|report| report.debug_build);
    if !debug.is_empty() {
        notices.push(format!("Debug builds, several times slower than others on the CPU: {}.", debug.join(", ")));
    }
    let software = named(&|report| report.devices.iter().any(|device| device.software));
    if !software.is_empty() {
        notices.push(
            "Software drivers compute on the CPU: their numbers say nothing about any GPU. They are marked.".to_owned(),
        );
    }
    let ended = named(&|report| report.interrupted);
    if !ended.is_empty() {
        notices.push(format!("Ended early: {}.", ended.join(", ")));
    }
    if let Some(first) = sent.first() {
        let shape = |report: &Report| (report.data.layout.clone(), report.data.preprocess.clone());
        if sent.iter().any(|sent| shape(&sent.report) != shape(&first.report)) {
            notices.push(
                "The files fed samples of different shapes: rates of one file cannot be held against another's."
                    .to_owned(),
            );
        }
    }
    let missing = missing_vendors(sent);
    if !missing.is_empty() {
        notices.push(format!("Nobody has sent a result yet from a GPU of {}.", missing.join(", ")));
    }
    notices.push("Every number is of verified bytes. Devices are not ranked against each other: each is measured against its own ceilings.".to_owned());
    notices
}

/// What must stand beside each number of a device.
pub fn marks(device: &DeviceReport, report: &Report) -> Vec<&'static str> {
    let marks =
        [(device.software, "software"), (report.debug_build, "debug build"), (report.interrupted, "ended early")];
    marks.into_iter().filter(|(set, _)| *set).map(|(_, mark)| mark).collect()
}

/// One device in a sentence or two.
pub fn answer(device: &DeviceReport, report: &Report) -> String {
    summary::answer(device, report).unwrap_or_else(|| "Nothing was measured.".to_owned())
}

/// A line of the table of winners.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Winner {
    pub vendor: String,
    pub api: &'static str,
    pub memory: &'static str,
    pub device: String,
    pub strategy: String,
    pub lead: String,
    pub marks: String,
    pub source: String,
}

/// In the order of vendors, APIs and names, which ranks nobody.
pub fn winners(sent: &[Sent]) -> Vec<Winner> {
    let mut lines: Vec<Winner> =
        sent.iter().flat_map(|sent| sent.report.devices.iter().filter_map(|device| winner(device, sent))).collect();
    lines.sort();
    lines
}

fn winner(device: &DeviceReport, sent: &Sent) -> Option<Winner> {
    let (won, report, adapter) = (device.winner.as_ref()?, &sent.report, &device.adapter);
    let lead = match (won.runner_up, won.ratio, won.spread) {
        (Some(second), Some(ratio), Some(spread)) if won.beyond_noise => {
            format!("{ratio:.2} ± {spread:.2} x {}", second.strategy)
        }
        (Some(second), ..) => format!("within the noise of {}", second.strategy),
        _ => "no competitor".to_owned(),
    };
    Some(Winner {
        vendor: vendor(adapter),
        api: adapter.api.key(),
        memory: memory_kind(adapter, report),
        device: adapter.name.clone(),
        strategy: won.settings.strategy.to_string(),
        lead,
        marks: marks(device, report).join(", "),
        source: format!("{}, {}, {}", sent.name, report.date.split('T').next().unwrap_or_default(), driver(device)),
    })
}

/// The driver and its version.
pub fn driver(device: &DeviceReport) -> String {
    let text = format!("{} {}", device.adapter.driver, device.adapter.driver_info);
    if text.trim().is_empty() { "no driver".to_owned() } else { text.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use gpufeed::Strategy;

    use super::*;
    use crate::compare::testing::{device, report};

    fn sent(name: &str) -> Sent {
        let rates = [(Strategy::WriteBuffer, 8, 100.0), (Strategy::MappedRing, 8, 200.0)];
        Sent::of(name, &report(vec![device("vulkan:0", &rates), device("gl:0", &[])]))
    }

    #[test]
    fn debug_builds_software_and_shapes_are_marked() {
        let mut other = sent("b.json");
        other.report.data.layout = "u8 images of 9x9x3".to_owned();
        let text = notices(&[sent("a.json"), other]).join("\n");
        for part in
            ["Debug builds", "a.json, b.json", "Software drivers", "different shapes", "Nobody has sent", "not ranked"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!notices(&[sent("a.json")]).join("\n").contains("different shapes"));
    }

    #[test]
    fn winners_are_sorted_by_name_and_devices_without_one_are_left_out() {
        let lines = winners(&[sent("b.json"), sent("a.json")]);
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].strategy.as_str(), lines[0].lead.as_str()), ("mapped-ring", "2.00 ± 0.00 x write-buffer"));
        assert_eq!((lines[0].marks.as_str(), lines[0].memory), ("software, debug build", "the host's (software)"));
        assert!(lines[0].source.starts_with("a.json"), "{lines:?}");
    }
}

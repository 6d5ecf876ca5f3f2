//! A comparison against a report of an earlier time. Pure.

use gpufeed::measure::report::{Ceilings, Configuration, DeviceReport, Report};
use gpufeed::measure::{Gate, RatioInterval};

/// One configuration, then and now.
#[derive(Clone, Debug, PartialEq)]
pub struct Then {
    pub interval: Option<RatioInterval>,
    pub gate: Gate,
    /// How fast the host's memcpy was against then, where both measured it: what the machine does, not the build.
    pub reference: Option<f64>,
}

/// Why a record cannot be compared with; the first that is found.
pub fn refusal(now: &Report, then: &Report) -> Option<String> {
    let build = |report: &Report| if report.debug_build { "a debug build" } else { "an optimised build" };
    if now.debug_build != then.debug_build {
        return Some(format!("the baseline is of {}, and this is {}", build(then), build(now)));
    }
    let (a, b) = (&now.data, &then.data);
    if (&a.layout, &a.preprocess, a.synthetic) != (&b.layout, &b.preprocess, b.synthetic)
        || (!a.synthetic && a.name != b.name)
    {
        return Some(format!(
            "the baseline fed {} ({}), and this {} ({})",
            b.layout, b.preprocess, a.layout, a.preprocess
        ));
    }
    None
}

/// The device of the record that is this one; `anyway` takes another of the same API.
///
/// # Errors
/// What differs.
pub fn same_device<'a>(now: &DeviceReport, then: &'a Report, anyway: bool) -> Result<&'a DeviceReport, String> {
    let driver = |device: &DeviceReport| format!("{} {}", device.adapter.driver, device.adapter.driver_info);
    let mut of_api = then.devices.iter().filter(|device| device.adapter.api == now.adapter.api);
    let (name, first) = (&now.adapter.name, of_api.clone().next());
    let Some(first) = first else { return Err(format!("the baseline has no device of {}", now.adapter.api.key())) };
    match of_api.find(|device| device.adapter.name == *name) {
        Some(same) if driver(same) == driver(now) => Ok(same),
        Some(other) if anyway => Ok(other),
        Some(other) => Err(format!(
            "the baseline has {} with the driver {}, and here it is {}",
            name,
            driver(other).trim(),
            driver(now).trim()
        )),
        None if anyway => Ok(first),
        None => Err(format!("the baseline has {}, and this is {name}", first.adapter.name)),
    }
}

/// The same settings then and now; `None` where one of them was not measured.
pub fn then(now: (&DeviceReport, &Configuration), then: &DeviceReport, max_slowdown: f64) -> Option<Then> {
    let (device, row) = now;
    let old = then.configurations.iter().find(|old| old.settings == row.settings && old.is_measured())?;
    let rates = |row: &Configuration| row.rounds.iter().map(|round| round.samples_s).collect::<Vec<_>>();
    let interval = RatioInterval::of_records(&rates(row), &rates(old));
    let gate = interval.map_or(Gate::Undecided, |interval| interval.gate(max_slowdown));
    let memcpy = |device: &DeviceReport| Ceilings::of(&device.ceilings, &row.settings)?.host_memcpy_gb_s;
    let reference = memcpy(device).zip(memcpy(then)).map(|(now, then)| now / then);
    Some(Then { interval, gate, reference })
}

#[cfg(test)]
mod tests {
    use gpufeed::Strategy;

    use super::*;
    use crate::compare::testing::{device, report};

    fn rates(scale: f64) -> DeviceReport {
        let mut found = device("vulkan:0", &[(Strategy::MappedRing, 8, 100.0 * scale)]);
        // Ten rounds within half a percent.
        let round = found.configurations[0].rounds[1];
        let at = |i: u32| gpufeed::measure::report::Round {
            samples_s: round.samples_s * (1.0 + f64::from(i) * 5e-4),
            ..round
        };
        found.configurations[0].rounds = (0..10).map(at).collect();
        found.summarise();
        found
    }

    fn gate(scale: f64) -> Gate {
        let (old, new) = (rates(1.0), rates(scale));
        then((&new, &new.configurations[0]), &old, 0.03).expect("measured then and now").gate
    }

    #[test]
    fn a_build_slower_by_a_tenth_fails_and_the_same_passes() {
        assert_eq!([gate(1.0), gate(0.9), gate(1.1)], [Gate::Passes, Gate::Fails, Gate::Passes]);
        assert_eq!(gate(0.969), Gate::Undecided);
    }

    #[test]
    fn another_device_or_driver_is_refused_unless_it_is_wanted() {
        let old = report(vec![rates(1.0)]);
        let mut now = rates(1.0);
        assert!(same_device(&now, &old, false).is_ok());
        now.adapter.driver_info = "2.0".to_owned();
        assert!(same_device(&now, &old, false).is_err_and(|why| why.contains("driver")));
        assert!(same_device(&now, &old, true).is_ok());
        now.adapter.name = "Another Card".to_owned();
        assert!(same_device(&now, &old, false).is_err_and(|why| why.contains("this is Another Card")));
        assert!(same_device(&now, &old, true).is_ok());
        now.adapter.api = gpufeed::Api::Cuda;
        assert!(same_device(&now, &old, true).is_err_and(|why| why.contains("no device of cuda")));
    }

    #[test]
    fn other_data_and_another_kind_of_build_are_refused() {
        let (now, mut old) = (report(Vec::new()), report(Vec::new()));
        assert_eq!(refusal(&now, &old), None);
        old.data.layout = "u8 images of 9x9x3".to_owned();
        assert!(refusal(&now, &old).is_some_and(|why| why.contains("9x9x3")));
        old = report(Vec::new());
        old.debug_build = false;
        assert!(refusal(&now, &old).is_some_and(|why| why.contains("optimised build")));
    }

    #[test]
    fn settings_that_were_not_measured_then_are_not_compared() {
        let (old, new) = (device("vulkan:0", &[(Strategy::MappedRing, 64, 100.0)]), rates(1.0));
        assert_eq!(then((&new, &new.configurations[0]), &old, 0.03), None);
    }
}

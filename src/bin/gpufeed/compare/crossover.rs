//! Where the fastest strategy changes as a size grows. Pure.

use gpufeed::Strategy;
use gpufeed::measure::report::{DeviceReport, SIZES, Settings, Size, Winner};

/// A stretch of a size over which one strategy is fastest.
#[derive(Debug, PartialEq, Eq)]
struct Stretch {
    from: u64,
    to: u64,
    strategy: Strategy,
}

/// One sentence for each size along which the winner changes, or one that it does not; nothing without a sweep.
pub fn describe(device: &DeviceReport) -> Vec<String> {
    let idle: Vec<&Winner> = device.sweep.iter().collect();
    // One combination of sizes is no sweep, but may have been measured beside several consumers.
    let of_one_size = device.winner.as_ref().filter(|_| idle.is_empty());
    let beside_all: Vec<&Winner> = idle.iter().copied().chain(of_one_size).chain(&device.busy).collect();
    let Some(first) = beside_all.first().filter(|_| beside_all.len() > 1) else { return Vec::new() };
    let mut strategies = device.configurations.iter().filter(|row| row.is_measured()).map(|row| row.settings.strategy);
    if strategies.all(|strategy| strategy == first.settings.strategy) {
        return Vec::new();
    }
    let of_the_loader = SIZES.iter().filter(|size| !size.is_of_the_consumer()).flat_map(|size| along(&idle, size));
    let compute = SIZES.iter().filter(|size| size.title == "compute").flat_map(|size| along(&beside_all, size));
    let lines: Vec<String> = of_the_loader.chain(compute).collect();
    if lines.is_empty() && !idle.is_empty() { everywhere(&idle) } else { lines }
}

/// What is said of a sweep without a change.
fn everywhere(winners: &[&Winner]) -> Vec<String> {
    let sure = || winners.iter().filter(|winner| winner.beyond_noise).map(|winner| winner.settings.strategy);
    let Some(first) = sure().next() else {
        return vec!["In no combination of sizes was a lead beyond the noise.".to_owned()];
    };
    let where_it_differs = if sure().count() < winners.len() { " with a lead beyond the noise" } else { "" };
    let same = sure().all(|strategy| strategy == first);
    same.then(|| format!("`{first}` was fastest in every combination of sizes{where_it_differs}."))
        .into_iter()
        .collect()
}

/// The changes along one size, for each combination of the others.
fn along(winners: &[&Winner], size: &Size) -> Vec<String> {
    let mut groups: Vec<Vec<&Winner>> = Vec::new();
    for &winner in winners {
        let group = groups.iter_mut().find(|group| same_but(&group[0].settings, &winner.settings, size));
        match group {
            Some(group) => group.push(winner),
            None => groups.push(vec![winner]),
        }
    }
    let many = groups.len() > 1;
    let mut lines: Vec<String> = Vec::new();
    for mut group in groups {
        group.sort_by_key(|winner| value(size, &winner.settings));
        let (found, gaps) = stretches(&group, size);
        let Some(text) = sentence(&found, gaps, size) else { continue };
        let with = if many { others(&group[0].settings, winners, size) } else { String::new() };
        lines.push(format!("{with}{text}."));
    }
    lines
}

fn same_but(a: &Settings, b: &Settings, size: &Size) -> bool {
    SIZES.iter().all(|other| other.key == size.key || (other.of)(a) == (other.of)(b))
}

/// The other sizes, of those that differ anywhere: `with workers 2: `.
fn others(settings: &Settings, winners: &[&Winner], size: &Size) -> String {
    let differs = |other: &&Size| {
        other.key != size.key && winners.iter().any(|winner| (other.of)(&winner.settings) != (other.of)(settings))
    };
    let all: Vec<String> =
        SIZES.iter().filter(differs).map(|other| format!("{} {}", other.title, (other.of)(settings))).collect();
    if all.is_empty() { String::new() } else { format!("with {}: ", all.join(", ")) }
}

/// Neighbours with one winner, together, and whether there are values at which no strategy leads beyond the noise. Such a value belongs to the stretch
/// before it if that one's strategy came second, and to none otherwise.
fn stretches(group: &[&Winner], size: &Size) -> (Vec<Stretch>, bool) {
    let mut found: Vec<Stretch> = Vec::new();
    let (mut goes_on, mut gaps) = (false, false);
    for winner in group {
        let (at, strategy) = (value(size, &winner.settings), winner.settings.strategy);
        let second = winner.runner_up.map(|settings| settings.strategy).filter(|_| !winner.beyond_noise);
        match found.last_mut().filter(|_| goes_on) {
            Some(last) if last.strategy == strategy || second == Some(last.strategy) => last.to = at,
            _ if !winner.beyond_noise => (goes_on, gaps) = (false, true),
            _ => {
                found.push(Stretch { from: at, to: at, strategy });
                goes_on = true;
            }
        }
    }
    (found, gaps)
}

/// A size as the number that it is.
fn value(size: &Size, settings: &Settings) -> u64 {
    (size.of)(settings).parse().unwrap_or(0)
}

/// Who wins where, if that changes.
fn sentence(stretches: &[Stretch], gaps: bool, size: &Size) -> Option<String> {
    let title = size.title;
    if stretches.iter().all(|stretch| stretch.strategy == stretches[0].strategy) {
        return None;
    }
    if let ([below, above], false) = (stretches, gaps) {
        return Some(format!(
            "Below {title} {} `{}` wins, from there `{}`",
            above.from, below.strategy, above.strategy
        ));
    }
    let part = |stretch: &Stretch| {
        let Stretch { from, to, strategy } = stretch;
        if from == to { format!("`{strategy}` at {from}") } else { format!("`{strategy}` from {from} to {to}") }
    };
    let elsewhere = if gaps { "; elsewhere no lead is beyond the noise" } else { "" };
    Some(format!("By {title}: {}{elsewhere}", stretches.iter().map(part).collect::<Vec<_>>().join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::device;

    const WRITE: Strategy = Strategy::WriteBuffer;
    const RING: Strategy = Strategy::MappedRing;

    #[test]
    fn a_crossover_is_named_where_it_is() {
        let rates = [
            (WRITE, 1, 150.0),
            (RING, 1, 100.0),
            (WRITE, 4, 200.0),
            (RING, 4, 300.0),
            (WRITE, 64, 200.0),
            (RING, 64, 400.0),
        ];
        assert_eq!(
            describe(&device("vulkan:0", &rates)),
            ["Below batch 4 `write-buffer` wins, from there `mapped-ring`."]
        );
    }

    #[test]
    fn several_changes_are_listed_and_none_is_said() {
        let rates = [
            (WRITE, 1, 150.0),
            (RING, 1, 100.0),
            (WRITE, 4, 200.0),
            (RING, 4, 300.0),
            (WRITE, 64, 500.0),
            (RING, 64, 400.0),
        ];
        assert_eq!(
            describe(&device("vulkan:0", &rates)),
            ["By batch: `write-buffer` at 1, `mapped-ring` at 4, `write-buffer` at 64."]
        );
        let steady = [(WRITE, 1, 90.0), (RING, 1, 100.0), (WRITE, 4, 200.0), (RING, 4, 300.0)];
        assert_eq!(
            describe(&device("vulkan:0", &steady)),
            ["`mapped-ring` was fastest in every combination of sizes."]
        );
        assert!(
            describe(&device("vulkan:0", &[(RING, 1, 100.0), (RING, 4, 300.0)])).is_empty(),
            "nobody to win against"
        );
        assert!(describe(&device("vulkan:0", &[(RING, 1, 100.0), (WRITE, 1, 300.0)])).is_empty(), "no sweep");
    }

    #[test]
    fn a_change_with_the_consumers_work_is_named_without_any_other_sweep() {
        let beside_1000_us = |rates: [f64; 2]| {
            let [ring, write] = rates;
            let rates = [(RING, 8, 100.0), (WRITE, 8, 120.0), (RING, 8, ring), (WRITE, 8, write)];
            let mut found = device("vulkan:0", &rates);
            found.configurations[2..].iter_mut().for_each(|row| row.settings.compute_us = 1000);
            found.summarise();
            describe(&found)
        };
        let crossed = ["Below compute 1000 `write-buffer` wins, from there `mapped-ring`."];
        assert_eq!(beside_1000_us([99.0, 60.0]), crossed);
        assert!(beside_1000_us([60.0, 99.0]).is_empty(), "the same strategy wins beside both");
    }

    #[test]
    fn a_lead_within_the_noise_changes_nothing() {
        let mut found = device("vulkan:0", &[(RING, 1, 300.0), (WRITE, 1, 200.0), (RING, 4, 300.0), (WRITE, 4, 301.0)]);
        assert_eq!(found.sweep[1].settings.strategy, WRITE);
        found.sweep[1].beyond_noise = false;
        let one = "`mapped-ring` was fastest in every combination of sizes with a lead beyond the noise.";
        assert_eq!(describe(&found), [one]);
        let mut first = device("vulkan:0", &[(RING, 1, 301.0), (WRITE, 1, 300.0), (RING, 4, 300.0), (WRITE, 4, 400.0)]);
        first.sweep[0].beyond_noise = false;
        assert_eq!(describe(&first), [one.replace("mapped-ring", "write-buffer")], "nothing is below a change");
        let third = Strategy::Imported;
        let rates = [(WRITE, 1, 300.0), (RING, 1, 100.0), (RING, 4, 301.0), (third, 4, 300.0), (WRITE, 4, 9.0)];
        let mut gap = device("vulkan:0", &[&rates[..], &[(RING, 64, 400.0), (WRITE, 64, 200.0)]].concat());
        gap.sweep[1].beyond_noise = false;
        let told = "By batch: `write-buffer` at 1, `mapped-ring` at 64; elsewhere no lead is beyond the noise.";
        assert_eq!(describe(&gap), [told], "the one that wins at 1 does not win below 64");
        first.sweep[1].beyond_noise = false;
        assert_eq!(describe(&first), ["In no combination of sizes was a lead beyond the noise."]);
    }
}

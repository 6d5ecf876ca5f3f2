//! Findings for people.

use super::finding::{Finding, State};
use crate::{output, units};

/// What is wrong comes first, then notes, what is not known, and what is well.
pub fn text(findings: &[Finding]) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|found| std::cmp::Reverse(found.state));
    let lines = sorted.iter().flat_map(|found| lines(found));
    lines.chain([String::new(), total(findings)]).collect::<Vec<_>>().join("\n")
}

fn lines(found: &Finding) -> Vec<String> {
    let name = match &found.device {
        Some(device) => format!("{} of {device}", found.check),
        None => found.check.clone(),
    };
    let head = format!("{}  {name}: {}.", found.state.word(), found.what);
    let more = [("costs", &found.cost), ("mend", &found.mend)];
    let more =
        more.into_iter().filter_map(|(word, text)| Some(output::paragraph(4, &format!("{word}: {}.", text.as_ref()?))));
    std::iter::once(output::paragraph(0, &head)).chain(more).collect()
}

fn total(findings: &[Finding]) -> String {
    let count = |state| findings.iter().filter(|found| found.state == state).count() as u64;
    match (count(State::Wrong), count(State::Note)) {
        (0, 0) => "Nothing is in the way.".to_owned(),
        (0, notes) => format!("Nothing is wrong; {}.", units::count(notes, "note", "notes")),
        (wrong, notes) => format!(
            "{} wrong, {}.",
            units::count(wrong, "thing is", "things are"),
            units::count(notes, "note", "notes")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_comes_first_with_its_cost_and_its_mend() {
        let well = Finding::new("numa", State::Ok, "one node").on("cuda:0");
        let wrong = Finding::new("pcie", State::Wrong, "it is narrow").cost("75%").mend("another slot");
        let text = text(&[well.clone(), wrong]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "WRONG pcie: it is narrow.");
        assert_eq!((lines[1], lines[2]), ("    costs: 75%.", "    mend: another slot."));
        assert_eq!((lines[3], lines[5]), ("ok numa of cuda:0: one node.", "1 thing is wrong, 0 notes."));
        assert!(super::text(&[well]).ends_with("Nothing is in the way."));
    }
}

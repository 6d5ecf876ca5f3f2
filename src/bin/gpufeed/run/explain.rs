//! A description of what held a run back, and of how fast it would have been otherwise.

use gpufeed::loader::{Advice, Verdict};
use gpufeed::measure::WhatIf;

use crate::{output, units};

/// The verdict as a paragraph, with the options as they are called here.
pub fn verdict(verdict: &Verdict) -> String {
    let sentence = |text: &str| {
        let mut letters = text.chars();
        letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>()).unwrap_or_default()
    };
    let mut text = format!("{}.", sentence(&verdict.describe()));
    for (index, advice) in verdict.advice.iter().enumerate() {
        text.push_str(if index == 0 { "\nNext: " } else { "\nOr: " });
        text.push_str(&advised(advice));
    }
    text.lines().map(|line| output::paragraph(0, line)).collect::<Vec<_>>().join("\n")
}

fn advised(Advice { option, how, .. }: &Advice) -> String {
    match *option {
        // The clock is asked for together with the rest.
        "timing" => {
            "--explain: the device's own clock tells copies and kernels apart, and each ceiling is measured.".to_owned()
        }
        "ordered" => format!("--unordered instead of `ordered`: {how}."),
        option => format!("--{}: {how}.", option.replace('_', "-")),
    }
}

/// The ceilings, one a line, against what the run reached.
pub fn what_if(runs: &[WhatIf], samples_per_s: f64, noun: &str) -> String {
    let line = |run: &WhatIf| {
        let name = run.free.describe();
        let rate = match (run.samples_s, run.gb_s, &run.error) {
            (Some(samples), Some(gb), _) => format!(
                "{} {noun}/s, {} GB/s ({:.2}x this run)",
                units::digits(samples),
                units::digits(gb),
                samples / samples_per_s
            ),
            (.., Some(error)) => format!("not measured: {error}"),
            _ => "not measured".to_owned(),
        };
        vec![name.to_owned(), rate]
    };
    let rows = runs.iter().map(line);
    format!("what it would be (estimates, unverified)\n{}", output::table(&[], comfy_table::CellAlignment::Left, rows))
}

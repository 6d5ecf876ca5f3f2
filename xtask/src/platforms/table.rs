//! The table at the end.

use super::outcome::{Line, Outcome, Tally};

const HEADINGS: [&str; 7] = ["platform", "driver or compiler", "result", "passed", "failed", "skipped", "time"];

/// The table as Markdown, with columns of even width.
pub fn render(lines: &[Line]) -> String {
    let rows: Vec<[String; 7]> = std::iter::once(HEADINGS.map(str::to_owned)).chain(lines.iter().map(cells)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("| {cell:width$} "));
        format!("{}|\n", cells.collect::<String>())
    };
    let rule = line(&widths.map(|width| "-".repeat(width)));
    rows.iter().enumerate().map(|(at, row)| if at == 0 { line(row) + &rule } else { line(row) }).collect()
}

/// The sum over what ran.
pub fn total(lines: &[Line]) -> Tally {
    let mut total = Tally::default();
    for line in lines {
        match &line.outcome {
            Outcome::Ran { tally, .. } => total.add(*tally),
            Outcome::Compiled { .. } => total.passed += 1,
            Outcome::Failed { .. } => total.failed += 1,
            Outcome::NotReachable { .. } => {}
        }
    }
    total
}

fn cells(line: &Line) -> [String; 7] {
    let [mut passed, mut failed, mut skipped] = [const { String::new() }; 3];
    let (driver, result) = match &line.outcome {
        Outcome::Ran { driver, tally } => {
            [passed, failed, skipped] = [tally.passed, tally.failed, tally.skipped].map(|count| count.to_string());
            (driver.clone(), if line.outcome.is_good() { "ran" } else { "FAILED" }.to_owned())
        }
        Outcome::Compiled { compiler } => (compiler.clone(), "compiled only".to_owned()),
        Outcome::Failed { reason } => (String::new(), format!("FAILED: {reason}")),
        Outcome::NotReachable { reason } => (String::new(), format!("not reachable: {reason}")),
    };
    [line.key.to_owned(), driver, result, passed, failed, skipped, format!("{} s", line.took.as_secs())]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_platform_is_a_line_with_its_counts_or_its_reason() {
        let line = |key, outcome| Line { key, outcome, took: Duration::from_secs(3) };
        let tally = Tally { passed: 12, failed: 1, skipped: 2 };
        let lines = [
            line("dx12", Outcome::Ran { driver: "WARP 1".to_owned(), tally }),
            line("metal", Outcome::NotReachable { reason: "no adapter".to_owned() }),
        ];
        let table = render(&lines);
        let rows: Vec<&str> = table.lines().collect();
        assert_eq!(rows.len(), 4, "{table}");
        assert!(rows[2].contains("WARP 1") && rows[2].contains("FAILED") && rows[2].contains("12"), "{table}");
        assert!(rows[3].contains("not reachable: no adapter"), "{table}");
        assert_eq!(total(&lines), tally);
    }
}

//! Many reports as Markdown.

use std::fmt::Write;

use gpufeed::measure::report::{Exporter, Markdown};

use super::sent::Sent;
use super::words::{notices, winners};

/// Notices, winners, then each report's own tables.
pub fn page(sent: &[Sent]) -> String {
    let mut out = "# Which staging strategy feeds which device fastest\n\n".to_owned();
    for notice in notices(sent) {
        let _ = writeln!(out, "{notice}\n");
    }
    out.push_str("| vendor | API | memory | device | fastest | lead | | from |\n|---|---|---|---|---|---|---|---|\n");
    for line in winners(sent) {
        let strategy = format!("`{}`", line.strategy);
        let cells =
            [&line.vendor, line.api, line.memory, &line.device, &strategy, &line.lead, &line.marks, &line.source];
        let _ = writeln!(out, "| {} |", cells.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).join(" | "));
    }
    for one in sent {
        // Their headings go two levels down.
        let text = Markdown.export(&one.report);
        let lines = text.lines().map(|line| if line.starts_with('#') { format!("##{line}") } else { line.to_owned() });
        let _ = write!(out, "\n## {}\n\n{}\n", one.name, lines.collect::<Vec<_>>().join("\n"));
    }
    out
}

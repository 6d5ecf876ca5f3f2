//! Lists of classes, and what is told of the data that was opened.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use gpufeed::source::{Class, SourceSummary};
use serde::Deserialize;

use crate::output;

/// Classes and things left out that are named; of the others, the number.
const NAMED: usize = 8;

/// An entry of a list in JSON.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Name(String),
    Class { name: String },
}

/// Reads a list of classes: one name a line, or JSON as `--save` writes it.
pub fn read_classes(path: &Path) -> Result<Vec<String>> {
    let named = || format!("--classes {}", path.display());
    let text = fs::read_to_string(path).with_context(named)?;
    parse_classes(&text).with_context(|| format!("{}: no list of classes", named()))
}

fn parse_classes(text: &str) -> Result<Vec<String>> {
    if text.trim_start().starts_with('[') {
        let entries: Vec<Entry> = serde_json::from_str(text)?;
        let name = |entry| match entry {
            Entry::Name(name) | Entry::Class { name } => name,
        };
        return Ok(entries.into_iter().map(name).collect());
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok(text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect())
}

/// Says on standard error what was left out of the data.
pub fn note_left_out(path: &Path, summary: &SourceSummary) {
    let left_out = &summary.left_out;
    for entry in left_out.iter().take(NAMED) {
        output::note(format_args!("note: {}: left out: {entry}", path.display()));
    }
    if left_out.len() > NAMED {
        output::note(format_args!("note: {}: left out: {} more kinds", path.display(), left_out.len() - NAMED));
    }
}

/// The classes in one line: `2: cat (0): 40, dog (1): 38`.
pub fn describe_classes(classes: &[Class]) -> String {
    let named = classes.iter().enumerate().take(NAMED);
    let named: Vec<String> =
        named.map(|(label, class)| format!("{} ({label}): {}", output::visible(&class.name), class.samples)).collect();
    let more = match classes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!("{}: {}{more}", classes.len(), named.join(", "))
}

/// What was left out in one line.
pub fn describe_left_out(summary: &SourceSummary) -> String {
    let entries: Vec<String> = summary.left_out.iter().take(NAMED).map(ToString::to_string).collect();
    let more = if summary.left_out.len() > NAMED { "; and more" } else { "" };
    format!("{}{more}", entries.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_come_as_lines_or_as_json() {
        let classes = |text: &str| parse_classes(text).ok();
        let expected = Some(vec!["cat".to_owned(), "big dog".to_owned()]);
        for text in ["cat\nbig dog\n", "\u{feff}cat\r\n\r\nbig dog", r#"["cat", "big dog"]"#] {
            assert_eq!(classes(text), expected, "{text}");
        }
        assert_eq!(classes(r#" [{"name": "cat", "samples": 3}, {"name": "big dog", "samples": 0}]"#), expected);
        assert_eq!(classes("[cat"), None);
    }
}

//! Everything that is printed goes through here: a closed pipe ends the command quietly, where `println!` would panic.

use std::fmt::Display;
use std::io::{self, Write};

use anyhow::{Error, Result};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

/// The widest a paragraph gets.
const WIDTH: u16 = 120;
/// A narrower terminal is taken for one of this width.
const MIN_WIDTH: u16 = 30;
/// The widest a table gets: a comparison's columns, with flags, side by side.
const TABLE_WIDTH: u16 = 140;

/// Whoever read standard output has gone away. No failure: they had enough.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub struct Closed;

/// Prints a line, or several, on standard output.
///
/// # Errors
/// [`Closed`] if nobody reads it any more.
pub fn print(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Closed.into(),
        _ => Error::new(error).context("cannot write to standard output"),
    })
}

/// Prints as indented JSON on standard output.
///
/// # Errors
/// As [`print`].
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print(serde_json::to_string_pretty(value)?)
}

/// Prints a line, or several, on standard error. If that is closed, nobody wants to know.
pub fn note(text: impl Display) {
    let text = text.to_string();
    let lines: Vec<String> = text.split('\n').map(visible).collect();
    let _ = writeln!(io::stderr().lock(), "{}", lines.join("\n"));
}

/// A text with its control characters escaped: names of files and classes may hold any, and terminals act on them.
pub fn visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { visible.extend(c.escape_default()) } else { visible.push(c) }
    }
    visible
}

/// Prints an error and its causes on standard error.
pub fn error(error: &Error) {
    note(format_args!("error: {error}"));
    let mut shown = error.to_string();
    for cause in error.chain().skip(1) {
        let text = cause.to_string();
        // Many messages hold their cause's already.
        if !shown.contains(&text) {
            note(format_args!("  because: {text}"));
            shown = text;
        }
    }
}

/// A table without lines, as text: the first column is to the left, the others as asked for. An empty header is left out.
pub fn table(header: &[&str], others: CellAlignment, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none_or(|width| width > TABLE_WIDTH) {
        table.set_width(TABLE_WIDTH);
    }
    if !header.is_empty() {
        table.set_header(header.iter().copied());
    }
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((if index == 0 { 2 } else { 0 }, 2));
        column.set_cell_alignment(if index == 0 { CellAlignment::Left } else { others });
    }
    // Names stay whole, whatever else is broken.
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.trim_fmt()
}

/// Text wrapped to the terminal, indented, with what follows its first line indented further.
pub fn paragraph(indent: usize, text: &str) -> String {
    // Away from a terminal there is no width.
    let terminal = Table::new().width().unwrap_or(WIDTH);
    wrapped(usize::from(terminal.clamp(MIN_WIDTH, WIDTH)), indent, text)
}

fn wrapped(width: usize, indent: usize, text: &str) -> String {
    let mut lines = vec![" ".repeat(indent)];
    let mut empty = true;
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if !empty && last + 1 + word.chars().count() > width {
            lines.push(" ".repeat(indent + 2));
            empty = true;
        }
        if let Some(line) = lines.last_mut() {
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal_but_a_word_that_is() {
        let text = wrapped(20, 2, "one two three four five six seven incomprehensibilities end");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, ["  one two three four", "    five six seven", "    incomprehensibilities", "    end"]);
    }
}

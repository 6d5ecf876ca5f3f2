//! What onnxruntime answered, and how far from it an answer may be.

use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The largest difference of a probability from what onnxruntime answers to the same input.
pub const TOLERANCE: f64 = 1e-4;

/// The largest difference from what it answers to PP-OCR's own input, whose pixels are rounded to whole numbers when they are resized.
pub const ROUNDED_TOLERANCE: f64 = 1e-2;

/// One line of `expected.csv`: the probabilities that a picture is upside down.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Below `pictures/`.
    pub picture: String,
    /// Of the input as gpufeed makes it, in floats.
    pub in_floats: f64,
    /// Of the input as PP-OCR's code makes it.
    pub rounded: f64,
}

impl Expected {
    /// Whether an answer is right.
    pub fn agrees(&self, answer: f64) -> bool {
        // Not finite is not right either.
        (answer - self.in_floats).abs() <= TOLERANCE && (answer - self.rounded).abs() <= ROUNDED_TOLERANCE
    }
}

/// The lines of the file.
pub fn read(path: &Path) -> Result<Vec<Expected>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    text.lines().skip(1).map(line).collect()
}

fn line(line: &str) -> Result<Expected> {
    let cells: Vec<&str> = line.split(',').collect();
    ensure!(cells.len() == 3, "`{line}` has {} cells and not 3", cells.len());
    Ok(Expected { picture: cells[0].to_owned(), in_floats: cells[1].parse()?, rounded: cells[2].parse()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_right_within_the_tolerances_and_never_if_it_is_no_number() {
        let expected = line("0/a.png,0.25,0.255").expect("a line");
        assert!(expected.agrees(0.25) && expected.agrees(0.25 + TOLERANCE / 2.0));
        assert!(!expected.agrees(0.25 + 2.0 * TOLERANCE) && !expected.agrees(f64::NAN));
        assert!(!Expected { rounded: 0.5, ..expected }.agrees(0.25));
        assert!(line("0/a.png,0.25").is_err());
    }
}

//! Reports in other forms than JSON, as text.

mod csv;
mod markdown;

pub use csv::Csv;
pub use markdown::Markdown;

use super::report::Report;

/// Writes a report in some form.
pub trait Exporter {
    /// The whole report.
    fn export(&self, report: &Report) -> String;
}

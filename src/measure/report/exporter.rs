//! Reports in other forms than JSON, as text.

use super::whole::Report;

/// Writes a report in some form.
pub trait Exporter {
    /// The whole report.
    fn export(&self, report: &Report) -> String;
}

//! Reports of comparisons, read from files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use gpufeed::measure::report::{Report, SCHEMA};
use serde::Deserialize;

/// What every version of the format has.
#[derive(Deserialize)]
struct Version {
    schema: String,
}

/// Reads a report of this version's format.
///
/// # Errors
/// It cannot be read, is no report, or is of another version of the format.
pub fn read(path: &Path) -> Result<Report> {
    parse(&fs::read_to_string(path)?)
}

fn parse(text: &str) -> Result<Report> {
    let Version { schema } = serde_json::from_str(text).context("this is no report of gpufeed compare --json")?;
    ensure!(schema == SCHEMA, "its format is {schema}, and this gpufeed reads {SCHEMA}: measure it again");
    serde_json::from_str(text).context("the report cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_and_other_files_are_refused_by_name() {
        let refused = |text: &str| format!("{:#}", parse(text).expect_err("refused"));
        assert!(refused(r#"{"schema": "gpufeed-compare/1"}"#).contains("its format is gpufeed-compare/1"));
        assert!(refused("{}").contains("no report of gpufeed compare"));
        assert!(refused(&format!(r#"{{"schema": "{SCHEMA}"}}"#)).contains("cannot be read"));
        let report = crate::compare::testing::report(Vec::new());
        let text = serde_json::to_string(&report).expect("serialises");
        assert_eq!(parse(&text).expect("read"), report);
    }
}

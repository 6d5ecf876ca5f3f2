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
    let mut report: Report = serde_json::from_str(text).context("the report cannot be read")?;
    with_sample_bytes(&mut report);
    Ok(report)
}

/// Reports that were made before samples of several sizes were measured tell their size once.
fn with_sample_bytes(report: &mut Report) {
    let of_data = report.data.sample_bytes;
    let fill = |bytes: &mut u64| {
        if *bytes == 0 {
            *bytes = of_data;
        }
    };
    for device in &mut report.devices {
        device.ceilings.iter_mut().for_each(|ceilings| fill(&mut ceilings.sample_bytes));
        device.configurations.iter_mut().for_each(|row| fill(&mut row.settings.sample_bytes));
        for winner in device.winner.iter_mut().chain(&mut device.sweep).chain(&mut device.busy) {
            fill(&mut winner.settings.sample_bytes);
            winner.runner_up.iter_mut().for_each(|second| fill(&mut second.sample_bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use gpufeed::Strategy;

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
        let rates = [(Strategy::WriteBuffer, 8, 100.0), (Strategy::MappedRing, 8, 200.0)];
        let report = crate::compare::testing::report(vec![crate::compare::testing::device("vulkan:0", &rates)]);
        let text = serde_json::to_string(&report).expect("serialises");
        let older = text.replace("\"sample_bytes\":12,\"batch_size\"", "\"batch_size\"");
        assert!(older.len() < text.len());
        assert_eq!(parse(&older).expect("read"), report, "the size of the data's samples");
    }
}

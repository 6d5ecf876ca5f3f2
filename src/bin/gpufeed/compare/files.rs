//! The files that a comparison writes.

use anyhow::Result;
use gpufeed::measure::report::{Csv, Exporter, Markdown, Report};

use super::args::OutputArgs;
use crate::output_file::{Inputs, OutputFile};
use crate::report::Html;

/// Indented JSON.
struct Json;

impl Exporter for Json {
    fn export(&self, report: &Report) -> String {
        // Structs of numbers, strings and lists always serialise.
        serde_json::to_string_pretty(report).map(|text| text + "\n").unwrap_or_default()
    }
}

/// Where to, in which form.
pub struct Files {
    files: Vec<(OutputFile, Box<dyn Exporter>)>,
}

impl Files {
    /// Checks that the files can be written and are no inputs, and leaves what is there as it is.
    pub fn new(args: &OutputArgs, inputs: &Inputs) -> Result<Self> {
        let forms: [(_, _, Box<dyn Exporter>); 4] = [
            ("--json", &args.json, Box::new(Json)),
            ("--markdown", &args.markdown, Box::new(Markdown)),
            ("--csv", &args.csv, Box::new(Csv)),
            ("--html", &args.html, Box::new(Html)),
        ];
        let mut files = Vec::new();
        for (option, path, form) in forms {
            if let Some(path) = path {
                let output = OutputFile::new(option, path, inputs)?;
                // A file that cannot be written shows now, and not after a minute.
                drop(output.begin()?);
                files.push((output, form));
            }
        }
        Ok(Self { files })
    }

    /// Writes the report as it is now. Where nothing was measured, files that are there stay as they are.
    pub fn write(&self, report: &Report) -> Result<()> {
        let measured = report.devices.iter().flat_map(|device| &device.configurations).any(|row| row.is_measured());
        let mut files = self.files.iter().filter(|(output, _)| measured || !output.exists() || !output.is_regular());
        files.try_for_each(|(output, form)| output.write(form.export(report).as_bytes()))
    }
}

//! The files that a comparison writes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use gpufeed::measure::report::{Csv, Exporter, Markdown, Report};

use super::args::OutputArgs;

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
    files: Vec<(PathBuf, Box<dyn Exporter>)>,
}

impl Files {
    pub fn new(args: &OutputArgs) -> Self {
        let forms: [(&Option<PathBuf>, Box<dyn Exporter>); 3] =
            [(&args.json, Box::new(Json)), (&args.markdown, Box::new(Markdown)), (&args.csv, Box::new(Csv))];
        Self { files: forms.into_iter().filter_map(|(path, form)| Some((path.clone()?, form))).collect() }
    }

    /// Writes the report as it is now.
    pub fn write(&self, report: &Report) -> Result<()> {
        self.files.iter().try_for_each(|(path, form)| {
            replace(path, &form.export(report)).with_context(|| format!("{}: cannot be written", path.display()))
        })
    }
}

/// What was there stays until the new text is complete. What is no ordinary file (`/dev/stdout`) is written to.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return fs::write(path, text);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    fs::write(&part, text)?;
    fs::rename(&part, path)
}

//! `gpufeed report`: the results of many machines on one page.

mod chart;
mod escape;
mod html;
mod markdown;
mod section;
mod sent;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgGroup, Args};
use gpufeed::measure::report::{Exporter, Report};

use crate::output;
use crate::output_file::{Inputs, OutputFile};
use sent::Sent;

const HELP: &str = "\
The page is one file: no script, no font and no picture comes from elsewhere. Files of another version of the format are refused; debug \
builds, software drivers and samples of different shapes are marked. What the files tell about a machine is listed, so that you know it before \
you share them.";

#[derive(Debug, Args)]
#[command(after_long_help = HELP, group = ArgGroup::new("form").args(["html", "markdown"]).required(true).multiple(true))]
pub struct ReportArgs {
    /// Files of compare --json, or folders of them
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// A page of one report.
pub struct Html;

impl Exporter for Html {
    fn export(&self, report: &Report) -> String {
        html::page(&[Sent::of("this comparison", report)])
    }
}

/// Merges reports into pages.
pub fn report(args: &ReportArgs) -> Result<ExitCode> {
    let sent = sent::read_all(&args.files)?;
    let inputs = Inputs::new(args.files.clone());
    if let Some(path) = &args.html {
        OutputFile::new("--html", path, &inputs)?.write(html::page(&sent).as_bytes())?;
    }
    if let Some(path) = &args.markdown {
        OutputFile::new("--markdown", path, &inputs)?.write(markdown::page(&sent).as_bytes())?;
    }
    for one in &sent {
        output::print(output::paragraph(0, &told(one)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a file tells about a machine.
fn told(sent: &Sent) -> String {
    let (report, host) = (&sent.report, &sent.report.host);
    let devices: Vec<String> =
        report.devices.iter().map(|device| format!("{} ({})", device.adapter.name, words::driver(device))).collect();
    format!(
        "{} tells: {}; {} cores, {}, {}; the date {}; the data's name \"{}\"; the command `{}`. {}",
        sent.name,
        devices.join(", "),
        host.cores,
        host.cpu.as_deref().unwrap_or("a processor without a name"),
        host.os,
        report.date,
        output::visible(&report.data.name),
        output::visible(&report.command.join(" ")),
        paths(report)
    )
}

/// Whether what people give names to holds paths: files of other versions may.
fn paths(report: &Report) -> &'static str {
    let texts = || report.command.iter().chain([&report.data.name]);
    if texts().any(|text| text.contains(['/', '\\'])) {
        "IT HOLDS PATHS: look before you share it."
    } else {
        "No host name, user name or path."
    }
}

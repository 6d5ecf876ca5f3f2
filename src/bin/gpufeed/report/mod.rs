//! `gpufeed report`: the results of many machines on one page.

mod chart;
mod escape;
mod html;
mod latency;
mod markdown;
mod numbers;
mod section;
mod sent;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ArgGroup, Args};
use gpufeed::measure::report::{DeviceReport, Exporter, Report};

use crate::output_file::{Inputs, OutputFile};
use crate::{output, units};
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
        output::print(output::paragraph(0, &tells(&one.name, &one.report)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a file tells about a machine, to be read before it is shared.
pub fn tells(name: &str, report: &Report) -> String {
    let host = &report.host;
    let device = |device: &DeviceReport| {
        let slot = device.adapter.pci.as_deref().map(|pci| format!(", at {pci}")).unwrap_or_default();
        format!("{} ({}{slot})", device.adapter.name, words::driver(device))
    };
    let devices: Vec<String> = report.devices.iter().map(device).collect();
    let memory =
        host.memory.map_or_else(|| "memory not known".to_owned(), |bytes| format!("{} of memory", units::bytes(bytes)));
    format!(
        "{name} tells: {}; {} cores, {}, {memory}, {} on {}; the date {}; the data's name \"{}\", {} samples, {}; the command `{}`; what was \
         measured. {}",
        devices.join(", "),
        host.cores,
        host.cpu.as_deref().unwrap_or("a processor without a name"),
        host.os,
        host.arch,
        report.date,
        output::visible(&report.data.name),
        report.data.samples,
        output::visible(&report.data.layout),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing;

    #[test]
    fn what_a_file_tells_is_all_listed_and_paths_are_warned_of() {
        let mut report = testing::report(vec![testing::device("vulkan:0", &[])]);
        report.devices[0].adapter.pci = Some("0000:01:00.0".to_owned());
        (report.host.cpu, report.host.memory) = (Some("A CPU".to_owned()), Some(3 << 30));
        report.command = vec!["gpufeed".to_owned(), "compare".to_owned()];
        let text = tells("a.json", &report);
        for part in [
            "Some Card (",
            ", at 0000:01:00.0)",
            "A CPU, 3.00 GiB of memory",
            "\"random images in memory\"",
            "`gpufeed compare`",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.ends_with("No host name, user name or path."), "{text}");
        report.command.push("/home/anna/x.npy".to_owned());
        assert!(tells("a.json", &report).ends_with("IT HOLDS PATHS: look before you share it."));
    }
}

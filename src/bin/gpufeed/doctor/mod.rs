//! `gpufeed doctor`: what stands between this machine and the speed of the link.
//!
//! Each check has a file: it judges facts, and is pure; `gather` finds the facts out. What a driver or the system may end a process for is
//! tried in one of its own (`probe`).

mod container;
mod cores;
mod data;
mod drivers;
mod finding;
mod gather;
mod largest;
mod locked_memory;
mod memlock;
mod memory_kind;
mod numa;
mod pcie;
mod probe;
mod queues;
mod show;
mod sysfs;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use gpufeed::backend::select;
use gpufeed::{AdapterInfo, LoaderOptions, SampleLayout};
use serde::Serialize;

pub use probe::doctor_probe;

use crate::args::{DataArgs, open_source};
use crate::{interrupt, output};
use finding::{Finding, State};
use gather::Wanted;

const HELP: &str = "\
Nothing is changed, and only what is measured takes time: some seconds a device. What a driver or the system might end a process for is \
tried in a process of its own, and no more memory is tried than is left.

JSON: {gpufeed, findings: [{check, device, state: ok|unknown|note|wrong, what, cost, mend, figures: {name: number}}]}

Exit codes: 0 nothing is wrong, 1 something is (or it failed), 2 wrong usage, 3 no such device, 130 interrupted.";

#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub struct DoctorArgs {
    /// Also look at how fast this is read and decoded: a folder of JPEG, PNG and WebP images, or a .npy file
    data: Option<PathBuf>,
    /// Look at this device: an API (vulkan), an id (vulkan:0), or a part of a name; may be repeated [default: all]
    #[arg(long = "device", value_name = "DEVICE")]
    devices: Vec<String>,
    /// Samples in a batch of the loader in question [default: 64]
    #[arg(long, value_name = "N")]
    batch_size: Option<NonZeroUsize>,
    /// Its staging slots [default: 4]
    #[arg(long, value_name = "N")]
    slots: Option<NonZeroUsize>,
    /// Print JSON (fields: see --help)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    images: DataArgs,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Examination {
    gpufeed: &'static str,
    findings: Vec<Finding>,
}

/// Runs every check and says what is wrong.
pub fn doctor(args: &DoctorArgs) -> Result<ExitCode> {
    interrupt::catch()?;
    let wanted = args.wanted()?;
    let adapters = gpufeed::devices();
    let chosen = args.choose(&adapters)?;
    let findings = gather::all(&adapters, &chosen, &wanted)?;
    let wrong = findings.iter().any(|found| found.state == State::Wrong);
    if args.json {
        output::print_json(&Examination { gpufeed: env!("CARGO_PKG_VERSION"), findings })?;
    } else {
        output::print(show::text(&findings))?;
    }
    Ok(match (interrupt::requested(), wrong) {
        (true, _) => ExitCode::from(interrupt::EXIT_CODE),
        (false, true) => ExitCode::FAILURE,
        (false, false) => ExitCode::SUCCESS,
    })
}

impl DoctorArgs {
    fn wanted(&self) -> Result<Wanted> {
        let default = LoaderOptions::default();
        let batch = self.batch_size.map_or(default.batch_size, NonZeroUsize::get);
        let slots = self.slots.map_or(default.slots, NonZeroUsize::get);
        let data = match &self.data {
            Some(path) => Some((path.clone(), open_source(path, &self.images)?)),
            None => None,
        };
        let layout = match (&data, self.images.size, self.images.channels) {
            (Some((_, source)), ..) => source.layout(),
            (None, size, channels) => {
                let (height, width) = size.map_or((224, 224), |size| (size.height, size.width));
                SampleLayout::image(height, width, channels.unwrap_or(3))?
            }
        };
        let bytes = |count: usize, each: usize| (count as u64).saturating_mul(each as u64);
        let slot = bytes(batch, layout.byte_len());
        // A pixel becomes a float of four bytes.
        let tensor = if layout.as_image().is_some() { slot.saturating_mul(4) } else { slot };
        let tensors = tensor.saturating_mul(default.outputs as u64);
        Ok(Wanted { slots, ring: slot.saturating_mul(slots as u64), tensors, data })
    }

    fn choose<'a>(&self, found: &'a [AdapterInfo]) -> Result<Vec<&'a AdapterInfo>> {
        if self.devices.is_empty() {
            return Ok(found.iter().collect());
        }
        Ok(self.devices.iter().map(|wanted| select::select(found, wanted)).collect::<Result<_, _>>()?)
    }
}

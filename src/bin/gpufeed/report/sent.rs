//! Reports that were sent in, and what the page takes from them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use gpufeed::measure::report::{Configuration, DeviceReport, Report, Settings};
use gpufeed::{AdapterInfo, DeviceType};

use crate::report_file;

/// A report and the file that it came from.
pub struct Sent {
    /// The file's name, without its folders.
    pub name: String,
    pub report: Report,
}

/// A configuration that was measured.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub configuration: &'a Configuration,
}

impl Row<'_> {
    pub fn settings(&self) -> &Settings {
        &self.configuration.settings
    }

    /// How long the consumer computed for each batch; 0 is an idle one.
    pub fn compute_us(&self) -> f64 {
        f64::from(self.settings().compute_us)
    }

    pub fn figure(&self, key: &str) -> Option<f64> {
        self.configuration.figures.get(key)
    }
}

impl Sent {
    pub fn of(name: &str, report: &Report) -> Self {
        Self { name: name.to_owned(), report: report.clone() }
    }

    fn read(path: &Path) -> Result<Self> {
        let report = report_file::read(path)?;
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Ok(Self { name, report })
    }

    /// The rows with numbers of a device, by its place in the report.
    pub fn rows(&self, device: usize) -> Vec<Row<'_>> {
        let Some(found) = self.report.devices.get(device) else { return Vec::new() };
        let rows = found.configurations.iter().filter(|row| row.is_measured());
        rows.map(|configuration| Row { configuration }).collect()
    }
}

/// Reads files, and all `.json` files of folders, in the order of their names.
///
/// # Errors
/// One cannot be read, or is of another version of the format; there is none.
pub fn read_all(paths: &[PathBuf]) -> Result<Vec<Sent>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
            let mut inside: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            inside.retain(|file| file.extension().is_some_and(|end| end == "json"));
            inside.sort();
            files.extend(inside);
        } else {
            files.push(path.clone());
        }
    }
    ensure!(!files.is_empty(), "there is no report: no .json file in the folders given");
    files.iter().map(|file| Sent::read(file).with_context(|| file.display().to_string())).collect()
}

/// A vendor's name by its PCI number.
pub fn vendor(adapter: &AdapterInfo) -> String {
    let known = VENDORS.iter().find(|(number, _)| *number == adapter.vendor);
    match (known, adapter.vendor) {
        (Some((_, name)), _) => (*name).to_owned(),
        (None, 0) => "none".to_owned(),
        (None, number) => format!("{number:#06x}"),
    }
}

/// PCI vendors; Khronos gives numbers beyond 16 bits to others.
const VENDORS: [(u32, &str); 9] = [
    (0x10de, "NVIDIA"),
    (0x1002, "AMD"),
    (0x8086, "Intel"),
    (0x106b, "Apple"),
    (0x5143, "Qualcomm"),
    (0x13b5, "Arm"),
    (0x1ae0, "Google (software)"),
    (0x1_0005, "Mesa (software)"),
    (0x1414, "Microsoft (software)"),
];

/// The vendors of GPUs of whom there is no report.
pub fn missing_vendors(sent: &[Sent]) -> Vec<&'static str> {
    let adapters = || sent.iter().flat_map(|sent| &sent.report.devices).map(|device| &device.adapter);
    let there = |number: u32| adapters().any(|adapter| adapter.vendor == number && !adapter.is_software());
    VENDORS.iter().take(5).filter(|(number, _)| !there(*number)).map(|(_, name)| *name).collect()
}

/// What kind of memory a device has, and so what crossing to it means.
pub fn memory_kind(adapter: &AdapterInfo, report: &Report) -> &'static str {
    match adapter.device_type {
        DeviceType::Software => "the host's (software)",
        DeviceType::Integrated => "unified",
        DeviceType::Discrete => match window(adapter, report) {
            Some(true) => "resizable BAR",
            Some(false) => "discrete",
            None => "discrete, window not known",
        },
        _ => "not known",
    }
}

/// Whether the CPU sees at least half of the card's memory; the same card behind another API may know.
fn window(adapter: &AdapterInfo, report: &Report) -> Option<bool> {
    let of = |adapter: &AdapterInfo| {
        let window = adapter.limits.iter().find(|(name, _)| name == "host_visible_device_memory_size")?.1;
        Some(window >= adapter.memory? / 2)
    };
    let same = |other: &&DeviceReport| adapter.pci.is_some() && other.adapter.pci == adapter.pci;
    of(adapter).or_else(|| report.devices.iter().filter(same).find_map(|other| of(&other.adapter)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::testing::{device, report};
    use crate::testing::adapter;

    #[test]
    fn kinds_of_memory_are_told_apart_by_the_window() {
        let card = |window: Option<u64>| {
            adapter(|card| {
                (card.device_type, card.memory) = (DeviceType::Discrete, Some(24 << 30));
                card.pci = Some("0000:01:00.0".to_owned());
                card.limits =
                    window.map(|bytes| ("host_visible_device_memory_size".to_owned(), bytes)).into_iter().collect();
            })
        };
        let mut with = report(vec![device("vulkan:0", &[])]);
        assert_eq!(memory_kind(&card(None), &with), "discrete, window not known");
        assert_eq!(
            [Some(256 << 20), Some(24 << 30)].map(|window| memory_kind(&card(window), &with)),
            ["discrete", "resizable BAR"]
        );
        with.devices[0].adapter = card(Some(24 << 30));
        assert_eq!(memory_kind(&card(None), &with), "resizable BAR", "another API knows");
        let mut integrated = card(None);
        integrated.device_type = DeviceType::Integrated;
        assert_eq!(memory_kind(&integrated, &with), "unified");
    }

    #[test]
    fn vendors_that_nobody_sent_are_named_and_software_is_no_vendor() {
        let mut software = device("vulkan:0", &[]);
        software.adapter.vendor = 0x10de;
        assert_eq!(
            missing_vendors(&[Sent::of("a", &report(vec![software]))]),
            ["NVIDIA", "AMD", "Intel", "Apple", "Qualcomm"]
        );
    }
}

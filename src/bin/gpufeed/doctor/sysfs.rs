//! Devices on the PCI bus, as Linux shows them. Reads any folder laid out like `/sys/bus/pci/devices`.

use std::fs;
use std::path::Path;

/// A display or compute device on the bus.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PciDevice {
    /// `0000:01:00.0`.
    pub address: String,
    pub vendor: u32,
    pub device: u32,
    /// The kernel's driver, where there is one.
    pub driver: Option<String>,
    /// The link as it runs now, and as the device could run it.
    pub link: Option<Link>,
    pub most: Option<Link>,
    /// Bytes of the largest window through which the CPU sees the device's memory.
    pub window: Option<u64>,
    /// The NUMA node it is attached to.
    pub node: Option<usize>,
}

/// A PCIe link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Transfers a second and lane, in units of 10^9.
    pub gt_s: f64,
    pub width: u32,
}

impl Link {
    /// The generation, where it is one.
    pub fn generation(self) -> Option<usize> {
        [2.5, 5.0, 8.0, 16.0, 32.0, 64.0].iter().position(|gt_s| (gt_s - self.gt_s).abs() < 0.1).map(|index| index + 1)
    }

    /// The bytes a second that the lanes carry, in GB/s, packets' heads included: 8b/10b coding below 8 GT/s, 128b/130b from there.
    pub fn gb_s(self) -> f64 {
        let coding = if self.gt_s < 8.0 { 0.8 } else { 128.0 / 130.0 };
        self.gt_s * coding / 8.0 * f64::from(self.width)
    }

    pub fn describe(self) -> String {
        match self.generation() {
            Some(generation) => format!("PCIe {generation} x{}", self.width),
            None => format!("PCIe at {} GT/s x{}", self.gt_s, self.width),
        }
    }
}

/// Graphics and processing accelerators; what only draws a server's console is none.
const CLASSES: [u32; 2] = [0x03, 0x12];
const CONSOLES: [u32; 8] = [0x1234, 0x1af4, 0x1b36, 0x1013, 0x15ad, 0x102b, 0x1a03, 0x1414];

/// The GPUs on the bus.
pub fn gpus(root: &Path) -> Vec<PciDevice> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let mut found: Vec<PciDevice> = entries
        .flatten()
        .filter(|entry| hex(&entry.path().join("class")).is_some_and(|class| CLASSES.contains(&(class >> 16))))
        .map(|entry| read(&entry.path(), entry.file_name().to_string_lossy().into_owned()))
        .filter(|device| !CONSOLES.contains(&device.vendor))
        .collect();
    found.sort_by(|a, b| a.address.cmp(&b.address));
    found
}

/// The link of one device as it runs now.
pub fn link(root: &Path, address: &str) -> Option<Link> {
    link_of(&root.join(address), "current")
}

fn read(folder: &Path, address: String) -> PciDevice {
    let driver = fs::read_link(folder.join("driver")).ok();
    PciDevice {
        address,
        vendor: hex(&folder.join("vendor")).unwrap_or(0),
        device: hex(&folder.join("device")).unwrap_or(0),
        driver: driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
        link: link_of(folder, "current"),
        most: link_of(folder, "max"),
        window: text(&folder.join("resource")).as_deref().and_then(window),
        node: text(&folder.join("numa_node")).and_then(|node| node.parse().ok()),
    }
}

fn text(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn hex(path: &Path) -> Option<u32> {
    u32::from_str_radix(text(path)?.trim_start_matches("0x"), 16).ok()
}

/// `32.0 GT/s PCIe` and `16`; a link that is not known has the speed `Unknown` or the width 255.
fn link_of(folder: &Path, which: &str) -> Option<Link> {
    let speed = text(&folder.join(format!("{which}_link_speed")))?;
    let gt_s = speed.split_whitespace().next()?.parse().ok()?;
    let width = text(&folder.join(format!("{which}_link_width")))?.parse().ok()?;
    ((1..=32).contains(&width)).then_some(Link { gt_s, width })
}

/// The largest of the first six regions in `resource`, which are the device's windows: start, end and flags a line.
fn window(resource: &str) -> Option<u64> {
    const MEMORY: u64 = 0x200;
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let regions = resource.lines().take(6).filter_map(|line| {
        let mut parts = line.split_whitespace();
        let (start, end, flags) = (number(parts.next()?)?, number(parts.next()?)?, number(parts.next()?)?);
        (flags & MEMORY != 0 && end > start).then(|| end - start + 1)
    });
    regions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_read_from_its_folder_and_a_console_is_none() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |device: &str, file: &str, text: &str| {
            let folder = root.path().join(device);
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join(file), text).expect("written");
        };
        let card = [
            ("class", "0x030200\n"),
            ("vendor", "0x10de\n"),
            ("device", "0x2335\n"),
            ("current_link_speed", "2.5 GT/s PCIe\n"),
            ("current_link_width", "16\n"),
            ("max_link_speed", "32.0 GT/s PCIe\n"),
            ("max_link_width", "16\n"),
            ("numa_node", "1\n"),
            (
                "resource",
                "0x0000000080000000 0x0000000080ffffff 0x0000000000040200\n0x0000002000000000 0x0000003fffffffff 0x000000000014220c\n",
            ),
        ];
        card.iter().for_each(|(file, text)| write("0000:01:00.0", file, text));
        write("0000:02:00.0", "class", "0x030000");
        write("0000:02:00.0", "vendor", "0x1a03");
        write("0000:03:00.0", "class", "0x010802");
        let found = gpus(root.path());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].vendor, found[0].device, found[0].node), (0x10de, 0x2335, Some(1)));
        assert_eq!(found[0].most, Some(Link { gt_s: 32.0, width: 16 }));
        assert_eq!((found[0].window, found[0].driver.as_deref()), (Some(128 << 30), None));
        assert_eq!(link(root.path(), "0000:01:00.0").map(Link::describe).as_deref(), Some("PCIe 1 x16"));
        assert!(gpus(&root.path().join("none")).is_empty());
    }

    #[test]
    fn lanes_carry_what_their_coding_leaves() {
        let rate = |gt_s, width| (Link { gt_s, width }.gb_s() * 10.0).round() / 10.0;
        assert_eq!([rate(2.5, 1), rate(8.0, 16), rate(16.0, 16), rate(32.0, 16)], [0.3, 15.8, 31.5, 63.0]);
    }
}

//! The link between host and GPU: what it runs at, against what the card can do and what copies reach.

use super::finding::{Finding, State};
use super::sysfs::{Link, PciDevice};
use crate::units;

pub const CHECK: &str = "pcie";

/// Copies reach 0.8 to 0.9 of what the lanes carry.
const USUAL: f64 = 0.7;

/// Pure. `link` is the fastest that was seen while the device copied, as links rest at a lower speed; `copy_gb_s` is what it copied at.
pub fn judge(device: &str, card: &PciDevice, link: Option<Link>, copy_gb_s: Option<f64>) -> Finding {
    let (Some(link), Some(most)) = (link, card.most) else {
        let copies = copy_gb_s.map(|rate| format!("; copies reach {} GB/s", units::digits(rate))).unwrap_or_default();
        return figures(
            Finding::new(CHECK, State::Unknown, format!("the link's speed is not shown here{copies}")),
            None,
            copy_gb_s,
        )
        .on(device);
    };
    let copies = copy_gb_s.map_or("copies were not measured".to_owned(), |rate| {
        format!("copies reach {} GB/s of the {} that its lanes carry", units::digits(rate), units::digits(link.gb_s()))
    });
    let what = format!("{} under load, where the card can do {}; {copies}", link.describe(), most.describe());
    let lost = 1.0 - link.gb_s() / most.gb_s();
    let finding = if link.width < most.width {
        Finding::new(CHECK, State::Wrong, what).cost(share(lost)).mend(
            "seat the card in a slot with all lanes (the board's manual says which share theirs), clean its contacts, replace a riser",
        )
    } else if link.gt_s < most.gt_s {
        Finding::new(CHECK, State::Wrong, what).cost(share(lost)).mend(
            "set the slot's generation to Auto in the firmware's setup, replace a riser or cable, turn off power saving of links \
             (`pcie_aspm.policy=performance`); an older board or CPU can do no more",
        )
    } else if copy_gb_s.is_some_and(|rate| rate < USUAL * link.gb_s()) {
        let reached = copy_gb_s.unwrap_or(0.0) / (0.85 * link.gb_s());
        Finding::new(CHECK, State::Wrong, what).cost(share(1.0 - reached)).mend(
            "look for other programs on the bus, a virtual machine's IOMMU, and memory on another NUMA node than the card's",
        )
    } else {
        Finding::new(CHECK, State::Ok, what)
    };
    figures(finding, Some((link, most)), copy_gb_s).on(device)
}

fn share(lost: f64) -> String {
    format!("{:.0}% of the link's speed", 100.0 * lost)
}

fn figures(finding: Finding, links: Option<(Link, Link)>, copy_gb_s: Option<f64>) -> Finding {
    let rate = copy_gb_s.map(|rate| ("copy_gb_s", rate));
    let links = links.map(|(link, most)| [("link_gb_s", link.gb_s()), ("card_gb_s", most.gb_s())]);
    rate.into_iter()
        .chain(links.into_iter().flatten())
        .fold(finding, |finding, (name, value)| finding.figure(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEN_5: Link = Link { gt_s: 32.0, width: 16 };

    fn card() -> PciDevice {
        PciDevice { most: Some(GEN_5), ..PciDevice::default() }
    }

    #[test]
    fn a_narrow_link_and_a_slow_one_are_wrong_with_their_share() {
        let found = judge("cuda:0", &card(), Some(Link { width: 4, ..GEN_5 }), Some(13.5));
        assert_eq!((found.state, found.cost.as_deref()), (State::Wrong, Some("75% of the link's speed")));
        assert!(found.what.starts_with("PCIe 5 x4 under load, where the card can do PCIe 5 x16"), "{found:?}");
        let found = judge("cuda:0", &card(), Some(Link { gt_s: 16.0, width: 16 }), Some(26.0));
        assert_eq!((found.state, found.cost.as_deref()), (State::Wrong, Some("50% of the link's speed")));
        assert!(found.mend.is_some_and(|mend| mend.contains("Auto")));
    }

    #[test]
    fn copies_far_below_a_full_link_are_wrong_and_usual_ones_are_not() {
        assert_eq!(judge("cuda:0", &card(), Some(GEN_5), Some(55.3)).state, State::Ok);
        let slow = judge("cuda:0", &card(), Some(GEN_5), Some(24.0));
        assert_eq!((slow.state, slow.cost.as_deref()), (State::Wrong, Some("55% of the link's speed")));
        assert_eq!(judge("cuda:0", &card(), Some(GEN_5), None).state, State::Ok);
        assert_eq!(judge("cuda:0", &PciDevice::default(), None, Some(50.0)).state, State::Unknown);
    }
}

//! How much memory open loaders may take.

use crate::backend::{AdapterInfo, DeviceType, Footprint};
use crate::measure::host_memory::available_memory;

/// The memory that open loaders may take together, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryBudget {
    host: u64,
    /// `None` where the device's memory is the host's.
    device: Option<u64>,
    all: u64,
}

impl MemoryBudget {
    /// An eighth of the memory there is, a quarter of the device's, and the caller's own bound.
    pub(super) fn of(adapter: &AdapterInfo, budget: Option<u64>) -> Self {
        let host = available_memory().map_or(256 << 20, |bytes| (bytes / 8).min(2 << 30));
        let own = adapter.device_type == DeviceType::Discrete;
        let device = own.then(|| adapter.memory.map_or(host, |bytes| bytes / 4));
        Self { host, device, all: budget.unwrap_or(u64::MAX) }
    }

    /// Whether another loader fits beside these: those of one batch layout are about as large.
    pub(super) fn has_one_more(&self, open: impl Iterator<Item = Footprint>) -> bool {
        let (mut host, mut device, mut loaders) = (0u64, 0u64, 0u64);
        for Footprint { staging, device: scratch, outputs, host: own } in open {
            host = host.saturating_add(staging).saturating_add(own);
            device = device.saturating_add(scratch).saturating_add(outputs);
            loaders += 1;
        }
        let one_more = |bytes: u64| bytes.saturating_add(bytes / loaders.max(1));
        let (host, device) = (one_more(host), one_more(device));
        let all = host.saturating_add(device);
        let fits = match self.device {
            Some(most) => host <= self.host && device <= most,
            None => all <= self.host,
        };
        fits && all <= self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_stay_open_as_far_as_there_is_memory_where_theirs_lies() {
        let loader = Footprint { staging: 6, device: 20, outputs: 80, host: 4 };
        let fits = |budget: MemoryBudget, open: usize| budget.has_one_more(std::iter::repeat_n(loader, open));
        let card = MemoryBudget { host: 30, device: Some(1000), all: u64::MAX };
        assert_eq!(
            [0, 2, 3].map(|open| fits(card, open)),
            [true, true, false],
            "staging and fields on the host are the host's"
        );
        let shared = MemoryBudget { host: 330, device: None, all: u64::MAX };
        assert_eq!([2, 3].map(|open| fits(shared, open)), [true, false]);
        assert_eq!(
            [1, 2].map(|open| fits(MemoryBudget { all: 220, ..card }, open)),
            [true, false],
            "the caller's bound"
        );
    }
}

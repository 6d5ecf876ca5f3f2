//! Which queues a device is opened with beside wgpu's own. Pure arithmetic on what the driver lists.
//!
//! wgpu submits everything to one queue of the first family, so under it a transfer never runs beside a kernel. Another queue of
//! that family does not help: drivers take turns between them. A family apart does: a transfer family is the device's copy engines,
//! and a compute family runs beside the first one, up to a time slice.

use super::super::native::MAX_QUEUES;

/// The family that wgpu opens its queue of.
pub const WGPU_FAMILY: u32 = 0;
/// The family of queues on APIs that have no families, and make queues when they are asked to.
pub const APART: u32 = u32::MAX;
/// Queues of one family, at most: those that copy, and two for kernels.
pub const MAX_FAMILY_QUEUES: usize = MAX_QUEUES + 2;

const GRAPHICS: u32 = 1;
const COMPUTE: u32 = 2;
const TRANSFER: u32 = 4;
/// Sparse binding and protected memory, which change nothing about copies. Families of video engines have flags beyond these.
const HARMLESS: u32 = 8 | 16;

/// A family of queues, as the driver lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// `VkQueueFlags`.
    pub flags: u32,
    /// How many queues there are.
    pub queues: u32,
}

/// A family apart from wgpu's, and how many of its queues a device is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyQueues {
    pub family: u32,
    pub queues: u32,
}

/// The families that a device is opened with beside wgpu's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Families {
    /// Copies, and nothing else.
    pub transfer: Option<FamilyQueues>,
    /// Kernels and copies, and no graphics. These queues copy.
    pub compute: Option<FamilyQueues>,
    /// Queues of the compute family that no copies use.
    pub kernels: Option<KernelQueues>,
}

/// Queues for kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelQueues {
    pub family: u32,
    /// Which of the family's queues has the priority of wgpu's.
    pub usual: u32,
    /// Which has the lowest priority.
    pub low: Option<u32>,
}

/// Why there is no queue apart from wgpu's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSecondQueue {
    /// The adapter's only family is wgpu's, or one of video engines.
    #[error("the driver has one family of queues")]
    OneFamily,
    /// The driver lacks what orders work across queues, or what marks a device as opened by gpufeed.
    #[error("the driver is older than Vulkan 1.2, or lacks VK_EXT_external_memory_host or VK_KHR_synchronization2")]
    OldDriver,
    /// An application's own device.
    #[error("the device was created without a second queue; create it with gpufeed's open_device()")]
    NotOpened,
    /// GL.
    #[error("GL has one queue")]
    OneQueue,
    /// Metal, without `GPUFEED_UNPROVEN=1`.
    #[error("a second queue was compiled for this API and has never run; GPUFEED_UNPROVEN=1 tries it")]
    Unproven,
}

impl Families {
    /// Of an API that makes a queue for copies when it is asked to, where wgpu opens no second queue for kernels.
    pub const COPIES: Self =
        Self { transfer: Some(FamilyQueues { family: APART, queues: 1 }), compute: None, kernels: None };

    /// Chooses among the families of an adapter, in the driver's order.
    ///
    /// # Errors
    /// [`NoSecondQueue::OneFamily`] where none is apart from wgpu's.
    pub fn choose(families: &[Family]) -> Result<Self, NoSecondQueue> {
        let find = |wanted: u32, unwanted: u32| {
            let fits = |family: &Family| {
                family.queues > 0
                    && family.flags & wanted == wanted
                    && family.flags & unwanted == 0
                    && family.flags & !(COMPUTE | TRANSFER | HARMLESS) == 0
            };
            (0..)
                .zip(families)
                .skip(1)
                .find(|(_, family)| fits(family))
                .map(|(family, found)| FamilyQueues { family, queues: found.queues })
        };
        let compute = find(COMPUTE, GRAPHICS);
        // A queue is one thread's at a time: kernels have their own.
        let copying = |FamilyQueues { family, queues }| FamilyQueues {
            family,
            queues: queues.saturating_sub(1).clamp(1, MAX_QUEUES as u32),
        };
        let kernels = |FamilyQueues { family, queues }| {
            let usual = queues.saturating_sub(1).clamp(1, MAX_QUEUES as u32);
            (usual < queues).then(|| KernelQueues { family, usual, low: (usual + 1 < queues).then_some(usual + 1) })
        };
        let most = |found: FamilyQueues| FamilyQueues { queues: found.queues.min(MAX_QUEUES as u32), ..found };
        let chosen = Self {
            transfer: find(TRANSFER, GRAPHICS | COMPUTE).map(most),
            compute: compute.map(copying),
            kernels: compute.and_then(kernels),
        };
        if chosen.opened().next().is_none() { Err(NoSecondQueue::OneFamily) } else { Ok(chosen) }
    }

    /// The families to open, each once, and how many of their queues.
    pub fn created(&self) -> impl Iterator<Item = FamilyQueues> + use<> {
        let kernels = self.kernels.map_or(0, |kernels| 1 + u32::from(kernels.low.is_some()));
        let compute = self.compute.map(|copying| FamilyQueues { queues: copying.queues + kernels, ..copying });
        [self.transfer, compute].into_iter().flatten()
    }

    /// The queues that copy, by family.
    pub fn opened(&self) -> impl Iterator<Item = FamilyQueues> + use<> {
        [self.transfer, self.compute].into_iter().flatten()
    }

    /// The indices of all families that may use a buffer, wgpu's first.
    pub fn sharing(&self) -> Vec<u32> {
        std::iter::once(WGPU_FAMILY).chain(self.opened().map(|queues| queues.family)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(families: &[(u32, u32)]) -> Result<Families, NoSecondQueue> {
        let families: Vec<_> = families.iter().map(|&(flags, queues)| Family { flags, queues }).collect();
        Families::choose(&families)
    }

    fn queues(family: u32, queues: u32) -> Option<FamilyQueues> {
        Some(FamilyQueues { family, queues })
    }

    #[test]
    fn a_card_with_copy_engines_gives_a_transfer_and_a_compute_family() {
        // All; transfer; compute; video decoding and encoding, which can transfer too.
        let card = choose(&[(15, 16), (12, 2), (14, 8), (44, 1), (76, 1)]).expect("there are two");
        let kernels = Some(KernelQueues { family: 2, usual: 2, low: Some(3) });
        assert_eq!(card, Families { transfer: queues(1, 2), compute: queues(2, 2), kernels });
        assert_eq!(
            card.created().map(|created| (created.family, created.queues)).collect::<Vec<_>>(),
            [(1, 2), (2, 4)]
        );
        assert_eq!(card.sharing(), [0, 1, 2]);
    }

    #[test]
    fn a_family_of_video_engines_is_not_taken_for_copy_engines() {
        assert_eq!(choose(&[(15, 1), (44, 1)]), Err(NoSecondQueue::OneFamily));
    }

    #[test]
    fn wgpus_own_family_is_none_apart_however_many_queues_it_has() {
        assert_eq!(choose(&[(7, 16)]), Err(NoSecondQueue::OneFamily));
        // A driver that lists compute first: wgpu takes that one all the same.
        assert_eq!(choose(&[(6, 4)]), Err(NoSecondQueue::OneFamily));
        assert_eq!(choose(&[]), Err(NoSecondQueue::OneFamily));
    }

    #[test]
    fn one_of_the_two_is_enough_and_empty_families_are_none() {
        let older = choose(&[(7, 1), (6, 4)]).expect("there is one");
        let kernels = Some(KernelQueues { family: 1, usual: 2, low: Some(3) });
        assert_eq!(older, Families { transfer: None, compute: queues(1, 2), kernels });
        let copies = choose(&[(7, 1), (6, 0), (4, 1)]).expect("there is one");
        assert_eq!(copies, Families { transfer: queues(2, 1), compute: None, kernels: None });
        assert_eq!(copies.sharing(), [0, 2]);
    }

    #[test]
    fn kernels_have_queues_that_no_copies_use_as_far_as_there_are_enough() {
        let kernels = |usual, low| Some(KernelQueues { family: 1, usual, low });
        for (count, copying, kernels) in
            [(1, 1, None), (2, 1, kernels(1, None)), (3, 2, kernels(2, None)), (4, 2, kernels(2, Some(3)))]
        {
            let chosen = choose(&[(7, 1), (6, count)]).expect("there is one");
            assert_eq!((chosen.compute, chosen.kernels), (queues(1, copying), kernels), "{count}");
            assert_eq!(chosen.created().map(|created| created.queues).collect::<Vec<_>>(), [count]);
        }
    }
}

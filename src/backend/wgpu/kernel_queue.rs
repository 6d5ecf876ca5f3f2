//! Which queue runs the kernels of a lane.

use super::apis;
use super::device::WgpuBackend;
use super::second::QueueIndex;
use super::tuning::KernelQueue;
#[cfg(test)]
use super::vulkan;
use super::vulkan::{Families, NoSecondQueue};
use crate::backend::{LaneSpec, Strategy};
use crate::error::{OpenError, Unsupported};

impl WgpuBackend {
    /// The device as the kernels of a lane see it; `None` where wgpu's own queue runs them.
    ///
    /// # Errors
    /// [`OpenError::Unsupported`] where a queue was asked for that the device does not have, and the device's error.
    pub(super) fn beside(&self, spec: &LaneSpec) -> Result<Option<Self>, OpenError> {
        Ok(kernel_queue(self, spec)?.map(|queue| self.on_queue(queue)).transpose()?)
    }
}

/// The family and the number of the queue that runs a lane's kernels; `None` for wgpu's.
///
/// # Errors
/// [`Unsupported`] where one was asked for that the device does not have.
pub(super) fn kernel_queue(backend: &WgpuBackend, spec: &LaneSpec) -> Result<Option<QueueIndex>, Unsupported> {
    if !matches!(spec.strategy, Strategy::SystemRing | Strategy::Imported) {
        return Ok(None);
    }
    let unsupported = |reason: String| Unsupported { strategy: spec.strategy, reason };
    let wanted = match (backend.tuning().kernels, spec.strategy) {
        (KernelQueue::Automatic, Strategy::Imported) => KernelQueue::Beside,
        (wanted, _) => wanted,
    };
    choose(wanted, apis::device_families(backend.device())).map_err(unsupported)
}

fn choose(wanted: KernelQueue, families: Result<Families, NoSecondQueue>) -> Result<Option<QueueIndex>, String> {
    let kernels =
        |families: Families| families.kernels.ok_or_else(|| "the device has no compute queue to spare".to_owned());
    let families = families.map_err(|reason| reason.to_string());
    match wanted {
        KernelQueue::Main => Ok(None),
        KernelQueue::Automatic => {
            let kernels = families.ok().and_then(|families| families.kernels);
            Ok(kernels.map(|kernels| (kernels.family, kernels.low.unwrap_or(kernels.usual))))
        }
        KernelQueue::Beside => {
            let kernels = families.ok().and_then(|families| families.kernels);
            Ok(kernels.map(|kernels| (kernels.family, kernels.usual)))
        }
        KernelQueue::Compute => families.and_then(kernels).map(|kernels| Some((kernels.family, kernels.usual))),
        KernelQueue::LowCompute => {
            let kernels = families.and_then(kernels)?;
            let low = kernels.low.ok_or("the device has no compute queue of low priority to spare")?;
            Ok(Some((kernels.family, low)))
        }
        #[cfg(test)]
        KernelQueue::WgpusOwn => Ok(Some((vulkan::WGPU_FAMILY, 0))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::vulkan::KernelQueues;
    use super::*;

    #[test]
    fn kernels_get_the_queue_that_was_asked_for_or_a_reason() {
        let families = |kernels| Ok(Families { transfer: None, compute: None, kernels });
        let both = families(Some(KernelQueues { family: 2, usual: 2, low: Some(3) }));
        assert_eq!(choose(KernelQueue::Main, both), Ok(None));
        assert_eq!(choose(KernelQueue::Compute, both), Ok(Some((2, 2))));
        assert_eq!(choose(KernelQueue::LowCompute, both), Ok(Some((2, 3))));
        let one = families(Some(KernelQueues { family: 1, usual: 1, low: None }));
        assert_eq!(choose(KernelQueue::Compute, one), Ok(Some((1, 1))));
        let reason = choose(KernelQueue::LowCompute, one).expect_err("there is none");
        assert_eq!(reason, "the device has no compute queue of low priority to spare");
        assert_eq!(choose(KernelQueue::Beside, one), Ok(Some((1, 1))));
        assert_eq!(choose(KernelQueue::Automatic, both), Ok(Some((2, 3))));
        assert_eq!(choose(KernelQueue::Automatic, one), Ok(Some((1, 1))));
        assert_eq!(choose(KernelQueue::Automatic, families(None)), Ok(None));
        assert_eq!(choose(KernelQueue::Beside, families(None)), Ok(None));
        assert_eq!(choose(KernelQueue::Beside, Err(NoSecondQueue::OneFamily)), Ok(None));
        let reason = choose(KernelQueue::Compute, families(None)).expect_err("there is none");
        assert_eq!(reason, "the device has no compute queue to spare");
        let reason = choose(KernelQueue::Compute, Err(NoSecondQueue::OneFamily)).expect_err("there is none");
        assert_eq!(reason, "the driver has one family of queues");
    }
}

//! What strategies use beyond wgpu on each API: whether it is there, which memory that is, and which queues.

use super::abilities::Abilities;
use super::tuning::HostCache;
use super::unproven;
use super::vulkan::{APART, Families, MemoryType};
use crate::backend::{Api, DeviceType, Strategy};

impl Abilities {
    /// Whether a strategy runs that wgpu alone could not.
    ///
    /// # Errors
    /// The reason why it does not.
    pub(super) fn beyond(&self, strategy: Strategy) -> Result<(), String> {
        let imports = strategy == Strategy::Imported;
        let untried = |what: &str| if self.tries { Ok(()) } else { Err(unproven::reason(what, self.api)) };
        match self.api {
            Some(Api::Vulkan) if imports && !self.imports => Err(self.lacks.import.to_owned()),
            Some(Api::Vulkan) if self.ring_memory().is_none() => {
                Err("no memory type suits a buffer that the CPU writes".to_owned())
            }
            Some(Api::Vulkan) => Ok(()),
            Some(Api::Dx12) if imports && !self.imports => {
                Err("the driver opens no heaps over memory that exists (D3D12_FEATURE_EXISTING_HEAPS)".to_owned())
            }
            Some(Api::Dx12) if imports => untried(strategy.key()),
            Some(Api::Dx12) => Ok(()),
            Some(Api::Metal) => untried(strategy.key()),
            _ => Err("it needs Vulkan, DX12 or Metal".to_owned()),
        }
    }

    fn ring_memory(&self) -> Option<&MemoryType> {
        self.memory.as_ref()?.system(HostCache::default(), u32::MAX)
    }

    /// Where the workers' writes go. wgpu's buffers are its allocator's to place, and this is how it does.
    pub(super) fn predict(&self, strategy: Strategy) -> Option<String> {
        let wgpus = matches!(strategy, Strategy::MappedRing | Strategy::DirectMap);
        if !wgpus && strategy != Strategy::SystemRing {
            return None;
        }
        let unified = self.kind != DeviceType::Discrete;
        let heap = if unified { "unified" } else { "system memory" };
        match self.api? {
            Api::Vulkan => {
                let types = self.memory.as_ref()?;
                let ty = if wgpus { types.near_device(u32::MAX) } else { self.ring_memory() };
                ty.map(|ty| types.describe(ty))
            }
            Api::Dx12 => {
                let page = if wgpus { "WRITE_COMBINE" } else { "WRITE_BACK" };
                Some(format!("custom heap: {page}, L0 ({heap})"))
            }
            Api::Metal => {
                let cache = if wgpus { "write-combined" } else { "cached" };
                Some(format!("shared, {cache} ({heap})"))
            }
            _ => None,
        }
    }

    /// Which queues work for a strategy that knows others than wgpu's, where nobody chooses.
    pub(super) fn queues_of(&self, strategy: Strategy) -> Option<String> {
        match (strategy, self.queues.as_ref().map_err(ToString::to_string)) {
            (Strategy::SystemRing, Ok(families)) => Some(format!("{}; {}", copies(families), kernels(families))),
            (Strategy::SystemRing, Err(reason)) => Some(format!("copied on wgpu's queue: {reason}")),
            (Strategy::Imported, Ok(families)) => Some(kernels(families).to_owned()),
            (Strategy::Imported, Err(reason)) => Some(format!("kernels on wgpu's queue: {reason}")),
            _ => None,
        }
    }
}

/// Which queue copies a `system-ring`, and why it is not another.
fn copies(families: &Families) -> String {
    match families.transfer {
        Some(queues) if queues.queues == 1 => "copied on a transfer queue beside wgpu's".to_owned(),
        Some(queues) => format!("copied on {} transfer queues beside wgpu's", queues.queues),
        None => "copied on wgpu's queue: the driver has no transfer queue".to_owned(),
    }
}

/// Which queue runs the kernels that make tensors, and why it is not another.
fn kernels(families: &Families) -> &'static str {
    match (families.kernels, families.transfer) {
        (Some(_), _) => "kernels on a compute queue beside wgpu's",
        (None, Some(queues)) if queues.family == APART => "kernels on wgpu's queue: wgpu opens one there",
        (None, _) => "kernels on wgpu's queue: the driver has no compute queue to spare",
    }
}

#[cfg(test)]
mod tests {
    use super::super::abilities::tests::abilities;
    use super::super::vulkan::{FamilyQueues, KernelQueues, MemoryTypes, NoSecondQueue};
    use super::*;

    /// The memory and the queues of a strategy.
    fn told(here: &Abilities, strategy: Strategy) -> (String, String) {
        let support = here.support().into_iter().find(|support| support.strategy == strategy).expect("it is listed");
        (support.memory.unwrap_or_default(), support.queues.unwrap_or_default())
    }

    fn of_api(api: Api, kind: DeviceType) -> Abilities {
        let mut here = abilities(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS, &wgpu::Limits::default());
        (here.api, here.kind, here.tries) = (Some(api), kind, false);
        here
    }

    #[test]
    fn vulkans_strategies_say_what_they_lack_and_which_memory_they_use() {
        let mut here = abilities(wgpu::Features::empty(), &wgpu::Limits::default());
        let none = here.missing(Strategy::SystemRing).expect("no memory is listed");
        assert_eq!(none, "no memory type suits a buffer that the CPU writes");
        let ty = |index, flags| MemoryType { index, flags, heap: 0, heap_is_local: false, heap_bytes: 1 };
        here.queues = Err(NoSecondQueue::OneFamily);
        here.memory = Some(MemoryTypes(vec![ty(0, 1), ty(1, 6)]));
        assert_eq!(here.missing(Strategy::SystemRing), None);
        assert_eq!(here.missing(Strategy::Imported).as_deref(), Some(here.lacks.import));
        let memory = "type 1: HOST_VISIBLE|HOST_COHERENT, heap 0 (system memory)";
        let one = "copied on wgpu's queue: the driver has one family of queues";
        assert_eq!(told(&here, Strategy::SystemRing), (memory.to_owned(), one.to_owned()));
        let mapped = here.predict(Strategy::MappedRing).expect("there is one");
        assert!(mapped.ends_with("heap 0 (system memory)"), "{mapped}");
    }

    #[test]
    fn vulkans_strategies_say_which_queues_they_use() {
        let mut here = abilities(wgpu::Features::empty(), &wgpu::Limits::default());
        let memory = MemoryType { index: 0, flags: 6, heap: 0, heap_is_local: false, heap_bytes: 1 };
        (here.memory, here.imports) = (Some(MemoryTypes(vec![memory])), true);
        let queues = |queues| Some(FamilyQueues { family: 1, queues });
        let spare = Some(KernelQueues { family: 2, usual: 0, low: None });
        for (transfer, compute, kernels, copied, run) in [
            (
                queues(2),
                None,
                None,
                "copied on 2 transfer queues beside wgpu's",
                "wgpu's queue: the driver has no compute queue to spare",
            ),
            (queues(1), queues(1), spare, "copied on a transfer queue beside wgpu's", "a compute queue beside wgpu's"),
            (
                None,
                queues(1),
                spare,
                "copied on wgpu's queue: the driver has no transfer queue",
                "a compute queue beside wgpu's",
            ),
        ] {
            here.queues = Ok(Families { transfer, compute, kernels });
            assert_eq!(told(&here, Strategy::SystemRing).1, format!("{copied}; kernels on {run}"));
            assert_eq!(told(&here, Strategy::Imported).1, format!("kernels on {run}"));
        }
        assert_eq!(told(&here, Strategy::MappedRing).1, "", "wgpu's queue is the only one there");
    }

    #[test]
    fn dx12_keeps_both_rings_in_memory_of_the_system_and_says_what_imports_lack() {
        let mut here = of_api(Api::Dx12, DeviceType::Discrete);
        here.queues = Ok(Families::COPIES);
        let queues = "copied on a transfer queue beside wgpu's; kernels on wgpu's queue: wgpu opens one there";
        let memory = |page: &str, heap: &str| format!("custom heap: {page}, L0 ({heap})");
        assert_eq!(told(&here, Strategy::SystemRing), (memory("WRITE_BACK", "system memory"), queues.to_owned()));
        assert_eq!(told(&here, Strategy::MappedRing).0, memory("WRITE_COMBINE", "system memory"));
        here.kind = DeviceType::Integrated;
        assert_eq!(told(&here, Strategy::DirectMap).0, memory("WRITE_COMBINE", "unified"));
        let missing = here.missing(Strategy::Imported).expect("it is not there");
        assert!(missing.contains("D3D12_FEATURE_EXISTING_HEAPS"), "{missing}");
    }

    #[test]
    fn what_never_ran_is_refused_by_name_until_somebody_asks_for_it() {
        for (api, strategy) in
            [(Api::Dx12, Strategy::Imported), (Api::Metal, Strategy::Imported), (Api::Metal, Strategy::SystemRing)]
        {
            let mut here = of_api(api, DeviceType::Integrated);
            here.imports = true;
            let reason = here.missing(strategy).expect("it never ran");
            assert!(reason.contains("has never run") && reason.contains(strategy.key()), "{reason}");
            here.tries = true;
            assert_eq!(here.missing(strategy), None, "{api:?} {strategy}");
        }
        let gl = of_api(Api::Gl, DeviceType::Software);
        assert_eq!(gl.missing(Strategy::SystemRing).as_deref(), Some("it needs Vulkan, DX12 or Metal"));
    }
}

//! What a device or an adapter can do: which strategies it can run, and why not the others.

use super::tuning::HostCache;
use super::vulkan::{self, Families, MemoryType, MemoryTypes, NoSecondQueue};
use crate::backend::{Strategy, StrategySupport};

/// The strategies of this backend.
pub(super) const STRATEGIES: [Strategy; 8] = [
    Strategy::WriteBuffer,
    Strategy::WriteBufferWith,
    Strategy::StagingBelt,
    Strategy::FreshMapped,
    Strategy::MappedRing,
    Strategy::DirectMap,
    Strategy::SystemRing,
    Strategy::Imported,
];

/// Used where present, and done without otherwise.
pub(super) const OPTIONAL: wgpu::Features = wgpu::Features::MAPPABLE_PRIMARY_BUFFERS
    .union(wgpu::Features::TIMESTAMP_QUERY)
    .union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);

const ADAPTER_LACKS: Lacks = Lacks {
    mappable: "the adapter lacks MAPPABLE_PRIMARY_BUFFERS",
    import: "the driver lacks VK_EXT_external_memory_host",
};
const DEVICE_LACKS: Lacks = Lacks {
    mappable: "the device was created without MAPPABLE_PRIMARY_BUFFERS; ask gpufeed's requirements() first",
    import: "the device was created without VK_EXT_external_memory_host; create it with gpufeed's open_device()",
};
const OLD_GL: &str = "the driver gives an OpenGL context older than 4.3, which has no compute shaders";
const NO_COMPUTE: &str = "there are no compute shaders with storage buffers";

/// What a device or an adapter can do, as far as strategies ask.
#[derive(Clone, Debug)]
pub(super) struct Abilities {
    pub(super) features: wgpu::Features,
    pub(super) limits: wgpu::Limits,
    /// Of Vulkan only.
    memory: Option<MemoryTypes>,
    pub(super) imports: bool,
    /// Apart from wgpu's.
    queues: Result<Families, NoSecondQueue>,
    old_gl: bool,
    lacks: Lacks,
}

/// What is said where something is missing.
#[derive(Clone, Copy, Debug)]
struct Lacks {
    mappable: &'static str,
    import: &'static str,
}

impl Abilities {
    pub(super) fn of_adapter(adapter: &wgpu::Adapter) -> Self {
        Self {
            features: adapter.features(),
            limits: adapter.limits(),
            memory: vulkan::adapter_memory(adapter),
            imports: vulkan::adapter_imports(adapter),
            queues: vulkan::adapter_families(adapter),
            old_gl: is_old_gl(&adapter.get_info()),
            lacks: ADAPTER_LACKS,
        }
    }

    pub(super) fn of_device(device: &wgpu::Device) -> Self {
        Self {
            features: device.features(),
            limits: device.limits(),
            memory: vulkan::device_memory(device),
            imports: vulkan::device_imports(device),
            queues: vulkan::device_families(device),
            old_gl: is_old_gl(&device.adapter_info()),
            lacks: DEVICE_LACKS,
        }
    }

    /// Each strategy of this backend, and the memory that it is predicted to use.
    pub(super) fn support(&self) -> Vec<StrategySupport> {
        let support = |strategy| {
            let missing = self.missing(strategy);
            let runs = missing.is_none();
            let memory = runs.then(|| self.predict(strategy)).flatten();
            let queues = runs.then(|| self.queues_of(strategy)).flatten();
            StrategySupport { strategy, missing, memory, queues }
        };
        STRATEGIES.into_iter().map(support).collect()
    }

    pub(super) fn missing(&self, strategy: Strategy) -> Option<String> {
        let lack = match strategy {
            _ if !STRATEGIES.contains(&strategy) => "it is not one of the wgpu backend's",
            _ if !computes(&self.limits) => NO_COMPUTE,
            _ if self.old_gl => OLD_GL,
            _ if !self.features.contains(needed_by(strategy)) => self.lacks.mappable,
            Strategy::SystemRing | Strategy::Imported if self.memory.is_none() => "it needs Vulkan",
            Strategy::SystemRing if self.ring_memory().is_none() => "no memory type suits a buffer that the CPU writes",
            Strategy::Imported if !self.imports => self.lacks.import,
            _ => return None,
        };
        Some(lack.to_owned())
    }

    fn ring_memory(&self) -> Option<&MemoryType> {
        self.memory.as_ref()?.system(HostCache::default(), u32::MAX)
    }

    /// Where the workers' writes go. wgpu's buffers are gpu-allocator's to place, and this is how it does.
    fn predict(&self, strategy: Strategy) -> Option<String> {
        let types = self.memory.as_ref()?;
        let ty = match strategy {
            Strategy::MappedRing | Strategy::DirectMap => types.near_device(u32::MAX),
            Strategy::SystemRing => self.ring_memory(),
            _ => None,
        };
        ty.map(|ty| types.describe(ty))
    }

    /// Which queues work for a strategy that knows others than wgpu's, where nobody chooses.
    fn queues_of(&self, strategy: Strategy) -> Option<String> {
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
    match families.kernels {
        Some(_) => "kernels on a compute queue beside wgpu's",
        None => "kernels on wgpu's queue: the driver has no compute queue to spare",
    }
}

pub(super) fn needed_by(strategy: Strategy) -> wgpu::Features {
    match strategy {
        Strategy::DirectMap => wgpu::Features::MAPPABLE_PRIMARY_BUFFERS,
        _ => wgpu::Features::empty(),
    }
}

/// Whether this is desktop GL before 4.3. Its adapter may offer compute by extensions, which shaders of its version cannot use.
fn is_old_gl(info: &wgpu::AdapterInfo) -> bool {
    let mut numbers = info.driver_info.split(['.', ' ']).map(str::parse::<u32>);
    match (info.backend, numbers.next(), numbers.next()) {
        // OpenGL ES begins with its name.
        (wgpu::Backend::Gl, Some(Ok(major)), Some(Ok(minor))) => (major, minor) < (4, 3),
        _ => false,
    }
}

/// Old GL has no compute shaders, and limits of WebGL ask for none.
fn computes(limits: &wgpu::Limits) -> bool {
    limits.max_compute_workgroups_per_dimension > 0 && limits.max_storage_buffers_per_shader_stage > 0
}

#[cfg(test)]
mod tests {
    use super::super::vulkan::{FamilyQueues, KernelQueues};
    use super::*;

    fn abilities(features: wgpu::Features, limits: &wgpu::Limits) -> Abilities {
        let (limits, queues) = (limits.clone(), Err(NoSecondQueue::NotVulkan));
        Abilities { features, limits, memory: None, imports: false, queues, old_gl: false, lacks: DEVICE_LACKS }
    }

    fn missing_of(strategy: Strategy, features: wgpu::Features, limits: &wgpu::Limits) -> Option<String> {
        abilities(features, limits).support().into_iter().find(|s| s.strategy == strategy)?.missing
    }

    #[test]
    fn direct_map_needs_its_feature_and_everything_needs_compute() {
        let (none, limits) = (wgpu::Features::empty(), wgpu::Limits::default());
        assert_eq!(missing_of(Strategy::MappedRing, none, &limits), None);
        assert_eq!(missing_of(Strategy::DirectMap, none, &limits).as_deref(), Some(DEVICE_LACKS.mappable));
        assert_eq!(missing_of(Strategy::DirectMap, OPTIONAL, &limits), None);
        let webgl = wgpu::Limits::downlevel_webgl2_defaults();
        assert_eq!(missing_of(Strategy::MappedRing, OPTIONAL, &webgl).as_deref(), Some(NO_COMPUTE));
    }

    #[test]
    fn vulkans_strategies_say_what_they_lack_and_which_memory_they_use() {
        let mut here = abilities(wgpu::Features::empty(), &wgpu::Limits::default());
        assert_eq!(here.missing(Strategy::SystemRing).as_deref(), Some("it needs Vulkan"));
        let ty = |index, flags| MemoryType { index, flags, heap: 0, heap_is_local: false, heap_bytes: 1 };
        here.queues = Err(NoSecondQueue::OneFamily);
        here.memory = Some(MemoryTypes(vec![ty(0, 1), ty(1, 6)]));
        assert_eq!(here.missing(Strategy::SystemRing), None);
        assert_eq!(here.missing(Strategy::Imported).as_deref(), Some(DEVICE_LACKS.import));
        let memory = "type 1: HOST_VISIBLE|HOST_COHERENT, heap 0 (system memory)";
        let one = "copied on wgpu's queue: the driver has one family of queues";
        assert_eq!(told(&here, Strategy::SystemRing), (memory.to_owned(), one.to_owned()));
        let mapped = here.predict(Strategy::MappedRing).expect("there is one");
        assert!(mapped.ends_with("heap 0 (system memory)"), "{mapped}");
    }

    /// The memory and the queues of a strategy.
    fn told(here: &Abilities, strategy: Strategy) -> (String, String) {
        let support = here.support().into_iter().find(|support| support.strategy == strategy).expect("it is listed");
        (support.memory.unwrap_or_default(), support.queues.unwrap_or_default())
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
    fn desktop_gl_before_4_3_has_no_compute() {
        let gl = |driver_info: &str| {
            let mut info = wgpu::AdapterInfo::new(wgpu::DeviceType::Other, wgpu::Backend::Gl);
            info.driver_info = driver_info.to_owned();
            is_old_gl(&info)
        };
        assert!(gl("3.3.0 NVIDIA 580.159.04"));
        assert!(!gl("4.5 (Core Profile) Mesa 22.3.6") && !gl("4.6.0 NVIDIA 580") && !gl("OpenGL ES 3.1 Mesa"));
    }

    #[test]
    fn strategies_of_other_backends_are_not_listed_and_refused() {
        assert!(!STRATEGIES.contains(&Strategy::Memcpy));
        assert!(abilities(OPTIONAL, &wgpu::Limits::default()).missing(Strategy::Memcpy).is_some());
    }
}

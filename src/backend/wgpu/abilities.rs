//! What a device or an adapter can do: which strategies it can run, and why not the others.

use super::vulkan::{self, Families, MemoryTypes, NoSecondQueue};
use super::{apis, kinds, unproven};
use crate::backend::{Api, DeviceType, Strategy, StrategySupport};

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
    /// `None` for an API that gpufeed does not serve.
    pub(super) api: Option<Api>,
    pub(super) kind: DeviceType,
    pub(super) features: wgpu::Features,
    pub(super) limits: wgpu::Limits,
    /// Of Vulkan only.
    pub(super) memory: Option<MemoryTypes>,
    /// Whether it reads memory of the program's own; of an adapter, whether a device of it may.
    pub(super) imports: bool,
    /// Whether what never ran is tried.
    pub(super) tries: bool,
    /// Apart from wgpu's.
    pub(super) queues: Result<Families, NoSecondQueue>,
    old_gl: bool,
    pub(super) lacks: Lacks,
}

/// What is said where something is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lacks {
    mappable: &'static str,
    pub(super) import: &'static str,
}

impl Abilities {
    pub(super) fn of_adapter(adapter: &wgpu::Adapter) -> Self {
        let info = adapter.get_info();
        let api = kinds::api_of(info.backend);
        Self {
            features: adapter.features(),
            limits: adapter.limits(),
            memory: vulkan::adapter_memory(adapter),
            imports: vulkan::adapter_imports(adapter) || matches!(api, Some(Api::Dx12 | Api::Metal)),
            queues: apis::adapter_families(adapter),
            lacks: ADAPTER_LACKS,
            ..Self::of(api, &info)
        }
    }

    pub(super) fn of_device(device: &wgpu::Device) -> Self {
        let info = device.adapter_info();
        let api = kinds::api_of(info.backend);
        let native = api.and_then(apis::native);
        Self {
            features: device.features(),
            limits: device.limits(),
            memory: vulkan::device_memory(device),
            imports: native.is_some_and(|native| native.import_limits(device).is_ok()),
            queues: apis::device_families(device),
            ..Self::of(api, &info)
        }
    }

    /// Without what adapters and devices are asked for in ways of their own.
    fn of(api: Option<Api>, info: &wgpu::AdapterInfo) -> Self {
        Self {
            api,
            kind: kinds::device_type(info),
            features: wgpu::Features::empty(),
            limits: wgpu::Limits::default(),
            memory: None,
            imports: false,
            tries: unproven::may_be_tried(),
            queues: Err(NoSecondQueue::OneQueue),
            old_gl: is_old_gl(info),
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
            Strategy::SystemRing | Strategy::Imported => return self.beyond(strategy).err(),
            _ => return None,
        };
        Some(lack.to_owned())
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
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn abilities(features: wgpu::Features, limits: &wgpu::Limits) -> Abilities {
        let info = wgpu::AdapterInfo::new(wgpu::DeviceType::Other, wgpu::Backend::Vulkan);
        Abilities { features, limits: limits.clone(), ..Abilities::of(Some(Api::Vulkan), &info) }
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

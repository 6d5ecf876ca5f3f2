//! What is known of a device before it is opened.

use serde::{Deserialize, Serialize};

use super::Strategy;

/// The interface a device is reached through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Api {
    /// No device: host memory.
    Host,
    /// Vulkan, through wgpu.
    Vulkan,
    /// Metal, through wgpu.
    Metal,
    /// Direct3D 12, through wgpu.
    Dx12,
    /// OpenGL or OpenGL ES, through wgpu.
    Gl,
    /// CUDA.
    Cuda,
}

impl Api {
    /// The name that selects this API: the part before the colon in `vulkan:0`.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Vulkan => "vulkan",
            Self::Metal => "metal",
            Self::Dx12 => "dx12",
            Self::Gl => "gl",
            Self::Cuda => "cuda",
        }
    }
}

/// What kind of device it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DeviceType {
    /// A GPU with its own memory.
    Discrete,
    /// A GPU that shares the CPU's memory.
    Integrated,
    /// A GPU of a virtual machine.
    Virtual,
    /// A driver that computes on the CPU: right, and no evidence of any GPU's speed.
    Software,
    /// Not told by the driver.
    Other,
}

/// A device, its driver and what it can do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AdapterInfo {
    /// What selects this device: `vulkan:0`, `host`.
    pub id: String,
    /// The interface it is reached through.
    pub api: Api,
    /// The device's name.
    pub name: String,
    /// The driver's name.
    pub driver: String,
    /// The driver's version, as it tells it.
    pub driver_info: String,
    /// What kind of device.
    pub device_type: DeviceType,
    /// PCI vendor, where there is one.
    pub vendor: u32,
    /// PCI device, where there is one.
    pub device: u32,
    /// PCI address (`0000:01:00.0`), where the driver tells it. Devices with the same address are one card.
    pub pci: Option<String>,
    /// Bytes of memory: the device's own, or the host's for host and software devices, where known.
    pub memory: Option<u64>,
    /// The limits that matter here, in bytes or counts.
    pub limits: Vec<(String, u64)>,
    /// Each strategy of this backend, and why not where it cannot run.
    pub strategies: Vec<StrategySupport>,
}

impl AdapterInfo {
    /// Whether the driver computes on the CPU. Shown wherever a number is shown.
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.device_type == DeviceType::Software
    }
}

/// Whether a device can run a strategy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct StrategySupport {
    /// The strategy.
    pub strategy: Strategy,
    /// Why it cannot run, or `None` where it can.
    pub missing: Option<String>,
    /// The memory that workers write, as the driver's list predicts it: `type 3: HOST_VISIBLE|HOST_COHERENT|HOST_CACHED, heap 1 (system
    /// memory)`. A heap that the CPU and the device share entirely is `unified`. `None` where it is not known.
    #[serde(default)]
    pub memory: Option<String>,
    /// Which queues of the device copy and which run the kernels where nobody chooses, and why it is wgpu's where it is. `None` for
    /// strategies that know one queue only.
    #[serde(default)]
    pub queues: Option<String>,
}

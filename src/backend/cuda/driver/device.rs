//! The driver and its devices, without opening any.

use std::ffi::CStr;
use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, result, sys};

use super::explain;

/// The oldest driver that can be used: what the PTX and the bindings need.
const OLDEST: i32 = 12_000;

/// What the driver tells of a device.
pub(in super::super) struct Device {
    pub(in super::super) name: String,
    pub(in super::super) capability: (u32, u32),
    pub(in super::super) memory: u64,
    pub(in super::super) integrated: bool,
    pub(in super::super) pci: Option<String>,
    /// Whether it reads memory that was page-locked in place.
    pub(in super::super) registers: bool,
    /// Whether it takes memory that is mapped read-only.
    pub(in super::super) registers_read_only: bool,
}

/// Starts the driver, and returns the version of CUDA that it speaks (12080 for 12.8).
///
/// The error is why there is none, in one line.
pub(in super::super) fn start() -> Result<i32, String> {
    // SAFETY: loads the driver's library, whose initialisers are trusted as those of any installed library are.
    if !unsafe { sys::is_culib_present() } {
        return Err("no NVIDIA driver is installed (libcuda is not there)".to_owned());
    }
    result::init().map_err(|error| format!("the NVIDIA driver does not start: {}", explain(error)))?;
    let mut version = 0;
    // SAFETY: the driver writes one number.
    let told = unsafe { sys::cuDriverGetVersion(&raw mut version) }.result();
    told.map_err(|error| format!("the NVIDIA driver tells no version: {}", explain(error)))?;
    if version < OLDEST {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return Err(format!("the NVIDIA driver speaks CUDA {major}.{minor}, and 12.0 is needed: update the driver"));
    }
    Ok(version)
}

/// All devices, in the driver's order. The driver has been started.
pub(in super::super) fn devices() -> Result<Vec<Device>, DriverError> {
    (0..result::device::get_count()?).map(|ordinal| describe(result::device::get(ordinal)?)).collect()
}

/// The device of a context.
pub(in super::super) fn of_context(context: &Arc<CudaContext>) -> Result<Device, DriverError> {
    describe(context.cu_device())
}

fn describe(device: sys::CUdevice) -> Result<Device, DriverError> {
    use sys::CUdevice_attribute as Attribute;
    // SAFETY: the handle is one that the driver gave for an ordinal or a context.
    let ask = |attribute| unsafe { result::device::get_attribute(device, attribute) };
    let number = |attribute| ask(attribute).map(|value| u32::try_from(value).unwrap_or(0));
    // SAFETY: as above.
    let memory = unsafe { result::device::total_mem(device) }?;
    Ok(Device {
        name: result::device::get_name(device)?.trim_end_matches('\0').to_owned(),
        capability: (
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        memory: memory as u64,
        integrated: ask(Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED)? != 0,
        pci: pci(device),
        registers: ask(Attribute::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED).is_ok_and(|value| value != 0),
        registers_read_only: ask(Attribute::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED)
            .is_ok_and(|value| value != 0),
    })
}

/// The PCI address as other APIs write it: `0000:3b:00.0`.
fn pci(device: sys::CUdevice) -> Option<String> {
    let mut text = [0u8; 32];
    // SAFETY: the driver writes at most 31 characters and a zero.
    let told = unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr().cast(), 31, device) };
    told.result().ok()?;
    let text = CStr::from_bytes_until_nul(&text).ok()?.to_str().ok()?;
    Some(text.to_lowercase())
}

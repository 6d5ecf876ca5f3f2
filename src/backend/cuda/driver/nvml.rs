//! NVML, where it is installed: what the driver itself does not tell.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

use libloading::Library;

type Handle = *mut c_void;

/// The management library, loaded and started.
pub(in super::super) struct Nvml {
    library: Library,
}

impl Nvml {
    /// `None` where it is not installed or does not start.
    pub(in super::super) fn load() -> Option<Self> {
        const NAMES: [&str; 2] =
            if cfg!(windows) { ["nvml.dll", "nvml"] } else { ["libnvidia-ml.so.1", "libnvidia-ml.so"] };
        // SAFETY: the library's initialisers are trusted as those of any installed library are.
        let library = NAMES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())?;
        // SAFETY: `nvmlInit_v2` takes nothing and returns a status.
        let start = unsafe { library.get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2\0") }.ok()?;
        // SAFETY: as above.
        let status = unsafe { start() };
        (status == 0).then_some(Self { library })
    }

    /// The driver's version: `580.95.05`.
    pub(in super::super) fn driver(&self) -> Option<String> {
        type Call = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
        let mut text = [0u8; 96];
        // SAFETY: the call has this signature since the first NVML.
        let call = unsafe { self.library.get::<Call>(b"nvmlSystemGetDriverVersion\0") }.ok()?;
        // SAFETY: it writes at most as many characters as it is told, with a zero at the end.
        let status = unsafe { call(text.as_mut_ptr().cast(), 95) };
        let text = CStr::from_bytes_until_nul(&text).ok()?.to_str().ok()?;
        (status == 0).then(|| text.to_owned())
    }

    /// The PCIe generation and width that the card and its place allow; at rest a card runs its link slower.
    pub(in super::super) fn link(&self, pci: &str) -> Option<(u32, u32)> {
        type Find = unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int;
        let (name, mut handle) = (CString::new(pci).ok()?, std::ptr::null_mut());
        // SAFETY: the call has this signature.
        let find = unsafe { self.library.get::<Find>(b"nvmlDeviceGetHandleByPciBusId_v2\0") }.ok()?;
        // SAFETY: the name ends with a zero, and one handle is written.
        let status = unsafe { find(name.as_ptr(), &raw mut handle) };
        if status != 0 {
            return None;
        }
        Some((
            self.ask(handle, c"nvmlDeviceGetMaxPcieLinkGeneration")?,
            self.ask(handle, c"nvmlDeviceGetMaxPcieLinkWidth")?,
        ))
    }

    /// One number of a device; `name` is a call that tells one.
    fn ask(&self, device: Handle, name: &CStr) -> Option<u32> {
        type Ask = unsafe extern "C" fn(Handle, *mut c_uint) -> c_int;
        let mut value = 0;
        // SAFETY: the calls named above have this signature.
        let ask = unsafe { self.library.get::<Ask>(name.to_bytes_with_nul()) }.ok()?;
        // SAFETY: the handle is NVML's own, and one number is written.
        let status = unsafe { ask(device, &raw mut value) };
        (status == 0).then_some(value)
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: `nvmlShutdown` takes nothing and returns a status.
        if let Ok(stop) = unsafe { self.library.get::<unsafe extern "C" fn() -> c_int>(b"nvmlShutdown\0") } {
            // SAFETY: it was started once, and this is the end of it.
            unsafe { stop() };
        }
    }
}

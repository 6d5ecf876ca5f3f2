//! Loaded modules and their kernels. Each kernel is launched by one typed function, in the modules beside this one.

use std::ffi::{CString, c_void};
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, DriverError, result, sys};

use super::context::{bind, wait_for_all};

/// Threads in a block, as the kernels have it.
pub(super) const GROUP: u32 = 256;

/// A loaded module. Its text is one of the crate's own.
#[derive(Debug)]
pub(in super::super) struct Module {
    raw: sys::CUmodule,
    context: Arc<CudaContext>,
}

// SAFETY: the driver takes a module's handle from any thread.
unsafe impl Send for Module {}
// SAFETY: as above, and from several at once.
unsafe impl Sync for Module {}

impl Module {
    /// Loads PTX; the driver translates it for the device.
    pub(in super::super) fn load(context: &Arc<CudaContext>, ptx: &str) -> Result<Arc<Self>, DriverError> {
        let text = CString::new(ptx).map_err(|_| DriverError(sys::CUresult::CUDA_ERROR_INVALID_PTX))?;
        bind(context)?;
        // SAFETY: the text ends with a zero, which is all that the driver asks of it.
        let raw = unsafe { result::module::load_data(text.as_ptr().cast()) }?;
        Ok(Arc::new(Self { raw, context: Arc::clone(context) }))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // A kernel that still runs would lose its code.
        let idle = wait_for_all(&self.context);
        // SAFETY: loaded once, unloaded once, and nothing runs any more.
        let unloaded = unsafe { result::module::unload(self.raw) };
        if let Err(error) = idle.and(unloaded) {
            log::debug!("a module could not be unloaded: {}", super::explain(error));
        }
    }
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub(super) struct Function {
    raw: sys::CUfunction,
    module: Arc<Module>,
}

// SAFETY: the driver takes a function's handle from any thread; the module keeps it valid.
unsafe impl Send for Function {}
// SAFETY: as above, and from several at once.
unsafe impl Sync for Function {}

impl Function {
    pub(super) fn new(module: &Arc<Module>, name: &str) -> Result<Self, DriverError> {
        let name = CString::new(name).map_err(|_| DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND))?;
        bind(&module.context)?;
        // SAFETY: the module is loaded as long as `module` lives.
        let raw = unsafe { result::module::get_function(module.raw, name) }?;
        Ok(Self { raw, module: Arc::clone(module) })
    }

    /// # Safety
    /// `args` are the kernel's parameters, and it stays inside of what they point to.
    pub(super) unsafe fn launch(
        &self,
        stream: &CudaStream,
        blocks: u64,
        args: &mut [*mut c_void],
    ) -> Result<(), DriverError> {
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32);
        let blocks = blocks.ok_or(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE))?;
        // SAFETY: the caller's promise.
        unsafe { self.launch_grid(stream, (blocks, 1, 1), args) }
    }

    /// The same for blocks in three dimensions.
    ///
    /// # Safety
    /// As [`launch`](Self::launch).
    pub(super) unsafe fn launch_grid(
        &self,
        stream: &CudaStream,
        grid: (u32, u32, u32),
        args: &mut [*mut c_void],
    ) -> Result<(), DriverError> {
        bind(&self.module.context)?;
        // SAFETY: the caller's promise; the driver has copied the parameters when this returns.
        unsafe { result::launch_kernel(self.raw, grid, (GROUP, 1, 1), 0, stream.cu_stream(), args) }
    }
}

/// One parameter of a kernel.
pub(super) fn arg<T: Copy>(value: &T) -> *mut c_void {
    std::ptr::from_ref(value).cast_mut().cast()
}

/// Refuses what would reach outside of its memory.
pub(super) fn check(fits: bool) -> Result<(), DriverError> {
    if fits { Ok(()) } else { Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE)) }
}

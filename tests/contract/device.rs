//! Devices to run the suite on, and what a test may do to them.

use std::sync::mpsc;
use std::time::Duration;

use gpufeed::backend::host::{Faults, HostBackend, Moments};
use gpufeed::{Backend, OpenError, Strategy};

pub use crate::skip::skip;

/// What a test needs beyond the contract: ways to make things go wrong.
pub trait TestDevice: Backend {
    /// Loses the device, from any thread.
    fn lose(&self);

    /// Makes the next submission to this output fail; false if this backend has no way to.
    fn spoil(&self, output: &Self::Tensor) -> bool;
}

/// A device and the strategy to test on it.
pub struct Opened<B> {
    backend: B,
    pub strategy: Strategy,
}

impl<B: TestDevice> Opened<B> {
    pub fn backend(&self) -> B {
        self.backend.clone()
    }
}

/// Runs a test with a time limit, or skips it in sight.
pub fn run<B: TestDevice>(
    name: &str,
    open: fn() -> Result<B, OpenError>,
    strategy: Strategy,
    test: impl FnOnce(Opened<B>) + Send + 'static,
) {
    // The validation layers speak through the log.
    let _ = env_logger::try_init();
    let backend = match open() {
        Ok(backend) => backend,
        Err(OpenError::NoDevice { found, .. }) => return skip(name, &format!("no such device here (found: {found})")),
        Err(error) => panic!("the device is there and cannot be opened: {error}"),
    };
    if let Err(unsupported) = backend.supports(strategy) {
        return skip(name, &unsupported.to_string());
    }
    let (done, ended) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        test(Opened { backend, strategy });
        done.send(()).expect("the test's starter waits");
    });
    // FXC takes seconds for each kernel, and some tests have fifteen of them.
    let limit = Duration::from_secs(if cfg!(windows) { 600 } else { 120 });
    match ended.recv_timeout(limit) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{name} hangs"),
        _ => {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

pub fn host() -> Result<HostBackend, OpenError> {
    Ok(HostBackend::new())
}

/// A host whose device reads each slot only a while after it was submitted.
pub fn slow_host() -> Result<HostBackend, OpenError> {
    Ok(HostBackend::with_faults(Faults { delay: Duration::from_micros(300), ..Faults::default() }))
}

/// A host whose device ends a copy and its kernel between two looks at them.
pub fn host_ending_between_looks() -> Result<HostBackend, OpenError> {
    let moments = Moments::Looks { copy: 1, kernel: 1 };
    Ok(HostBackend::with_faults(Faults { moments, ..Faults::default() }))
}

/// A host whose copies go through a queue of their own, and end some looks after they began.
pub fn host_with_two_queues() -> Result<HostBackend, OpenError> {
    let moments = Moments::Looks { copy: 3, kernel: 4 };
    Ok(HostBackend::with_faults(Faults { moments, copies_beside: true, ..Faults::default() }))
}

/// A host whose kernels, too, run beside what an application computes.
pub fn host_with_kernels_beside() -> Result<HostBackend, OpenError> {
    let moments = Moments::Looks { copy: 2, kernel: 4 };
    Ok(HostBackend::with_faults(Faults { moments, copies_beside: true, kernels_beside: true, ..Faults::default() }))
}

impl TestDevice for HostBackend {
    fn lose(&self) {
        HostBackend::lose(self, "the test loses it");
    }

    fn spoil(&self, _: &Self::Tensor) -> bool {
        false
    }
}

#[cfg(feature = "cuda")]
pub use cuda_devices::{cuda, cuda_of_an_application};
#[cfg(all(feature = "wgpu", windows))]
pub use wgpu_devices::{dx12, dx12_in_place, dx12_of_an_application, dx12_on_one_queue};
#[cfg(feature = "wgpu")]
pub use wgpu_devices::{
    gl, vulkan, vulkan_in_place, vulkan_of_an_application, vulkan_of_small_bindings,
    vulkan_of_small_bindings_that_copies, vulkan_that_copies, vulkan_with_kernels_beside, vulkan_with_two_queues,
};

#[cfg(all(feature = "wgpu", target_vendor = "apple"))]
pub use wgpu_devices::{metal, metal_in_place, metal_of_an_application, metal_on_one_queue};

#[cfg(feature = "wgpu")]
mod wgpu_devices {
    use gpufeed::OpenError;
    use gpufeed::backend::wgpu::{
        CopyQueue, Gather, KernelQueue, SlotReads, Tuning, WgpuBackend, WgpuTensor, open_device, requirements,
    };

    use super::TestDevice;

    pub fn vulkan() -> Result<WgpuBackend, OpenError> {
        WgpuBackend::open("vulkan:0")
    }

    pub fn gl() -> Result<WgpuBackend, OpenError> {
        WgpuBackend::open("gl:0")
    }

    #[cfg(windows)]
    pub fn dx12() -> Result<WgpuBackend, OpenError> {
        WgpuBackend::open("dx12:0")
    }

    #[cfg(target_vendor = "apple")]
    pub fn metal() -> Result<WgpuBackend, OpenError> {
        WgpuBackend::open("metal:0")
    }

    /// Copies on wgpu's queue, where there is one apart too.
    #[cfg(windows)]
    pub fn dx12_on_one_queue() -> Result<WgpuBackend, OpenError> {
        Ok(dx12()?.with_tuning(Tuning { copies: CopyQueue::Main, ..Tuning::default() }))
    }

    #[cfg(windows)]
    pub fn dx12_in_place() -> Result<WgpuBackend, OpenError> {
        Ok(in_place(&dx12()?))
    }

    /// Copies on wgpu's queue, where there is one apart too.
    #[cfg(target_vendor = "apple")]
    pub fn metal_on_one_queue() -> Result<WgpuBackend, OpenError> {
        Ok(metal()?.with_tuning(Tuning { copies: CopyQueue::Main, ..Tuning::default() }))
    }

    #[cfg(target_vendor = "apple")]
    pub fn metal_in_place() -> Result<WgpuBackend, OpenError> {
        Ok(in_place(&metal()?))
    }

    pub fn vulkan_in_place() -> Result<WgpuBackend, OpenError> {
        Ok(in_place(&vulkan()?))
    }

    fn in_place(backend: &WgpuBackend) -> WgpuBackend {
        backend.with_tuning(Tuning { slots: SlotReads::InPlace, ..Tuning::default() })
    }

    pub fn vulkan_that_copies() -> Result<WgpuBackend, OpenError> {
        Ok(vulkan()?.with_tuning(Tuning { gather: Gather::Copy, ..Tuning::default() }))
    }

    /// Where the driver has a second kind of queue.
    pub fn vulkan_with_two_queues() -> Result<WgpuBackend, OpenError> {
        beside(Tuning { copies: CopyQueue::Beside, ..Tuning::default() })
    }

    /// The same, with the kernels there too.
    pub fn vulkan_with_kernels_beside() -> Result<WgpuBackend, OpenError> {
        beside(Tuning { copies: CopyQueue::Beside, kernels: KernelQueue::Beside, ..Tuning::default() })
    }

    fn beside(tuning: Tuning) -> Result<WgpuBackend, OpenError> {
        let backend = vulkan()?.with_tuning(tuning);
        match backend.has_second_queue() {
            Ok(()) => Ok(backend),
            Err(reason) => {
                Err(OpenError::NoDevice { wanted: "a device with two queues".to_owned(), found: reason.to_string() })
            }
        }
    }

    pub fn vulkan_of_an_application() -> Result<WgpuBackend, OpenError> {
        application(wgpu::Backends::VULKAN, |_| ())
    }

    #[cfg(windows)]
    pub fn dx12_of_an_application() -> Result<WgpuBackend, OpenError> {
        application(wgpu::Backends::DX12, |_| ())
    }

    #[cfg(target_vendor = "apple")]
    pub fn metal_of_an_application() -> Result<WgpuBackend, OpenError> {
        application(wgpu::Backends::METAL, |_| ())
    }

    /// A device that cuts memory of a few hundred kilobytes into several imports, and each into several windows.
    pub fn vulkan_of_small_bindings() -> Result<WgpuBackend, OpenError> {
        application(wgpu::Backends::VULKAN, |limits| {
            limits.max_storage_buffer_binding_size = 32 << 10;
            limits.max_buffer_size = 128 << 10;
        })
    }

    pub fn vulkan_of_small_bindings_that_copies() -> Result<WgpuBackend, OpenError> {
        Ok(vulkan_of_small_bindings()?.with_tuning(Tuning { gather: Gather::Copy, ..Tuning::default() }))
    }

    /// As an application does it: with its own instance, adapter and device.
    fn application(backends: wgpu::Backends, lower: impl Fn(&mut wgpu::Limits)) -> Result<WgpuBackend, OpenError> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends,
            ..wgpu::InstanceDescriptor::new_without_display_handle_from_env()
        });
        let adapters = pollster::block_on(instance.enumerate_adapters(backends));
        let Some(adapter) = adapters.into_iter().next() else {
            return Err(OpenError::NoDevice { wanted: format!("{backends:?}"), found: "none".into() });
        };
        let mut needs = requirements(&adapter, None).expect("the adapter computes");
        lower(&mut needs.limits);
        let desc = wgpu::DeviceDescriptor {
            required_features: needs.features,
            required_limits: needs.limits,
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = open_device(&adapter, &desc).expect("the adapter opens");
        WgpuBackend::from_device(device, queue)
    }

    impl TestDevice for WgpuBackend {
        fn lose(&self) {
            self.device().destroy();
        }

        fn spoil(&self, output: &WgpuTensor) -> bool {
            output.buffer().destroy();
            true
        }
    }

    use gpufeed::wgpu;
}

#[cfg(feature = "cuda")]
mod cuda_devices {
    use gpufeed::OpenError;
    use gpufeed::backend::cuda::{CudaBackend, CudaTensor, adapters};
    use gpufeed::cudarc::driver::CudaContext;

    use super::TestDevice;

    pub fn cuda() -> Result<CudaBackend, OpenError> {
        CudaBackend::open("cuda:0")
    }

    /// As an application does it: with its own context.
    pub fn cuda_of_an_application() -> Result<CudaBackend, OpenError> {
        if adapters().is_empty() {
            return cuda();
        }
        CudaBackend::from_context(CudaContext::new(0).expect("the device opens"))
    }

    impl TestDevice for CudaBackend {
        /// A real loss would end the context of every other test in this process.
        fn lose(&self) {
            CudaBackend::lose(self, "the test loses it");
        }

        /// An output whose use on a stream never ends is refused.
        fn spoil(&self, output: &CudaTensor) -> bool {
            let stream = self.context().new_stream().expect("a stream");
            #[allow(clippy::mem_forget)] // The use that never ends.
            std::mem::forget(output.on_stream(&stream).expect("the tensor can be used"));
            true
        }
    }
}

//! Your program owns the CUDA context; gpufeed puts batches into device memory, and your own kernel uses them on your stream.
//!
//! ```sh
//! cargo run --release --example 07-your-own-cuda-context
//! ```

#![allow(clippy::print_stdout)] // An example speaks.
#![allow(unsafe_code)] // Launching a kernel is unsafe: only you know what it touches.

use std::error::Error;
use std::sync::Arc;

use gpufeed::backend::cuda::{CudaBackend, adapters};
use gpufeed::cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use gpufeed::cudarc::nvrtc::{self, compile_ptx};
use gpufeed::{Loader, LoaderOptions, Normalize, SampleLayout, source::random_images};

/// Sums a tensor.
const SUM: &str = r#"
extern "C" __global__ void sum(const float *tensor, unsigned int elements, float *total) {
    float mine = 0.0f;
    for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
        mine += tensor[i];
    }
    atomicAdd(total, mine);
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: asks whether the compiler's library can be loaded. Your program may well ship PTX instead.
    let compiler = unsafe { nvrtc::sys::is_culib_present() };
    if adapters().is_empty() || !compiler {
        println!("no CUDA device, or no NVRTC, here");
        return Ok(());
    }
    // Your context, your stream, your kernel.
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    let sum = context.load_module(compile_ptx(SUM)?)?.load_function("sum")?;
    let mut total = stream.alloc_zeros::<f32>(1)?;

    let backend = CudaBackend::from_context(Arc::clone(&context))?;
    let images = Arc::new(random_images(SampleLayout::image(32, 32, 3)?, 256, 1)?);
    let options = LoaderOptions { batch_size: 32, preprocess: Normalize::unit(3).into(), ..LoaderOptions::default() };
    let mut loader = Loader::new(&backend, images, options)?;
    for batch in loader.epoch(0) {
        let batch = batch?;
        // Your stream waits for the batch, on the device. The guard's end marks the end of the use.
        let guard = batch.tensor().on_stream(&stream)?;
        // SAFETY: the stream holds a guard, and the kernel stays inside of the tensor.
        let address = unsafe { guard.tensor().device_address() };
        let elements = u32::try_from(batch.desc().elements())?;
        let mut launch = stream.launch_builder(&sum);
        launch.arg(&address).arg(&elements).arg(&mut total);
        // SAFETY: the arguments are the kernel's parameters.
        unsafe { launch.launch(LaunchConfig::for_num_elems(8 * 1024)) }?;
        drop(guard);
        println!("batch {} {:?} is summed on {}", batch.number(), batch.shape(), backend.info().name);
    }
    println!("the sum of everything is {}", stream.clone_dtoh(&total)?[0]);
    Ok(())
}

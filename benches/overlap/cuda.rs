//! A consumer on a stream of its own.

#![allow(unsafe_code)] // Launching a kernel is unsafe.

use std::sync::Arc;

use gpufeed::Strategy;
use gpufeed::backend::cuda::{CudaBackend, Tuning};
use gpufeed::cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, LaunchConfig, PushKernelArg, result,
};
use gpufeed::cudarc::nvrtc::Ptx;
use gpufeed::loader::Batch;

use super::Failure;
use super::args::Args;
use super::consumer::{Consumer, LOOKS, MAX_BATCHES, SCRATCH, WIDE_GROUPS};

pub struct CudaConsumer {
    backend: CudaBackend,
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    launch: LaunchConfig,
    sums: CudaSlice<u32>,
    scratch: CudaSlice<u32>,
    mask: u32,
    /// What work without a batch looks at.
    blank: CudaSlice<u32>,
    iterations: u32,
    batches: usize,
    kernels: Vec<(String, Tuning)>,
}

impl CudaConsumer {
    pub fn open(device: &str, args: &Args) -> Result<Self, Failure> {
        let ordinal = device.strip_prefix("cuda:").ok_or("a CUDA device is `cuda:0`")?.parse()?;
        // Without a driver this would panic.
        if gpufeed::backend::cuda::adapters().is_empty() {
            return Err("there is no CUDA device".into());
        }
        let context = CudaContext::new(ordinal)?;
        let (least, greatest) = result::stream::get_priority_range()?;
        let stream = context.new_stream_with_priority(if args.consumer_first { greatest } else { least })?;
        let module = context.load_module(Ptx::from_src(include_str!("consume.ptx")))?;
        let vectors = if args.wide { SCRATCH } else { 64 };
        let (groups, threads) = if args.wide { (WIDE_GROUPS, 256) } else { (1, 32) };
        Ok(Self {
            kernel: module.load_function(if args.wide { "wide" } else { "narrow" })?,
            launch: LaunchConfig { grid_dim: (groups, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 },
            sums: stream.alloc_zeros(MAX_BATCHES * 2)?,
            scratch: stream.alloc_zeros(vectors as usize * 4)?,
            blank: stream.alloc_zeros(LOOKS)?,
            mask: vectors - 1,
            backend: CudaBackend::from_context(context)?,
            iterations: 0,
            batches: 0,
            kernels: args.kernels()?,
            stream,
        })
    }

    fn launch(&mut self, tensor: u64, words: usize) -> Result<(), Failure> {
        let address = |slice: &CudaSlice<u32>| slice.device_ptr(&self.stream).0;
        let sums = address(&self.sums) + (self.batches % MAX_BATCHES) as u64 * 8;
        let (scratch, step) = (address(&self.scratch), u32::try_from(words / LOOKS)?);
        let mut launch = self.stream.launch_builder(&self.kernel);
        launch.arg(&tensor).arg(&sums).arg(&scratch).arg(&step).arg(&self.iterations).arg(&self.mask);
        // SAFETY: the arguments are the kernel's parameters. It reads within `words` words of the tensor, which the caller holds, and
        // writes its own sums and scratch memory.
        unsafe { launch.launch(self.launch) }?;
        self.batches += 1;
        Ok(())
    }
}

impl Consumer for CudaConsumer {
    type Backend = CudaBackend;

    fn backend(&self) -> &CudaBackend {
        &self.backend
    }

    fn variants(&self, strategy: Strategy) -> Vec<(String, CudaBackend)> {
        let variant = |(name, tuning): &(String, Tuning)| {
            (format!("{strategy}, kernels: {name}"), self.backend.with_tuning(*tuning))
        };
        self.kernels.iter().map(variant).collect()
    }

    fn set(&mut self, iterations: u32) -> Result<(), Failure> {
        self.finish()?;
        self.iterations = iterations;
        self.sums().map(drop)
    }

    fn work(&mut self) -> Result<(), Failure> {
        let blank = self.blank.device_ptr(&self.stream).0;
        self.launch(blank, LOOKS)
    }

    fn consume(&mut self, batch: Batch<CudaBackend>) -> Result<(), Failure> {
        let tensor = batch.tensor().clone();
        let stream = Arc::clone(&self.stream);
        let guard = tensor.on_stream(&stream)?;
        // SAFETY: used within the tensor, on a stream that holds a guard of it until the launch is queued.
        let address = unsafe { guard.tensor().device_address() };
        self.launch(address, batch.desc().byte_len() / 4)?;
        drop(guard);
        drop(batch);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.stream.synchronize()?)
    }

    fn sums(&mut self) -> Result<Vec<[u32; 2]>, Failure> {
        let words = self.stream.clone_dtoh(&self.sums)?;
        self.stream.memset_zeros(&mut self.sums)?;
        self.finish()?;
        let count = std::mem::take(&mut self.batches).min(MAX_BATCHES);
        Ok(words.as_chunks().0.iter().take(count).copied().collect())
    }
}

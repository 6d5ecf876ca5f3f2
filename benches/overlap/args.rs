//! What is measured.

use std::fmt;

use gpufeed::{Backend, Strategy};

use super::{Failure, WARM_UP};

/// Arguments are `name=value`.
pub struct Args {
    pub devices: Vec<String>,
    pub strategies: Vec<Strategy>,
    /// Both where none is named.
    pub tensor: Option<Tensor>,
    pub images: usize,
    pub batch: usize,
    pub slots: usize,
    pub outputs: usize,
    pub workers: usize,
    /// Microseconds.
    pub compute: Vec<u32>,
    pub wide: bool,
    /// Which queues copy under wgpu, by name.
    pub copies: Vec<String>,
    /// How CUDA's kernels share the device, by name.
    pub kernels: Vec<String>,
    /// Whether the consumer's stream has the greatest priority.
    pub consumer_first: bool,
}

#[derive(Clone, Copy)]
pub enum Tensor {
    Raw,
    F32,
}

impl Tensor {
    pub fn key(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::F32 => "f32",
        }
    }
}

impl Default for Args {
    fn default() -> Self {
        let usual = gpufeed::LoaderOptions::default();
        Self {
            devices: ["cuda:0", "vulkan:0"].map(str::to_owned).into(),
            strategies: vec![
                Strategy::PinnedRing,
                Strategy::Registered,
                Strategy::MappedRing,
                Strategy::SystemRing,
                Strategy::Imported,
            ],
            tensor: None,
            images: 256 * 40,
            batch: 256,
            slots: usual.slots,
            outputs: usual.outputs,
            workers: 12,
            compute: vec![0, 400, 700, 1000, 1500],
            wide: false,
            copies: ["main", "transfer", "compute"].map(str::to_owned).into(),
            kernels: vec!["default".to_owned()],
            consumer_first: false,
        }
    }
}

impl Args {
    /// Of the command line.
    pub fn parse() -> Result<Self, Failure> {
        let mut args = Self::default();
        // cargo passes `--bench`.
        for arg in std::env::args().skip(1).filter(|arg| !arg.starts_with("--")) {
            let (name, value) = arg.split_once('=').ok_or_else(|| format!("`{arg}` is not name=value"))?;
            args.set(name, value)?;
        }
        if args.images / args.batch.max(1) <= WARM_UP {
            return Err(format!("an epoch of more than {WARM_UP} batches is needed").into());
        }
        Ok(args)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let items = || value.split(',').map(str::trim);
        match name {
            "devices" => self.devices = items().map(str::to_owned).collect(),
            "strategies" => self.strategies = items().map(str::parse).collect::<Result<_, _>>()?,
            "tensor" if value == "raw" => self.tensor = Some(Tensor::Raw),
            "tensor" if value == "f32" => self.tensor = Some(Tensor::F32),
            "images" => self.images = value.parse()?,
            "batch" => self.batch = value.parse()?,
            "slots" => self.slots = value.parse()?,
            "outputs" => self.outputs = value.parse()?,
            "workers" => self.workers = value.parse()?,
            "compute" => self.compute = items().map(str::parse).collect::<Result<_, _>>()?,
            "copies" => self.copies = items().map(str::to_owned).collect(),
            "kernels" => self.kernels = items().map(str::to_owned).collect(),
            "consumer" => self.consumer_first = value == "first",
            "wide" => self.wide = value == "1",
            _ => return Err(format!("there is no `{name}={value}`").into()),
        }
        Ok(())
    }

    /// Which queues work under wgpu: `automatic`, `main`, `beside`, `transfer` or `compute` for the copies, or `in-place` where kernels
    /// read the slots; then `+compute` or `+low` for the queue of the kernels, where it is not wgpu's.
    #[cfg(feature = "wgpu")]
    pub fn queues(&self) -> Result<Vec<(String, gpufeed::backend::wgpu::Tuning)>, Failure> {
        use gpufeed::backend::wgpu::{CopyQueue, KernelQueue, SlotReads, Tuning};
        let tuning = |name: &String| -> Result<_, Failure> {
            let (copies, kernels) = name.split_once('+').unwrap_or((name, "main"));
            let (copies, slots) = match copies {
                "automatic" => (CopyQueue::Automatic, SlotReads::Copy),
                "main" => (CopyQueue::Main, SlotReads::Copy),
                "beside" => (CopyQueue::Beside, SlotReads::Copy),
                "transfer" => (CopyQueue::Transfer, SlotReads::Copy),
                "compute" => (CopyQueue::Compute, SlotReads::Copy),
                "in-place" => (CopyQueue::Main, SlotReads::InPlace),
                _ => return Err(format!("there is no `copies={name}`").into()),
            };
            let kernels = match kernels {
                "main" => KernelQueue::Main,
                "compute" => KernelQueue::Compute,
                "low" => KernelQueue::LowCompute,
                _ => return Err(format!("there is no `copies={name}`").into()),
            };
            Ok((name.clone(), Tuning { copies, slots, kernels, ..Tuning::default() }))
        };
        self.copies.iter().map(tuning).collect()
    }

    /// How CUDA's kernels share the device: `default`, `whole` for one launch a batch, or MiB a launch; `first-` before it for the
    /// greatest priority.
    #[cfg(feature = "cuda")]
    pub fn kernels(&self) -> Result<Vec<(String, gpufeed::backend::cuda::Tuning)>, Failure> {
        use gpufeed::backend::cuda::{KernelPriority, Tuning};
        let tuning = |name: &String| -> Result<_, Failure> {
            let (priority, parts) = match name.strip_prefix("first-") {
                Some(parts) => (KernelPriority::Greatest, parts),
                None => (KernelPriority::Least, name.as_str()),
            };
            let part_bytes = match parts {
                "default" => Tuning::default().part_bytes,
                "whole" => usize::MAX,
                parts => parts.parse::<usize>()? << 20,
            };
            Ok((name.clone(), Tuning { priority, part_bytes }))
        };
        self.kernels.iter().map(tuning).collect()
    }

    pub fn wants<B: Backend>(&self, backend: &B, strategy: Strategy) -> bool {
        // A row says what a device lacks; strategies of another backend have none.
        let known = backend.info().strategies.iter().any(|support| support.strategy == strategy);
        known && self.strategies.contains(&strategy)
    }
}

impl fmt::Display for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { images, batch, slots, outputs, workers, .. } = self;
        let width = if self.wide { "the whole device, bound by its memory" } else { "one workgroup" };
        write!(
            f,
            "{images} images, batch {batch}, {slots} slots, {outputs} outputs, {workers} workers; compute on {width}"
        )
    }
}

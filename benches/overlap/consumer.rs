//! What uses the batches.

use std::time::Instant;

use gpufeed::loader::Batch;
use gpufeed::{Backend, Strategy};

use super::Failure;

/// Runs fixed work on the device for each batch, and sums up what it sees of the tensor.
pub trait Consumer {
    type Backend: Backend;

    fn backend(&self) -> &Self::Backend;

    /// The ways in which the device can run a strategy, by name, and a backend for each.
    fn variants(&self, strategy: Strategy) -> Vec<(String, Self::Backend)> {
        vec![(strategy.to_string(), self.backend().clone())]
    }

    /// The work of each batch from now on.
    fn set(&mut self, iterations: u32) -> Result<(), Failure>;

    /// Queues work without a batch.
    fn work(&mut self) -> Result<(), Failure>;

    /// Queues the work of a batch, and gives the batch back behind it. Does not wait.
    fn consume(&mut self, batch: Batch<Self::Backend>) -> Result<(), Failure>;

    /// Waits for all that was queued.
    fn finish(&mut self) -> Result<(), Failure>;

    /// The sums of all batches since the last call, before and after the work of each.
    fn sums(&mut self) -> Result<Vec<[u32; 2]>, Failure>;

    /// Lets go of what it keeps for the tensors of a loader.
    fn forget(&mut self) {}
}

/// Batches between two calls of [`Consumer::sums`], at most.
pub const MAX_BATCHES: usize = 4096;
/// Looks at a tensor: as the kernels have it.
pub const LOOKS: usize = 512;
/// Of the memory that wide work goes through, in vectors of four words. A power of two, beyond every cache.
pub const SCRATCH: u32 = (256 << 20) / 16;
/// Blocks of wide work, of 256 threads each.
pub const WIDE_GROUPS: u32 = 1056;

/// Work of a known length.
#[derive(Clone, Copy)]
pub struct Work {
    /// What was asked for.
    pub microseconds: u32,
    pub iterations: u32,
    /// Seconds that it takes alone, measured.
    pub alone: f64,
}

/// Finds how much work takes this long. A kernel's start is part of it.
pub fn calibrate<C: Consumer>(consumer: &mut C, microseconds: u32) -> Result<Work, Failure> {
    if microseconds == 0 {
        return Ok(Work { microseconds, iterations: 0, alone: 0.0 });
    }
    let wanted = f64::from(microseconds) * 1e-6;
    let mut iterations = 64;
    // A clock that rises, and a start that counts, are caught by the next turn.
    for _ in 0..12 {
        let measured = time(consumer, iterations)?;
        if (measured / wanted - 1.0).abs() < 0.005 {
            break;
        }
        let scaled = f64::from(iterations) * (wanted / measured).clamp(0.1, 16.0);
        iterations = (scaled as u32).max(1);
    }
    Ok(Work { microseconds, iterations, alone: time(consumer, iterations)? })
}

fn time<C: Consumer>(consumer: &mut C, iterations: u32) -> Result<f64, Failure> {
    consumer.set(iterations)?;
    let mut run = |count: u32| -> Result<f64, Failure> {
        let start = Instant::now();
        (0..count).try_for_each(|_| consumer.work())?;
        consumer.finish()?;
        Ok(start.elapsed().as_secs_f64() / f64::from(count))
    };
    run(10)?;
    run(100)
}

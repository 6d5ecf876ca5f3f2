//! What a loader can be told, with its defaults and how to choose.

use std::sync::Arc;
use std::time::Duration;

use super::observe::trace::Trace;
use super::order::subset::Subset;
use super::tolerance::BadSamples;
use crate::backend::{Step, Strategy};
use crate::error::OpenError;
use crate::preprocess::Preprocess;

/// What happens to the samples left over at the end of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LastBatch {
    /// They become a shorter batch.
    #[default]
    Short,
    /// They are not delivered in this epoch.
    Drop,
    /// Their batch is filled with samples from the start of the same order. All ranks have the same number of full batches then, and every
    /// sample is delivered. [`Batch::padding`](super::Batch::padding) tells how many are repetitions.
    Pad,
}

/// Options of a [`Loader`](super::Loader). Start from `Default` and change what you know better.
///
/// # Sizing
///
/// Staging memory is `slots * batch bytes`, output memory `outputs * tensor bytes`; both are allocated once. Throughput needs
/// one slot being filled, one being copied and one on its way back: three or four slots; more only evens out sources
/// whose samples take very different times. Outputs bound how far the loader runs ahead: with `n` outputs, `n - 1` batches
/// are ready or on their way while you hold one. Workers beyond the number of cores do not help sources that only copy
/// memory; sources that wait (files on a slow disk, a network) can use more.
///
/// # Sharing an epoch
///
/// With the same `seed`, loaders of `rank` 0 to `world - 1` share each epoch exactly: every sample is delivered by one of
/// them, and none twice. Several devices in one process, one loader a device over one shared source, and several such processes
/// or machines: device `i` of `devices` has the global rank `rank * devices + i` of `world * devices`, so that with
/// [`LastBatch::Short`] the global ranks' numbers of samples differ by one at most, and with [`LastBatch::Drop`] each delivers the
/// same number of full batches. See [`Sampler`](super::Sampler) for the tails.
#[derive(Clone, Debug)]
pub struct LoaderOptions {
    /// Samples in a batch.
    pub batch_size: usize,
    /// Staging slots: batches that are being filled or copied. At least 1.
    pub slots: usize,
    /// Output tensors: batches that are ready or held by you. At least 1; with 1 nothing is prepared while you hold a batch.
    pub outputs: usize,
    /// Threads that read samples. They fill one slot together. At least 1; the default is the number of cores, at most 8.
    pub workers: usize,
    /// Shuffle with this seed; `None` delivers in the source's order. The order of an epoch depends on the seed and the epoch's
    /// number alone.
    pub seed: Option<u64>,
    /// Whose share of each epoch this loader delivers, below `world`.
    pub rank: u64,
    /// Among how many loaders each epoch is shared. At least 1, which is the whole epoch.
    pub world: u64,
    /// What happens to the samples left over at the end of an epoch.
    pub last_batch: LastBatch,
    /// Which samples of the source are delivered; `None` for all. Shuffling and sharing are of these.
    pub subset: Option<Subset>,
    /// Whether batches come in the order of the epoch, whatever order they get ready in. Without, one slow sample delays its own batch
    /// only; which batches there are is the same, and [`Batch::number`](super::Batch::number) tells which it is. There is no resuming then,
    /// and where bad samples have a limit it depends on chance which are delivered before it is reached.
    pub ordered: bool,
    /// What happens to samples that cannot be read.
    pub bad_samples: BadSamples,
    /// How bytes get to the device; `None` takes the backend's default.
    pub strategy: Option<Strategy>,
    /// What the device does with the bytes.
    pub preprocess: Preprocess,
    /// The application's own commands on the device, behind that or instead of it.
    pub step: Option<Step>,
    /// The most bytes (staging, device and outputs together) the loader may hold; `None` for no bound. Tensors that were
    /// [taken out](super::Batch::into_tensor) are the caller's and do not count.
    pub byte_budget: Option<u64>,
    /// Whether the device computes a fingerprint of each sample's delivered bytes, for each of its fields there.
    pub fingerprints: bool,
    /// Whether the device measures its own copies and kernels: [`LoaderStats::gpu`](super::LoaderStats::gpu). Through wgpu that adds
    /// queries and a small read-back to each batch, on CUDA two events.
    pub timing: bool,
    /// Where to record what runs when; with it the device measures too. It costs less than two microseconds a batch.
    pub trace: Option<Arc<Trace>>,
    /// How long dropping the loader may wait for a source that is stuck in a read. After that its thread and its slot are left
    /// behind, with an error in the log.
    pub shutdown_timeout: Duration,
    /// How long `next` may wait while nothing moves at all (no sample read, nothing sent, nothing finished) until it answers with
    /// [`LoadError::Stalled`](crate::LoadError::Stalled), which tells who waits for what; `None` to wait for ever.
    pub stall_timeout: Option<Duration>,
}

impl Default for LoaderOptions {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            batch_size: 64,
            slots: 4,
            outputs: 4,
            workers: cores.min(8),
            seed: None,
            rank: 0,
            world: 1,
            last_batch: LastBatch::default(),
            subset: None,
            ordered: true,
            bad_samples: BadSamples::default(),
            strategy: None,
            preprocess: Preprocess::default(),
            step: None,
            byte_budget: None,
            fingerprints: false,
            timing: false,
            trace: None,
            shutdown_timeout: Duration::from_secs(5),
            stall_timeout: Some(Duration::from_secs(300)),
        }
    }
}

impl LoaderOptions {
    const MAX_THREADS: usize = 1024;
    pub(super) const MAX_POOLED: usize = 1 << 16;
    /// Slots and outputs with which copies and reading still overlap.
    const MIN_POOLED: usize = 2;

    /// Checks what can be checked without a device or a source.
    ///
    /// # Errors
    /// [`OpenError::Option`] names the option.
    pub fn validate(&self) -> Result<(), OpenError> {
        let counts = [
            ("batch_size", self.batch_size, usize::MAX),
            ("slots", self.slots, Self::MAX_POOLED),
            ("outputs", self.outputs, Self::MAX_POOLED),
            ("workers", self.workers, Self::MAX_THREADS),
        ];
        check_counts(&counts)?;
        self.bad_samples.check()?;
        if self.stall_timeout.is_some_and(|timeout| timeout.is_zero()) {
            let reason = "must be longer than nothing; `None` waits for ever".to_owned();
            return Err(OpenError::Option { option: "stall_timeout", reason });
        }
        let share = match (self.rank, self.world) {
            (_, 0) => Some(("world", "must be at least 1".to_owned())),
            (rank, world) if rank >= world => Some(("rank", format!("is {rank}, and must be below world, {world}"))),
            _ => None,
        };
        share.map_or(Ok(()), |(option, reason)| Err(OpenError::Option { option, reason }))
    }

    /// The same in less memory, for another try after an error that
    /// [`is_short_of_memory`](OpenError::is_short_of_memory): half the slots; once there are 2, half the outputs; `None` once
    /// there are 2 of both, or fewer.
    ///
    /// The batches are the same. Fewer outputs mean that fewer batches can be held at once.
    ///
    /// ```
    /// use gpufeed::LoaderOptions;
    ///
    /// let options = LoaderOptions { slots: 5, outputs: 3, ..LoaderOptions::default() };
    /// let tries = std::iter::successors(Some(options), LoaderOptions::shrunk);
    /// assert!(tries.map(|options| (options.slots, options.outputs)).eq([(5, 3), (2, 3), (2, 2)]));
    /// ```
    #[must_use]
    pub fn shrunk(&self) -> Option<Self> {
        let half = |count: usize| (count > Self::MIN_POOLED).then(|| (count / 2).max(Self::MIN_POOLED));
        match (half(self.slots), half(self.outputs)) {
            (Some(slots), _) => Some(Self { slots, ..self.clone() }),
            (None, Some(outputs)) => Some(Self { outputs, ..self.clone() }),
            (None, None) => None,
        }
    }
}

/// Checks that each named count is from 1 to its most.
pub(super) fn check_counts(counts: &[(&'static str, usize, usize)]) -> Result<(), OpenError> {
    for &(option, value, most) in counts {
        if value == 0 || value > most {
            let reason = match value {
                0 => "must be at least 1".to_owned(),
                _ => format!("is {value}, and {most} is the most"),
            };
            return Err(OpenError::Option { option, reason });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_valid_and_zero_is_named() {
        LoaderOptions::default().validate().expect("defaults are valid");
        let error = LoaderOptions { slots: 0, ..LoaderOptions::default() }.validate().expect_err("no slots");
        assert_eq!(error.to_string(), "slots: must be at least 1");
        let error = LoaderOptions { workers: 5000, ..LoaderOptions::default() }.validate().expect_err("too many");
        assert!(error.to_string().contains("workers: is 5000"), "{error}");
    }

    #[test]
    fn a_rank_outside_its_world_is_named() {
        let refused = |rank, world| {
            LoaderOptions { rank, world, ..LoaderOptions::default() }.validate().map_err(|e| e.to_string())
        };
        assert_eq!(refused(2, 3), Ok(()));
        assert_eq!(refused(3, 3), Err("rank: is 3, and must be below world, 3".to_owned()));
        assert_eq!(refused(0, 0), Err("world: must be at least 1".to_owned()));
    }

    #[test]
    fn options_shrink_to_two_slots_and_then_to_two_outputs() {
        let sizes = |slots, outputs| {
            let first = LoaderOptions { slots, outputs, ..LoaderOptions::default() };
            let tries = std::iter::successors(Some(first), LoaderOptions::shrunk);
            tries.map(|options| (options.slots, options.outputs)).collect::<Vec<_>>()
        };
        assert_eq!(sizes(9, 5), [(9, 5), (4, 5), (2, 5), (2, 2)]);
        assert_eq!(sizes(1, 3), [(1, 3), (1, 2)]);
        assert_eq!(sizes(2, 1), [(2, 1)]);
    }
}

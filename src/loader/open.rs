//! Making a loader: everything is checked, then everything allocated, then the threads start.

use std::sync::Arc;

use super::bad::{BadSampleLimit, BadSampleLog, Substitutes};
use super::cancel::Canceller;
use super::observe::activity::Activity;
use super::observe::metrics::Metrics;
use super::observe::monitor;
use super::observe::trace::Recorder;
use super::outputs::{Output, OutputPool, reserved};
use super::pump::{Direct, Observer, Progress, Pump};
use super::threads::Threads;
use super::tolerance::BadSamples;
use super::worker::Worker;
use super::{Loader, LoaderOptions, Order, Sampler};
use crate::backend::{Backend, Footprint, Lane, LaneSpec, StableHostMemory, Strategy};
use crate::error::{LayoutError, OpenError, Unsupported};
use crate::layout::BatchLayout;
use crate::source::Source;

/// What is decided before anything is allocated.
struct Plan {
    spec: LaneSpec,
    /// Samples of the source. It is asked once: what it says later may be something else.
    source_samples: u64,
    footprint: Footprint,
    /// Samples in the largest batch: never more than in the epoch, whatever size was asked for.
    largest: usize,
}

impl Plan {
    fn new<B: Backend>(backend: &B, source: &dyn Source, options: &LoaderOptions) -> Result<Self, OpenError> {
        options.validate()?;
        let source_samples = source.len();
        if source_samples == 0 {
            return Err(LayoutError::Zero { what: "the number of samples in the source" }.into());
        }
        if let Some(subset) = &options.subset {
            subset.check(source_samples)?;
        }
        let strategy = options.strategy.unwrap_or_else(|| backend.default_strategy());
        let spec = LaneSpec {
            layout: BatchLayout::new(source.layout(), options.batch_size)?,
            preprocess: options.preprocess.clone(),
            strategy,
            slots: options.slots,
            outputs: options.outputs,
            fingerprints: options.fingerprints,
            memory: if strategy.is_direct() { Some(own_memory(source, strategy)?) } else { None },
            timing: options.timing || options.trace.is_some(),
        };
        let footprint = backend.footprint(&spec)?;
        footprint.within(options.byte_budget)?;
        let largest = Sampler::new(Order::new(source_samples, options), 0).largest();
        Ok(Self { spec, source_samples, footprint, largest })
    }

    /// The device reads the source by itself, or workers do.
    fn workers(&self, options: &LoaderOptions) -> usize {
        if self.spec.memory.is_some() { 0 } else { options.workers }
    }

    fn progress(&self, options: &LoaderOptions) -> Result<Progress, OpenError> {
        Ok(Progress::new(options.slots, self.largest, !options.ordered)?)
    }

    /// For a strategy without slots.
    fn direct(&self, source: &Arc<dyn Source>) -> Result<Option<Direct>, OpenError> {
        if self.spec.memory.is_none() {
            return Ok(None);
        }
        let offsets = reserved(self.largest)?;
        Ok(Some(Direct { source: Arc::clone(source), depth: self.spec.slots, offsets, slow: false }))
    }

    fn outputs<L: Lane>(&self, lane: &mut L) -> Result<Vec<Output<L::Tensor>>, OpenError> {
        (0..self.spec.outputs).map(|_| Ok(Output::new(lane.output()?, self.largest)?)).collect()
    }
}

impl<B: Backend> Loader<B> {
    /// Makes a loader: checks everything, allocates all of its memory and starts its threads.
    ///
    /// # Errors
    /// [`OpenError`] names the option, the limit, the budget with its sum, or the reason a strategy cannot run. Nothing stays
    /// allocated.
    pub fn new(backend: &B, source: Arc<dyn Source>, options: LoaderOptions) -> Result<Self, OpenError> {
        let plan = Plan::new(backend, &*source, &options)?;
        let mut lane = backend.open_lane(&plan.spec)?;
        let (strategy, workers) = (plan.spec.strategy, plan.workers(&options));
        let (progress, direct, tensors) = (plan.progress(&options)?, plan.direct(&source)?, plan.outputs(&mut lane)?);
        let recorder = options.trace.as_ref().map(|trace| trace.join(monitor::name(backend.info(), strategy)));
        let (metrics, activity) = (Arc::new(Metrics::new()), Arc::new(Activity::new(workers)));
        let (pump, inbox) = flume::unbounded();
        let (deliver, deliveries) = flume::unbounded();
        let (jobs, job_queue) = flume::unbounded();
        let outputs = Arc::new(OutputPool::new(tensors, Some(pump.clone()), metrics.held()));
        let (canceller, watched) = (Canceller::new(deliver.downgrade()), deliver.downgrade());
        let serving = Pump {
            lane,
            layout: plan.spec.layout,
            workers: options.workers,
            inbox,
            jobs,
            deliveries: deliver,
            outputs: Arc::clone(&outputs),
            metrics: Arc::clone(&metrics),
            activity: Arc::clone(&activity),
            bad_limit: BadSampleLimit::new(options.bad_samples),
            skips: matches!(options.bad_samples, BadSamples::Skip(_)),
            clock: None,
            observer: Observer::new(
                recorder.as_ref().map(Recorder::fork),
                plan.spec.timing,
                options.slots + options.outputs,
            ),
            direct,
            progress,
        };
        let worker = |number| Worker {
            number,
            source: Arc::clone(&source),
            sample_bytes: plan.spec.layout.sample().byte_len(),
            policy: options.bad_samples,
            substitutes: options.bad_samples.substitutes().then(|| {
                Substitutes::new(options.seed.unwrap_or_default(), plan.source_samples, options.subset.clone())
            }),
            activity: Arc::clone(&activity),
            recorder: recorder.as_ref().map(Recorder::fork),
        };
        let mut threads = Threads::new(options.shutdown_timeout);
        threads.start_workers((0..workers).map(worker), &job_queue, &pump)?;
        if let Some(timeout) = options.stall_timeout {
            threads.start_watchdog(Arc::clone(&activity), timeout, watched)?;
        }
        // Last: it ends when it is told to, and the others when it has.
        threads.start_pump(serving)?;
        monitor::opened(backend.info(), strategy, &options, workers, plan.footprint);
        Ok(Self {
            threads,
            pump,
            deliveries,
            outputs,
            metrics,
            activity,
            bad_log: Arc::<BadSampleLog>::default(),
            canceller,
            backend: backend.clone(),
            source,
            source_samples: plan.source_samples,
            layout: plan.spec.layout,
            options,
            strategy,
            footprint: plan.footprint,
            generation: 0,
            recorder,
        })
    }
}

/// The source's own memory, for a strategy that reads it directly.
fn own_memory(source: &dyn Source, strategy: Strategy) -> Result<Arc<dyn StableHostMemory>, OpenError> {
    let reason = "the source does not lie in memory that a device may read (see `Source::memory`)".to_owned();
    source.memory().ok_or(OpenError::Unsupported(Unsupported { strategy, reason }))
}

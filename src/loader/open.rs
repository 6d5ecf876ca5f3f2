//! Making a loader: everything is checked, then everything allocated, then the threads start.

use std::sync::Arc;

use super::bad::{BadSampleLimit, BadSampleLog, Substitutes};
use super::cancel::Canceller;
use super::host_fields::HostFields;
use super::locate::Locator;
use super::observe::activity::Activity;
use super::observe::metrics::Metrics;
use super::observe::monitor;
use super::observe::trace::Recorder;
use super::outputs::{Output, OutputPool};
use super::pump::{Direct as Feeding, Observer, Progress, Pump};
use super::threads::Threads;
use super::tolerance::BadSamples;
use super::worker::Worker;
use super::{Loader, LoaderOptions, Order, Sampler};
use crate::backend::{Backend, Footprint, Lane, LaneSpec, Strategy};
use crate::error::{DeviceError, LayoutError, OpenError, Unsupported};
use crate::layout::BatchLayout;
use crate::source::{Direct, Source};

/// What is decided before anything is allocated.
struct Plan {
    spec: LaneSpec,
    /// The source's own memory, for a strategy that reads it.
    direct: Option<Direct>,
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
        let layout = BatchLayout::new(source.layout(), options.batch_size)?;
        let direct = if strategy.is_direct() { Some(own_memory(source, &layout, strategy)?) } else { None };
        let spec = LaneSpec {
            layout,
            preprocess: options.preprocess.clone(),
            strategy,
            slots: options.slots,
            outputs: options.outputs,
            fingerprints: options.fingerprints,
            memory: direct.as_ref().map(|direct| Arc::clone(direct.memory())),
            timing: options.timing || options.trace.is_some(),
        };
        let footprint = backend.footprint(&spec)?;
        footprint.within(options.byte_budget)?;
        let largest = Sampler::new(Order::new(source_samples, options), 0).largest();
        Ok(Self { spec, direct, source_samples, footprint, largest })
    }

    /// The device reads the source by itself, or workers do.
    fn workers(&self, options: &LoaderOptions) -> usize {
        if self.spec.memory.is_some() { 0 } else { options.workers }
    }

    fn progress(&self, options: &LoaderOptions) -> Result<Progress, OpenError> {
        Ok(Progress::new(&self.spec.layout, options.slots, self.largest, !options.ordered)?)
    }

    /// For a strategy without slots.
    fn feeding(&mut self, options: &LoaderOptions) -> Result<Option<Feeding>, OpenError> {
        let Some(direct) = self.direct.take() else { return Ok(None) };
        let locator = Locator::new(direct, &self.spec.layout, options.seed.unwrap_or_default(), self.largest)?;
        Ok(Some(Feeding { locator, depth: self.spec.slots, slow: false }))
    }

    fn outputs<L: Lane>(&self, lane: &mut L) -> Result<Vec<Output<L::Tensor>>, OpenError> {
        (0..self.spec.outputs).map(|_| Ok(Output::new(lane.output()?, &self.spec.layout, self.largest)?)).collect()
    }
}

impl<B: Backend> Loader<B> {
    /// Makes a loader: checks everything, allocates all of its memory and starts its threads.
    ///
    /// # Errors
    /// [`OpenError`] names the option, the limit, the budget with its sum, or the reason a strategy cannot run. Nothing stays
    /// allocated.
    pub fn new(backend: &B, source: Arc<dyn Source>, options: LoaderOptions) -> Result<Self, OpenError> {
        let mut plan = Plan::new(backend, &*source, &options)?;
        let mut lane = backend.open_lane(&plan.spec)?;
        let (strategy, workers) = (plan.spec.strategy, plan.workers(&options));
        let (progress, direct, tensors) = (plan.progress(&options)?, plan.feeding(&options)?, plan.outputs(&mut lane)?);
        let recorder = options.trace.as_ref().map(|trace| trace.join(monitor::name(backend.info(), strategy)));
        let (metrics, activity) = (Arc::new(Metrics::new()), Arc::new(Activity::new(workers)));
        let (pump, inbox) = flume::unbounded();
        let (deliver, deliveries) = flume::unbounded();
        let (jobs, job_queue) = flume::unbounded();
        let outputs = Arc::new(OutputPool::new(tensors, Some(pump.clone()), metrics.held()));
        let (canceller, watched) = (Canceller::new(deliver.downgrade()), deliver.downgrade());
        let serving = Pump {
            lane,
            layout: plan.spec.layout.clone(),
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
        let substitutes = options
            .bad_samples
            .substitutes()
            .then(|| Substitutes::new(options.seed.unwrap_or_default(), plan.source_samples, options.subset.clone()));
        let worker = |number| {
            Ok(Worker {
                number,
                source: Arc::clone(&source),
                seed: options.seed.unwrap_or_default(),
                policy: options.bad_samples,
                substitutes: substitutes.clone(),
                activity: Arc::clone(&activity),
                recorder: recorder.as_ref().map(Recorder::fork),
                host: HostFields::new(&plan.spec.layout)?,
            })
        };
        let reading = (0..workers).map(worker).collect::<Result<Vec<_>, DeviceError>>()?;
        let mut threads = Threads::new(options.shutdown_timeout);
        threads.start_workers(reading.into_iter(), &job_queue, &pump)?;
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
fn own_memory(source: &dyn Source, layout: &BatchLayout, strategy: Strategy) -> Result<Direct, OpenError> {
    let unsupported = |reason: String| OpenError::Unsupported(Unsupported { strategy, reason });
    let fields = layout.sample().on_device().count();
    if fields > 1 {
        return Err(unsupported(format!(
            "it reads one field of each sample in place, and these have {fields} on the device"
        )));
    }
    let reason = "the source does not lie in memory that a device may read (see `Source::direct`)";
    source.direct().ok_or_else(|| unsupported(reason.to_owned()))
}

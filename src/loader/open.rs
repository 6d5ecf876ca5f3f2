//! Making a loader: everything is checked, then everything allocated, then the threads start.

use std::sync::Arc;

use super::account::OutputAccount;
use super::bad::{BadSampleLimit, BadSampleLog, Substitutes};
use super::cancel::Canceller;
use super::geometry::{Geometries, staged_layout};
use super::host_fields::HostFields;
use super::into_source::IntoSource;
use super::observe::activity::Activity;
use super::observe::metrics::Metrics;
use super::observe::monitor;
use super::observe::trace::Recorder;
use super::outputs::{Output, OutputPool};
use super::pump::{Direct, Epochs, Feeding, Observer, Outlet, Pump, Staged};
use super::schedule::{Schedule, Shape};
use super::threads::Threads;
use super::tolerance::BadSamples;
use super::worker::{Job, Worker};
use super::{Loader, LoaderOptions, Order, Sampler};
use crate::backend::{Backend, Footprint, Lane, LaneSpec, Strategy};
use crate::error::{DeviceError, LayoutError, OpenError, Unsupported};
use crate::preprocess::OutputLayout;
use crate::source::{self, Source};

/// What is decided before anything is allocated.
struct Plan {
    spec: LaneSpec,
    /// The source's own memory, for a strategy that reads it.
    direct: Option<source::Direct>,
    footprint: Footprint,
    tensors: Arc<OutputLayout>,
    geometries: Option<Arc<Geometries>>,
    /// The source's number of samples, which is asked once.
    samples: u64,
    /// Samples in the largest batch: never more than in the epoch, whatever size was asked for.
    largest: usize,
}

impl Plan {
    fn new<B: Backend>(backend: &B, source: &dyn Source, options: &LoaderOptions) -> Result<Self, OpenError> {
        options.validate()?;
        let samples = source.len();
        if samples == 0 {
            return Err(LayoutError::Zero { what: "the number of samples in the source" }.into());
        }
        if let Some(subset) = &options.subset {
            subset.check(samples)?;
        }
        let strategy = options.strategy.unwrap_or_else(|| backend.default_strategy());
        let sample = source.layout();
        let layout = staged_layout(&options.preprocess, &sample, options.batch_size)?;
        let geometries = Geometries::new(&options.preprocess, &sample, options.seed.unwrap_or_default())?.map(Arc::new);
        let direct = if strategy.is_direct() { Some(own_memory(source, strategy)?) } else { None };
        let spec = LaneSpec {
            layout,
            preprocess: options.preprocess.clone(),
            strategy,
            slots: options.slots,
            outputs: options.outputs,
            fingerprints: options.fingerprints,
            memory: direct.as_ref().map(|direct| Arc::clone(direct.memory())),
            timing: options.timing || options.trace.is_some(),
            step: options.step.clone(),
        };
        // Each output has its batch's, each slot those of the batch that is being filled, each worker those of its run.
        let filling = if spec.memory.is_some() { 0 } else { options.slots + options.workers };
        let host = HostFields::footprint(&spec.layout, options.outputs + filling);
        let footprint = Footprint { host, ..backend.footprint(&spec)? };
        footprint.within(options.byte_budget)?;
        let tensors = Arc::new(OutputLayout::new(&spec.preprocess, &spec.layout)?);
        let largest = Sampler::new(Order::new(samples, options), 0).largest();
        Ok(Self { spec, direct, footprint, tensors, geometries, samples, largest })
    }

    /// The device reads the source by itself, or workers do.
    fn workers(&self, options: &LoaderOptions) -> usize {
        if self.spec.memory.is_some() { 0 } else { options.workers }
    }

    /// How batches get their bytes, and what bounds them.
    fn feeding(&mut self, options: &LoaderOptions, jobs: flume::Sender<Job>) -> Result<(Feeding, Shape), OpenError> {
        let slots = self.spec.slots;
        if let Some(direct) = self.direct.take() {
            let seed = options.seed.unwrap_or_default();
            let direct = Direct::new(direct, self.spec.layout.clone(), seed, slots, self.largest)?;
            let direct = direct.with_geometries(self.geometries.as_ref())?;
            return Ok((Feeding::Direct(direct), Shape::Direct { depth: slots }));
        }
        let skips = matches!(options.bad_samples, BadSamples::Skip(_));
        let staged = Staged::new(slots, self.largest, jobs, self.spec.layout.clone(), options.workers, skips)?;
        Ok((Feeding::Staged(staged), Shape::Staged { slots, unordered: !options.ordered }))
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
    pub fn new(backend: &B, source: impl IntoSource, options: LoaderOptions) -> Result<Self, OpenError> {
        Self::open(backend, source.into_source(), options)
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one part after the other, in the order in which they depend on each other"
    )]
    fn open(backend: &B, source: Arc<dyn Source>, options: LoaderOptions) -> Result<Self, OpenError> {
        let mut plan = Plan::new(backend, &*source, &options)?;
        let mut lane = backend.open_lane(&plan.spec)?;
        let (strategy, workers) = (plan.spec.strategy, plan.workers(&options));
        let tensors = plan.outputs(&mut lane)?;
        let recorder = options.trace.as_ref().map(|trace| trace.join(monitor::name(backend.info(), strategy)));
        let (metrics, activity) = (Arc::new(Metrics::new()), Arc::new(Activity::new(workers)));
        let (pump, inbox) = flume::unbounded();
        let (deliver, deliveries) = flume::unbounded();
        let (jobs, job_queue) = flume::unbounded();
        let (feeding, shape) = plan.feeding(&options, jobs)?;
        let outputs = Arc::new(OutputPool::new(tensors, Some(pump.clone()), metrics.held()));
        let (canceller, watched) = (Canceller::new(deliver.downgrade()), deliver.downgrade());
        let serving = Pump {
            feeding,
            outlet: Outlet::new(Arc::clone(&outputs), deliver),
            lane,
            schedule: Schedule::new(shape),
            epochs: Epochs::new(BadSampleLimit::new(options.bad_samples)),
            inbox,
            account: OutputAccount::new(plan.footprint, options.outputs, options.byte_budget),
            observer: Observer::new(
                Arc::clone(&metrics),
                Arc::clone(&activity),
                recorder.as_ref().map(Recorder::fork),
                plan.spec.timing,
                options.slots + options.outputs,
            ),
            loss: None,
            finished: Vec::with_capacity(options.slots + options.outputs),
            ask_device: false,
        };
        let seed = options.seed.unwrap_or_default();
        let worker = |number| {
            let substitutes =
                options.bad_samples.substitutes().then(|| Substitutes::new(seed, plan.samples, options.subset.clone()));
            Ok(Worker {
                number,
                source: Arc::clone(&source),
                seed,
                policy: options.bad_samples,
                substitutes,
                geometries: plan.geometries.clone(),
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
            layout: plan.spec.layout,
            options,
            strategy,
            footprint: plan.footprint,
            geometries: plan.geometries,
            tensors: plan.tensors,
            samples: plan.samples,
            epochs: 0,
            recorder,
        })
    }
}

/// The source's own memory, for a strategy that reads it directly.
fn own_memory(source: &dyn Source, strategy: Strategy) -> Result<source::Direct, OpenError> {
    let reason = "the source does not lie in memory that a device may read (see `Source::direct`)".to_owned();
    source.direct().ok_or(OpenError::Unsupported(Unsupported { strategy, reason }))
}

//! A source that does what its plan says.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gpufeed::source::Direct;
use gpufeed::{Element, HostArena, SampleContext, SampleLayout, SampleWriter, Source, SourceError, Strategy};

use super::plan::{Plan, SampleFault};

/// What every injected error and panic begins with.
pub const INJECTED: &str = "injected at sample";

/// Byte `at` of a sample.
fn byte(index: u64, at: usize) -> u8 {
    (index * 31 + at as u64 * 7 + (at as u64 * index) / 5) as u8
}

/// A sample as it is right.
pub fn sample(plan: &Plan, index: u64) -> Vec<u8> {
    (0..plan.layout.byte_len()).map(|at| byte(index, at)).collect()
}

/// The label of a sample.
pub fn label(index: u64) -> i64 {
    index as i64 * 3 - 7
}

/// Something that happens at a read.
pub type Event = (u64, Box<dyn Fn() + Send + Sync>);

pub struct FaultySource {
    plan: Plan,
    reads: AtomicU64,
    /// How often each sample was read.
    each: Vec<AtomicU64>,
    events: Vec<Event>,
    /// All samples, where the device is to read them by itself.
    memory: Option<Arc<HostArena>>,
}

impl FaultySource {
    pub fn new(plan: &Plan, events: Vec<Event>) -> Self {
        let each = (0..plan.samples).map(|_| AtomicU64::new(0)).collect();
        let all = || -> Vec<u8> { (0..plan.samples).flat_map(|index| sample(plan, index)).collect() };
        let memory = plan.options.strategy.is_some_and(Strategy::is_direct).then(|| {
            let bytes = all();
            Arc::new(HostArena::new(bytes.len(), |memory| memory.copy_from_slice(&bytes)).expect("a little memory"))
        });
        Self { plan: plan.clone(), reads: AtomicU64::new(0), each, events, memory }
    }
}

impl Source for FaultySource {
    fn layout(&self) -> SampleLayout {
        self.plan.layout.with_label(Element::I64).expect("no label yet")
    }

    fn len(&self) -> u64 {
        self.plan.samples
    }

    fn read(&self, context: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let index = context.index;
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        self.events.iter().filter(|(at, _)| *at == read).for_each(|(_, happen)| happen());
        let times = self.each[index as usize].fetch_add(1, Ordering::Relaxed);
        let bytes = sample(&self.plan, index);
        let whole = bytes.len();
        match self.plan.faults.get(&index) {
            Some(SampleFault::Error) => return Err(format!("{INJECTED} {index}").into()),
            Some(SampleFault::Flaky) if times.is_multiple_of(2) => return Err(format!("{INJECTED} {index}").into()),
            Some(SampleFault::Panic) => {
                // Not before something is written.
                out.write(&bytes[..whole / 2])?;
                panic!("{INJECTED} {index}");
            }
            Some(&SampleFault::Short(missing)) => {
                out.label(label(index))?;
                return Ok(out.write(&bytes[..whole - missing])?);
            }
            Some(&SampleFault::Slow(time)) => std::thread::sleep(time),
            Some(SampleFault::Flaky) | None => {}
        }
        out.write(&bytes)?;
        Ok(out.label(label(index))?)
    }

    fn direct(&self) -> Option<Direct> {
        let bytes = self.plan.layout.byte_len() as u64;
        let direct = Direct::new(self.memory.clone()?, move |index| index * bytes);
        Some(direct.with_host_fields(|sample, out| Ok(out.label(label(sample.index))?)))
    }
}

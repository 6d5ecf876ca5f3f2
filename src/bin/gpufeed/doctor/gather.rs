//! Runs every check on this machine.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use gpufeed::measure::{available_memory, container_memory, parallel_memcpy};
use gpufeed::{AdapterInfo, Api, Source};

use super::cores::CoreFacts;
use super::finding::{Finding, State};
use super::locked_memory::LockFacts;
use super::numa::Nodes;
use super::probe::{Found, Task, run};
use super::sysfs::{self, Link, PciDevice};
use super::{container, cores, data, drivers, locked_memory, memlock, memory_kind, numa, pcie, queues};
use crate::compare::Ending;
use crate::{interrupt, units};

const BUS: &str = "/sys/bus/pci/devices";
const NODES: &str = "/sys/devices/system/node";
/// How long each memcpy is timed.
const COPYING: Duration = Duration::from_millis(150);
/// Bytes of a batch that is copied for the cores' rate: 64 images of 224x224x3.
const COPIED: usize = 64 * 224 * 224 * 3;
/// No ring larger than this is tried.
const MAX_RING: u64 = 4 << 30;

/// What the loader in question is like.
pub struct Wanted {
    pub slots: usize,
    /// Bytes of all slots.
    pub ring: u64,
    /// Bytes of the tensors, where they lie in the host's memory.
    pub tensors: u64,
    pub data: Option<(PathBuf, Arc<dyn Source>)>,
}

/// A device and what was measured on it.
struct Measured<'a> {
    adapter: &'a AdapterInfo,
    card: Option<PciDevice>,
    /// The fastest link seen while it copied.
    link: Option<Link>,
    copy: Result<f64, String>,
}

/// Everything, device by device.
pub fn all(adapters: &[AdapterInfo], chosen: &[&AdapterInfo], wanted: &Wanted) -> Result<Vec<Finding>> {
    let bus = sysfs::gpus(Path::new(BUS));
    let mut found = vec![drivers::software(adapters)];
    found.extend(drivers::judge(adapters, &bus));
    // Where no strategy runs the drivers' check has said why, and there is nothing to measure.
    let runs = |adapter: &&&AdapterInfo| adapter.strategies.iter().any(|support| support.missing.is_none());
    let chosen: Vec<&AdapterInfo> = chosen.iter().filter(runs).copied().collect();
    let measured: Vec<Measured<'_>> = chosen.iter().map(|adapter| measure(adapter, &bus)).collect::<Result<_>>()?;
    let rings = rings(&measured, wanted)?;
    found.push(locked(&rings, wanted)?);
    found.extend(rings.into_iter().map(|ring| ring.finding));
    let on_host = chosen.iter().all(|adapter| adapter.is_software() || adapter.api == Api::Host);
    let needed = wanted.ring + if on_host { wanted.tensors } else { 0 };
    let data_bytes =
        wanted.data.as_ref().map(|(_, source)| source.len().saturating_mul(source.layout().byte_len() as u64));
    let facts = container::ContainerFacts {
        container: container_memory(),
        available: available_memory(),
        needed,
        data: data_bytes,
    };
    found.push(container::judge(&facts));
    measured.iter().for_each(|device| found.extend(of_device(device)));
    found.push(cores::judge(&core_facts(&measured)));
    if let Some((path, source)) = &wanted.data {
        let fastest = fastest(&measured).map(|(device, rate)| (device.adapter.id.clone(), rate));
        found.push(data::judge(&data::measure(source, path, fastest)?));
    }
    Ok(found)
}

/// The device whose own copy is fastest, in GB/s; a GPU before what computes on the CPU.
fn fastest<'a, 'b>(measured: &'b [Measured<'a>]) -> Option<(&'b Measured<'a>, f64)> {
    let rates = measured.iter().filter_map(|device| Some((device, *device.copy.as_ref().ok()?)));
    rates.max_by(|(a, x), (b, y)| (!a.adapter.is_software()).cmp(&!b.adapter.is_software()).then(x.total_cmp(y)))
}

fn is_gpu(adapter: &AdapterInfo) -> bool {
    !adapter.is_software() && adapter.api != Api::Host
}

fn measure<'a>(adapter: &'a AdapterInfo, bus: &[PciDevice]) -> Result<Measured<'a>> {
    let card = bus.iter().find(|card| adapter.pci.as_ref().is_some_and(|pci| pci.eq_ignore_ascii_case(&card.address)));
    let fastest: Cell<Option<Link>> = Cell::new(card.and_then(|card| card.link));
    let look = || {
        let now = card.and_then(|card| sysfs::link(Path::new(BUS), &card.address));
        let rate = |link: Option<Link>| link.map_or(0.0, Link::gb_s);
        if rate(now) > rate(fastest.get()) {
            fastest.set(now);
        }
    };
    let copy = match run(&Task::Copy { device: adapter.id.clone() }, &look)? {
        (Some(Found::Copies { bytes_s }), _) => Ok(bytes_s / 1e9),
        (Some(Found::Failed { message }), _) => Err(message),
        (_, ending) => Err(died(&ending)),
    };
    Ok(Measured { adapter, card: card.cloned(), link: fastest.get(), copy })
}

fn died(ending: &Ending) -> String {
    match ending {
        _ if interrupt::requested() => "interrupted".to_owned(),
        Ending::Exited => "it ended without a result".to_owned(),
        Ending::Crashed(how) => how.clone(),
        Ending::TimedOut(after) => format!("it was killed after {}", units::seconds(after.as_secs_f64())),
    }
}

fn of_device(device: &Measured<'_>) -> Vec<Finding> {
    let (adapter, id) = (device.adapter, device.adapter.id.as_str());
    let mut found = Vec::new();
    if let Err(why) = &device.copy {
        found
            .push(Finding::new("copy", State::Wrong, format!("the device's copy could not be measured: {why}")).on(id));
    }
    if is_gpu(adapter) {
        let card = device.card.clone().unwrap_or_default();
        found.push(pcie::judge(id, &card, device.link, device.copy.as_ref().ok().copied()));
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        found.push(numa::judge(id, card.node, &Nodes::read(Path::new(NODES), &status)));
    }
    found.extend(memory_kind::judge(adapter, device.card.as_ref()));
    found.extend(queues::judge(adapter));
    found
}

/// The largest ring that a device made.
struct Ring {
    gpu: bool,
    fits: bool,
    finding: Finding,
}

fn rings(measured: &[Measured<'_>], wanted: &Wanted) -> Result<Vec<Ring>> {
    let devices = measured.iter().filter(|device| device.adapter.api != Api::Host);
    devices.map(|device| ring(device.adapter, wanted)).collect()
}

/// Twice what is wanted is tried, and never more than three quarters of the memory that is left: to be ended for it is the last resort.
fn most(wanted: &Wanted) -> u64 {
    let available = available_memory().map_or(MAX_RING, |bytes| bytes / 4 * 3);
    (wanted.ring * 2).max(1 << 20).min(available).min(MAX_RING)
}

fn ring(adapter: &AdapterInfo, wanted: &Wanted) -> Result<Ring> {
    // A software device has a copy of the ring, and the tensor, in the same memory.
    let most = if adapter.is_software() { most(wanted) / 2 } else { most(wanted) };
    let task = Task::Ring { device: adapter.id.clone(), slots: wanted.slots, most };
    let (found, ending) = run(&task, &|| ())?;
    let ring = units::bytes(wanted.ring);
    let (bytes, what) = match found {
        Some(Found::Fits { bytes, strategy }) => {
            let more = if bytes >= most / 4096 * 4096 { "at least " } else { "" };
            let strategy = strategy.map(|strategy| format!("`{strategy}` ")).unwrap_or_default();
            let end = if ending == Ending::Exited { String::new() } else { format!(", then {}", died(&ending)) };
            (bytes, format!("{strategy}made a ring of {more}{}{end}; {ring} is wanted", units::bytes(bytes)))
        }
        Some(Found::Failed { message }) => (0, format!("no ring could be made: {message}")),
        _ => (0, format!("no ring could be made: {}", died(&ending))),
    };
    let fits = bytes >= wanted.ring.min(most / 4096 * 4096);
    let finding = Finding::new("largest-ring", if fits { State::Ok } else { State::Wrong }, what)
        .figure("ring_bytes", bytes as f64);
    let finding = if fits {
        finding
    } else {
        finding.mend(
            "take smaller batches or fewer slots, or raise the limits named under locked-memory and container-memory",
        )
    };
    Ok(Ring { gpu: is_gpu(adapter), fits, finding: finding.on(&adapter.id) })
}

fn locked(rings: &[Ring], wanted: &Wanted) -> Result<Finding> {
    let (limit, tried) = (memlock::limit(), most(wanted));
    let locked = match limit {
        None => None,
        Some(_) => match run(&Task::Lock { most: tried }, &|| ())?.0 {
            Some(Found::Fits { bytes, .. }) => Some(bytes),
            _ => None,
        },
    };
    let gpus: Vec<bool> = rings.iter().filter(|ring| ring.gpu).map(|ring| ring.fits).collect();
    let gpus_ring_fits = (!gpus.is_empty()).then(|| gpus.into_iter().all(|fits| fits));
    let tried = tried / 4096 * 4096;
    Ok(locked_memory::judge(&LockFacts { limit, locked, tried, ring: wanted.ring.min(tried), gpus_ring_fits }))
}

fn core_facts(measured: &[Measured<'_>]) -> CoreFacts {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let rate = |threads| parallel_memcpy(COPIED, threads, COPYING).map(|bytes_s| bytes_s / 1e9);
    let link_gb_s = fastest(measured).filter(|(device, _)| is_gpu(device.adapter)).map(|(_, rate)| rate);
    CoreFacts { cores, one_gb_s: rate(1), all_gb_s: rate(cores), link_gb_s }
}

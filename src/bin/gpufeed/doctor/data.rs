//! How fast a data set is read and decoded, against what the device could take.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use gpufeed::{AnyBackend, LoaderOptions, Preprocess, Source};

use super::finding::{Finding, State};
use crate::units;

pub const CHECK: &str = "data";

/// Each pass takes about this long.
const PASS: Duration = Duration::from_secs(1);
/// Small batches, so that slow storage still delivers a few.
const BATCH: usize = 8;

/// What was measured.
#[derive(Clone, Debug)]
pub struct DataFacts {
    /// Samples a second as they lie, and once more when the system has them in memory.
    pub first_s: f64,
    pub again_s: f64,
    pub sample_bytes: u64,
    /// The share of the first pass's bytes that came from storage, where the system says.
    pub from_storage: Option<f64>,
    pub workers: usize,
    /// What decodes, where something has to.
    pub decoder: Option<String>,
    pub file_system: Option<String>,
    /// What the fastest device takes, in GB/s of samples, and which.
    pub device: Option<(String, f64)>,
}

/// Two passes over the same samples.
pub fn measure(source: &Arc<dyn Source>, path: &Path, device: Option<(String, f64)>) -> Result<DataFacts> {
    let workers = LoaderOptions::default().workers;
    let before = bytes_read();
    let (first_s, batches) = pass(source, workers, None)?;
    let read = before.zip(bytes_read()).map(|(before, after)| after.saturating_sub(before));
    let (again_s, _) = pass(source, workers, Some(batches))?;
    let sample_bytes = source.layout().byte_len() as u64;
    let delivered = (batches * BATCH as u64).saturating_mul(sample_bytes);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    Ok(DataFacts {
        first_s,
        again_s,
        sample_bytes,
        // A folder's files are smaller than its samples, and any reading there is reading from storage.
        from_storage: read.map(|read| {
            if source.file(0).is_some() && read > 0 { (read as f64 / delivered as f64).min(1.0) } else { 0.0 }
        }),
        workers,
        decoder: source.summary().decoder,
        file_system: fs::canonicalize(path).ok().and_then(|path| file_system(&mounts, &path)),
        device,
    })
}

/// Samples a second, and how many batches it was.
fn pass(source: &Arc<dyn Source>, workers: usize, batches: Option<u64>) -> Result<(f64, u64)> {
    let options = LoaderOptions {
        batch_size: BATCH,
        workers,
        seed: Some(1),
        preprocess: Preprocess::Raw,
        ..LoaderOptions::default()
    };
    let mut loader = AnyBackend::open("host")?.loader(Arc::clone(source), options)?;
    let start = Instant::now();
    let mut epoch = loader.epoch(0);
    let (mut samples, mut taken) = (0u64, 0);
    let mut ending = false;
    while let Some(batch) = epoch.next() {
        samples += batch?.len() as u64;
        taken += 1;
        if !ending && batches.map_or(start.elapsed() >= PASS, |batches| taken >= batches) {
            epoch.wind_down();
            ending = true;
        }
    }
    Ok((samples as f64 / start.elapsed().as_secs_f64(), taken))
}

/// Bytes that this process has had fetched from storage so far, as Linux counts them.
fn bytes_read() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.trim().parse().ok())
}

/// The type of the file system that a path is on, from `/proc/self/mountinfo`.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let mount = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let point = front.split(' ').nth(4)?.replace("\\040", " ");
        path.starts_with(&point).then(|| Some((point.len(), back.split(' ').next()?.to_owned()))).flatten()
    };
    mounts.lines().filter_map(mount).max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

/// Pure.
pub fn judge(facts: &DataFacts) -> Finding {
    let rate = |samples: f64| {
        let gb_s = samples * facts.sample_bytes as f64 / 1e9;
        format!("{} samples/s ({} GB/s)", units::digits(samples), units::digits(gb_s))
    };
    let on = facts.file_system.as_deref().map(|kind| format!(" on {kind}")).unwrap_or_default();
    let fetched = facts.from_storage.is_none_or(|share| share > 0.01);
    let first = if fetched {
        format!("from storage{on} {}", rate(facts.first_s))
    } else {
        "in memory already, so that storage was not measured".to_owned()
    };
    let by = facts.decoder.as_deref().map(|decoder| format!(" and decoded by {decoder}")).unwrap_or_default();
    let workers = units::count(facts.workers as u64, "worker", "workers");
    let what = format!("{first}; read from memory{by} with {workers} {}", rate(facts.again_s));
    let Some((device, takes)) = &facts.device else {
        let what = format!("{what}; what a device takes was not measured");
        return figures(Finding::new(CHECK, State::Unknown, what), facts);
    };
    let takes = takes * 1e9 / facts.sample_bytes as f64;
    let what = format!("{what}; {device} takes {}", rate(takes));
    let storage = fetched && facts.first_s < 0.7 * facts.again_s;
    let slowest = if storage { facts.first_s } else { facts.again_s };
    let finding = if slowest >= 0.9 * takes {
        Finding::new(CHECK, State::Ok, what)
    } else {
        let cost = format!("the device waits {:.0}% of the time", 100.0 * (1.0 - slowest / takes));
        Finding::new(CHECK, State::Wrong, what).cost(cost).mend(mend(facts, storage, takes))
    };
    figures(finding, facts).figure("device_samples_s", takes)
}

/// What to do where a device takes `takes` samples a second and gets fewer.
fn mend(facts: &DataFacts, storage: bool, takes: f64) -> String {
    if storage {
        return "storage is what holds it back: copy the data to a local disk (NVMe) or into memory once (`cat FILES > /dev/null`, if they \
                fit), or store fewer bytes (JPEG, smaller images); storage that answers slowly but many at once wants more --workers"
            .to_owned();
    }
    if facts.decoder.is_some() {
        let needed = takes / facts.again_s * facts.workers as f64;
        return format!(
            "decoding is what holds it back, and {needed:.0} such workers would keep up: give it more cores, store images near the sample's \
             size, install libjpeg-turbo, or decode once and keep the samples (`gpufeed run DATA --save OUT`)"
        );
    }
    "copying is what holds it back: more cores, or a strategy without a copy by the CPU (`registered`, `imported`)"
        .to_owned()
}

fn figures(finding: Finding, facts: &DataFacts) -> Finding {
    finding
        .figure("first_samples_s", facts.first_s)
        .figure("again_samples_s", facts.again_s)
        .figure("from_storage_share", facts.from_storage.unwrap_or(-1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(first_s: f64, again_s: f64, from_storage: Option<f64>) -> DataFacts {
        DataFacts {
            first_s,
            again_s,
            sample_bytes: 100_000,
            from_storage,
            workers: 4,
            decoder: None,
            file_system: Some("nfs4".to_owned()),
            device: Some(("cuda:0".to_owned(), 10.0)),
        }
    }

    #[test]
    fn slow_storage_is_named_with_its_rate_and_file_system() {
        let found = judge(&facts(100.0, 150_000.0, Some(1.0)));
        assert_eq!((found.state, found.cost.as_deref()), (State::Wrong, Some("the device waits 100% of the time")));
        assert!(found.what.starts_with("from storage on nfs4 100 samples/s (0.01 GB/s)"), "{found:?}");
        assert!(found.mend.is_some_and(|mend| mend.starts_with("storage is what holds it back")));
    }

    #[test]
    fn what_was_in_memory_says_nothing_about_storage() {
        let found = judge(&facts(50_000.0, 150_000.0, Some(0.0)));
        assert!(found.state == State::Ok && found.what.starts_with("in memory already"), "{found:?}");
    }

    #[test]
    fn decoding_names_the_workers_that_would_keep_up() {
        let decoding = DataFacts { decoder: Some("libjpeg-turbo 2.1".to_owned()), ..facts(2_000.0, 2_000.0, None) };
        let found = judge(&decoding);
        assert_eq!(found.cost.as_deref(), Some("the device waits 98% of the time"));
        assert!(found.mend.is_some_and(|mend| mend.contains("200 such workers")));
        assert_eq!(judge(&DataFacts { device: None, ..decoding }).state, State::Unknown);
    }

    #[test]
    fn the_longest_mount_point_is_the_file_system() {
        let mounts = "20 1 8:1 / / rw - ext4 /dev/sda rw\n30 20 0:4 / /data\\040sets rw shared:1 - nfs4 host:/x rw\n";
        assert_eq!(file_system(mounts, Path::new("/data sets/a")).as_deref(), Some("nfs4"));
        assert_eq!(file_system(mounts, Path::new("/data")).as_deref(), Some("ext4"));
    }
}

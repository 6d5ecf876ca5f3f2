//! What a comparison's processes send each other: a job in one line of JSON, then lines of what happens.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gpufeed::measure::report::{Data, DeviceReport, Settings};
use gpufeed::measure::{Event, Plan, available_memory, largest_cache};
use gpufeed::source::random_images;
use gpufeed::{LoaderOptions, SampleLayout, Source};
use serde::{Deserialize, Serialize};

use super::args::CompareArgs;
use crate::args::{DataArgs, open_source, options_are};
use crate::data::note_left_out;
use crate::feed_args::FeedArgs;
use crate::units::HxW;

/// One device's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The device's id.
    pub device: String,
    pub settings: Vec<Settings>,
    pub feed: Feed,
    pub budget_s: f64,
}

/// What is fed, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feed {
    pub samples: Samples,
    pub tensor: FeedArgs,
    pub seed: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Samples {
    /// Random images in memory.
    Random { size: HxW, channels: usize, count: usize },
    /// What is at a path.
    Path { path: PathBuf, images: DataArgs },
}

/// What the process on a device reports, one line each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// Something happened; if it crashes now, this is what had been measured.
    Event { event: Event, so_far: DeviceReport },
    /// It is done.
    Done { report: DeviceReport },
    /// It could not begin.
    Failed { message: String },
}

impl Job {
    /// For samples of this layout.
    pub fn plan(&self, layout: &SampleLayout) -> Result<Plan> {
        let preprocess = self.feed.tensor.preprocess(layout)?;
        let base = LoaderOptions { preprocess, seed: self.feed.seed, ..LoaderOptions::default() };
        Ok(Plan::new(self.settings.clone(), base, Duration::from_secs_f64(self.budget_s)))
    }
}

impl Feed {
    /// Opens what is to be fed once, in every size of sample that is swept, so that a mistake shows before any device is touched.
    pub fn prepare(args: &CompareArgs) -> Result<Vec<(Self, Data)>> {
        let swept = args.sizes.samples();
        if swept.is_empty() {
            return Ok(vec![Self::prepare_one(args, &args.images)?]);
        }
        let with = |&size: &HxW| DataArgs { size: Some(size), ..args.images.clone() };
        swept.iter().map(|size| Self::prepare_one(args, &with(size)).context("--sweep sample")).collect()
    }

    fn prepare_one(args: &CompareArgs, images: &DataArgs) -> Result<(Self, Data)> {
        let samples = Samples::prepare(args, images)?;
        let (layout, count) = samples.shape()?;
        let (tensor, seed) = (args.feed.clone(), args.sizes.seed);
        let preprocess = tensor.describe(&tensor.preprocess(&layout)?);
        let feed = Self { samples, tensor, seed };
        let data = Data {
            synthetic: args.data.is_none(),
            name: args.data.as_deref().map_or_else(|| "random images in memory".to_owned(), base_name),
            layout: layout.first().to_string(),
            images: layout.as_image().is_some(),
            sample_bytes: layout.byte_len() as u64,
            samples: count,
            preprocess,
            seed,
        };
        Ok((feed, data))
    }
}

impl Samples {
    fn prepare(args: &CompareArgs, images: &DataArgs) -> Result<Self> {
        if let Some(path) = &args.data {
            return Ok(Self::Path { path: path.clone(), images: images.clone() });
        }
        ensure!(!images.channels_first, "--channels-first is only for .npy files, and no data was given");
        let given: Vec<&str> = images
            .given()
            .into_iter()
            .filter(|name| matches!(*name, "--fit" | "--classes" | "--image" | "--labels"))
            .collect();
        ensure!(
            given.is_empty(),
            "{} only for folders of images and tar shards, and no data was given",
            options_are(&given)
        );
        let size = images.size.unwrap_or(HxW { height: 224, width: 224 });
        let channels = images.channels.unwrap_or(3);
        let sample = SampleLayout::image(size.height, size.width, channels)?.byte_len();
        let count = random_count(sample, args.sizes.largest_batch(), largest_cache(), available_memory());
        Ok(Self::Random { size, channels, count })
    }

    /// Layout and count; random samples are not made for this.
    fn shape(&self) -> Result<(SampleLayout, u64)> {
        match self {
            Self::Random { size, channels, count } => {
                Ok((SampleLayout::image(size.height, size.width, *channels)?, *count as u64))
            }
            Self::Path { path, images } => {
                let source = open_source(path, images)?;
                note_left_out(path, &source.summary());
                ensure!(!source.is_empty(), "{}: there are no samples", path.display());
                Ok((source.layout(), source.len()))
            }
        }
    }

    pub fn open(&self) -> Result<Arc<dyn Source>> {
        match self {
            Self::Random { size, channels, count } => {
                let layout = SampleLayout::image(size.height, size.width, *channels)?;
                let images = random_images(layout, *count, 0).context("random images cannot be made")?;
                Ok(Arc::new(images))
            }
            Self::Path { path, images } => open_source(path, images),
        }
    }
}

/// What several sizes of samples are in a report: the first, with the layouts of all.
pub fn of_all_sizes(data: &[Data]) -> Data {
    let layouts = data.iter().map(|data| data.layout.as_str()).collect::<Vec<_>>().join(", ");
    Data { layout: layouts, ..data.first().cloned().unwrap_or_default() }
}

fn base_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// How many random samples: eight batches and four times the largest cache, so that staging reads memory and not a cache, but
/// at most an eighth of the memory there is and 1 GiB, and two batches in any case.
fn random_count(sample: usize, batch: usize, cache: Option<u64>, available: Option<u64>) -> usize {
    const GIB: usize = 1 << 30;
    const UNKNOWN_CACHE: usize = 64 << 20;
    let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let cache = cache.map_or(UNKNOWN_CACHE, bytes);
    let wanted = sample.saturating_mul(batch).saturating_mul(8).max(cache.saturating_mul(4));
    let most = available.map_or(GIB, |available| bytes(available / 8).min(GIB));
    (wanted.min(most) / sample.max(1)).max(batch.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed_args::DTypeArg;
    use crate::transform::{PresetArg, Step, TransformArgs};

    #[test]
    fn random_samples_exceed_the_caches_and_respect_memory() {
        const MB: u64 = 1 << 20;
        assert_eq!(random_count(1 << 20, 64, Some(8 * MB), Some(64_000 * MB)), 512, "eight batches");
        assert_eq!(random_count(1 << 20, 4, Some(32 * MB), Some(64_000 * MB)), 128, "four times the cache");
        assert_eq!(random_count(1 << 20, 64, Some(512 * MB), Some(64_000 * MB)), 1024, "at most 1 GiB");
        assert_eq!(random_count(1 << 20, 64, Some(8 * MB), Some(1600 * MB)), 200, "an eighth of the memory");
        assert_eq!(random_count(1 << 20, 64, Some(8 * MB), Some(8 * MB)), 128, "two batches");
        assert!(random_count(usize::MAX, usize::MAX, None, None) > 0);
    }

    #[test]
    fn a_job_travels_as_one_line() {
        let samples = Samples::Path { path: "a\nb".into(), images: DataArgs::default() };
        let transform =
            TransformArgs { preset: Some(PresetArg::ZeroTo255), transform: vec![Step::ShorterSide(3), Step::Flip] };
        let tensor = FeedArgs { transform, dtype: Some(DTypeArg::F16), ..FeedArgs::default() };
        let feed = Feed { samples, tensor, seed: Some(u64::MAX) };
        let job = Job { device: "host".to_owned(), settings: Vec::new(), feed, budget_s: 1.5 };
        let line = serde_json::to_string(&job).expect("serialises");
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Job>(&line).expect("deserialises"), job);
        let sample = SampleLayout::image(4, 4, 3).expect("an image");
        let preprocess = job.feed.tensor.preprocess(&sample).expect("it fits");
        assert_eq!(job.feed.tensor.describe(&preprocess), "zero-to-255,resize=3,flip to f16, NCHW");
        let plain = FeedArgs::default();
        assert_eq!(plain.describe(&plain.preprocess(&sample).expect("it fits")), "normalised to f32, NCHW");
    }
}

//! Shards of JPEG, PNG and WebP files: tar archives as WebDataset has them.

mod entries;
mod error;
mod extension;
mod fault;
mod group;
mod label;
mod members;
mod options;
mod pattern;
mod shard;
mod window;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use self::error::{TarError, TarProblem, TarSampleError};
use self::group::{Name, Rules};
use self::label::LabelRule;
pub use self::options::{TarLabels, TarOptions};
use self::shard::Shard;
use super::decode::{DamagedImages, ImageProblem, Origin, Target};
use super::digest::{Digest, sampled};
use super::{Class, OutOfRange, SampleContext, Source, SourceSummary};
use crate::error::SourceError;
use crate::layout::{Element, SampleLayout};
use crate::staging::SampleWriter;

/// How many images' first bytes are part of the digest, and how many bytes.
const SAMPLED: u64 = 1024;
const SAMPLED_BYTES: usize = 4096;
/// Labels up to here are numbers of classes; others are just numbers.
const MAX_CLASSES: i64 = 1 << 16;

/// The images of tar archives (shards), as WebDataset has them, read in place.
///
/// **Samples.** Members of an archive that follow each other, and whose names are equal up to the first dot after the last
/// slash, are a sample: `0001.jpg` and `0001.cls`. What follows that dot is a member's suffix, whatever its case. The image is
/// the member with the suffix that [`TarOptions::image`] names; otherwise the first there is of `jpg`, `jpeg`, `jpe`, `jfif`,
/// `jif`, `png`, `apng` and `webp`. Names that start with a dot, and WebDataset's own (`__name__`), are left out;
/// [`summary`](Source::summary) counts all that was.
///
/// **Labels**, each an i64, are integers in the members that [`TarOptions::labels`] names, or that are found beside the first images. Where
/// all are from 0 to 65,535 the summary lists them as classes, which are named by their numbers or by
/// [`TarOptions::classes`].
///
/// **Order.** The archives' own, shard after shard: an index means the same sample as long as no shard changes. All samples can
/// be read at any time, so that shuffling and sharing among ranks are exact, across all shards.
///
/// **Opening** reads the headers of all members, and the labels, several shards at once. ustar, pax, GNU and old tar are read,
/// with long names and sizes. A damaged or truncated archive is an error that says where. Compressed archives cannot be read in
/// place, and are refused by name.
///
/// **Bad samples** keep their index and are an error when they are read ([`TarSampleError`], or
/// [`ImageError`](super::ImageError) where it is the image): an image without a label where there are labels, a label without
/// an image, a label that is no integer, a member that is there twice, an image that is a link or a sparse file.
///
/// **Memory.** A sample takes 10 bytes, and 8 more for its label, whatever it is called. A million samples take 18 MB, and
/// open in some four seconds on two cores (`cargo bench --bench open`). Up to 128 shards are held open.
///
/// **Pixels** are those of a [`FolderSource`](crate::FolderSource) of the same files, byte for byte.
///
/// ```no_run
/// use gpufeed::source::{ImageOptions, TarSource};
/// use gpufeed::Source;
///
/// let images = ImageOptions { height: 256, width: 256, ..Default::default() };
/// let source = TarSource::open("imagenet/train-{000000..000146}.tar", images.into())?;
/// println!("{} images in {} shards, the first is {:?}", source.len(), source.shards().count(), source.key(0));
/// # Ok::<(), gpufeed::SourceError>(())
/// ```
#[derive(Debug)]
pub struct TarSource {
    shards: Vec<Shard>,
    /// The first index of each shard, and the number of samples.
    firsts: Vec<u64>,
    summary: SourceSummary,
    layout: SampleLayout,
    target: Target,
    /// Made when it is first asked for.
    digest: OnceLock<Option<[u8; 16]>>,
}

impl TarSource {
    /// Opens the shards that a pattern names, in its order, with braces as in shells: `train-{000000..000146}.tar`,
    /// `{train,val}.tar`. A file of the pattern's own name is that file.
    ///
    /// # Errors
    /// [`TarError`]; its message names the pattern or the archive.
    pub fn open(pattern: impl AsRef<Path>, options: TarOptions) -> Result<Self, TarError> {
        let path = pattern.as_ref();
        let paths = match path.to_str() {
            Some(pattern) if !path.exists() => pattern::expand(pattern)?,
            _ => vec![path.to_owned()],
        };
        Self::open_shards(paths, options)
    }

    /// Opens these shards, in this order.
    ///
    /// # Errors
    /// [`TarError`]; its message names the archive.
    pub fn open_shards<P: Into<PathBuf>>(
        paths: impl IntoIterator<Item = P>,
        options: TarOptions,
    ) -> Result<Self, TarError> {
        let paths: Vec<PathBuf> = paths.into_iter().map(Into::into).collect();
        let mut names = HashSet::new();
        if let Some(twice) = paths.iter().find(|path| !names.insert(path.as_path())) {
            return Err(TarError::Twice { path: twice.clone() });
        }
        let Some(first) = paths.first() else { return Err(TarError::NoShards) };
        let (layout, target) = options.images.prepare::<TarError>()?;
        let image = options.image.map(|suffix| suffix.trim_start_matches('.').to_lowercase());
        let label = match LabelRule::asked(&options.labels) {
            Some(rule) => rule,
            None => shard::find_label_rule(&paths, image.as_deref())?,
        };
        let rules = Rules { image, label, classes: options.classes.as_ref().map(Vec::len) };
        let (shards, left_out) = shard::index_all(&paths, &rules)?;
        let left_out = left_out.finish();
        let mut firsts = vec![0];
        firsts.extend(shards.iter().scan(0, |sum, shard| {
            *sum += shard.entries.len() as u64;
            Some(*sum)
        }));
        if firsts.last() == Some(&0) {
            let listed: Vec<String> = left_out.iter().map(ToString::to_string).collect();
            let left_out = if listed.is_empty() { String::new() } else { format!("; there is {}", listed.join("; ")) };
            return Err(TarError::NoImages { path: first.clone(), shards: paths.len(), left_out });
        }
        let labelled = rules.label != LabelRule::None;
        let classes = if labelled { classes(&shards, options.classes) } else { Vec::new() };
        let layout = if labelled { layout.with_label(Element::I64)? } else { layout };
        let summary = SourceSummary { classes, left_out, ..SourceSummary::default() };
        Ok(Self { shards, firsts, summary, layout, target, digest: OnceLock::new() })
    }

    /// The shards, in their order.
    pub fn shards(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.shards.iter().map(Shard::path)
    }

    /// The classes by label; empty where labels are not numbers of classes.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.summary.classes
    }

    /// As [`FolderSource::decoder_id`](crate::FolderSource::decoder_id).
    #[must_use]
    pub fn decoder_id(&self) -> String {
        self.target.decoder_id()
    }

    /// The damaged images that were delivered nevertheless.
    #[must_use]
    pub fn damaged(&self) -> &DamagedImages {
        self.target.damaged()
    }

    /// What the members of sample `index` have in common, as in `n01440764/0001`; read from the shard. `None` if there is no
    /// such sample, or its shard cannot be read any more.
    #[must_use]
    pub fn key(&self, index: u64) -> Option<String> {
        let (shard, at) = self.find(index)?;
        let name = shard.member_name(at)?;
        let Name::Part(key, _) = Name::of(&name) else { return None };
        Some(String::from_utf8_lossy(key).into_owned())
    }

    /// The label of sample `index`, where there are labels. That of a bad sample means nothing.
    #[must_use]
    pub fn label(&self, index: u64) -> Option<i64> {
        let (shard, at) = self.find(index)?;
        shard.entries.label(at)
    }

    /// The shard of a sample, and its place there.
    fn find(&self, index: u64) -> Option<(&Shard, usize)> {
        let shard = self.firsts.partition_point(|&first| first <= index).checked_sub(1)?;
        Some((self.shards.get(shard)?, (index - self.firsts[shard]) as usize))
    }

    /// Which sample it is, for errors.
    fn shown_key(&self, index: u64) -> String {
        self.key(index).unwrap_or_else(|| format!("sample {index}"))
    }

    /// Which image it is, for errors.
    fn origin(&self, shard: &Shard, at: usize) -> Origin {
        let name = shard.member_name(at).unwrap_or_else(|| format!("image {at}").into_bytes());
        Origin { path: shard.path().into(), member: Some(String::from_utf8_lossy(&name).into_owned()) }
    }

    fn make_digest(&self) -> Option<[u8; 16]> {
        let mut digest = Digest::new("tar");
        digest.add_number(self.len());
        for shard in &self.shards {
            digest.add(&shard.entries.digest().to_le_bytes());
        }
        for number in 0..SAMPLED.min(self.len()) {
            let index = if self.len() <= SAMPLED { number } else { sampled(number, self.len()) };
            let (shard, at) = self.find(index)?;
            let place = shard.entries.place(at)?;
            let mut start = vec![0; place.size().map_or(SAMPLED_BYTES, |size| SAMPLED_BYTES.min(size as usize))];
            let read = shard.with_file(|file| file.read_at(place.offset(), &mut start));
            read.inspect_err(|error| log::error!("no digest: {error}")).ok()?.ok()?;
            digest.add(&start);
        }
        self.classes().iter().for_each(|class| digest.add(class.name.as_bytes()));
        Some(digest.finish())
    }
}

impl Source for TarSource {
    fn layout(&self) -> SampleLayout {
        self.layout.clone()
    }

    fn len(&self) -> u64 {
        self.firsts.last().copied().unwrap_or(0)
    }

    fn read(&self, sample: &SampleContext, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let index = sample.index;
        let out_of_range = OutOfRange { index, len: self.len() };
        let (shard, at) = self.find(index).ok_or(out_of_range)?;
        if let Some(problem) = shard.entries.problem(at) {
            let (path, sample) = (shard.path().to_owned(), self.shown_key(index));
            return Err(TarSampleError { path, sample, problem: problem.clone() }.into());
        }
        if let Some(label) = shard.entries.label(at) {
            out.label(label)?;
        }
        let place = shard.entries.place(at).ok_or(out_of_range)?;
        let limit = self.target.max_bytes();
        // A shard that was changed is the cause of whatever else is wrong.
        shard.with_file(|file| {
            let load = |bytes: &mut Vec<u8>| {
                let needed = u64::from(place.size().unwrap_or(u32::MAX));
                if place.size().is_none() || needed > limit {
                    return Err(ImageProblem::TooLarge { needed, limit });
                }
                bytes.resize(needed as usize, 0);
                Ok(file.read_at(place.offset(), bytes)?)
            };
            self.target.read_from(|| self.origin(shard, at), load, out)
        })?
    }

    fn summary(&self) -> SourceSummary {
        SourceSummary { decoder: Some(self.decoder_id()), damaged: self.damaged().count(), ..self.summary.clone() }
    }

    /// The shard.
    fn file(&self, index: u64) -> Option<PathBuf> {
        self.find(index).map(|(shard, _)| shard.path().to_owned())
    }

    /// All shards.
    fn files(&self) -> Box<dyn Iterator<Item = PathBuf> + '_> {
        Box::new(self.shards().map(Path::to_owned))
    }

    /// The image's name in its shard, read from there.
    fn member(&self, index: u64) -> Option<String> {
        let (shard, at) = self.find(index)?;
        shard.member_name(at).map(|name| String::from_utf8_lossy(&name).into_owned())
    }

    /// The number of samples, the names, sizes and labels of all, the first 4 KiB of 1,024 images, and the classes. Copies of
    /// the shards have the same digest, wherever they are and whatever their time is.
    fn digest(&self) -> Option<[u8; 16]> {
        *self.digest.get_or_init(|| self.make_digest())
    }
}

/// The classes by label.
fn classes(shards: &[Shard], names: Option<Vec<String>>) -> Vec<Class> {
    let mut counts = BTreeMap::new();
    shards.iter().for_each(|shard| shard.entries.count_labels(&mut counts));
    let samples = |label: usize| counts.get(&(label as i64)).copied().unwrap_or(0);
    let class = |(label, name)| Class { name, samples: samples(label) };
    if let Some(names) = names {
        return names.into_iter().enumerate().map(class).collect();
    }
    let (first, last) = (counts.keys().next().copied(), counts.keys().next_back().copied());
    match (first, last) {
        (Some(0..), Some(last @ ..MAX_CLASSES)) => {
            (0..=last as usize).map(|label| (label, label.to_string())).map(class).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(all(test, not(miri)))]
mod tests;

//! Delivered tensors as `.npy` files.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use gpufeed::layout::LABEL;
use gpufeed::source::{NpyType, write_npy_to};
use gpufeed::{AnyBatch, Element, Field, Placement, Source};

use crate::output_file::{Inputs, OutputFile, Part};

/// The names of the classes by label, as `--classes` takes them.
const CLASSES: &str = "labels.classes.json";
/// Behind the name of a ragged field: where each sample's rows begin.
const OFFSETS: &str = ".offsets";
/// The file of each index, one a line; where several samples lie in a file, as `FILE: MEMBER`.
const FILES: &str = "indices.files.txt";

/// A folder that batches are saved to, numbered through all epochs.
pub struct Saver {
    folder: PathBuf,
    inputs: Arc<Inputs>,
    /// The fields behind the first that are saved as they are.
    fields: Vec<Field>,
}

impl Saver {
    /// Checks the folder, and makes nothing. One with batches in it is refused, unless they are `gone_on` with: old and new
    /// ones would be mixed.
    pub fn new(folder: &Path, gone_on: bool, inputs: &Arc<Inputs>) -> Result<Self> {
        if !gone_on && folder.exists() {
            for entry in fs::read_dir(folder).with_context(|| format!("{}: cannot be listed", folder.display()))? {
                let name = entry?.file_name();
                let name = name.to_string_lossy();
                ensure!(
                    !(name.starts_with("batch-") && name.ends_with(".npy")),
                    "{}: holds saved batches already ({name}); choose another folder",
                    folder.display()
                );
            }
        }
        Ok(Self { folder: folder.to_owned(), inputs: Arc::clone(inputs), fields: Vec::new() })
    }

    /// Makes the folder, with what tells labels and indices, for samples of this source.
    pub fn begin(&mut self, source: &dyn Source) -> Result<()> {
        self.fields = further_fields(source)?;
        fs::create_dir_all(&self.folder).with_context(|| format!("{}: cannot be created", self.folder.display()))?;
        let classes = source.summary().classes;
        if !classes.is_empty() {
            self.output(CLASSES)?.write(serde_json::to_string_pretty(&classes)?.as_bytes())?;
        }
        // Where each sample has a file of its own, or a name in it.
        let one_file = source.file(0) == source.file(source.len().saturating_sub(1)) && source.len() > 1;
        if one_file && source.member(0).is_none() {
            return Ok(());
        }
        let output = self.output(FILES)?;
        let part = output.begin()?;
        write_files(source, &part).with_context(|| format!("{}: cannot be written", output.path().display()))?;
        output.finish(part)
    }

    /// Reads a batch back from the device and saves it. An epoch has `batches`. Its files get their names when all are
    /// whole, the tensor last.
    pub fn save(&self, batch: &AnyBatch, batches: u64) -> Result<()> {
        let stem = format!("batch-{:06}", batch.epoch() * batches + batch.number());
        let elements = batch.read().with_context(|| format!("{stem} cannot be read back"))?;
        let mut whole = Vec::with_capacity(3 + self.fields.len());
        for field in &self.fields {
            self.save_field(&stem, batch, field, &mut whole).with_context(|| format!("field `{}`", field.name()))?;
        }
        if let Some(labels) = batch.labels() {
            whole.push(self.part_i64(&format!("{stem}.labels.npy"), labels.iter().copied())?);
        }
        let indices = batch.indices().iter().map(|&index| index as i64);
        whole.push(self.part_i64(&format!("{stem}.indices.npy"), indices)?);
        whole.push(self.part(&format!("{stem}.npy"), batch.dtype(), batch.shape(), elements)?);
        whole.into_iter().try_for_each(|(output, part)| output.finish(part))
    }

    /// A field behind the first. The rows of a ragged one on the host follow each other, and where each sample's begin is a file of its own.
    fn save_field(
        &self,
        stem: &str,
        batch: &AnyBatch,
        field: &Field,
        whole: &mut Vec<(OutputFile, Part)>,
    ) -> Result<()> {
        let (name, file) = (field.name(), format!("{stem}.{}.npy", field.name()));
        if let Some(tensor) = batch.field(name) {
            let elements = batch.read_field(name)?.unwrap_or_default();
            whole.push(self.part(&file, tensor.dtype, tensor.shape.as_slice(), elements)?);
            return Ok(());
        }
        let elements = batch.host_bytes(name).unwrap_or_default();
        let mut shape: Vec<usize> = std::iter::once(batch.len()).chain(field.dims().iter().copied()).collect();
        if let (Some(offsets), Some((_, row_bytes))) = (batch.offsets(name), field.rows()) {
            shape.remove(0);
            shape[0] = elements.len() / row_bytes;
            let offsets = offsets.iter().copied().map(i64::from);
            whole.push(self.part_i64(&format!("{stem}.{name}{OFFSETS}.npy"), offsets)?);
        }
        whole.push(self.part(&file, field.element(), &shape, elements.to_vec())?);
        Ok(())
    }

    fn part_i64(&self, name: &str, values: impl Iterator<Item = i64>) -> Result<(OutputFile, Part)> {
        let bytes: Vec<u8> = values.flat_map(i64::to_ne_bytes).collect();
        self.part(name, Element::I64, &[bytes.len() / 8], bytes)
    }

    /// Elements in native byte order.
    fn part(&self, name: &str, element: Element, shape: &[usize], mut bytes: Vec<u8>) -> Result<(OutputFile, Part)> {
        let dtype = npy_type(element)?;
        if cfg!(target_endian = "big") {
            bytes.chunks_exact_mut(element.size()).for_each(<[u8]>::reverse);
        }
        let output = self.output(name)?;
        let mut part = output.begin()?;
        let written = write_npy_to(&mut part, dtype, shape, &bytes);
        written.with_context(|| format!("{}: cannot be written", output.path().display()))?;
        Ok((output, part))
    }

    fn output(&self, name: &str) -> Result<OutputFile> {
        OutputFile::new("--save", &self.folder.join(name), &self.inputs)
    }
}

/// The fields behind the first, but for the labels, which are saved as integers.
fn further_fields(source: &dyn Source) -> Result<Vec<Field>> {
    let layout = source.layout();
    let is_label =
        |field: &Field| field.name() == LABEL && field.placement() == Placement::Host && field.dims().is_empty();
    let fields: Vec<Field> = layout.fields().iter().skip(1).filter(|field| !is_label(field)).cloned().collect();
    let mut files = vec!["labels".to_owned(), "indices".to_owned()];
    for field in &fields {
        let name = field.name();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        ensure!(name.chars().all(plain), "field `{}` cannot be saved: its name is no file's", name.escape_debug());
        let offsets = (field.is_ragged() && field.placement() == Placement::Host).then(|| format!("{name}{OFFSETS}"));
        for file in std::iter::once(name.to_owned()).chain(offsets) {
            ensure!(!files.contains(&file), "field `{name}` cannot be saved: `{file}.npy` is another's file");
            files.push(file);
        }
    }
    Ok(fields)
}

/// Control characters and backslashes are escaped, so that a file stays a line. On Windows backslashes stand between names and are kept.
fn write_files(source: &dyn Source, part: &Part) -> io::Result<()> {
    let mut out = BufWriter::new(part.handle()?);
    for (index, file) in (0..source.len()).map_while(|index| Some((index, source.file(index)?))) {
        let member = source.member(index).map(|member| format!(": {member}")).unwrap_or_default();
        for c in file.to_string_lossy().chars().chain(member.chars()) {
            match c {
                '\\' if cfg!(not(windows)) => out.write_all(b"\\\\")?,
                c if c.is_control() => write!(out, "{}", c.escape_default())?,
                c => write!(out, "{c}")?,
            }
        }
        writeln!(out)?;
    }
    out.flush()
}

fn npy_type(element: Element) -> Result<NpyType> {
    Ok(match element {
        Element::U8 => NpyType::U8,
        Element::Bool => NpyType::Bool,
        Element::U16 => NpyType::U16,
        Element::I32 => NpyType::I32,
        Element::I64 => NpyType::I64,
        Element::F16 => NpyType::F16,
        Element::F32 => NpyType::F32,
        other => bail!("tensors of {other} cannot be saved"),
    })
}

#[cfg(test)]
mod tests {
    use gpufeed::{Backend, LoaderOptions, MemorySource, SampleLayout, backend::host::HostBackend};

    use super::*;

    fn source(name: &'static str) -> Arc<MemorySource> {
        let mask = Field::array("mask", Element::U8, &[2]).expect("a field");
        let layout = SampleLayout::bytes(&[1]).and_then(|layout| layout.with(mask)).expect("a layout");
        let source = MemorySource::new(vec![1u8, 10, 11, 2, 20, 21], layout).expect("two samples");
        let source = source.with_labels([7i64, 8]).expect("labels");
        let boxes = Field::ragged(name, Element::F32, 3, &[2]).expect("a field").on_host();
        Arc::new(source.with_ragged(boxes, [&[1.0f32, 2.0][..], &[]]).expect("rows"))
    }

    #[test]
    fn every_field_of_a_batch_is_saved_under_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut saver = Saver::new(folder.path(), false, &Arc::default()).expect("an empty folder");
        saver.begin(&*source("boxes")).expect("the names are files'");
        let options = LoaderOptions { batch_size: 2, ..LoaderOptions::default() };
        let backend = gpufeed::AnyBackend::open(&HostBackend::new().info().id).expect("the host");
        let mut loader = backend.loader(source("boxes"), options).expect("a loader");
        let batch = loader.epoch(0).next().expect("a batch").expect("no error");
        saver.save(&batch, 1).expect("it is saved");
        let read = |name: &str| fs::read(folder.path().join(format!("batch-000000{name}.npy"))).expect(name);
        assert!(read("").ends_with(&[1, 2]) && read(".mask").ends_with(&[10, 11, 20, 21]));
        assert!(read(".labels").ends_with(&8i64.to_le_bytes()) && read(".indices").ends_with(&1i64.to_le_bytes()));
        let offsets: Vec<u8> = [0i64, 1, 1].into_iter().flat_map(i64::to_le_bytes).collect();
        assert!(read(".boxes.offsets").ends_with(&offsets));
        let boxes = read(".boxes");
        assert!(boxes.ends_with(&[1f32.to_le_bytes(), 2f32.to_le_bytes()].concat()));
        assert!(String::from_utf8_lossy(&boxes).contains("(1,2,)"), "one row of two");
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).expect("listed").map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        assert_eq!(names.len(), 6, "{names:?}");
    }

    #[test]
    fn fields_that_are_no_files_are_refused_before_anything_is_saved() {
        for (name, reason) in [("a/b", "no file's"), ("indices", "another's file")] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut saver = Saver::new(folder.path(), false, &Arc::default()).expect("an empty folder");
            let error = saver.begin(&*source(name)).expect_err("refused").to_string();
            assert!(error.contains(name) && error.contains(reason), "{error}");
        }
    }
}

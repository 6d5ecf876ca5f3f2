//! Delivered tensors as `.npy` files.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use gpufeed::source::{NpyType, write_npy_to};
use gpufeed::{AnyBatch, Element, Source};

use crate::output_file::{Inputs, OutputFile, Part};

/// The names of the classes by label, as `--classes` takes them.
const CLASSES: &str = "labels.classes.json";
/// The file of each index, one a line; where several samples lie in a file, as `FILE: MEMBER`.
const FILES: &str = "indices.files.txt";

/// A folder that batches are saved to, numbered through all epochs.
pub struct Saver {
    folder: PathBuf,
    inputs: Arc<Inputs>,
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
        Ok(Self { folder: folder.to_owned(), inputs: Arc::clone(inputs) })
    }

    /// Makes the folder, with what tells labels and indices.
    pub fn begin(&self, source: &dyn Source) -> Result<()> {
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
        let mut elements = batch.read().with_context(|| format!("{stem} cannot be read back"))?;
        if cfg!(target_endian = "big") {
            elements.chunks_exact_mut(batch.dtype().size()).for_each(<[u8]>::reverse);
        }
        let mut whole = Vec::with_capacity(3);
        if let Some(labels) = batch.labels() {
            whole.push(self.part_i64(&format!("{stem}.labels.npy"), labels.iter().copied())?);
        }
        let indices = batch.indices().iter().map(|&index| index as i64);
        whole.push(self.part_i64(&format!("{stem}.indices.npy"), indices)?);
        whole.push(self.part(&format!("{stem}.npy"), npy_type(batch.dtype())?, batch.shape(), &elements)?);
        whole.into_iter().try_for_each(|(output, part)| output.finish(part))
    }

    fn part_i64(&self, name: &str, values: impl Iterator<Item = i64>) -> Result<(OutputFile, Part)> {
        let bytes: Vec<u8> = values.flat_map(i64::to_le_bytes).collect();
        self.part(name, NpyType::I64, &[bytes.len() / 8], &bytes)
    }

    fn part(&self, name: &str, dtype: NpyType, shape: &[usize], bytes: &[u8]) -> Result<(OutputFile, Part)> {
        let output = self.output(name)?;
        let mut part = output.begin()?;
        let written = write_npy_to(&mut part, dtype, shape, bytes);
        written.with_context(|| format!("{}: cannot be written", output.path().display()))?;
        Ok((output, part))
    }

    fn output(&self, name: &str) -> Result<OutputFile> {
        OutputFile::new("--save", &self.folder.join(name), &self.inputs)
    }
}

/// Control characters and backslashes are escaped, so that a file stays a line.
fn write_files(source: &dyn Source, part: &Part) -> io::Result<()> {
    let mut out = BufWriter::new(part.handle()?);
    for (index, file) in (0..source.len()).map_while(|index| Some((index, source.file(index)?))) {
        let member = source.member(index).map(|member| format!(": {member}")).unwrap_or_default();
        for c in file.to_string_lossy().chars().chain(member.chars()) {
            match c {
                '\\' => out.write_all(b"\\\\")?,
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
        Element::I64 => NpyType::I64,
        Element::F16 => NpyType::F16,
        Element::F32 => NpyType::F32,
        other => bail!("tensors of {other} cannot be saved"),
    })
}

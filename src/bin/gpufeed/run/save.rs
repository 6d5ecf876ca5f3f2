//! Delivered tensors as `.npy` files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use gpufeed::source::{NpyType, write_npy};
use gpufeed::{AnyBatch, Element};

/// A folder that batches are saved to, numbered through all epochs.
pub struct Saver {
    folder: PathBuf,
}

impl Saver {
    /// Makes the folder where it is not there. One with batches in it is refused, unless they are `gone_on` with: old and new ones
    /// would be mixed.
    pub fn create(folder: &Path, gone_on: bool) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("{}: cannot be created", folder.display()))?;
        for entry in fs::read_dir(folder).with_context(|| format!("{}: cannot be listed", folder.display()))? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            ensure!(
                gone_on || !(name.starts_with("batch-") && name.ends_with(".npy")),
                "{}: holds saved batches already ({name}); choose another folder",
                folder.display()
            );
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// Reads a batch back from the device and saves it. An epoch has `batches`.
    pub fn save(&self, batch: &AnyBatch, batches: u64) -> Result<()> {
        let stem = format!("batch-{:06}", batch.epoch() * batches + batch.number());
        let mut elements = batch.read().with_context(|| format!("{stem} cannot be read back"))?;
        if cfg!(target_endian = "big") {
            elements.chunks_exact_mut(batch.dtype().size()).for_each(<[u8]>::reverse);
        }
        self.write(&format!("{stem}.npy"), npy_type(batch.dtype())?, batch.shape(), &elements)?;
        let indices = batch.indices().iter().map(|&index| index as i64);
        self.write_i64(&format!("{stem}.indices.npy"), indices)?;
        if let Some(labels) = batch.labels() {
            self.write_i64(&format!("{stem}.labels.npy"), labels.iter().copied())?;
        }
        Ok(())
    }

    fn write_i64(&self, name: &str, values: impl Iterator<Item = i64>) -> Result<()> {
        let bytes: Vec<u8> = values.flat_map(i64::to_le_bytes).collect();
        self.write(name, NpyType::I64, &[bytes.len() / 8], &bytes)
    }

    fn write(&self, name: &str, dtype: NpyType, shape: &[usize], bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        write_npy(&path, dtype, shape, bytes).with_context(|| format!("{}: cannot be written", path.display()))
    }
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

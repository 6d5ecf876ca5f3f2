//! Where delivery stands, in a file: one token a device.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gpufeed::ResumeToken;
use serde::{Deserialize, Serialize};

use crate::output_file::{Inputs, OutputFile};

/// How often the file is written.
const EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Serialize, Deserialize)]
struct Tokens {
    devices: Vec<ResumeToken>,
}

/// Reads a file's tokens, one for each of `devices` devices.
pub fn read(path: &Path, devices: usize) -> Result<Vec<ResumeToken>> {
    let named = || format!("--resume {}", path.display());
    let text = fs::read(path).with_context(named)?;
    let tokens: Tokens = serde_json::from_slice(&text).with_context(|| format!("{}: no saved state", named()))?;
    let saved = tokens.devices.len();
    let fits = saved == devices;
    ensure!(fits, "{}: it is of {saved} devices, and this run has {devices}", named());
    Ok(tokens.devices)
}

/// The file that is kept up to date.
#[derive(Debug)]
pub struct StateFile {
    file: OutputFile,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    tokens: Vec<Option<ResumeToken>>,
    written: Option<Instant>,
}

impl StateFile {
    /// A file that holds a state is refused, unless that is `gone_on` with: it would be lost.
    pub fn new(path: &Path, devices: usize, gone_on: bool, inputs: &Inputs) -> Result<Self> {
        let file = OutputFile::new("--save-state", path, inputs)?;
        ensure!(
            gone_on || !file.exists(),
            "--save-state {0}: the file is there; go on with --resume {0}, or remove it",
            path.display()
        );
        Ok(Self { file, kept: Mutex::new(Kept { tokens: vec![None; devices], written: None }) })
    }

    /// A device has got so far. Writes the file if that is due.
    pub fn note(&self, device: usize, token: ResumeToken) -> Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.tokens[device] = Some(token);
        if kept.written.is_some_and(|at| at.elapsed() < EVERY) {
            return Ok(());
        }
        kept.written = Some(Instant::now());
        self.write(&kept)
    }

    /// Writes the file at the end.
    pub fn close(&self) -> Result<()> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(&kept)
    }

    /// Replaces the file in one step: whoever reads it finds the old state or the new one.
    fn write(&self, kept: &Kept) -> Result<()> {
        let Some(devices) = kept.tokens.iter().cloned().collect() else { return Ok(()) };
        self.file.write_durably(&serde_json::to_vec(&Tokens { devices })?)
    }
}

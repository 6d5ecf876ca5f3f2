//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use gpufeed::Strategy;

use crate::device::Opener;

pub const USAGE: &str = "\
usage: ocr [--open gpufeed|burn] [--strategy NAME] [--batch N] [--epochs N] [--model FILE]

  --open      who opens the device that both use; default gpufeed
  --strategy  how gpufeed stages the pictures, as `gpufeed devices` lists them; default the device's own
  --batch     pictures at once; default 8
  --epochs    how often all pictures are looked at to measure, behind a first time that is not; default 10
  --model     the network's file; default model/ch_ppocr_mobile_v2.0_cls_infer.onnx: README.md says where it comes from
";

pub struct Options {
    pub opener: Opener,
    pub strategy: Option<Strategy>,
    pub batch: usize,
    pub epochs: u64,
    pub model: PathBuf,
}

impl Options {
    pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let model = crate::here("model/ch_ppocr_mobile_v2.0_cls_infer.onnx");
        let mut options = Self { opener: Opener::Gpufeed, strategy: None, batch: 8, epochs: 10, model };
        while let Some(name) = args.next() {
            let value = args.next().with_context(|| format!("`{name}` needs a value\n{USAGE}"))?;
            match (name.as_str(), value.as_str()) {
                ("--open", "gpufeed") => options.opener = Opener::Gpufeed,
                ("--open", "burn") => options.opener = Opener::Burn,
                ("--strategy", value) => options.strategy = Some(value.parse()?),
                ("--batch", value) => options.batch = value.parse().context("--batch takes a number")?,
                ("--epochs", value) => options.epochs = value.parse().context("--epochs takes a number")?,
                ("--model", value) => options.model = value.into(),
                _ => bail!("unknown argument `{name} {value}`\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

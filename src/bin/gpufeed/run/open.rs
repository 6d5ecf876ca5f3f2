//! Opening devices, and a loader on each.

use std::fmt::Display;
use std::sync::Arc;

use anyhow::{Error, Result, bail, ensure};
use gpufeed::{AnyBackend, AnyLoader, LastBatch, LoaderOptions, OpenError, ResumeToken, Share, Source, Subset, Tuned};

use super::args::RunArgs;
use super::auto::Auto;
use super::observe::Observed;
use super::save::Saver;
use super::state;
use crate::args::usage_error;
use crate::output_file::Inputs;
use crate::{fallback, output};

/// One device's part of a run.
pub struct DeviceRun {
    pub device: AnyBackend,
    pub loader: AnyLoader,
    /// Of what was measured first, if anything was.
    pub tuned: Option<Tuned>,
    pub saver: Option<Saver>,
    /// Where to go on.
    pub token: Option<ResumeToken>,
}

/// Opens every device that was asked for, with a loader on each; they share one source.
pub fn open(
    args: &RunArgs,
    share: Share,
    source: &Arc<dyn Source>,
    observed: &Observed,
    inputs: &Arc<Inputs>,
) -> Result<Vec<DeviceRun>> {
    let preprocess = args.feed.preprocess(&source.layout())?;
    let devices = devices(&args.devices)?;
    let several = devices.len() > 1;
    let tokens = args.batches.resume.as_deref().map(|path| state::read(path, devices.len())).transpose()?;
    let open = |(number, device): (usize, &AnyBackend)| {
        let mut options = args.options(share, preprocess.clone(), number, devices.len());
        observed.apply(&mut options);
        let id = &device.info().id;
        let token = tokens.as_ref().map(|tokens| tokens[number].clone());
        let saver = saver(args, device, token.is_some(), several, inputs);
        saver
            .and_then(|saver| feed(args, device, source, options, token, saver))
            .map_err(|error| if several { named(id, error) } else { error })
    };
    let feeds = devices.iter().enumerate().map(open).collect::<Result<Vec<_>>>()?;
    if let Some(tokens) = tokens {
        check_state(&feeds, &tokens, args.loading.epochs.into())?;
    }
    Ok(feeds)
}

/// Refuses a state with nothing left to do, and one that a changed share would deliver in part or twice.
fn check_state(feeds: &[DeviceRun], tokens: &[ResumeToken], epochs: u64) -> Result<()> {
    let delivered = tokens.iter().map(ResumeToken::epoch).min().unwrap_or_default();
    ensure!(
        delivered < epochs,
        "--resume: nothing is left: {delivered} epochs were delivered, and --epochs is {epochs}"
    );
    let shared_anew = feeds.iter().zip(tokens).any(|(feed, token)| {
        let &LoaderOptions { rank, world, .. } = feed.loader.options();
        token.share() != (rank, world)
    });
    let apart = tokens.iter().any(|token| (token.epoch(), token.batch()) != (delivered, 0));
    ensure!(
        !(shared_anew && apart),
        "--resume: the devices stand at different batches, so that the epoch cannot be shared anew: rank and world must stay"
    );
    Ok(())
}

/// An error whose message begins with a device's id.
pub fn named(id: impl Display, error: Error) -> Error {
    let message = format!("{id}: {error}");
    error.context(message)
}

/// The devices, each asked for once, whatever it was called.
fn devices(wanted: &[String]) -> Result<Vec<AnyBackend>> {
    let mut opened: Vec<AnyBackend> = Vec::new();
    for text in wanted {
        let device = fallback::open(text)?;
        let id = &device.info().id;
        if opened.iter().any(|known| known.info().id == *id) {
            bail!(usage_error("run", format_args!("--device {text}: {id} is given twice")));
        }
        opened.push(device);
    }
    Ok(opened)
}

/// Where a device's batches are saved to. What was saved before a run that is gone on with stays.
fn saver(
    args: &RunArgs,
    device: &AnyBackend,
    gone_on: bool,
    several: bool,
    inputs: &Arc<Inputs>,
) -> Result<Option<Saver>> {
    let folder = args.save.as_ref().map(|folder| match several {
        true => folder.join(device.info().id.replace(':', "-")),
        false => folder.clone(),
    });
    folder.as_deref().map(|folder| Saver::new(folder, gone_on, inputs)).transpose()
}

fn feed(
    args: &RunArgs,
    device: &AnyBackend,
    source: &Arc<dyn Source>,
    options: LoaderOptions,
    token: Option<ResumeToken>,
    mut saver: Option<Saver>,
) -> Result<DeviceRun> {
    let (loader, tuned) = match args.loading.shrink {
        true => shrinking(&args.auto(), device, source, options)?,
        false => args.auto().open(device, source, options)?,
    };
    has_batches(&loader)?;
    if let Some(token) = &token {
        // Said before anything is loaded.
        loader.check_resume(token)?;
    }
    if let Some(saver) = &mut saver {
        saver.begin(&**source)?;
    }
    Ok(DeviceRun { device: device.clone(), loader, tuned, saver, token })
}

/// Opens a loader in as much memory as there is, and says what it has to do without.
fn shrinking(
    auto: &Auto,
    device: &AnyBackend,
    source: &Arc<dyn Source>,
    mut options: LoaderOptions,
) -> Result<(AnyLoader, Option<Tuned>), OpenError> {
    loop {
        let error = match auto.open(device, source, options.clone()) {
            Err(error) if error.is_short_of_memory() => error,
            opened => return opened,
        };
        let Some(smaller) = options.shrunk() else { return Err(error) };
        output::note(format_args!(
            "note: {}: {error}\n--shrink: trying {} slots and {} outputs instead of {} and {}",
            device.info().id,
            smaller.slots,
            smaller.outputs,
            options.slots,
            options.outputs
        ));
        options = smaller;
    }
}

/// Refuses a run that would deliver nothing.
fn has_batches(loader: &AnyLoader) -> Result<()> {
    if loader.batches_per_epoch() > 0 {
        return Ok(());
    }
    let options = loader.options();
    let &LoaderOptions { batch_size, rank, world, ref subset, .. } = options;
    let samples = subset.as_ref().map_or_else(|| loader.source().len(), Subset::len);
    match (options.last_batch, world) {
        (LastBatch::Drop, 1) => {
            bail!("{samples} samples do not fill a batch of {batch_size}, and --drop-last leaves them out")
        }
        (LastBatch::Drop, _) => bail!(
            "{samples} samples do not fill a batch of {batch_size} on each of {world} ranks, and --drop-last leaves them out"
        ),
        _ => {
            bail!("{samples} samples are too few for {world} ranks: rank {rank} has none")
        }
    }
}

//! Opening devices, and a loader on each.

use std::fmt::Display;
use std::sync::Arc;

use anyhow::{Error, Result, bail, ensure};
use gpufeed::{AnyBackend, AnyLoader, LastBatch, LoaderOptions, OpenError, ResumeToken, Source, Subset};

use super::RunArgs;
use super::observe::Observed;
use super::save::Saver;
use super::state;
use crate::args::{open_source, usage_error};
use crate::{fallback, output};

/// One device's part of a run.
pub struct Feed {
    pub device: AnyBackend,
    pub loader: AnyLoader,
    pub saver: Option<Saver>,
    /// Where to go on.
    pub token: Option<ResumeToken>,
}

/// Opens every device that was asked for, with a loader on each; they share one source.
pub fn open(args: &RunArgs, observed: &Observed) -> Result<Vec<Feed>> {
    let source = open_source(&args.data, &args.images)?;
    let preprocess = args.feed.preprocess(source.layout())?;
    let devices = devices(&args.devices)?;
    let several = devices.len() > 1;
    let tokens = args.care.resume.as_deref().map(|path| state::read(path, devices.len())).transpose()?;
    let open = |(number, device): (usize, &AnyBackend)| {
        let mut options = args.options(preprocess.clone(), number, devices.len());
        observed.apply(&mut options);
        let id = &device.info().id;
        let token = tokens.as_ref().map(|tokens| tokens[number].clone());
        feed(args, device, &source, options, token, several)
            .map_err(|error| if several { named(id, error) } else { error })
    };
    devices.iter().enumerate().map(open).collect()
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

fn feed(
    args: &RunArgs,
    device: &AnyBackend,
    source: &Arc<dyn Source>,
    options: LoaderOptions,
    token: Option<ResumeToken>,
    several: bool,
) -> Result<Feed> {
    let folder = args.save.as_ref().map(|folder| match several {
        true => folder.join(device.info().id.replace(':', "-")),
        false => folder.clone(),
    });
    // What was saved before is gone on with.
    let saver = folder.as_deref().map(|folder| Saver::create(folder, token.is_some())).transpose()?;
    let mut loader = match args.loading.shrink {
        true => shrinking(device, source, options)?,
        false => device.loader(Arc::clone(source), options)?,
    };
    has_batches(&loader)?;
    if let Some(token) = &token {
        // Said before anything is loaded.
        drop(loader.resume(token)?);
        let (epoch, epochs) = (token.epoch(), args.loading.epochs);
        ensure!(
            epoch < epochs.into(),
            "--resume: nothing is left: {epoch} epochs were delivered, and --epochs is {epochs}"
        );
    }
    Ok(Feed { device: device.clone(), loader, saver, token })
}

/// Opens a loader in as much memory as there is, and says what it has to do without.
fn shrinking(
    device: &AnyBackend,
    source: &Arc<dyn Source>,
    mut options: LoaderOptions,
) -> Result<AnyLoader, OpenError> {
    loop {
        let error = match device.loader(Arc::clone(source), options.clone()) {
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
        (LastBatch::Short | LastBatch::Pad, _) => {
            bail!("{samples} samples are too few for {world} ranks: rank {rank} has none")
        }
    }
}

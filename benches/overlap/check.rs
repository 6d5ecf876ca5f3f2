//! What the batches of the timed epochs have to look like.

use gpufeed::loader::Batch;
use gpufeed::preprocess::{error_bound, expected, fingerprint};
use gpufeed::{Backend, Loader, LoaderOptions, MemorySource, Preprocess, SampleContext, SampleWriter, Source};

use super::consumer::Consumer;
use super::{Bench, Failure};

/// Of each image of the source.
pub fn fingerprints(source: &MemorySource) -> Result<Vec<u64>, Failure> {
    (0..source.len()).map(|index| Ok(fingerprint(&image(source, index)?))).collect()
}

fn image(source: &MemorySource, index: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![0; source.layout().byte_len()];
    source.read(&SampleContext::of(index), &mut SampleWriter::over(&mut bytes))?;
    Ok(bytes)
}

/// A sum over each tensor of epoch 0, computed on the device while it held what it should.
pub struct Reference(Vec<u32>);

impl Reference {
    /// Checks an epoch of a consumer that waits, and notes its sums.
    pub fn new<C: Consumer>(
        bench: &Bench,
        consumer: &mut C,
        backend: &C::Backend,
        options: &LoaderOptions,
    ) -> Result<Self, Failure> {
        let options = LoaderOptions { fingerprints: true, ..options.clone() };
        let mut loader = Loader::new(backend, bench.source.clone(), options)?;
        let batches = loader.batches_per_epoch();
        consumer.set(0)?;
        for batch in loader.epoch(0) {
            let batch = batch?;
            check_fingerprints(bench, &batch)?;
            if batch.number() == 0 || batch.number() + 1 == batches {
                check_tensor(bench, &batch)?;
            }
            consumer.consume(batch)?;
        }
        consumer.finish()?;
        consumer.forget();
        let sums = consumer.sums()?;
        match sums.iter().position(|[before, after]| before != after) {
            Some(batch) => Err(format!("batch {batch} changed while nothing wrote it").into()),
            None => Ok(Self(sums.into_iter().map(|[before, _]| before).collect())),
        }
    }

    /// Compares the sums of a timed epoch. One without work has none.
    pub fn check(&self, sums: &[[u32; 2]], iterations: u32) -> Result<(), Failure> {
        if iterations == 0 {
            return Ok(());
        }
        if sums.len() != self.0.len() {
            return Err(format!("WRONG: {} batches were seen instead of {}", sums.len(), self.0.len()).into());
        }
        for (batch, (right, [before, after])) in self.0.iter().zip(sums).enumerate() {
            if before != right {
                return Err(format!("WRONG: batch {batch} was not there when the work on it began").into());
            }
            if after != right {
                return Err(format!("WRONG: batch {batch} was overwritten before the work on it ended").into());
            }
        }
        Ok(())
    }
}

fn check_fingerprints<B: Backend>(bench: &Bench, batch: &Batch<B>) -> Result<(), Failure> {
    let right: Vec<u64> = batch.indices().iter().map(|&index| bench.fingerprints[index as usize]).collect();
    if batch.fingerprints()? != Some(right) {
        return Err(format!("WRONG: the fingerprints of batch {} differ", batch.number()).into());
    }
    Ok(())
}

fn check_tensor<B: Backend>(bench: &Bench, batch: &Batch<B>) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    for &index in batch.indices() {
        bytes.extend(image(&bench.source, index)?);
    }
    let wrong = || format!("WRONG: the tensor of batch {} differs", batch.number());
    match bench.normalize(batch.desc().dtype) {
        None if batch.read()? != bytes => Err(wrong().into()),
        None => Ok(()),
        Some(Preprocess::Normalize(normalize)) => {
            let right = expected(&normalize, bench.layout.as_image().ok_or("images are fed")?, &bytes)?;
            let bound = (0..3).map(|channel| error_bound(&normalize, channel, 255)).fold(0.0, f64::max);
            let near = |(right, got): (&f64, &f32)| (f64::from(*got) - right).abs() <= bound;
            if right.iter().zip(&batch.read_f32()?).all(near) { Ok(()) } else { Err(wrong().into()) }
        }
        Some(_) => Err("there is no oracle for it".into()),
    }
}

impl Bench {
    fn normalize(&self, dtype: gpufeed::Element) -> Option<Preprocess> {
        let all = self.kinds().into_iter().map(|(_, preprocess)| preprocess);
        let mut normalizing = all.filter(|preprocess| matches!(preprocess, Preprocess::Normalize(_)));
        if dtype == gpufeed::Element::U8 { None } else { normalizing.next() }
    }
}

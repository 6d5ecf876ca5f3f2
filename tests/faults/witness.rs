//! Whether what a loader delivers is right: each batch's bytes, and each error's cause.

use std::time::Duration;

use gpufeed::backend::Tensor;
use gpufeed::loader::BadSampleReport;
use gpufeed::preprocess::{TensorDesc, batch_fingerprint, expected, fingerprint};
use gpufeed::{Backend, BadSamples, Batch, DeviceError, Field, LoadError, Preprocess};

use super::device::FaultyDevice;
use super::pass::Pass;
use super::plan::{Plan, SampleFault};
use super::source::{INJECTED, sample};

/// What has happened so far in a run.
pub struct Witness<'p> {
    pub plan: &'p Plan,
    /// The device was lost, or the loader cancelled: later epochs say so again.
    pub dead: bool,
    refused: bool,
    /// Samples that were seen to be left out or replaced: epoch, batch, index.
    spoiled: Vec<(u64, u64, u64)>,
}

impl<'p> Witness<'p> {
    pub fn new(plan: &'p Plan) -> Self {
        Self { plan, dead: false, refused: false, spoiled: Vec::new() }
    }

    /// A batch came.
    pub fn batch<B: FaultyDevice>(&mut self, pass: &mut Pass<'_>, batch: &Batch<B>) {
        assert!(!self.dead, "a batch after the end");
        pass.answered(batch.number());
        pass.check(batch);
        if self.plan.options.bad_samples != BadSamples::Fail {
            let gone = pass.asked(batch.number()).into_iter().filter(|index| !batch.indices().contains(index));
            self.spoiled.extend(gone.map(|index| (batch.epoch(), batch.number(), index)));
        }
    }

    /// The bytes of a batch, by whatever way its loader has.
    pub fn bytes<B: Backend>(&self, batch: &Batch<B>) {
        if self.plan.options.fingerprints {
            let samples = batch.indices().iter().map(|&index| fingerprint(&sample(self.plan, index)));
            let right = batch_fingerprint(batch.indices(), &samples.collect::<Vec<_>>());
            match self.unless_lost(batch.fingerprint()) {
                Some(got) => assert_eq!(got, Some(right), "the fingerprint of batch {}", batch.number()),
                None => return,
            }
        }
        if let Some(bytes) = self.unless_lost(batch.read()) {
            self.same(batch.indices(), &batch.desc(), &bytes);
        }
    }

    /// The bytes of a tensor that was taken out of its loader.
    pub fn tensor<T: Tensor>(&self, tensor: &T, indices: &[u64], desc: &TensorDesc) {
        if let Some(bytes) = self.unless_lost(tensor.read(desc)) {
            self.same(indices, desc, &bytes);
        }
    }

    fn same(&self, indices: &[u64], desc: &TensorDesc, bytes: &[u8]) {
        assert_eq!(bytes.len(), desc.byte_len());
        let samples: Vec<u8> = indices.iter().flat_map(|&index| sample(self.plan, index)).collect();
        match &self.plan.options.preprocess {
            Preprocess::Raw => assert_eq!(bytes, samples, "samples {indices:?}"),
            Preprocess::Normalize(normalize) => {
                let image = self.plan.layout.as_image().expect("an image");
                let right = expected(normalize, image, &samples).expect("whole images");
                let got = bytes.as_chunks().0.iter().map(|&word| f64::from(f32::from_ne_bytes(word)));
                let far = got.zip(right).find(|(got, right)| (got - right).abs() > 1e-6);
                assert_eq!(far, None, "samples {indices:?}");
            }
            Preprocess::Pipeline(_) | Preprocess::Own(_) => unreachable!("no plan has one"),
        }
    }

    /// An error came in place of a batch, of the rest of the epoch, or of nothing: it is one that was injected, with its cause.
    #[expect(clippy::too_many_lines, reason = "one arm an error")]
    pub fn error(&mut self, pass: &mut Pass<'_>, error: LoadError) {
        match error {
            // Where others were tried in its place, whatever happened to the sample is told in one text.
            LoadError::Sample { index, batch, source }
                if matches!(self.plan.options.bad_samples, BadSamples::Substitute(_)) =>
            {
                self.of_a_sample(pass, batch, index, |_| true);
                let text = source.to_string();
                let cause = match self.plan.faults[&index] {
                    SampleFault::Short(_) => "bytes".to_owned(),
                    _ => format!("{INJECTED} {index}"),
                };
                assert!(text.contains(&cause) && text.contains("tried in its place"), "{text}");
            }
            LoadError::Sample { index, batch, source } => {
                self.of_a_sample(pass, batch, index, |f| matches!(f, SampleFault::Error | SampleFault::Flaky));
                assert_eq!(source.to_string(), format!("{INJECTED} {index}"));
            }
            LoadError::Panic { index, batch, message } => {
                self.of_a_sample(pass, batch, index, |fault| fault == SampleFault::Panic);
                assert_eq!(message, format!("{INJECTED} {index}"));
            }
            LoadError::ShortSample { index, batch, field, written, expected } => {
                assert_eq!(Some(field.as_str()), self.plan.layout.fields().first().map(Field::name));
                assert_eq!(expected, self.plan.layout.byte_len());
                self.of_a_sample(pass, batch, index, |fault| fault == SampleFault::Short(expected - written));
            }
            LoadError::TooManyBadSamples { index, batch, bad, seen, .. } => {
                assert!(bad <= seen && self.plan.options.bad_samples != BadSamples::Fail, "{bad} of {seen}");
                self.of_a_sample(pass, batch, index, |_| true);
                pass.over = true;
            }
            LoadError::Device { source: DeviceError::Refused { message }, batch, .. } => {
                assert!(self.plan.refuse.is_some() && !self.refused, "{message}");
                assert_eq!(message, "told to refuse");
                self.refused = true;
                pass.answered(batch);
            }
            LoadError::Device { source: DeviceError::Lost { .. }, .. } => {
                assert!(self.plan.loss.is_some(), "nobody lost the device");
                (self.dead, pass.over) = (true, true);
            }
            LoadError::Cancelled => {
                assert!(self.plan.cancel.is_some(), "nobody cancelled the loader");
                (self.dead, pass.over) = (true, true);
            }
            // A busy machine may stand still for a millisecond.
            LoadError::Stalled(stall) => {
                assert!(self.plan.options.stall_timeout.is_some_and(|time| time < Duration::from_secs(1)), "{stall}");
            }
            other => panic!("another error: {other}"),
        }
    }

    fn of_a_sample(&self, pass: &mut Pass<'_>, batch: u64, index: u64, is_it: impl Fn(SampleFault) -> bool) {
        assert!(!self.dead, "a sample's error after the end");
        pass.answered(batch);
        assert!(pass.asked(batch).contains(&index), "sample {index} is not of batch {batch}");
        assert!(self.plan.may_fail(index) && is_it(self.plan.faults[&index]), "sample {index} of batch {batch}");
    }

    /// What was left out or replaced is listed, and what is listed could not be read.
    pub fn report(&self, report: &BadSampleReport) {
        let counted = (report.skipped + report.substituted + report.unreplaced) as usize;
        assert_eq!(report.listed.len(), counted.min(BadSampleReport::LISTED), "of {counted}");
        for bad in &report.listed {
            assert!(self.plan.may_fail(bad.index), "{bad:?}");
            let told = bad.cause.contains(&format!("{INJECTED} {}", bad.index)) || bad.cause.contains("bytes");
            assert!(told, "{bad:?} has another cause");
            assert!(bad.substitute.is_none_or(|other| !self.plan.must_fail(other)), "{bad:?} is bad again");
        }
        // Of more than are listed it cannot be told.
        let spoiled = self.spoiled.iter().filter(|_| counted <= BadSampleReport::LISTED);
        for &(epoch, batch, index) in spoiled {
            let listed = report.listed.iter().any(|bad| (bad.epoch, bad.batch, bad.index) == (epoch, batch, index));
            assert!(listed, "sample {index} of batch {batch} of epoch {epoch} went in silence");
        }
    }

    /// The result, unless the device was lost, as was planned.
    fn unless_lost<T>(&self, result: Result<T, DeviceError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(DeviceError::Lost { .. }) if self.plan.loss.is_some() => None,
            Err(error) => panic!("another error: {error}"),
        }
    }
}

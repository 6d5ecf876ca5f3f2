//! Whether what a loader delivers is right: each batch, and each error.

use gpufeed::backend::Tensor;
use gpufeed::loader::{Order, Sampler};
use gpufeed::preprocess::{TensorDesc, batch_fingerprint, expected, fingerprint};
use gpufeed::{Backend, Batch, DeviceError, LoadError, Preprocess};

use super::plan::{Plan, SampleFault};
use super::source::{INJECTED, label, sample};

/// What the loader may still deliver of an epoch.
pub struct Pass {
    pub sampler: Sampler,
    /// The batch that comes next.
    pub next: u64,
    /// Set by the loss of the device.
    pub over: bool,
}

/// What has happened so far in a run.
pub struct Witness<'p> {
    pub plan: &'p Plan,
    /// The device may be lost from here on, and was seen to be.
    pub lost: bool,
    refused: u64,
}

impl<'p> Witness<'p> {
    pub fn new(plan: &'p Plan) -> Self {
        Self { plan, lost: false, refused: 0 }
    }

    pub fn pass(&self, epoch: u64) -> Pass {
        let order = Order::new(self.plan.samples, &self.plan.options);
        Pass { sampler: Sampler::new(order, epoch), next: 0, over: false }
    }

    /// A batch came: its place, its samples and its labels are right, and none of them should have failed.
    pub fn batch<B: Backend>(&self, pass: &mut Pass, batch: &Batch<B>) {
        assert!(!self.lost, "a batch after the loss");
        assert_eq!(batch.number(), pass.next, "batches come in order");
        let indices: Vec<u64> = pass.sampler.batch(pass.next).collect();
        assert_eq!(batch.indices(), indices, "batch {}", pass.next);
        let faulty = indices.iter().find(|index| self.fault(**index).is_some());
        assert_eq!(faulty, None, "sample {faulty:?} of batch {} cannot have arrived", pass.next);
        let labels: Vec<i64> = indices.iter().map(|&index| label(index)).collect();
        assert_eq!(batch.labels(), Some(labels.as_slice()));
        pass.next += 1;
    }

    /// The bytes of a batch, by whatever way its loader has; false if the device was lost instead.
    pub fn bytes<B: Backend>(&self, batch: &Batch<B>) -> bool {
        if self.plan.options.fingerprints {
            let samples = batch.indices().iter().map(|&index| fingerprint(&sample(self.plan, index)));
            let right = batch_fingerprint(batch.indices(), &samples.collect::<Vec<_>>());
            let Some(got) = self.unless_lost(batch.fingerprint()) else { return false };
            assert_eq!(got, Some(right), "the fingerprint of batch {}", batch.number());
        }
        let (indices, desc) = (batch.indices().to_vec(), batch.desc());
        self.unless_lost(batch.read()).is_some_and(|bytes| {
            self.same(&indices, &desc, &bytes);
            true
        })
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
        }
    }

    /// An error came in place of a batch, or of the rest of the epoch: it is one that was injected, with its cause.
    pub fn error(&mut self, pass: &mut Pass, error: LoadError) {
        match error {
            LoadError::Sample { index, batch, source } => {
                self.of_a_sample(pass, batch, index, |fault| fault == SampleFault::Error);
                assert_eq!(source.to_string(), format!("{INJECTED} {index}"));
            }
            LoadError::Panic { index, batch, message } => {
                self.of_a_sample(pass, batch, index, |fault| fault == SampleFault::Panic);
                assert_eq!(message, format!("{INJECTED} {index}"));
            }
            LoadError::ShortSample { index, batch, written, expected } => {
                assert_eq!(expected, self.plan.layout.byte_len());
                self.of_a_sample(pass, batch, index, |fault| fault == SampleFault::Short(expected - written));
            }
            LoadError::Device { source: DeviceError::Lost { .. }, .. } => {
                assert!(self.plan.loss.is_some(), "nobody lost the device");
                (self.lost, pass.over) = (true, true);
            }
            LoadError::Device { source: DeviceError::Refused { message }, batch, .. } => {
                assert!(self.plan.refuse.is_some() && self.refused == 0, "{message}");
                assert_eq!((batch, message.as_str()), (pass.next, "told to refuse"));
                self.refused += 1;
                pass.next += 1;
            }
            other => panic!("another error: {other}"),
        }
    }

    fn of_a_sample(&self, pass: &mut Pass, batch: u64, index: u64, is_it: impl Fn(SampleFault) -> bool) {
        assert!(!self.lost, "a sample's error after the loss");
        assert_eq!(batch, pass.next, "errors take their batch's place");
        assert!(pass.sampler.batch(batch).any(|own| own == index), "sample {index} is not of batch {batch}");
        assert!(self.fault(index).is_some_and(is_it), "sample {index} has {:?}", self.fault(index));
        pass.next += 1;
    }

    /// What of a sample's faults keeps it from arriving.
    fn fault(&self, index: u64) -> Option<SampleFault> {
        self.plan.faults.get(&index).copied().filter(|fault| !matches!(fault, SampleFault::Slow(_)))
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

//! Reading a batch back, for checks and small results.

use half::{bf16, f16};

use super::Batch;
use crate::backend::{Backend, Tensor};
use crate::error::DeviceError;
use crate::layout::{Element, FieldKey};
use crate::preprocess::{Fingerprint, TensorDesc, batch_fingerprint, sample_fingerprint};

impl<B: Backend> Batch<B> {
    /// Waits for the device and reads the first field's tensor back: its elements in native byte order, without padding. For checks and
    /// small results; it stalls the loader.
    ///
    /// # Errors
    /// The device's error.
    pub fn read(&self) -> Result<Vec<u8>, DeviceError> {
        self.read_tensor(self.desc)
    }

    /// As [`read`](Self::read), of a field by its name or number; `None` if there is no such field on the device.
    ///
    /// # Errors
    /// The device's error.
    pub fn read_field(&self, field: impl FieldKey) -> Result<Option<Vec<u8>>, DeviceError> {
        self.field(field).map(|tensor| self.read_tensor(tensor)).transpose()
    }

    fn read_tensor(&self, desc: TensorDesc) -> Result<Vec<u8>, DeviceError> {
        let tensor = self.tensor().clone();
        self.on_pump(move || tensor.read(&desc))
    }

    /// Waits for the device and reads the first field's tensor back as f32; elements of other types are converted, to the nearest f32.
    ///
    /// # Errors
    /// The device's error.
    pub fn read_f32(&self) -> Result<Vec<f32>, DeviceError> {
        let bytes = self.read()?;
        Ok(to_f32(self.desc.dtype, &bytes))
    }

    /// Waits for the device and reads each sample's fingerprint, computed there over the delivered bytes of all of its fields on the device:
    /// [`sample_fingerprint`] of those that [`field_fingerprints`](Self::field_fingerprints) tells apart. `None` unless the loader was made
    /// with [`fingerprints`](crate::LoaderOptions::fingerprints).
    ///
    /// # Errors
    /// The device's error.
    pub fn fingerprints(&self) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        let Some(all) = self.all_fingerprints()? else { return Ok(None) };
        if self.tensors.fields().len() == 1 {
            return Ok(Some(all));
        }
        let fields_of = |sample| all.iter().skip(sample).step_by(self.batch_size()).copied().collect::<Vec<_>>();
        Ok(Some((0..self.len()).map(|sample| sample_fingerprint(&fields_of(sample))).collect()))
    }

    /// As [`fingerprints`](Self::fingerprints), of one field by its name or number. The first field's are of its bytes before
    /// [preprocessing](crate::Preprocess); a ragged one's are of its bytes with the zeros behind its rows. `None` also where there is no
    /// such field on the device.
    ///
    /// # Errors
    /// The device's error.
    pub fn field_fingerprints(&self, field: impl FieldKey) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        let row = self.output().host.position(field).and_then(|number| self.tensors.position(number));
        let (Some(row), Some(all)) = (row, self.all_fingerprints()?) else { return Ok(None) };
        Ok(Some(all.into_iter().skip(row * self.batch_size()).take(self.len()).collect()))
    }

    /// Field after field, with room for a full batch each.
    fn all_fingerprints(&self) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        let count = match self.tensors.fields().len() {
            1 => self.len(),
            fields => fields * self.batch_size(),
        };
        let tensor = self.tensor().clone();
        self.on_pump(move || tensor.fingerprints(count))
    }

    /// Of a full batch.
    fn batch_size(&self) -> usize {
        self.tensors.first().desc.shape.as_slice()[0]
    }

    /// Waits for the device and gives one number for the whole batch: over its indices and the [`fingerprints`](Self::fingerprints) of
    /// its samples, in their order. The same batch has the same number on every device, with any strategy, number of workers and depth;
    /// see [`batch_fingerprint`]. `None` unless the loader was made with [`fingerprints`](crate::LoaderOptions::fingerprints).
    ///
    /// # Errors
    /// The device's error.
    pub fn fingerprint(&self) -> Result<Option<Fingerprint>, DeviceError> {
        let samples = self.fingerprints()?;
        Ok(samples.map(|samples| batch_fingerprint(self.indices(), &samples)))
    }
}

/// Elements in native byte order as f32.
fn to_f32(element: Element, bytes: &[u8]) -> Vec<f32> {
    fn all<const N: usize>(bytes: &[u8], convert: impl Fn([u8; N]) -> f32) -> Vec<f32> {
        bytes.as_chunks().0.iter().map(|&one| convert(one)).collect()
    }
    match element {
        Element::U8 | Element::Bool => all(bytes, |[byte]| byte.into()),
        Element::I8 => all(bytes, |[byte]| byte.cast_signed().into()),
        Element::U16 => all(bytes, |one| u16::from_ne_bytes(one).into()),
        Element::I32 => all(bytes, |one| i32::from_ne_bytes(one) as f32),
        Element::I64 => all(bytes, |one| i64::from_ne_bytes(one) as f32),
        Element::F16 => all(bytes, |one| f16::from_ne_bytes(one).to_f32()),
        Element::Bf16 => all(bytes, |one| bf16::from_ne_bytes(one).to_f32()),
        Element::F32 => all(bytes, f32::from_ne_bytes),
    }
}

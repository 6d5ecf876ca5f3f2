//! Fields of which each sample has its own number of rows.

use super::Batch;
use crate::backend::Backend;
use crate::layout::{FieldKey, Scalar};

impl<B: Backend> Batch<B> {
    /// Where the rows of each sample begin among those of all of the batch's samples, in rows, and behind them where the last sample's end:
    /// one number more than there are samples, the first of them 0. `None` if there is no such field, or it is not
    /// [ragged](crate::Field::ragged).
    ///
    /// They are those of fields on the host and on the device. On the device the rows of sample `i` begin at row `i * max_rows` of the
    /// field's tensor, and the lengths are a tensor of their own, that of the field called as this one with `.lengths` behind.
    #[must_use]
    pub fn offsets(&self, field: impl FieldKey) -> Option<&[i32]> {
        self.output().host.offsets(field, self.len())
    }

    /// The elements of one sample of a ragged field on the host, by the sample's position in the batch; those of all samples, one after the
    /// other, are in [`host_field`](Self::host_field). `None` if there is no such field on the host or no such sample, or the elements are
    /// of another type.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use gpufeed::{Field, Element, LoaderOptions, MemorySource};
    ///
    /// let names = Field::ragged("name", Element::U8, 8, &[])?.on_host();
    /// let source = MemorySource::new(vec![1u8, 2, 3], gpufeed::SampleLayout::bytes(&[1])?)?;
    /// let source = Arc::new(source.with_ragged(names, ["Ada", "", "Grace"])?);
    /// let mut loader = gpufeed::open("host", source, LoaderOptions::default())?;
    /// let batch = loader.epoch(0).next().expect("a batch")?;
    /// assert_eq!(batch.offsets("name"), Some(&[0, 3, 3, 8][..]));
    /// assert_eq!(batch.ragged::<u8>("name", 2), Some(&b"Grace"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn ragged<T: Scalar>(&self, field: impl FieldKey, position: usize) -> Option<&[T]> {
        self.output().host.rows_of(field, position, self.len())
    }
}

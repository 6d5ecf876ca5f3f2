//! Rows held in memory: of each sample its own number.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{LayoutError, SourceError};
use crate::layout::{Element, Field, Scalar};
use crate::staging::SampleWriter;

/// Rows do not fit their field or their samples.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RaggedError {
    /// There are more or fewer lists of rows than samples.
    #[error("field `{field}` was given for {got} samples, and there are {samples}")]
    Count {
        /// The field's name.
        field: String,
        /// How many lists were given.
        got: u64,
        /// The number of samples.
        samples: u64,
    },
    /// A sample has no whole number of rows, or too many.
    #[error("field `{field}` of sample {sample} has {got} elements: at most {most} fit, in rows of {row}")]
    Length {
        /// The field's name.
        field: String,
        /// The sample.
        sample: u64,
        /// The sample's elements.
        got: usize,
        /// Elements of a row.
        row: usize,
        /// The most elements.
        most: usize,
    },
    /// The field has elements of another type.
    #[error("field `{field}` has elements of type {element}, not {got}")]
    Element {
        /// The field's name.
        field: String,
        /// The type of its elements.
        element: Element,
        /// The type of those that were given.
        got: Element,
    },
    /// The field is not ragged, or the samples have one of that name already.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

/// The rows of a ragged field, sample after sample. Clones are the same rows.
#[derive(Clone, Debug)]
pub(super) struct RaggedColumn {
    name: Arc<str>,
    bytes: Arc<[u8]>,
    /// Where each sample's bytes end.
    ends: Arc<[usize]>,
}

impl RaggedColumn {
    /// # Errors
    /// [`RaggedError`] for a field that is not ragged or of another type, or rows that do not fit it.
    pub(super) fn new<T: Scalar, R: AsRef<[T]>>(
        field: &Field,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<Self, RaggedError> {
        let name = field.name().to_owned();
        let Some((most_rows, row_bytes)) = field.rows() else {
            return Err(LayoutError::FieldName { name, reason: "it is not ragged" }.into());
        };
        if !T::holds(field.element()) {
            return Err(RaggedError::Element { field: name, element: field.element(), got: T::ELEMENT });
        }
        let row = row_bytes / size_of::<T>();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for (sample, rows) in (0u64..).zip(rows) {
            let (rows, most) = (rows.as_ref(), most_rows * row);
            if rows.len() > most || !rows.len().is_multiple_of(row) {
                return Err(RaggedError::Length { field: name, sample, got: rows.len(), row, most });
            }
            bytes.extend_from_slice(bytemuck::cast_slice(rows));
            ends.push(bytes.len());
        }
        Ok(Self { name: name.into(), bytes: bytes.into(), ends: ends.into() })
    }

    /// The number of samples.
    pub(super) fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Writes the rows of sample `index`, which exists.
    pub(super) fn write(&self, index: u64, out: &mut SampleWriter<'_>) -> Result<(), SourceError> {
        let rows = self.bytes_of(index).ok_or_else(|| format!("sample {index} has no field `{}`", self.name))?;
        Ok(out.field(&*self.name)?.write(&self.bytes[rows])?)
    }

    fn bytes_of(&self, index: u64) -> Option<Range<usize>> {
        let index = usize::try_from(index).ok()?;
        let start = index.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        Some(start..*self.ends.get(index)?)
    }
}

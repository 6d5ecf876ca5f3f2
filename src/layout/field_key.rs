//! What names a field.

use std::fmt;

use super::Field;

/// What names a field: its number, from zero, or its name.
pub trait FieldKey: Copy + fmt::Debug {
    /// The field's number in a sample of these.
    fn find(self, fields: &[Field]) -> Option<usize>;

    /// The number, where the key is one.
    fn number(self) -> Option<usize> {
        None
    }
}

impl FieldKey for usize {
    fn find(self, fields: &[Field]) -> Option<usize> {
        (self < fields.len()).then_some(self)
    }

    fn number(self) -> Option<usize> {
        Some(self)
    }
}

impl FieldKey for &str {
    fn find(self, fields: &[Field]) -> Option<usize> {
        fields.iter().position(|field| field.name() == self)
    }
}

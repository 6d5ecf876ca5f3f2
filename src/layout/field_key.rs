//! What names a field.

use std::fmt;

use super::SampleLayout;

/// What names a field: its number, from zero, or its name.
pub trait FieldKey: Copy + fmt::Debug {
    /// The field's number in a sample.
    fn find(self, layout: &SampleLayout) -> Option<usize>;

    /// The number, where the key is one.
    fn number(self) -> Option<usize> {
        None
    }
}

impl FieldKey for usize {
    fn find(self, layout: &SampleLayout) -> Option<usize> {
        (self < layout.fields().len()).then_some(self)
    }

    fn number(self) -> Option<usize> {
        Some(self)
    }
}

impl FieldKey for &str {
    fn find(self, layout: &SampleLayout) -> Option<usize> {
        layout.fields().iter().position(|field| field.name() == self)
    }
}

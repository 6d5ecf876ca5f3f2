//! How an epoch holds its loader.

use super::super::Loader;
use crate::backend::Backend;

/// A loader that an epoch borrows or owns.
pub(in crate::loader) enum LoaderHold<'a, B: Backend> {
    Borrowed(&'a mut Loader<B>),
    Owned(Box<Loader<B>>),
    /// It was given back.
    Released,
}

impl<B: Backend> LoaderHold<'_, B> {
    pub(super) fn get(&self) -> Option<&Loader<B>> {
        match self {
            Self::Borrowed(loader) => Some(loader),
            Self::Owned(loader) => Some(loader),
            Self::Released => None,
        }
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut Loader<B>> {
        match self {
            Self::Borrowed(loader) => Some(loader),
            Self::Owned(loader) => Some(loader),
            Self::Released => None,
        }
    }

    /// Lets go of the loader; it is given back if it was owned.
    pub(super) fn release(&mut self) -> Option<Loader<B>> {
        match std::mem::replace(self, Self::Released) {
            Self::Owned(loader) => Some(*loader),
            Self::Borrowed(_) | Self::Released => None,
        }
    }
}

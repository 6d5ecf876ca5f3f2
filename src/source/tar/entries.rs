//! Where the samples of a shard are, in 10 bytes each, and 18 with labels.

use std::collections::BTreeMap;

use super::error::TarProblem;
use super::fault::Broken;
use super::members::{BLOCK, Member};
use crate::source::digest::Digest;

/// Where an image is in its archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The block where its content starts.
    block: u32,
    /// Bytes of its content, at most `u32::MAX`.
    size: u32,
    /// How many blocks before its content its first header is.
    headers: u16,
}

impl Place {
    pub(super) fn of(member: &Member) -> Result<Self, Broken> {
        let headers = (member.data - member.header) / BLOCK;
        Ok(Self {
            block: u32::try_from(member.data / BLOCK).map_err(|_| Broken::TooFar)?,
            size: u32::try_from(member.size).unwrap_or(u32::MAX),
            headers: u16::try_from(headers).map_err(|_| Broken::LongExtension(headers * BLOCK))?,
        })
    }

    /// Where its content starts.
    pub(super) fn offset(self) -> u64 {
        u64::from(self.block) * BLOCK
    }

    /// Where its first header starts.
    pub(super) fn header(self) -> u64 {
        self.offset() - u64::from(self.headers) * BLOCK
    }

    /// Bytes of its content; `None` where they are 4 GiB or more.
    pub(super) fn size(self) -> Option<u32> {
        Some(self.size).filter(|&size| size < u32::MAX)
    }
}

/// The samples of a shard, in its order.
#[derive(Debug)]
pub(super) struct Entries {
    blocks: Vec<u32>,
    sizes: Vec<u32>,
    headers: Vec<u16>,
    /// One a sample, or none at all. Those of bad samples mean nothing.
    labels: Option<Vec<i64>>,
    problems: BTreeMap<usize, TarProblem>,
    digest: Digest,
}

impl Entries {
    pub(super) fn new(labelled: bool) -> Self {
        Self {
            blocks: Vec::new(),
            sizes: Vec::new(),
            headers: Vec::new(),
            labels: labelled.then(Vec::new),
            problems: BTreeMap::new(),
            digest: Digest::new("shard"),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Adds a sample. Its name is kept in the digest only.
    pub(super) fn push(
        &mut self,
        key: &[u8],
        place: Place,
        label: i64,
        problem: Option<TarProblem>,
    ) -> Result<(), Broken> {
        if let Some(problem) = problem {
            self.problems.insert(self.len(), problem);
        }
        self.digest.add(key);
        self.digest.add_number(place.size.into());
        self.blocks.push(place.block);
        self.sizes.push(place.size);
        self.headers.push(place.headers);
        if let Some(labels) = &mut self.labels {
            self.digest.add_number(label.cast_unsigned());
            labels.push(label);
        }
        Ok(())
    }

    /// Frees what was held for more samples.
    pub(super) fn shrink(&mut self) {
        self.blocks.shrink_to_fit();
        self.sizes.shrink_to_fit();
        self.headers.shrink_to_fit();
        if let Some(labels) = &mut self.labels {
            labels.shrink_to_fit();
        }
    }

    pub(super) fn place(&self, at: usize) -> Option<Place> {
        Some(Place { block: *self.blocks.get(at)?, size: self.sizes[at], headers: self.headers[at] })
    }

    pub(super) fn label(&self, at: usize) -> Option<i64> {
        self.labels.as_ref()?.get(at).copied()
    }

    /// What is wrong with a sample, whatever its image is.
    pub(super) fn problem(&self, at: usize) -> Option<&TarProblem> {
        self.problems.get(&at)
    }

    /// Adds each good sample's label to the counts.
    pub(super) fn count_labels(&self, counts: &mut BTreeMap<i64, u64>) {
        let good = self.labels.iter().flatten().enumerate().filter(|(at, _)| !self.problems.contains_key(at));
        good.for_each(|(_, label)| *counts.entry(*label).or_default() += 1);
    }

    /// The names, the sizes and the labels of all samples.
    pub(super) fn digest(&self) -> u128 {
        self.digest.so_far()
    }

    /// Bytes held, problems apart.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        let labels = self.labels.as_ref().map_or(0, |labels| 8 * labels.capacity());
        4 * self.blocks.capacity() + 4 * self.sizes.capacity() + 2 * self.headers.capacity() + labels
    }
}

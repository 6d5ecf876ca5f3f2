//! Counting the rows of ragged fields while they are written.

use std::ops::Range;

use crate::layout::RaggedSpan;

/// Where the rows of one sample's ragged field are counted.
#[derive(Debug)]
pub(super) struct Rows<'w> {
    count: &'w mut [u8],
    row_bytes: usize,
}

impl Rows<'_> {
    /// So many bytes of the field are written.
    pub(super) fn written(&mut self, bytes: usize) {
        self.count.copy_from_slice(&whole(bytes / self.row_bytes).to_ne_bytes());
    }

    pub(super) fn row_bytes(&self) -> usize {
        self.row_bytes
    }
}

/// The bytes of a field in the host's memory, and where its rows are counted if it is ragged; `None` where the memory lacks either.
pub(super) fn split<'h>(
    host: &'h mut [u8],
    bytes: Range<usize>,
    ragged: Option<&RaggedSpan>,
    position: usize,
) -> Option<(&'h mut [u8], Option<Rows<'h>>)> {
    let Some(ragged) = ragged else { return Some((host.get_mut(bytes)?, None)) };
    let [memory, count] = host.get_disjoint_mut([bytes, ragged.count(position)]).ok()?;
    Some((memory, Some(Rows { count, row_bytes: ragged.row_bytes })))
}

/// Notes how many rows a sample has, where there is memory for it.
pub(super) fn set(host: &mut [u8], ragged: &RaggedSpan, position: usize, rows: usize) {
    if let Some(count) = host.get_mut(ragged.count(position)) {
        count.copy_from_slice(&whole(rows).to_ne_bytes());
    }
}

/// The whole rows in so many bytes.
pub(super) fn count(bytes: usize, ragged: &RaggedSpan) -> i32 {
    whole(bytes / ragged.row_bytes)
}

/// A batch layout has no more rows than this counts.
fn whole(rows: usize) -> i32 {
    i32::try_from(rows).unwrap_or(i32::MAX)
}

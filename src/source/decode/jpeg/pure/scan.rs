//! One scan: its stretches of data between restart markers, and how it goes on where they are damaged.

use super::bits::{Bits, unstuff};
use crate::source::decode::jpeg::damage::Damage;
use crate::source::decode::jpeg::header::Segments;

/// What a scan is made of: one or more blocks at a time.
pub(super) trait Units {
    /// How many there are.
    fn count(&self) -> usize;
    /// How many blocks each has.
    fn blocks(&self) -> usize;
    /// Forgets what was predicted from the units before.
    fn restart(&mut self);
    /// Decodes one.
    fn decode(&mut self, unit: usize, bits: &mut Bits<'_>, damage: &mut Damage);
    /// Makes up one that nothing is known of.
    fn skip(&mut self, unit: usize);
}

/// Decodes a scan whose header has just been read. `data` is scratch.
pub(super) fn decode(units: &mut impl Units, segments: &mut Segments<'_>, data: &mut Vec<u8>, damage: &mut Damage) {
    let count = units.count();
    let interval = match segments.restart_interval {
        0 => count,
        interval => usize::from(interval),
    };
    let (mut first, mut expected, mut missing) = (0, 0, false);
    load(segments, data);
    loop {
        let end = count.min(first + interval);
        missing = stretch(units, first..end, data, missing, damage);
        first = end;
        if first == count {
            return;
        }
        if find_restart(segments, expected, damage) {
            load(segments, data);
            missing = false;
        } else {
            // Another marker is there: nothing comes before it.
            data.clear();
        }
        expected = (expected + 1) % 8;
    }
}

/// Decodes the units of one stretch of data. Returns whether data was missing.
fn stretch(
    units: &mut impl Units,
    range: std::ops::Range<usize>,
    data: &[u8],
    mut missing: bool,
    damage: &mut Damage,
) -> bool {
    damage.blocks += (range.len() * units.blocks()) as u64;
    units.restart();
    let mut bits = Bits::new(data);
    for unit in range {
        if missing {
            units.skip(unit);
            damage.lost += units.blocks() as u64;
            continue;
        }
        units.decode(unit, &mut bits, damage);
        if bits.is_exhausted() {
            missing = true;
            damage.early_ends += 1;
            damage.lost += units.blocks() as u64;
        }
    }
    if !missing {
        damage.extraneous += bits.untouched_bytes() as u64;
    }
    missing
}

/// Reads the data up to the next marker.
fn load(segments: &mut Segments<'_>, data: &mut Vec<u8>) {
    segments.at += unstuff(&segments.file[segments.at.min(segments.file.len())..], data);
}

/// Looks for restart marker `expected`, and decides as libjpeg does where another one is found. Returns whether data
/// for the next stretch follows.
fn find_restart(segments: &mut Segments<'_>, expected: u8, damage: &mut Damage) -> bool {
    const END: u8 = 0xd9;
    let mut marker = segments.next_marker().unwrap_or(END);
    if marker == 0xd0 + expected {
        return true;
    }
    damage.wrong_restarts += 1;
    loop {
        let ahead = marker.wrapping_sub(0xd0 + expected) & 7;
        match marker {
            // None that JPEG has, or one that should have come before: look further.
            ..0xc0 => {}
            0xd0..=0xd7 if matches!(ahead, 6 | 7) => {}
            // One of the next two: what is missing lies before it. Or no restart marker.
            0xd0..=0xd7 if !matches!(ahead, 1 | 2) => return true,
            _ => {
                segments.pending = Some(marker);
                return false;
            }
        }
        marker = segments.next_marker().unwrap_or(END);
    }
}

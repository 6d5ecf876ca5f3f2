//! Bringing subsampled components to the size of the image, as libjpeg's "fancy" upsampling does: a sample is three
//! quarters of the nearer and one quarter of the further one in each direction.

use super::frame::{Geometry, Plane};

/// How one component comes to the size of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upsampling {
    None,
    /// Interpolated to the right.
    Right,
    /// Interpolated down.
    Down,
    /// Interpolated both ways.
    Both,
    /// Each sample repeated so often.
    Repeat {
        right: usize,
        down: usize,
    },
}

impl Upsampling {
    pub(super) fn of(plane: &Plane, geometry: Geometry) -> Self {
        let right = geometry.max_h * geometry.side / (plane.h * plane.side);
        let down = geometry.max_v * geometry.side / (plane.v * plane.side);
        let fancy = geometry.side > 1;
        match (right, down) {
            (1, 1) => Self::None,
            (2, 1) if fancy && plane.width > 2 => Self::Right,
            (1, 2) if fancy => Self::Down,
            (2, 2) if fancy && plane.width > 2 => Self::Both,
            (right, down) => Self::Repeat { right, down },
        }
    }

    /// Row `y` of the image, of `width` samples or a few more. `row` and `sums` are scratch.
    pub(super) fn row<'a>(self, plane: &'a Plane, y: usize, row: &'a mut Vec<u8>, sums: &mut Vec<u16>) -> &'a [u8] {
        let line = |y: usize| &plane.samples[y * plane.stride()..][..plane.width];
        let further =
            |y: usize| if y.is_multiple_of(2) { (y / 2).saturating_sub(1) } else { (y / 2 + 1).min(plane.height - 1) };
        match self {
            Self::None => return line(y),
            Self::Right => right(line(y), row),
            Self::Down => down(line(y / 2), line(further(y)), 1 + (y as u16 & 1), row),
            Self::Both => both(line(y / 2), line(further(y)), row, sums),
            Self::Repeat { right, down } => {
                row.clear();
                row.extend(line(y / down).iter().flat_map(|&sample| std::iter::repeat_n(sample, right)));
            }
        }
        row
    }
}

/// Twice as many samples a row.
fn right(line: &[u8], row: &mut Vec<u8>) {
    let wide = |i: usize| u16::from(line[i]);
    let last = line.len() - 1;
    row.resize(2 * line.len(), 0);
    let pairs = row.as_chunks_mut::<2>().0;
    pairs[0] = [line[0], ((wide(0) * 3 + wide(1) + 2) >> 2) as u8];
    pairs[last] = [((wide(last) * 3 + wide(last - 1) + 1) >> 2) as u8, line[last]];
    for (pair, near) in pairs[1..].iter_mut().zip(line.windows(3)) {
        let [left, middle, right] = [0, 1, 2].map(|i| u16::from(near[i]));
        *pair = [((middle * 3 + left + 1) >> 2) as u8, ((middle * 3 + right + 2) >> 2) as u8];
    }
}

/// A row between two, nearer to the first.
fn down(near: &[u8], far: &[u8], bias: u16, row: &mut Vec<u8>) {
    row.clear();
    row.extend(near.iter().zip(far).map(|(&near, &far)| ((u16::from(near) * 3 + u16::from(far) + bias) >> 2) as u8));
}

/// A row between two, with twice as many samples.
fn both(near: &[u8], far: &[u8], row: &mut Vec<u8>, sums: &mut Vec<u16>) {
    sums.clear();
    sums.extend(near.iter().zip(far).map(|(&near, &far)| u16::from(near) * 3 + u16::from(far)));
    let last = sums.len() - 1;
    row.resize(2 * sums.len(), 0);
    let pairs = row.as_chunks_mut::<2>().0;
    pairs[0] = [((sums[0] * 4 + 8) >> 4) as u8, ((sums[0] * 3 + sums[1] + 7) >> 4) as u8];
    pairs[last] = [((sums[last] * 3 + sums[last - 1] + 8) >> 4) as u8, ((sums[last] * 4 + 7) >> 4) as u8];
    for (pair, near) in pairs[1..].iter_mut().zip(sums.windows(3)) {
        let (left, middle, right) = (near[0], near[1], near[2]);
        *pair = [((middle * 3 + left + 8) >> 4) as u8, ((middle * 3 + right + 7) >> 4) as u8];
    }
}

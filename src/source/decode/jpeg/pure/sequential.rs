//! Sequential scans: every block is whole.

use super::bits::Bits;
use super::frame::{Geometry, Plane};
use super::huffman::{END_OF_BLOCK, Table};
use super::scan::Units;
use crate::source::decode::jpeg::damage::Damage;
use crate::source::decode::jpeg::header::ScanComponent;
use crate::source::decode::jpeg::tables::{Quantization, ZIGZAG};

/// A component's part in a sequential scan.
pub(super) struct Part<'a> {
    pub(super) plane: &'a mut Plane,
    pub(super) dc: &'a Table,
    pub(super) ac: &'a Table,
    pub(super) quantization: Quantization,
    /// The DC coefficient of the block before.
    pub(super) dc_before: i32,
}

/// All of a sequential scan.
pub(super) struct Sequential<'a> {
    parts: [Option<Part<'a>>; 4],
    layout: Layout,
    places: [Place; MAX_BLOCKS],
}

/// How a scan's blocks follow each other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Layout {
    /// MCUs of all components, so many a row.
    Interleaved { wide: usize, high: usize, blocks: usize },
    /// The blocks of one component, row by row.
    Single { wide: usize, high: usize },
}

impl Layout {
    pub(super) fn of(components: &[ScanComponent], planes: &[Plane], geometry: Geometry) -> Self {
        match components {
            [one] => {
                let plane = &planes[one.index];
                Self::Single { wide: plane.blocks_wide, high: plane.blocks_high }
            }
            many => Self::Interleaved {
                wide: geometry.mcus_wide,
                high: geometry.mcus_high,
                blocks: many.iter().map(|component| planes[component.index].h * planes[component.index].v).sum(),
            },
        }
    }

    pub(super) fn count(self) -> usize {
        match self {
            Self::Interleaved { wide, high, .. } | Self::Single { wide, high } => wide * high,
        }
    }

    pub(super) fn blocks(self) -> usize {
        match self {
            Self::Interleaved { blocks, .. } => blocks,
            Self::Single { .. } => 1,
        }
    }

    /// Column and row of a unit.
    #[inline]
    pub(super) fn position(self, unit: usize) -> (usize, usize) {
        let (Self::Interleaved { wide, .. } | Self::Single { wide, .. }) = self;
        // Of 32 bits, as the division of 64 takes several times as long.
        let (unit, wide) = (unit as u32, wide as u32);
        ((unit % wide) as usize, (unit / wide) as usize)
    }

    /// The first block of a component in the unit at a position, and how many there are across and down.
    #[inline]
    pub(super) fn blocks_of(self, (x, y): (usize, usize), plane: &Plane) -> (usize, usize, usize, usize) {
        match self {
            Self::Interleaved { .. } => (x * plane.h, y * plane.v, plane.h, plane.v),
            Self::Single { .. } => (x, y, 1, 1),
        }
    }
}

impl Units for Sequential<'_> {
    fn count(&self) -> usize {
        self.layout.count()
    }

    fn blocks(&self) -> usize {
        self.layout.blocks()
    }

    fn restart(&mut self) {
        self.parts.iter_mut().flatten().for_each(|part| part.dc_before = 0);
    }

    #[inline]
    fn decode(&mut self, unit: usize, bits: &mut Bits<'_>, damage: &mut Damage) {
        let (x, y) = self.layout.position(unit);
        for place in &self.places[..self.layout.blocks()] {
            if let Some(part) = &mut self.parts[place.part] {
                part.block(x * place.across + place.right, y * place.down + place.below, bits, damage);
            }
        }
    }

    fn skip(&mut self, unit: usize) {
        let (x, y) = self.layout.position(unit);
        for place in &self.places[..self.layout.blocks()] {
            let part = self.parts[place.part].as_mut();
            if let Some(part) = part.filter(|part| part.plane.coefficients.is_empty()) {
                part.plane.put(x * place.across + place.right, y * place.down + place.below, &[0; 64], 0);
            }
        }
    }
}

/// Where one block of each unit belongs.
#[derive(Clone, Copy, Default)]
struct Place {
    /// Index among the parts.
    part: usize,
    /// Blocks of its component in a unit.
    across: usize,
    down: usize,
    /// Which of them it is.
    right: usize,
    below: usize,
}

/// Most blocks in a unit.
pub(super) const MAX_BLOCKS: usize = 10;

impl<'a> Sequential<'a> {
    pub(super) fn new(parts: [Option<Part<'a>>; 4], layout: Layout) -> Self {
        let mut places = [Place::default(); MAX_BLOCKS];
        let mut next = places.iter_mut();
        for (part, of) in parts.iter().enumerate() {
            let Some(of) = of else { continue };
            let (_, _, across, down) = layout.blocks_of((0, 0), of.plane);
            for (place, i) in next.by_ref().take(across * down).zip(0..) {
                *place = Place { part, across, down, right: i % across, below: i / across };
            }
        }
        Self { parts, layout, places }
    }
}

impl Part<'_> {
    #[inline]
    fn block(&mut self, x: usize, y: usize, bits: &mut Bits<'_>, damage: &mut Damage) {
        let dc = self.next_dc(bits, damage);
        if !self.plane.coefficients.is_empty() {
            let start = 64 * (y * self.plane.stride_blocks + x);
            let Some(block) = self.plane.coefficients[start..].first_chunk_mut::<64>() else { return };
            block[0] = dc;
            coefficients(self.ac, bits, &mut damage.bad_codes, |k, value| block[k.min(63)] = value);
        } else if self.plane.wants(x, y) {
            let table = &self.quantization;
            let mut block = [0; 64];
            block[0] = dc.wrapping_mul(table[0] as i16);
            let last = coefficients(self.ac, bits, &mut damage.bad_codes, |k, value| {
                block[usize::from(ZIGZAG[k & 255] & 63)] = value.wrapping_mul(table[k & 63] as i16);
            });
            self.plane.put(x, y, &block, last);
        } else {
            coefficients(self.ac, bits, &mut damage.bad_codes, |_, _| {});
        }
    }

    #[inline]
    fn next_dc(&mut self, bits: &mut Bits<'_>, damage: &mut Damage) -> i16 {
        bits.refill_for_symbol();
        let step = self.dc.step(bits);
        let difference = if step.is_whole() {
            bits.skip(step.bits());
            i32::from(step.value())
        } else {
            let size = self.dc.symbol(bits, &mut damage.bad_codes);
            bits.signed(u32::from(size & 15))
        };
        self.dc_before = self.dc_before.wrapping_add(difference);
        self.dc_before as i16
    }
}

/// Decodes a block's AC coefficients, and gives each with its zigzag position to `put`. Positions beyond 63 mean the last one:
/// damaged data has them, and the end of the block, which is the value 0 there. Returns the last position.
#[inline(always)]
fn coefficients(ac: &Table, bits: &mut Bits<'_>, bad_codes: &mut u64, mut put: impl FnMut(usize, i16)) -> usize {
    let mut k = 0;
    while k < 63 {
        bits.refill();
        let pair = ac.pair(bits);
        if pair.first.is_whole() {
            k += pair.first.advance();
            put(k, pair.first.value());
            // What follows the last coefficient, or the end, belongs to the next block.
            if k >= 63 {
                bits.skip(pair.first.bits());
                break;
            }
            bits.skip(pair.first.bits() + pair.second().bits());
            k += pair.second().advance();
            put(k, pair.second().value());
            continue;
        }
        let symbol = ac.symbol(bits, bad_codes);
        let (run, size) = (usize::from(symbol >> 4), u32::from(symbol & 15));
        if size == 0 {
            if run != 15 {
                break;
            }
            k += 16;
        } else {
            k += run + 1;
            put(k, bits.signed(size) as i16);
        }
    }
    // Only the end of the block leads so far.
    k.checked_sub(usize::from(END_OF_BLOCK)).unwrap_or(k.min(63))
}

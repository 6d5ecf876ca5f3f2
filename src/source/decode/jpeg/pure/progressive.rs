//! Progressive scans: a band of coefficients, or one more bit of it.

use super::bits::Bits;
use super::frame::Plane;
use super::huffman::Table;
use super::scan::Units;
use super::sequential::Layout;
use crate::source::decode::jpeg::damage::Damage;

/// A scan of DC coefficients, of one or more components.
pub(super) struct Dc<'a> {
    pub(super) parts: [Option<DcPart<'a>>; 4],
    pub(super) layout: Layout,
    /// Bits left out.
    pub(super) low: u32,
}

/// A component's part in a scan of DC coefficients.
pub(super) struct DcPart<'a> {
    pub(super) plane: &'a mut Plane,
    /// None where the scan refines.
    pub(super) table: Option<&'a Table>,
    pub(super) before: i32,
}

impl Units for Dc<'_> {
    fn count(&self) -> usize {
        self.layout.count()
    }

    fn blocks(&self) -> usize {
        self.layout.blocks()
    }

    fn restart(&mut self) {
        self.parts.iter_mut().flatten().for_each(|part| part.before = 0);
    }

    fn decode(&mut self, unit: usize, bits: &mut Bits<'_>, damage: &mut Damage) {
        let position = self.layout.position(unit);
        for part in self.parts.iter_mut().flatten() {
            let (left, top, across, down) = self.layout.blocks_of(position, part.plane);
            for y in top..top + down {
                for x in left..left + across {
                    let at = 64 * (y * part.plane.stride_blocks + x);
                    let dc = &mut part.plane.coefficients[at];
                    let Some(table) = part.table else {
                        *dc |= i16::from(bits.bit()) << self.low;
                        continue;
                    };
                    bits.refill_for_symbol();
                    let size = table.symbol(bits, &mut damage.bad_codes);
                    part.before = part.before.wrapping_add(bits.signed(u32::from(size & 15)));
                    *dc = (part.before << self.low) as i16;
                }
            }
        }
    }

    fn skip(&mut self, _: usize) {}
}

/// A scan of one component's AC coefficients.
pub(super) struct Ac<'a> {
    pub(super) plane: &'a mut Plane,
    pub(super) table: &'a Table,
    pub(super) layout: Layout,
    /// First and last coefficient.
    pub(super) band: (usize, usize),
    pub(super) low: u32,
    /// Whether the scan adds a bit to what is there.
    pub(super) refines: bool,
    /// Blocks without further new coefficients, from this one on.
    pub(super) ended: u32,
}

impl Units for Ac<'_> {
    fn count(&self) -> usize {
        self.layout.count()
    }

    fn blocks(&self) -> usize {
        1
    }

    fn restart(&mut self) {
        self.ended = 0;
    }

    #[inline]
    fn decode(&mut self, unit: usize, bits: &mut Bits<'_>, damage: &mut Damage) {
        if self.ended > 0 && !self.refines {
            self.ended -= 1;
            return;
        }
        let (x, y) = self.layout.position(unit);
        let at = 64 * (y * self.plane.stride_blocks + x);
        let Some(block) = self.plane.coefficients[at..].first_chunk_mut::<64>() else { return };
        let scan = Band { table: self.table, band: self.band, low: self.low };
        if self.refines {
            self.ended = scan.refine(block, self.ended, bits, damage);
        } else {
            self.ended = scan.first(block, bits, damage);
        }
    }

    fn skip(&mut self, _: usize) {}
}

/// What decoding one block of a band needs.
struct Band<'a> {
    table: &'a Table,
    band: (usize, usize),
    low: u32,
}

impl Band<'_> {
    /// Reads new coefficients. Returns how many blocks after this one have none.
    #[inline(always)]
    fn first(&self, block: &mut [i16; 64], bits: &mut Bits<'_>, damage: &mut Damage) -> u32 {
        let (mut k, last) = self.band;
        while k <= last {
            bits.refill_for_symbol();
            let step = self.table.step(bits);
            if step.is_whole() {
                bits.skip(step.bits());
                k += step.advance();
                block[(k - 1).min(63)] = step.value() << self.low;
                continue;
            }
            let symbol = self.table.symbol(bits, &mut damage.bad_codes);
            let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            if size != 0 {
                k += run as usize + 1;
                block[(k - 1).min(63)] = (bits.signed(size) << self.low) as i16;
            } else if run == 15 {
                k += 16;
            } else {
                return end_of_bands(run, bits) - 1;
            }
        }
        0
    }

    /// Reads one more bit of the coefficients that are there, and new ones of this one bit. `ended` blocks, this one
    /// included, have no new ones. Returns how many of them are left.
    fn refine(&self, block: &mut [i16; 64], mut ended: u32, bits: &mut Bits<'_>, damage: &mut Damage) -> u32 {
        let (mut k, last) = self.band;
        let bit = 1 << self.low;
        while ended == 0 && k <= last {
            bits.refill_for_symbol();
            let symbol = self.table.symbol(bits, &mut damage.bad_codes);
            let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            let mut new = 0;
            if size != 0 {
                // Any other size is damage, and read as one.
                damage.bad_codes += u64::from(size != 1);
                new = if bits.bit() { bit } else { -bit };
            } else if run != 15 {
                ended = end_of_bands(run, bits);
                break;
            }
            k = refine_zeros(block, (k, last), run, bit, bits);
            if new != 0 {
                block[k.min(63)] = new;
            }
            k += 1;
        }
        if ended == 0 {
            return 0;
        }
        for value in block[..=last].iter_mut().skip(k) {
            refine_one(value, bit, bits);
        }
        ended - 1
    }
}

/// Passes over `run` zeros from `k` on, and refines the coefficients between. Returns where the next zero is.
fn refine_zeros(
    block: &mut [i16; 64],
    (mut k, last): (usize, usize),
    mut run: u32,
    bit: i16,
    bits: &mut Bits<'_>,
) -> usize {
    while k <= last {
        if block[k] != 0 {
            refine_one(&mut block[k], bit, bits);
        } else if run == 0 {
            break;
        } else {
            run -= 1;
        }
        k += 1;
    }
    k
}

#[inline(always)]
fn refine_one(value: &mut i16, bit: i16, bits: &mut Bits<'_>) {
    if *value != 0 && bits.bit() && *value & bit == 0 {
        *value = value.wrapping_add(if *value >= 0 { bit } else { -bit });
    }
}

/// How many blocks, this one included, have no further coefficients.
fn end_of_bands(run: u32, bits: &mut Bits<'_>) -> u32 {
    bits.refill_for_symbol();
    (1 << run) + if run == 0 { 0 } else { bits.take(run) }
}

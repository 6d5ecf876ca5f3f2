//! Huffman tables as they are looked up.

use super::bits::{Bits, extend};
use crate::source::decode::jpeg::refusal::Refusal;
use crate::source::decode::jpeg::tables::HuffmanSpec;

/// Codes of up to this many bits, or with the value that follows, are found in one step.
const LOOK: u32 = 11;

/// A code that no table has: its bits, and the zero that stands for it.
const BAD_CODE_BITS: u32 = 17;

/// What a table's symbols stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The size of a difference.
    Dc,
    /// A run of zeros and the size of a coefficient; a size of 0 ends the block, or stands for sixteen zeros.
    Ac,
    /// As before; a size of 0 ends several blocks.
    Progressive,
}

/// How many coefficients the end of a block takes: more than a block has, so that it ends every loop over one.
pub(super) const END_OF_BLOCK: u8 = 128;

/// A Huffman table.
pub(super) struct Table {
    /// What the table was made of.
    made_of: Option<(HuffmanSpec, Kind)>,
    /// By the next [`LOOK`] bits.
    steps: [Step; 1 << LOOK],
    /// By the same, one or two steps at once, where they are those of coefficients. Apart, as threads have little stack.
    pairs: Box<[Pair; 1 << LOOK]>,
    /// By the same, the symbol, and in the upper half the bits of its code; 0 where it is longer.
    codes: [u16; 1 << LOOK],
    /// For each length, the 16-bit prefix that codes of this length lie below.
    limits: [u32; 17],
    /// For each length, what turns a code into an index of `symbols`.
    offsets: [i32; 17],
    symbols: [u8; 256],
}

/// A coefficient that the next bits have in full, or 0: its value in the upper half, how many coefficients it takes, with the
/// zeros before it, in the second byte, the bits it takes in the first.
#[derive(Clone, Copy, Default)]
pub(super) struct Step(u32);

impl Step {
    fn new(value: i32, advance: u8, bits: u32) -> Self {
        Self((value as u32) << 16 | u32::from(advance) << 8 | bits)
    }

    #[inline(always)]
    pub(super) fn is_whole(self) -> bool {
        self.0 != 0
    }

    #[inline(always)]
    pub(super) fn value(self) -> i16 {
        (self.0 >> 16) as i16
    }

    #[inline(always)]
    pub(super) fn advance(self) -> usize {
        (self.0 >> 8 & 0xff) as usize
    }

    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        self.0 & 0xff
    }
}

/// One or two coefficients that the next bits have in full. The second one of a single is the first one again, so that both can be put
/// where they belong without asking.
#[derive(Clone, Copy, Default)]
pub(super) struct Pair {
    pub(super) first: Step,
    second: Step,
}

impl Pair {
    /// Two steps, or the first alone.
    fn new(first: Step, second: Step) -> Self {
        if second.is_whole() && first.is_whole() && first.bits() + second.bits() <= LOOK {
            return Self { first, second };
        }
        Self { first, second: Step::new(first.value().into(), 0, 0) }
    }

    #[inline(always)]
    pub(super) fn second(self) -> Step {
        self.second
    }
}

impl Default for Table {
    fn default() -> Self {
        Self {
            made_of: None,
            steps: [Step::default(); 1 << LOOK],
            pairs: Box::new([Pair::default(); 1 << LOOK]),
            codes: [0; 1 << LOOK],
            limits: [0; 17],
            offsets: [0; 17],
            symbols: [0; 256],
        }
    }
}

impl Table {
    /// Makes this the table of `spec`.
    ///
    /// # Errors
    /// Codes that do not fit their lengths.
    pub(super) fn set(&mut self, spec: &HuffmanSpec, kind: Kind) -> Result<(), Refusal> {
        if self.made_of == Some((*spec, kind)) {
            return Ok(());
        }
        self.made_of = None;
        self.steps.fill(Step::default());
        self.codes.fill(0);
        self.limits.fill(0);
        self.symbols = spec.symbols;
        let (mut code, mut index) = (0u32, 0);
        for length in 1..=16 {
            let count = u32::from(spec.counts[length as usize - 1]);
            self.offsets[length as usize] = index as i32 - code as i32;
            // No code is all ones.
            if count > 0 && code + count >= 1 << length {
                return Err(Refusal::HuffmanTable);
            }
            for code in code..code + count {
                if length <= LOOK {
                    self.fill_steps(code, length, spec.symbols[index], kind);
                }
                index += 1;
            }
            code += count;
            if count > 0 {
                self.limits[length as usize] = code << (16 - length);
            }
            code <<= 1;
        }
        if kind == Kind::Ac {
            for (bits, pair) in self.pairs.iter_mut().enumerate() {
                let first = self.steps[bits];
                *pair = Pair::new(first, self.steps[(bits << first.bits()) % (1 << LOOK)]);
            }
        }
        self.made_of = Some((*spec, kind));
        Ok(())
    }

    /// Fills in all steps that begin with this code.
    fn fill_steps(&mut self, code: u32, length: u32, symbol: u8, kind: Kind) {
        let (run, size) = (symbol >> 4, u32::from(symbol & 15));
        let free = LOOK - length;
        let range = (code << free) as usize..((code + 1) << free) as usize;
        self.codes[range.clone()].fill((length as u16) << 8 | u16::from(symbol));
        // What takes no bits beyond its code.
        let whole = match (kind, symbol) {
            (Kind::Dc, 0) => Some(1),
            (Kind::Ac, 0) => Some(END_OF_BLOCK),
            (Kind::Ac, 0xf0) => Some(16),
            _ => None,
        };
        if let Some(advance) = whole {
            self.steps[range].fill(Step::new(0, advance, length));
        } else if (1..=free).contains(&size) {
            for (rest, step) in (0..).zip(&mut self.steps[range]) {
                *step = Step::new(extend(rest >> (free - size), size), run + 1, length + size);
            }
        }
    }

    /// The next step, of loaded bits, which stay.
    #[inline(always)]
    pub(super) fn step(&self, bits: &Bits<'_>) -> Step {
        self.steps[bits.peek(LOOK) as usize]
    }

    /// The next one or two steps, of loaded bits, which stay.
    #[inline(always)]
    pub(super) fn pair(&self, bits: &Bits<'_>) -> Pair {
        self.pairs[bits.peek(LOOK) as usize]
    }

    /// Takes one symbol. A code that is none counts as 0, and is noted.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: &mut Bits<'_>, bad_codes: &mut u64) -> u8 {
        let code = self.codes[bits.peek(LOOK) as usize];
        if code == 0 {
            return self.long_code(bits, bad_codes);
        }
        bits.skip(u32::from(code >> 8));
        code as u8
    }

    #[cold]
    fn long_code(&self, bits: &mut Bits<'_>, bad_codes: &mut u64) -> u8 {
        let prefix = bits.peek(16);
        for length in LOOK + 1..=16 {
            if prefix < self.limits[length as usize] {
                bits.skip(length);
                let index = (prefix >> (16 - length)) as i32 + self.offsets[length as usize];
                return self.symbols[(index & 0xff) as usize];
            }
        }
        *bad_codes += 1;
        bits.skip(BAD_CODE_BITS);
        0
    }
}

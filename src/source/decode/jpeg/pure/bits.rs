//! Entropy-coded bits of one segment: the data between two markers, with stuffed zero bytes taken out.

/// Zero bytes that follow a segment's data, so that all but a few reads are of eight bytes at once.
const PADDING: usize = 8;

/// Reads bits, most significant first. Zeros follow the end of the data, as libjpeg has it.
pub(super) struct Bits<'a> {
    /// The data and its padding.
    padded: &'a [u8],
    /// Bytes of data.
    len: usize,
    /// The next byte to load. May lie beyond the data.
    next: usize,
    /// Loaded bits, the next one on top.
    loaded: u64,
    /// How many of them count.
    count: u32,
}

impl<'a> Bits<'a> {
    /// Reads a segment that [`unstuff`] has left in `padded`.
    pub(super) fn new(padded: &'a [u8]) -> Self {
        Self { padded, len: padded.len().saturating_sub(PADDING), next: 0, loaded: 0, count: 0 }
    }

    /// Makes sure of at least 56 bits.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        if let Some(eight) = self.padded.get(self.next..).and_then(<[u8]>::first_chunk::<8>) {
            self.loaded |= u64::from_be_bytes(*eight) >> self.count;
            self.next += ((63 - self.count) >> 3) as usize;
            self.count |= 56;
        } else {
            self.refill_at_end();
        }
    }

    #[cold]
    fn refill_at_end(&mut self) {
        while self.count <= 55 {
            let byte = self.padded.get(self.next).copied().unwrap_or(0);
            self.loaded |= u64::from(byte) << (56 - self.count);
            self.next += 1;
            self.count += 8;
        }
    }

    /// Makes sure of at least 32 bits: a code and what it announces.
    #[inline(always)]
    pub(super) fn refill_for_symbol(&mut self) {
        if self.count < 32 {
            self.refill();
        }
    }

    /// The next `n` bits, 1 to 16, which stay.
    #[inline(always)]
    pub(super) fn peek(&self, n: u32) -> u32 {
        (self.loaded >> (64 - n)) as u32
    }

    /// Drops `n` loaded bits.
    #[inline(always)]
    pub(super) fn skip(&mut self, n: u32) {
        self.loaded <<= n;
        self.count -= n;
    }

    /// Takes `n` loaded bits, 1 to 16.
    #[inline(always)]
    pub(super) fn take(&mut self, n: u32) -> u32 {
        let bits = self.peek(n);
        self.skip(n);
        bits
    }

    /// Takes one bit, loading if need be.
    #[inline(always)]
    pub(super) fn bit(&mut self) -> bool {
        self.refill_for_symbol();
        self.take(1) != 0
    }

    /// Takes a signed value of `size` bits, 0 to 15, as JPEG codes them (figure F.12 of the standard).
    #[inline(always)]
    pub(super) fn signed(&mut self, size: u32) -> i32 {
        if size == 0 {
            return 0;
        }
        extend(self.take(size), size)
    }

    /// Whether more bits were taken than there are.
    pub(super) fn is_exhausted(&self) -> bool {
        self.taken() > self.len * 8
    }

    /// Whole bytes that were not touched.
    pub(super) fn untouched_bytes(&self) -> usize {
        (self.len * 8).saturating_sub(self.taken()) / 8
    }

    fn taken(&self) -> usize {
        self.next * 8 - self.count as usize
    }
}

/// The signed value of `size` bits, 1 to 15.
#[inline(always)]
pub(super) fn extend(bits: u32, size: u32) -> i32 {
    let negative = (bits >> (size - 1)) ^ 1;
    bits as i32 - (negative as i32 * ((1 << size) - 1))
}

/// Copies entropy-coded data from the start of `data` up to a marker into `out`, without the zero bytes stuffed after
/// each 0xff, and padded for [`Bits`]. Returns how many bytes of `data` lie before the marker.
pub(super) fn unstuff(data: &[u8], out: &mut Vec<u8>) -> usize {
    out.clear();
    let mut at = 0;
    loop {
        let run = find_ff(&data[at..]);
        out.extend_from_slice(&data[at..at + run]);
        at += run;
        // Any number of 0xff may precede a marker or, tolerated, a stuffed zero.
        let fill = data[at..].iter().take_while(|&&byte| byte == 0xff).count();
        match data.get(at + fill) {
            Some(0) => {
                out.push(0xff);
                at += fill + 1;
            }
            Some(_) | None => break,
        }
    }
    out.extend_from_slice(&[0; PADDING]);
    at
}

/// The index of the first 0xff, or the length.
fn find_ff(data: &[u8]) -> usize {
    let (words, rest) = data.as_chunks::<16>();
    let has = |word: &[u8; 16]| word.iter().fold(0, |most, &byte| most.max(byte)) == 0xff;
    let clean = words.iter().position(has).unwrap_or(words.len()) * 16;
    let tail = if clean < words.len() * 16 { &data[clean..clean + 16] } else { rest };
    clean + tail.iter().position(|&byte| byte == 0xff).unwrap_or(tail.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stuffed_zeros_go_and_the_marker_stays() {
        let mut out = Vec::new();
        let long: Vec<u8> =
            (0..100).chain([0xff, 0]).chain(0..50).chain([0xff, 0xff, 0, 7, 0xff, 0xff, 0xd9]).collect();
        assert_eq!(unstuff(&long, &mut out), 156);
        let expected: Vec<u8> = (0..100).chain([0xff]).chain(0..50).chain([0xff, 7]).chain([0; PADDING]).collect();
        assert_eq!(out, expected);
        assert_eq!(unstuff(&[0xff], &mut out), 0);
        assert_eq!(unstuff(&[1, 2], &mut out), 2);
    }

    #[test]
    fn zeros_follow_the_end_and_are_noticed() {
        let mut padded = Vec::new();
        unstuff(&[0b1010_0000, 0xab], &mut padded);
        let mut bits = Bits::new(&padded);
        assert!(bits.bit() && !bits.bit());
        assert_eq!((bits.untouched_bytes(), bits.is_exhausted()), (1, false));
        bits.refill_for_symbol();
        assert_eq!(bits.take(14), 0b10_0000_1010_1011);
        assert!(!bits.is_exhausted());
        for _ in 0..500 {
            assert!(!bits.bit());
        }
        assert!(bits.is_exhausted());
    }

    #[test]
    fn values_are_signed_as_the_standard_has_it() {
        assert_eq!([0, 1].map(|bits| extend(bits, 1)), [-1, 1]);
        assert_eq!([0, 3, 4, 7].map(|bits| extend(bits, 3)), [-7, -4, 4, 7]);
    }
}

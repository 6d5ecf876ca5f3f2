//! The tables that a JPEG defines, and the order of a block's coefficients.

/// The natural (row by row) index of each zigzag position. Runs that lead beyond the block end at its last coefficient.
pub(super) static ZIGZAG: [u8; 256] = {
    let order = [
        0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14,
        21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60,
        61, 54, 47, 55, 62, 63,
    ];
    let mut all = [63; 256];
    let mut i = 0;
    while i < 64 {
        all[i] = order[i];
        i += 1;
    }
    all
};

/// A quantisation table, in zigzag order.
pub(super) type Quantization = [u16; 64];

/// A Huffman table as the file has it.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct HuffmanSpec {
    /// Codes of each length from 1 to 16 bits.
    pub(super) counts: [u8; 16],
    /// Symbols in the order of their codes.
    pub(super) symbols: [u8; 256],
}

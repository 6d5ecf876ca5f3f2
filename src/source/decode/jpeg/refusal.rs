//! Why a JPEG is not decoded.

/// What makes a JPEG unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::source::decode) enum Refusal {
    #[error("the JPEG ends within its header")]
    EndsInHeader,
    #[error("the JPEG has no image: its end comes before any scan")]
    NoScan,
    #[error("a JPEG segment (marker {0:#04x}) has an impossible length or content")]
    Segment(u8),
    #[error("{0} JPEG is not supported")]
    Process(&'static str),
    #[error("JPEG samples of {0} bits are not supported, only of 8")]
    Precision(u8),
    #[error("the JPEG's frame is {0} x {1} pixels")]
    Empty(u16, u16),
    #[error("JPEG images of {0} components are not supported, only of 1, 3 and 4")]
    Components(u8),
    #[error("two JPEG components have the number {0}")]
    SameComponent(u8),
    #[error("JPEG sampling factors of {0} x {1} are not between 1 and 4")]
    Sampling(u8, u8),
    #[error("JPEG sampling factors that do not divide the largest ones are not supported")]
    FractionalSampling,
    #[error("a JPEG scan interleaves more than 10 blocks")]
    InterleavedBlocks,
    #[error("the JPEG has two frames")]
    SecondFrame,
    #[error("a JPEG scan is for a component that the frame does not have, or has it twice")]
    ScanComponents,
    #[error("a JPEG scan comes where the image is complete already")]
    ExtraScan,
    #[error("a component of the JPEG is in none of its scans")]
    MissingComponent,
    #[error("a JPEG scan has impossible progression parameters")]
    Progression,
    #[error("the progressive JPEG's scans are incomplete")]
    IncompleteProgression,
    #[error("the JPEG has more than {0} scans")]
    Scans(u32),
    #[error("a JPEG quantisation table is missing")]
    NoQuantization,
    #[error("a JPEG Huffman table is missing")]
    NoHuffmanTable,
    #[error("a JPEG Huffman table is invalid")]
    HuffmanTable,
}

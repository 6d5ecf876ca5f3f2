//! The segments of a JPEG: frame, tables and scans, up to their entropy-coded data.

use super::refusal::Refusal;
use super::tables::{HuffmanSpec, Quantization};

/// How the coefficients are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Sequential,
    Progressive,
    /// Known to other decoders, perhaps.
    Other(&'static str),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Sampling factors.
    pub(super) h: u8,
    pub(super) v: u8,
    pub(super) quantization: u8,
}

/// The frame: what the image is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) coding: Coding,
    pub(super) precision: u8,
    pub(super) width: u16,
    pub(super) height: u16,
    count: u8,
    all: [Component; 4],
}

impl Frame {
    pub(super) fn components(&self) -> &[Component] {
        &self.all[..usize::from(self.count)]
    }
}

/// What the components mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColorSpace {
    Grey,
    YCbCr,
    Rgb,
    Cmyk,
    Ycck,
}

/// A component's part in a scan.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScanComponent {
    /// Index among the frame's components.
    pub(super) index: usize,
    pub(super) dc_table: u8,
    pub(super) ac_table: u8,
}

/// A scan's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanHeader {
    count: u8,
    all: [ScanComponent; 4],
    /// First and last coefficient, in zigzag order.
    pub(super) first: u8,
    pub(super) last: u8,
    /// Bits of precision that were there before, and that are left out now.
    pub(super) high: u8,
    pub(super) low: u8,
}

impl ScanHeader {
    pub(super) fn components(&self) -> &[ScanComponent] {
        &self.all[..usize::from(self.count)]
    }
}

/// Reads segment after segment, and keeps what they define.
pub(super) struct Segments<'a> {
    pub(super) file: &'a [u8],
    /// Where the next marker is looked for.
    pub(super) at: usize,
    pub(super) frame: Option<Frame>,
    pub(super) quantization: [Option<Quantization>; 4],
    pub(super) dc: [Option<HuffmanSpec>; 4],
    pub(super) ac: [Option<HuffmanSpec>; 4],
    pub(super) restart_interval: u16,
    jfif: bool,
    adobe: Option<u8>,
    /// Bytes between segments that belong to none.
    pub(super) extraneous: u64,
    /// A marker that was read and not dealt with.
    pub(super) pending: Option<u8>,
}

impl<'a> Segments<'a> {
    /// Reads a file that starts with the marker of a JPEG.
    pub(super) fn new(file: &'a [u8]) -> Self {
        Self {
            file,
            at: 2,
            frame: None,
            quantization: [None; 4],
            dc: Default::default(),
            ac: Default::default(),
            restart_interval: 0,
            jfif: false,
            adobe: None,
            extraneous: 0,
            pending: None,
        }
    }

    /// Reads up to the next scan's data; `None` at the end of the image, or of the file after at least one scan.
    pub(super) fn next_scan(&mut self) -> Result<Option<ScanHeader>, Refusal> {
        while let Some(marker) = self.next_marker() {
            match marker {
                0xd9 => return Ok(None),
                // Without a length.
                0x01 | 0xd0..=0xd7 => continue,
                0xd8 => return Err(Refusal::Segment(marker)),
                _ => {}
            }
            let body = self.body(marker)?;
            match marker {
                0xc4 => self.huffman_tables(body)?,
                0xcc => {}
                0xc0..=0xcf => self.start_frame(marker, body)?,
                0xda => return self.scan(body).map(Some),
                0xdb => self.quantization_tables(body)?,
                0xdd => {
                    let interval = <[u8; 2]>::try_from(body).map_err(|_| Refusal::Segment(marker))?;
                    self.restart_interval = u16::from_be_bytes(interval);
                }
                0xe0 => self.jfif |= body.starts_with(b"JFIF\0") && body.len() >= 14,
                0xee if body.starts_with(b"Adobe") && body.len() >= 12 => self.adobe = Some(body[11]),
                0xdc | 0xe1..=0xef | 0xfe => {}
                _ => return Err(Refusal::Segment(marker)),
            }
        }
        Ok(None)
    }

    /// The next marker, after any bytes that are none.
    pub(super) fn next_marker(&mut self) -> Option<u8> {
        if let Some(marker) = self.pending.take() {
            return Some(marker);
        }
        loop {
            let rest = self.file.get(self.at..)?;
            let skipped = rest.iter().position(|&byte| byte == 0xff)?;
            let fill = rest[skipped..].iter().position(|&byte| byte != 0xff)?;
            self.extraneous += skipped as u64;
            self.at += skipped + fill + 1;
            match self.file[self.at - 1] {
                0 => self.extraneous += 2,
                marker => return Some(marker),
            }
        }
    }

    /// The bytes of a segment after its length.
    fn body(&mut self, marker: u8) -> Result<&'a [u8], Refusal> {
        let rest = self.file.get(self.at..).unwrap_or_default();
        let (length, rest) = rest.split_first_chunk::<2>().ok_or(Refusal::EndsInHeader)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let body = length.checked_sub(2).ok_or(Refusal::Segment(marker))?;
        self.at += length;
        rest.get(..body).ok_or(Refusal::EndsInHeader)
    }

    fn quantization_tables(&mut self, mut body: &[u8]) -> Result<(), Refusal> {
        while let Some((&head, rest)) = body.split_first() {
            let slot = self.quantization.get_mut(usize::from(head & 15)).ok_or(Refusal::Segment(0xdb))?;
            let width = if head >> 4 == 0 { 1 } else { 2 };
            let values = rest.get(..64 * width).ok_or(Refusal::Segment(0xdb))?;
            let value = |value: &[u8]| value.iter().fold(0, |all, &byte| (all << 8) | u16::from(byte));
            let table = slot.insert([0; 64]);
            table.iter_mut().zip(values.chunks_exact(width)).for_each(|(to, from)| *to = value(from));
            body = &rest[64 * width..];
        }
        Ok(())
    }

    fn huffman_tables(&mut self, mut body: &[u8]) -> Result<(), Refusal> {
        let invalid = Refusal::HuffmanTable;
        while let Some((head, rest)) = body.split_first_chunk::<17>() {
            let counts: [u8; 16] = std::array::from_fn(|i| head[i + 1]);
            let count = counts.iter().map(|&count| usize::from(count)).sum();
            let values = rest.get(..count).filter(|_| count <= 256).ok_or(invalid.clone())?;
            let mut symbols = [0; 256];
            symbols[..count].copy_from_slice(values);
            let tables = if head[0] & 0x10 == 0 { &mut self.dc } else { &mut self.ac };
            let slot = tables.get_mut(usize::from(head[0] & !0x10)).ok_or(invalid.clone())?;
            *slot = Some(HuffmanSpec { counts, symbols });
            body = &rest[count..];
        }
        if body.is_empty() { Ok(()) } else { Err(invalid) }
    }

    fn start_frame(&mut self, marker: u8, body: &[u8]) -> Result<(), Refusal> {
        if self.frame.is_some() {
            return Err(Refusal::SecondFrame);
        }
        let coding = match marker {
            0xc0 | 0xc1 => Coding::Sequential,
            0xc2 => Coding::Progressive,
            0xc3 => Coding::Other("lossless"),
            0xc9 | 0xca => Coding::Other("arithmetic-coded"),
            _ => Coding::Other("hierarchical"),
        };
        let Some((&[precision, h0, h1, w0, w1, count], parts)) = body.split_first_chunk::<6>() else {
            return Err(Refusal::Segment(marker));
        };
        let (width, height) = (u16::from_be_bytes([w0, w1]), u16::from_be_bytes([h0, h1]));
        if width == 0 || height == 0 {
            return Err(Refusal::Empty(width, height));
        }
        if ![1, 3, 4].contains(&count) {
            return Err(Refusal::Components(count));
        }
        if parts.len() != 3 * usize::from(count) {
            return Err(Refusal::Segment(marker));
        }
        let mut all = [Component::default(); 4];
        for (i, &[id, sampling, quantization]) in parts.as_chunks::<3>().0.iter().enumerate() {
            let (h, v) = (sampling >> 4, sampling & 15);
            if !(1..=4).contains(&h) || !(1..=4).contains(&v) {
                return Err(Refusal::Sampling(h, v));
            }
            if all[..i].iter().any(|component| component.id == id) {
                return Err(Refusal::SameComponent(id));
            }
            all[i] = Component { id, h, v, quantization };
        }
        self.frame = Some(Frame { coding, precision, width, height, count, all });
        Ok(())
    }

    fn scan(&mut self, body: &[u8]) -> Result<ScanHeader, Refusal> {
        let frame = self.frame.as_ref().ok_or(Refusal::Segment(0xda))?;
        let (&total, rest) = body.split_first().ok_or(Refusal::Segment(0xda))?;
        let count = usize::from(total);
        if !(1..=4).contains(&count) || rest.len() != 2 * count + 3 {
            return Err(Refusal::Segment(0xda));
        }
        let mut all = [ScanComponent::default(); 4];
        for (i, &[id, tables]) in rest[..2 * count].as_chunks::<2>().0.iter().enumerate() {
            let index = frame.components().iter().position(|component| component.id == id);
            let index = index.ok_or(Refusal::ScanComponents)?;
            if all[..i].iter().any(|other| other.index == index) {
                return Err(Refusal::ScanComponents);
            }
            all[i] = ScanComponent { index, dc_table: tables >> 4, ac_table: tables & 15 };
        }
        let [first, last, bits] = rest[2 * count..] else { return Err(Refusal::Segment(0xda)) };
        Ok(ScanHeader { count: total, all, first, last, high: bits >> 4, low: bits & 15 })
    }

    /// What the frame's components mean, by libjpeg's rules.
    pub(super) fn color_space(&self, frame: &Frame) -> ColorSpace {
        match *frame.components() {
            [_] => ColorSpace::Grey,
            [a, b, c] => match (self.jfif, self.adobe) {
                (true, _) => ColorSpace::YCbCr,
                (false, Some(0)) => ColorSpace::Rgb,
                (false, None) if [a.id, b.id, c.id] == *b"RGB" => ColorSpace::Rgb,
                _ => ColorSpace::YCbCr,
            },
            _ => match self.adobe {
                Some(0) | None => ColorSpace::Cmyk,
                Some(_) => ColorSpace::Ycck,
            },
        }
    }
}

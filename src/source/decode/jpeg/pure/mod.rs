//! A JPEG decoder in safe Rust: sequential and progressive Huffman coding, any sampling factors and any number of scans,
//! with the same integers as libjpeg-turbo's, so that both give the same bytes.
//!
//! [`scan`] cuts a scan into the stretches between restart markers; [`sequential`] and [`progressive`] decode them.
//! Where one scan has everything, blocks are transformed as they come; otherwise their coefficients are kept until the
//! end of the image.

mod bits;
mod color;
mod frame;
mod huffman;
mod idct;
mod idct_small;
mod output;
mod progression;
mod progressive;
mod scan;
mod sequential;
mod upsample;

use frame::{Geometry, Plane};
use huffman::{Kind, Table};
use progression::Progression;
use sequential::{Layout, Part, Sequential};

use super::damage::Damage;
use super::header::{Coding, Frame, ScanHeader, Segments};
use super::refusal::Refusal;
use crate::source::decode::reduce::Wanted;

/// More scans than any encoder makes; each costs time, and next to no bytes.
const MAX_SCANS: u32 = 500;

/// A decoder's memory, kept from image to image.
#[derive(Default)]
pub(in crate::source::decode) struct Memory {
    planes: [Plane; 4],
    dc: [Table; 4],
    ac: [Table; 4],
    /// The entropy-coded data of a stretch.
    data: Vec<u8>,
    rows: output::Rows,
}

impl Memory {
    /// Bytes taken.
    pub(in crate::source::decode) fn bytes(&self) -> usize {
        let plane = |plane: &Plane| plane.samples.capacity() + 2 * plane.coefficients.capacity();
        self.planes.iter().map(plane).sum::<usize>() + self.data.capacity()
    }
}

/// Bytes that decoding this frame takes beyond its pixels.
pub(super) fn working_bytes(frame: &Frame, divisor: usize) -> Result<u64, Refusal> {
    let geometry = Geometry::of(frame, divisor);
    let mut bytes = 0;
    for index in 0..frame.components().len() {
        let mut plane = Plane::default();
        plane.lay_out(frame, index, geometry)?;
        // Sequential images may have several scans too; that shows later.
        bytes += (plane.sample_count() + 128 * plane.block_count()) as u64;
    }
    Ok(bytes)
}

/// Decodes the image whose segments were read up to its first scan, `first`, at a fraction of its size, into `out`:
/// grey, RGB or CMYK in rows without gaps. Of what is not wanted everything is decoded and nothing is transformed.
pub(super) fn decode(
    segments: &mut Segments<'_>,
    first: ScanHeader,
    wanted: &Wanted,
    memory: &mut Memory,
    out: &mut [u8],
) -> Result<Damage, Refusal> {
    let Some(frame) = segments.frame else { return Err(Refusal::NoScan) };
    if frame.precision != 8 {
        return Err(Refusal::Precision(frame.precision));
    }
    if let Coding::Other(process) = frame.coding {
        return Err(Refusal::Process(process));
    }
    let divisor = wanted.divisor as usize;
    let geometry = Geometry::of(&frame, divisor);
    let color_space = segments.color_space(&frame);
    let mut decoder = Decoder { frame, geometry, segments, memory, damage: Damage::default() };
    let count = decoder.frame.components().len();
    for (index, plane) in decoder.memory.planes[..count].iter_mut().enumerate() {
        plane.lay_out(&frame, index, geometry)?;
        plane.want(wanted, geometry);
        plane.samples.resize(plane.sample_count(), 0);
        plane.coefficients.clear();
    }
    if frame.coding == Coding::Sequential && first.components().len() == count {
        decoder.sequential(&first)?;
        if decoder.segments.next_scan()?.is_some() {
            return Err(Refusal::ExtraScan);
        }
    } else {
        decoder.several_scans(first)?;
        decoder.memory.planes[..count].iter_mut().for_each(Plane::transform);
    }
    decoder.damage.extraneous += decoder.segments.extraneous;
    let damage = decoder.damage;
    let rows = wanted.rows.start as usize / divisor..(wanted.rows.end as usize).div_ceil(divisor);
    output::pixels(&memory.planes[..count], geometry, rows, color_space, &mut memory.rows, out);
    Ok(damage)
}

/// An image being decoded.
struct Decoder<'a, 'f> {
    frame: Frame,
    geometry: Geometry,
    segments: &'a mut Segments<'f>,
    memory: &'a mut Memory,
    damage: Damage,
}

impl Decoder<'_, '_> {
    /// Decodes scans until the image ends.
    fn several_scans(&mut self, first: ScanHeader) -> Result<(), Refusal> {
        let count = self.frame.components().len();
        for plane in &mut self.memory.planes[..count] {
            plane.coefficients.resize(64 * plane.block_count(), 0);
        }
        let mut progression = Progression::default();
        let mut scan = Some(first);
        let mut scans = 0;
        while let Some(header) = scan {
            scans += 1;
            if scans > MAX_SCANS {
                return Err(Refusal::Scans(MAX_SCANS));
            }
            if self.frame.coding == Coding::Progressive {
                self.damage.progression += progression.note(&header)?;
                self.progressive(&header)?;
            } else {
                self.sequential(&header)?;
            }
            scan = self.segments.next_scan()?;
        }
        if self.memory.planes[..count].iter().any(|plane| plane.quantization.is_none()) {
            return Err(Refusal::MissingComponent);
        }
        if self.frame.coding == Coding::Progressive { progression.check(count) } else { Ok(()) }
    }

    /// The tables of a scan, and each component's own quantisation table where this is its first.
    fn prepare(&mut self, scan: &ScanHeader, dc: bool, ac: bool) -> Result<Layout, Refusal> {
        for part in scan.components() {
            let slot = usize::from(self.frame.components()[part.index].quantization);
            let plane = &mut self.memory.planes[part.index];
            if plane.quantization.is_none() {
                let table = self.segments.quantization.get(slot).copied().flatten();
                plane.quantization = Some(table.ok_or(Refusal::NoQuantization)?);
            }
            let spec = |specs: &[Option<_>; 4], slot: u8| specs.get(usize::from(slot)).copied().flatten();
            if dc {
                let spec = spec(&self.segments.dc, part.dc_table).ok_or(Refusal::NoHuffmanTable)?;
                self.memory.dc[usize::from(part.dc_table)].set(&spec, Kind::Dc)?;
                if spec.symbols.iter().any(|&size| size > 15) {
                    return Err(Refusal::HuffmanTable);
                }
            }
            if ac {
                let spec = spec(&self.segments.ac, part.ac_table).ok_or(Refusal::NoHuffmanTable)?;
                let progressive = self.frame.coding == Coding::Progressive;
                let kind = if progressive { Kind::Progressive } else { Kind::Ac };
                self.memory.ac[usize::from(part.ac_table)].set(&spec, kind)?;
            }
        }
        let layout = Layout::of(scan.components(), &self.memory.planes, self.geometry);
        if layout.blocks() > sequential::MAX_BLOCKS { Err(Refusal::InterleavedBlocks) } else { Ok(layout) }
    }

    fn sequential(&mut self, scan: &ScanHeader) -> Result<(), Refusal> {
        // Whatever a scan says, it has all coefficients.
        self.damage.progression += u64::from((scan.first, scan.last, scan.high, scan.low) != (0, 63, 0, 0));
        let layout = self.prepare(scan, true, true)?;
        let Memory { planes, dc, ac, data, .. } = &mut *self.memory;
        let mut planes = planes.each_mut().map(Some);
        let mut parts = [const { None }; 4];
        for (part, component) in parts.iter_mut().zip(scan.components()) {
            let plane = planes[component.index].take();
            *part = plane.map(|plane| Part {
                quantization: plane.quantization.unwrap_or([0; 64]),
                plane,
                dc: &dc[usize::from(component.dc_table)],
                ac: &ac[usize::from(component.ac_table)],
                dc_before: 0,
            });
        }
        scan::decode(&mut Sequential::new(parts, layout), self.segments, data, &mut self.damage);
        Ok(())
    }

    fn progressive(&mut self, scan: &ScanHeader) -> Result<(), Refusal> {
        let refines = scan.high != 0;
        let of_dc = scan.first == 0;
        let layout = self.prepare(scan, of_dc && !refines, !of_dc)?;
        let Memory { planes, dc, ac, data, .. } = &mut *self.memory;
        let low = u32::from(scan.low);
        if !of_dc {
            let Some(part) = scan.components().first() else { return Err(Refusal::ScanComponents) };
            let (plane, table) = (&mut planes[part.index], &ac[usize::from(part.ac_table)]);
            let band = (usize::from(scan.first), usize::from(scan.last));
            let mut units = progressive::Ac { plane, table, layout, band, low, refines, ended: 0 };
            scan::decode(&mut units, self.segments, data, &mut self.damage);
            return Ok(());
        }
        let mut planes = planes.each_mut().map(Some);
        let mut parts = [const { None }; 4];
        for (part, component) in parts.iter_mut().zip(scan.components()) {
            let table = if refines { None } else { Some(&dc[usize::from(component.dc_table)]) };
            let plane = planes[component.index].take();
            *part = plane.map(|plane| progressive::DcPart { plane, table, before: 0 });
        }
        scan::decode(&mut progressive::Dc { parts, layout, low }, self.segments, data, &mut self.damage);
        Ok(())
    }
}

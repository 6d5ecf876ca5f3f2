//! From a recipe to one sample's geometry.

use super::color::ColorMap;
use super::draws::Draws;
use super::geometry::Geometry;
use super::portable::{exp, ln};
use super::recipe::{Anchor, Crop, Orientation, Resize};
use super::{GEOMETRY_LIMIT, Pipeline};
use crate::error::LayoutError;
use crate::layout::FrameLayout;

/// Draws of a random crop until the middle is taken.
const TRIES: usize = 10;

/// Left, top, width and height.
type Rect = [u32; 4];

fn refused(step: &'static str, reason: String) -> LayoutError {
    LayoutError::Pipeline { step, reason }
}

/// A side of a frame or of a tensor.
pub(super) fn side(step: &'static str, pixels: usize) -> Result<u32, LayoutError> {
    match u32::try_from(pixels) {
        Ok(side) if (1..=GEOMETRY_LIMIT).contains(&side) => Ok(side),
        _ => Err(refused(step, format!("a side of {pixels} pixels is not one of 1 to {GEOMETRY_LIMIT}"))),
    }
}

/// Width and height of a frame once it is upright.
pub(super) fn upright(pipeline: &Pipeline, frame: &FrameLayout) -> Result<[u32; 2], LayoutError> {
    let (width, height) = (side("frame", frame.width())?, side("frame", frame.height())?);
    Ok(if pipeline.orientation.transposes() { [height, width] } else { [width, height] })
}

/// The crop of an upright frame of this size.
fn crop(pipeline: &Pipeline, [width, height]: [u32; 2], draws: &mut Draws) -> Result<Rect, LayoutError> {
    let outside = |rect: String| refused("crop", format!("{rect} does not lie inside of {width}x{height}"));
    match pipeline.crop {
        Crop::None => Ok([0, 0, width, height]),
        Crop::Rect { left, top, height: rows, width: columns } => {
            let fits = |start: usize, length: usize, of: u32| {
                let end = start.checked_add(length).filter(|&end| length > 0 && end <= of as usize)?;
                u32::try_from(start).ok().zip(u32::try_from(end - start).ok())
            };
            match (fits(left, columns, width), fits(top, rows, height)) {
                (Some((x, w)), Some((y, h))) => Ok([x, y, w, h]),
                _ => Err(outside(format!("{columns}x{rows} at {left}, {top}"))),
            }
        }
        Crop::Center { height: rows, width: columns } => {
            let (w, h) = (side("crop", columns)?, side("crop", rows)?);
            if w > width || h > height {
                return Err(outside(format!("{w}x{h} in the middle")));
            }
            // Not negative, since the crop is not larger.
            let start = |of: u32, length: u32| (-centered(of, length)).unsigned_abs();
            Ok([start(width, w), start(height, h), w, h])
        }
        Crop::Random { scale, ratio } => Ok(random_crop([width, height], scale, ratio, draws)),
    }
}

/// torchvision's `RandomResizedCrop.get_params`.
fn random_crop([width, height]: [u32; 2], scale: (f64, f64), ratio: (f64, f64), draws: &mut Draws) -> Rect {
    let (w, h) = (f64::from(width), f64::from(height));
    let logarithms = (ln(ratio.0), ln(ratio.1));
    for _ in 0..TRIES {
        let area = w * h * draws.between(scale);
        let aspect = exp(draws.between(logarithms));
        let (columns, rows) = ((area * aspect).sqrt().round_ties_even(), (area / aspect).sqrt().round_ties_even());
        if columns >= 1.0 && columns <= w && rows >= 1.0 && rows <= h {
            let (columns, rows) = (columns as u32, rows as u32);
            let top = draws.below(height - rows + 1);
            return [draws.below(width - columns + 1), top, columns, rows];
        }
    }
    let (columns, rows) = match w / h {
        aspect if aspect < ratio.0 => (w, (w / ratio.0).round_ties_even()),
        aspect if aspect > ratio.1 => ((h * ratio.1).round_ties_even(), h),
        _ => (w, h),
    };
    let (columns, rows) = ((columns as u32).clamp(1, width), (rows as u32).clamp(1, height));
    [(width - columns) / 2, (height - rows) / 2, columns, rows]
}

/// Where something of `length` begins in a window around its middle: torchvision's `center_crop`, which rounds ties to even where it
/// cuts and down where it fills.
fn centered(length: u32, window: u32) -> i32 {
    let (length, window) = (length as i32, window as i32);
    if window > length { (window - length) / 2 } else { -((f64::from(length - window) / 2.0).round_ties_even() as i32) }
}

/// What a crop becomes: its size, where that begins in the window, and the window's size.
struct Placed {
    resized: [u32; 2],
    offset: [i32; 2],
    window: [u32; 2],
}

fn resize(pipeline: &Pipeline, [width, height]: [u32; 2]) -> Result<Placed, LayoutError> {
    let whole = |size: [u32; 2]| Placed { resized: size, offset: [0, 0], window: size };
    Ok(match pipeline.resize {
        Resize::None => whole([width, height]),
        Resize::Exact { height, width } => whole([side("resize", width)?, side("resize", height)?]),
        Resize::ShorterSide(pixels) => {
            let short = side("resize", pixels)?;
            let long = |long: u32, of: u32| {
                let pixels = u64::from(short) * u64::from(long) / u64::from(of);
                side("resize", usize::try_from(pixels).unwrap_or(usize::MAX))
            };
            whole(if width <= height { [short, long(height, width)?] } else { [long(width, height)?, short] })
        }
        Resize::Letterbox { height: rows, width: columns, anchor } => {
            let window = [side("resize", columns)?, side("resize", rows)?];
            let scale = (f64::from(window[0]) / f64::from(width)).min(f64::from(window[1]) / f64::from(height));
            let fitted =
                |axis: usize, side: u32| ((f64::from(side) * scale).round_ties_even() as u32).clamp(1, window[axis]);
            let resized = [fitted(0, width), fitted(1, height)];
            let offset = match anchor {
                Anchor::TopLeft => [0, 0],
                Anchor::Center => [0, 1].map(|axis| ((window[axis] - resized[axis]) / 2) as i32),
            };
            Placed { resized, offset, window }
        }
    })
}

/// Width and height of the tensor.
///
/// # Errors
/// [`LayoutError::Pipeline`] where they differ from sample to sample, or a step does not fit.
pub(super) fn tensor_size(pipeline: &Pipeline, frame: &FrameLayout) -> Result<[u32; 2], LayoutError> {
    if let Some((height, width)) = pipeline.center_crop {
        let size = [side("center_crop", width)?, side("center_crop", height)?];
        return placed(pipeline, frame, &mut Draws::new(0)).map(|_| size);
    }
    if matches!(pipeline.crop, Crop::Random { .. }) && matches!(pipeline.resize, Resize::None | Resize::ShorterSide(_))
    {
        let reason = "every sample would have a size of its own: resize random crops to one size, or cut them to one";
        return Err(refused("resize", reason.to_owned()));
    }
    placed(pipeline, frame, &mut Draws::new(0)).map(|(_, placed)| placed.window)
}

fn placed(pipeline: &Pipeline, frame: &FrameLayout, draws: &mut Draws) -> Result<(Rect, Placed), LayoutError> {
    let rect = crop(pipeline, upright(pipeline, frame)?, draws)?;
    let mut placed = resize(pipeline, [rect[2], rect[3]])?;
    if let Some((height, width)) = pipeline.center_crop {
        let window = [side("center_crop", width)?, side("center_crop", height)?];
        for (offset, (of, window)) in placed.offset.iter_mut().zip(placed.window.into_iter().zip(window)) {
            *offset += centered(of, window);
        }
        placed.window = window;
    }
    Ok((rect, placed))
}

/// The geometry and the colours of the sample with this seed.
///
/// # Errors
/// [`LayoutError::Pipeline`] where a step does not fit the frame, whatever is drawn.
pub(super) fn geometry(pipeline: &Pipeline, frame: &FrameLayout, seed: u64) -> Result<Geometry, LayoutError> {
    let mut draws = Draws::new(seed);
    let (rect, Placed { resized, mut offset, window }) = placed(pipeline, frame, &mut draws)?;
    let size = upright(pipeline, frame)?;
    let flips = [draws.chance(pipeline.flip.horizontal), draws.chance(pipeline.flip.vertical)];
    let (source, mut mirrored) = stored(pipeline.orientation, rect, size);
    for axis in 0..2 {
        if flips[axis] {
            mirrored[axis] = !mirrored[axis];
            offset[axis] = window[axis] as i32 - resized[axis] as i32 - offset[axis];
        }
    }
    let color = ColorMap::to_rgb(frame.format()).jittered(&pipeline.jitter, &mut draws).in_order(pipeline.channels);
    let color = color.0.map(|row| row.map(|value| value as f32));
    Ok(Geometry { source, resized, offset, transposed: pipeline.orientation.transposes(), mirrored, color })
}

/// A rectangle of an upright frame of this size where it is stored, and which of its axes run backwards there.
fn stored(orientation: Orientation, rect: Rect, size: [u32; 2]) -> (Rect, [bool; 2]) {
    let mirrored = orientation.mirrors();
    let along = |axis: usize| {
        let (start, length) = (rect[axis], rect[2 + axis]);
        (if mirrored[axis] { size[axis] - start - length } else { start }, length)
    };
    let ((x, w), (y, h)) = if orientation.transposes() { (along(1), along(0)) } else { (along(0), along(1)) };
    ([x, y, w, h], mirrored)
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;

//! Images whose channels are stored one after the other.

use std::cell::RefCell;
use std::io;

use crate::error::SourceError;
use crate::staging::SampleWriter;

/// Pixels that are put together before they are written.
const CHUNK: usize = 1024;

thread_local! {
    /// The planes of an image, kept from image to image.
    static PLANES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes an image of `bytes` bytes with its channels side by side. `read` fills a buffer with its planes.
pub(super) fn write(
    channels: usize,
    bytes: usize,
    read: impl FnOnce(&mut [u8]) -> Result<(), SourceError>,
    out: &mut SampleWriter<'_>,
) -> Result<(), SourceError> {
    PLANES.with_borrow_mut(|planes| {
        planes.resize(bytes, 0);
        read(planes)?;
        let written = match channels {
            3 => interleave::<3>(planes, out),
            4 => interleave::<4>(planes, out),
            _ => out.write(planes),
        };
        Ok(written?)
    })
}

fn interleave<const C: usize>(planes: &[u8], out: &mut SampleWriter<'_>) -> io::Result<()> {
    let plane = planes.len() / C;
    let mut pixels = [[0; C]; CHUNK];
    for start in (0..plane).step_by(CHUNK) {
        let chunk = &mut pixels[..CHUNK.min(plane - start)];
        for channel in 0..C {
            let values = &planes[channel * plane + start..][..chunk.len()];
            chunk.iter_mut().zip(values).for_each(|(pixel, &value)| pixel[channel] = value);
        }
        out.write(chunk.as_flattened())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_come_side_by_side_whatever_the_number_of_pixels() {
        for channels in [1, 3, 4] {
            for pixels in [1, 7, CHUNK, CHUNK + 1, 3 * CHUNK - 1] {
                let value = |channel: usize, pixel: usize| (channel * 91 + pixel * 7) as u8;
                let mut written = vec![0; channels * pixels];
                let read = |planes: &mut [u8]| {
                    planes.iter_mut().enumerate().for_each(|(at, byte)| *byte = value(at / pixels, at % pixels));
                    Ok(())
                };
                write(channels, written.len(), read, &mut SampleWriter::over(&mut written)).expect("it fits");
                let right = written.iter().enumerate().all(|(at, &byte)| byte == value(at % channels, at / channels));
                assert!(right, "{channels} channels, {pixels} pixels");
            }
        }
    }
}

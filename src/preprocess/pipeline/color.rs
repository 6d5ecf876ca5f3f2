//! The linear map from a frame's stored components to a tensor's channels, before scale and mean.

use std::f64::consts::PI;

use super::draws::Draws;
use super::portable::sin_cos;
use super::recipe::{ChannelOrder, Jitter};
use crate::layout::{PixelFormat, Yuv, YuvMatrix, YuvRange};

/// Pillow's and BT.601's weights of red, green and blue in grey.
const GRAY: [f64; 3] = [0.299, 0.587, 0.114];

/// Rows of three factors and a sum: `row[0] * a + row[1] * b + row[2] * c + row[3]`, with values from 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ColorMap(pub(super) [[f64; 4]; 3]);

impl ColorMap {
    const IDENTITY: Self = Self([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]);

    /// From the components in the order in which they are stored to red, green and blue.
    pub(super) fn to_rgb(format: PixelFormat) -> Self {
        let [first, second, third, _] = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0; 4]];
        match format {
            PixelFormat::Gray8 => Self([first; 3]),
            PixelFormat::Rgb8 | PixelFormat::Rgba8 => Self::IDENTITY,
            PixelFormat::Bgr8 | PixelFormat::Bgra8 => Self([third, second, first]),
            PixelFormat::Nv12(yuv) | PixelFormat::I420(yuv) => Self::of_yuv(yuv),
        }
    }

    /// The inverse of ITU-R BT.601 or BT.709: `red = y + 2 (1 - kr) cr`, `blue = y + 2 (1 - kb) cb`, and green from the rest of luma.
    fn of_yuv(yuv: Yuv) -> Self {
        let (kr, kb) = match yuv.matrix {
            YuvMatrix::Bt601 => (0.299, 0.114),
            YuvMatrix::Bt709 => (0.2126, 0.0722),
        };
        let kg = 1.0 - kr - kb;
        let (luma, black, chroma) = match yuv.range {
            YuvRange::Limited => (255.0 / 219.0, 16.0, 255.0 / 224.0),
            YuvRange::Full => (1.0, 0.0, 1.0),
        };
        let (red, blue) = (2.0 * (1.0 - kr) * chroma, 2.0 * (1.0 - kb) * chroma);
        let row = |cb: f64, cr: f64| [luma, cb, cr, -luma * black - 128.0 * (cb + cr)];
        Self([row(0.0, red), row(-blue * kb / kg, -red * kr / kg), row(blue, 0.0)])
    }

    /// This map, and `then` of what it gives.
    fn then(self, then: Self) -> Self {
        let Self(inner) = self;
        Self(then.0.map(|[a, b, c, sum]| {
            std::array::from_fn(|column| {
                let product = a * inner[0][column] + b * inner[1][column] + c * inner[2][column];
                if column == 3 { product + sum } else { product }
            })
        }))
    }

    /// Colours that a sample's draws change.
    pub(super) fn jittered(self, jitter: &Jitter, draws: &mut Draws) -> Self {
        if *jitter == Jitter::NONE {
            return self;
        }
        let brightness = draws.between(jitter.brightness);
        let contrast = draws.between(jitter.contrast);
        let saturation = draws.between(jitter.saturation);
        let angle = 2.0 * PI * draws.between(jitter.hue);
        let diagonal = |factor: f64, sum: f64| {
            Self(std::array::from_fn(|row| {
                std::array::from_fn(|column| match column {
                    3 => sum,
                    _ if row == column => factor,
                    _ => 0.0,
                })
            }))
        };
        self.then(diagonal(brightness, 0.0))
            .then(diagonal(contrast, 127.5 * (1.0 - contrast)))
            .then(Self::saturated(saturation))
            .then(Self::turned(angle))
    }

    /// Each colour's distance from its own grey times a factor.
    fn saturated(factor: f64) -> Self {
        Self(std::array::from_fn(|row| {
            std::array::from_fn(|column| {
                let own = if row == column { factor } else { 0.0 };
                GRAY.get(column).map_or(0.0, |weight| own + (1.0 - factor) * weight)
            })
        }))
    }

    /// Colours turned about the grey axis: in YIQ, whose first component is the grey above, I and Q turn and Y stays.
    fn turned(angle: f64) -> Self {
        const TO_YIQ: ColorMap = ColorMap([
            [GRAY[0], GRAY[1], GRAY[2], 0.0],
            [0.595_716, -0.274_453, -0.321_263, 0.0],
            [0.211_456, -0.522_591, 0.311_135, 0.0],
        ]);
        let (sin, cos) = sin_cos(angle);
        let turn = Self([[1.0, 0.0, 0.0, 0.0], [0.0, cos, -sin, 0.0], [0.0, sin, cos, 0.0]]);
        TO_YIQ.then(turn).then(TO_YIQ.inverse())
    }

    /// The inverse of a map without sums.
    fn inverse(self) -> Self {
        let m = self.0;
        // The minor of each element with its sign: indices of the other rows and columns in turn.
        let minor = |row: usize, column: usize| {
            let (a, b) = ((row + 1) % 3, (row + 2) % 3);
            let (c, d) = ((column + 1) % 3, (column + 2) % 3);
            m[a][c] * m[b][d] - m[a][d] * m[b][c]
        };
        let determinant: f64 = (0..3).map(|column| m[0][column] * minor(0, column)).sum();
        Self(std::array::from_fn(|row| {
            std::array::from_fn(|column| if column == 3 { 0.0 } else { minor(column, row) / determinant })
        }))
    }

    /// Red, green and blue in a tensor's order.
    pub(super) fn in_order(self, order: ChannelOrder) -> Self {
        let [red, green, blue] = Self::IDENTITY.0;
        self.then(match order {
            ChannelOrder::Rgb => Self([red, green, blue]),
            ChannelOrder::Bgr => Self([blue, green, red]),
            ChannelOrder::Gray => Self([[GRAY[0], GRAY[1], GRAY[2], 0.0]; 3]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(map: ColorMap, [a, b, c]: [f64; 3]) -> [f64; 3] {
        map.0.map(|row| row[0] * a + row[1] * b + row[2] * c + row[3])
    }

    fn near(got: [f64; 3], want: [f64; 3], bound: f64) -> bool {
        got.iter().zip(want).all(|(got, want)| (got - want).abs() <= bound)
    }

    #[test]
    fn black_white_and_the_primaries_come_out_of_their_codes() {
        let limited = ColorMap::to_rgb(PixelFormat::Nv12(Yuv::BT709));
        assert!(near(apply(limited, [16.0, 128.0, 128.0]), [0.0; 3], 1e-9));
        assert!(near(apply(limited, [235.0, 128.0, 128.0]), [255.0; 3], 1e-9));
        // Pure red: y = 0.2126, cr = 0.5 and cb = -0.2126 / 1.8556.
        let red = [16.0 + 219.0 * 0.2126, 128.0 - 224.0 * 0.2126 / 1.8556, 128.0 + 112.0];
        assert!(near(apply(limited, red), [255.0, 0.0, 0.0], 1e-9));
        let full = ColorMap::to_rgb(PixelFormat::I420(Yuv::JPEG));
        // JFIF's own coefficients.
        let jfif = [100.0 + 1.402 * 20.0, 100.0 - 0.344_136 * -30.0 - 0.714_136 * 20.0, 100.0 + 1.772 * -30.0];
        assert!(near(apply(full, [100.0, 98.0, 148.0]), jfif, 1e-4));
    }

    #[test]
    fn orders_and_grey_are_those_of_their_names() {
        let bgra = ColorMap::to_rgb(PixelFormat::Bgra8);
        assert_eq!(apply(bgra, [1.0, 2.0, 3.0]), [3.0, 2.0, 1.0]);
        assert_eq!(apply(bgra.in_order(ChannelOrder::Bgr), [1.0, 2.0, 3.0]), [1.0, 2.0, 3.0]);
        assert_eq!(apply(ColorMap::to_rgb(PixelFormat::Gray8), [7.0, 0.0, 0.0]), [7.0; 3]);
        let gray = ColorMap::to_rgb(PixelFormat::Rgb8).in_order(ChannelOrder::Gray);
        assert!(near(apply(gray, [100.0, 50.0, 200.0]), [82.05; 3], 1e-9));
    }

    #[test]
    fn jitter_keeps_grey_in_place_where_only_colour_changes() {
        let jitter = Jitter { saturation: (0.3, 0.3), hue: (0.17, 0.17), ..Jitter::NONE };
        let map = ColorMap::to_rgb(PixelFormat::Rgb8).jittered(&jitter, &mut Draws::new(1));
        assert!(near(apply(map, [90.0; 3]), [90.0; 3], 1e-3));
        // A third of a turn moves red towards green, and a whole one nothing.
        let turned = |parts| {
            let jitter = Jitter { hue: (parts, parts), ..Jitter::NONE };
            apply(ColorMap::IDENTITY.jittered(&jitter, &mut Draws::new(1)), [200.0, 10.0, 10.0])
        };
        assert!(near(turned(-0.5), turned(0.5), 1e-9));
        let contrast = Jitter { contrast: (2.0, 2.0), brightness: (0.5, 0.5), ..Jitter::NONE };
        let map = ColorMap::IDENTITY.jittered(&contrast, &mut Draws::new(1));
        assert!(near(apply(map, [200.0, 255.0, 0.0]), [72.5, 127.5, -127.5], 1e-9));
    }
}

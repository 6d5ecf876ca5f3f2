//! Sizes and quantities, read and written as people do.

use gpufeed::SampleLayout;
pub use gpufeed::measure::report::digits;

/// Height and width of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HxW {
    pub height: usize,
    pub width: usize,
}

/// `224x320`: height, then width.
pub fn parse_size(text: &str) -> Result<HxW, String> {
    let side = |side: &str| side.trim().parse().ok().filter(|&side: &usize| side > 0);
    text.split_once(['x', 'X'])
        .and_then(|(height, width)| Some(HxW { height: side(height)?, width: side(width)? }))
        .ok_or_else(|| "expected height and width, as in 224x320".to_owned())
}

const BYTE_UNITS: [(&str, u64); 11] = [
    ("", 1),
    ("b", 1),
    ("k", 1000),
    ("kb", 1000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
];

/// `512MB`, `1.5 GiB`, `4096`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = BYTE_UNITS.iter().find(|(name, _)| *name == unit).map(|&(_, factor)| factor);
    let bytes = factor.and_then(|factor| match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor),
        Err(_) => number.parse::<f64>().ok().map(|part| part * factor as f64).filter(|b| *b < 2e18).map(|b| b as u64),
    });
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| "expected bytes, as in 512MB, 1GiB or 1.5GiB".to_owned())
}

/// A positive number of seconds, `0.5`.
pub fn parse_period(text: &str) -> Result<std::time::Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.01..=1e6).contains(seconds));
    seconds.map(std::time::Duration::from_secs_f64).ok_or_else(|| "expected seconds, from 0.01 to 1000000".to_owned())
}

/// Bytes in binary units, three digits: `1.50 GiB`.
pub fn bytes(bytes: u64) -> String {
    let (mut value, mut unit) = (bytes as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        // What would be rounded to 1024 belongs to the next unit.
        if value < 1023.5 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    if unit == "B" { format!("{bytes} B") } else { format!("{} {unit}", digits(value)) }
}

/// Seconds as a duration, three digits: `1.50 ms`.
pub fn seconds(seconds: f64) -> String {
    let (factor, unit) = match seconds {
        0.0 => return "0".to_owned(),
        s if s < 999.5e-9 => (1e9, "ns"),
        s if s < 999.5e-6 => (1e6, "µs"),
        s if s < 999.5e-3 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    format!("{} {unit}", digits(seconds * factor))
}

/// What samples of this layout are called.
pub fn noun(sample: &SampleLayout) -> &'static str {
    if sample.as_image().is_some() { "images" } else { "samples" }
}

/// A count with its noun: `1 batch`, `2 batches`.
pub fn count(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_height_and_width() {
        assert_eq!(parse_size("224x320"), Ok(HxW { height: 224, width: 320 }));
        for bad in ["224", "0x3", "3x", "axb", "-1x3", "1x2x3"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bytes_take_decimal_and_binary_units() {
        for (text, value) in [("4096", 4096), ("512MB", 512_000_000), ("1GiB", 1 << 30), ("1.5 kib", 1536), ("2b", 2)] {
            assert_eq!(parse_bytes(text), Ok(value), "{text}");
        }
        for bad in ["", "MB", "1 parsec", "-1", "0", "1.2.3", "99999999TiB", "1e3"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn quantities_have_three_digits() {
        assert_eq!(
            [bytes(0), bytes(1023), bytes(1 << 20), bytes((1 << 30) - 1)],
            ["0 B", "1023 B", "1.00 MiB", "1.00 GiB"]
        );
        assert_eq!(
            [seconds(0.0), seconds(1.5e-3), seconds(0.9999), seconds(250.0)],
            ["0", "1.50 ms", "1.00 s", "250 s"]
        );
        assert_eq!([seconds(42e-6), seconds(7e-9)], ["42.0 µs", "7.00 ns"]);
        assert_eq!([digits(9.999), digits(123_456.7)], ["10.0", "123457"]);
        assert_eq!([count(1, "batch", "batches"), count(0, "batch", "batches")], ["1 batch", "0 batches"]);
    }
}

//! `--sweep batch=1,4,16,64`.

use std::num::NonZeroUsize;
use std::str::FromStr;

use crate::units::{self, HxW};

/// What is swept, and the values that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Batch, workers or slots, by that name.
    Count(&'static str, Vec<NonZeroUsize>),
    /// The size of images.
    Sample(Vec<HxW>),
    /// How long the consumer computes for each batch, in microseconds.
    Compute(Vec<u32>),
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected batch, workers, slots, sample or compute with values, as in batch=1,4,16,64 or sample=32,224x320";
        let (name, list) = text.split_once('=').ok_or_else(expected)?;
        let sweep = match name {
            "sample" => values(list, side).map(Self::Sample),
            "compute" => values(list, compute).map(Self::Compute),
            _ => {
                let size = ["batch", "workers", "slots"].into_iter().find(|size| *size == name);
                size.zip(values(list, |value| value.parse().ok())).map(|(size, values)| Self::Count(size, values))
            }
        };
        sweep.ok_or_else(|| expected().to_owned())
    }
}

fn values<T>(list: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    list.split(',').map(|value| parse(value.trim())).collect()
}

/// `32` for a square, or `224x320`.
fn side(text: &str) -> Option<HxW> {
    let square = text.parse::<NonZeroUsize>().ok().map(|side| HxW { height: side.get(), width: side.get() });
    square.or_else(|| units::parse_size(text).ok())
}

fn compute(text: &str) -> Option<u32> {
    text.parse().ok().filter(|us| *us <= super::args::MAX_COMPUTE_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_samples_are_sides_or_height_and_width() {
        let size = |height, width| HxW { height, width };
        assert_eq!("sample=32, 224x320".parse(), Ok(Sweep::Sample(vec![size(32, 32), size(224, 320)])));
        assert_eq!("compute=0,1000".parse(), Ok(Sweep::Compute(vec![0, 1000])));
        for bad in ["batch", "batch=", "batch=0", "rows=1", "batch=1;2", "sample=0", "sample=2x0", "compute=2000000"] {
            assert!(bad.parse::<Sweep>().is_err_and(|why| why.contains("as in batch=1,4,16,64")), "{bad}");
        }
    }
}

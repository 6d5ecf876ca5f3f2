//! `--sweep batch=1,4,16,64`.

use std::num::NonZeroUsize;

/// A size and the values that it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    pub size: &'static str,
    pub values: Vec<NonZeroUsize>,
}

impl std::str::FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected batch, workers or slots with values, as in batch=1,4,16,64".to_owned();
        let (name, list) = text.split_once('=').ok_or_else(expected)?;
        let size = ["batch", "workers", "slots"].into_iter().find(|size| *size == name).ok_or_else(expected)?;
        let values: Option<Vec<NonZeroUsize>> = list.split(',').map(|value| value.trim().parse().ok()).collect();
        Ok(Self { size, values: values.ok_or_else(expected)? })
    }
}

//! The arguments of the gate.

use std::path::PathBuf;

use clap::Args;

/// What this build is held against.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Regression gate")]
pub struct BaselineArgs {
    /// Fail if this build is slower than that: another build's executable, measured in turn with this one (two seconds a run, and as many runs as
    /// it takes), or the JSON of an earlier comparison
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// How much slower it may be, as a share of the baseline's rate
    #[arg(long, value_name = "SHARE", default_value = "3%", requires = "baseline")]
    pub max_slowdown: Share,
    /// Take a baseline of another device or driver as well
    #[arg(long, requires = "baseline")]
    pub other_device: bool,
}

/// A share between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl std::str::FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
        let share = number.trim().parse::<f64>().ok().map(|number| number / scale);
        share
            .filter(|share| (0.0..1.0).contains(share))
            .map(Self)
            .ok_or_else(|| "expected a share, as in 3% or 0.03".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percents_or_fractions() {
        let share = |text: &str| text.parse::<Share>().map(|share| share.0);
        assert_eq!([share("3%"), share("0.05"), share("0")], [Ok(0.03), Ok(0.05), Ok(0.0)]);
        assert!(["", "x%", "100%", "-1%", "nan"].iter().all(|text| share(text).is_err()));
    }
}

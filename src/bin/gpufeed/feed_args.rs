//! What the command line says of the tensor that samples become.

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use gpufeed::{Element, FloatType, Normalize, Preprocess, SampleLayout, TensorLayout};

use crate::args::options_are;

/// What the device makes of the samples.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Tensor, of u8 images only")]
pub struct FeedArgs {
    /// Mean of each channel, of pixels in [0, 1] [default: ImageNet's for 3 channels, else 0]
    #[arg(long, value_name = "M,..", value_delimiter = ',', allow_hyphen_values = true, requires = "std")]
    pub mean: Vec<f64>,
    /// Standard deviation of each channel [default: ImageNet's for 3 channels, else 1]
    #[arg(long, value_name = "S,..", value_delimiter = ',', allow_hyphen_values = true, requires = "mean")]
    pub std: Vec<f64>,
    /// Order of the dimensions [default: nchw]
    #[arg(long, value_name = "ORDER")]
    pub layout: Option<LayoutArg>,
    /// Element type [default: f32]
    #[arg(long, value_name = "TYPE")]
    pub dtype: Option<DTypeArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayoutArg {
    /// Sample, channel, row, column
    Nchw,
    /// Sample, row, column, channel
    Nhwc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DTypeArg {
    /// 32-bit floats, normalised
    F32,
    /// 16-bit floats, normalised
    F16,
    /// The pixels as they are, in NHWC order
    U8,
}

impl FeedArgs {
    /// What happens to samples of this layout: images are normalised unless `u8` is asked for, anything else passes through.
    pub fn preprocess(&self, sample: &SampleLayout) -> Result<Preprocess> {
        Ok(self.normalize(sample)?.map_or(Preprocess::Raw, Preprocess::from))
    }

    /// How samples of this layout are normalised; `None` where they pass through.
    pub fn normalize(&self, sample: &SampleLayout) -> Result<Option<Normalize>> {
        let Some(image) = sample.as_image() else { return self.pass_through(sample).map(|()| None) };
        let dtype = match self.dtype {
            Some(DTypeArg::U8) => {
                let given = self.given();
                ensure!(
                    given.is_empty(),
                    "--dtype u8 delivers the pixels as they are: {} not for it",
                    options_are(&given)
                );
                return Ok(None);
            }
            Some(DTypeArg::F16) => FloatType::F16,
            Some(DTypeArg::F32) | None => FloatType::F32,
        };
        let layout = match self.layout {
            Some(LayoutArg::Nhwc) => TensorLayout::Nhwc,
            Some(LayoutArg::Nchw) | None => TensorLayout::Nchw,
        };
        let normalize = match image.channels() {
            // Both are given, or none: the parser sees to it.
            _ if !self.mean.is_empty() => Normalize::new(&self.mean, &self.std),
            3 => Normalize::imagenet(),
            channels => Normalize::unit(channels),
        };
        let normalize = normalize.with_layout(layout).with_dtype(dtype);
        normalize.validate(sample.first())?;
        Ok(Some(normalize))
    }

    /// Refuses what is for images only.
    fn pass_through(&self, sample: &SampleLayout) -> Result<()> {
        let (given, sample) = (self.given(), sample.first());
        let hint = match (sample.element(), sample.dims()) {
            (Element::U8, [1 | 3 | 4, _, _]) => " (--channels-first makes images of them)",
            _ => "",
        };
        ensure!(
            given.is_empty(),
            "{} only for u8 images; this source has {sample}, which pass through as they are{hint}",
            options_are(&given)
        );
        let has = match sample.element() {
            Element::U8 => Some(DTypeArg::U8),
            Element::F16 => Some(DTypeArg::F16),
            Element::F32 => Some(DTypeArg::F32),
            _ => None,
        };
        match self.dtype {
            wanted @ Some(_) if wanted != has => {
                bail!("--dtype changes u8 images only; this source has {sample}, which pass through as they are{hint}")
            }
            _ => Ok(()),
        }
    }

    fn given(&self) -> Vec<&'static str> {
        let all =
            [("--mean", !self.mean.is_empty()), ("--std", !self.std.is_empty()), ("--layout", self.layout.is_some())];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(channels: usize) -> SampleLayout {
        SampleLayout::image(4, 4, channels).expect("an image")
    }

    fn refused(args: &FeedArgs, sample: &SampleLayout) -> String {
        args.preprocess(sample).expect_err("refused").to_string()
    }

    #[test]
    fn images_are_normalised_by_their_channels() {
        let default = FeedArgs::default();
        assert_eq!(default.preprocess(&image(3)).expect("rgb"), Normalize::imagenet().into());
        assert_eq!(default.preprocess(&image(1)).expect("grey"), Normalize::unit(1).into());
        let half = FeedArgs { dtype: Some(DTypeArg::F16), layout: Some(LayoutArg::Nhwc), ..FeedArgs::default() };
        let expected = Normalize::unit(4).with_dtype(FloatType::F16).with_layout(TensorLayout::Nhwc);
        assert_eq!(half.preprocess(&image(4)).expect("rgba"), expected.into());
        let raw = FeedArgs { dtype: Some(DTypeArg::U8), ..FeedArgs::default() };
        assert_eq!(raw.preprocess(&image(3)).expect("raw"), Preprocess::Raw);
    }

    #[test]
    fn wishes_that_cannot_be_fulfilled_are_refused() {
        let floats = SampleLayout::f32(&[5]).expect("floats");
        let means = FeedArgs { mean: vec![0.5], std: vec![0.5], ..FeedArgs::default() };
        assert!(
            refused(&means, &floats).starts_with("--mean and --std are only for u8 images"),
            "{}",
            refused(&means, &floats)
        );
        assert!(refused(&means, &image(3)).contains("mean has 1 values for 3 channels"));
        let raw = FeedArgs { dtype: Some(DTypeArg::U8), layout: Some(LayoutArg::Nchw), ..FeedArgs::default() };
        assert!(refused(&raw, &image(3)).contains("--layout is not for it"), "{}", refused(&raw, &image(3)));
        let half = FeedArgs { dtype: Some(DTypeArg::F16), ..FeedArgs::default() };
        assert!(refused(&half, &floats).contains("f32 arrays of [5]"));
        let same = FeedArgs { dtype: Some(DTypeArg::F32), ..FeedArgs::default() };
        assert_eq!(same.preprocess(&floats).expect("as they are"), Preprocess::Raw);
    }
}

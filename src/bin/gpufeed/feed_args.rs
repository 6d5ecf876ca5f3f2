//! What the command line says of the tensor that samples become.

use anyhow::{Result, bail, ensure};
use clap::{Args, ValueEnum};
use gpufeed::{
    ChannelOrder, Element, FloatType, Normalize, Pipeline, Preprocess, Quantization, SampleLayout, TensorLayout,
    TensorType,
};
use serde::{Deserialize, Serialize};

use crate::args::options_are;
use crate::transform::TransformArgs;

/// What the device makes of the samples.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Tensor, of u8 images only")]
pub struct FeedArgs {
    #[command(flatten)]
    pub transform: TransformArgs,
    /// Mean of each channel, of pixels in [0, 1] [default: the preset's, or ImageNet's for 3 channels, else 0]
    #[arg(long, value_name = "M,..", value_delimiter = ',', allow_hyphen_values = true, requires = "std")]
    pub mean: Vec<f64>,
    /// Standard deviation of each channel [default: the preset's, or ImageNet's for 3 channels, else 1]
    #[arg(long, value_name = "S,..", value_delimiter = ',', allow_hyphen_values = true, requires = "mean")]
    pub std: Vec<f64>,
    /// Order of the dimensions [default: nchw, but for the preset opencv]
    #[arg(long, value_name = "ORDER")]
    pub layout: Option<LayoutArg>,
    /// Element type [default: f32]
    #[arg(long, value_name = "TYPE")]
    pub dtype: Option<DTypeArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum LayoutArg {
    /// Sample, channel, row, column
    Nchw,
    /// Sample, row, column, channel
    Nhwc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum DTypeArg {
    /// 32-bit floats, normalised
    F32,
    /// 16-bit floats, normalised
    F16,
    /// The pixels as they are, in NHWC order; of --transform and --preset, whose order stays, before mean and standard deviation
    U8,
}

impl FeedArgs {
    /// What happens to samples of this layout: images are transformed or normalised unless `u8` is asked for, anything else passes through.
    pub fn preprocess(&self, sample: &SampleLayout) -> Result<Preprocess> {
        let Some(image) = sample.as_image() else { return self.pass_through(sample).map(|()| Preprocess::Raw) };
        if let Some(pipeline) = self.transform.pipeline()? {
            let preprocess = Preprocess::from(self.with_values(pipeline, image.channels())?);
            preprocess.validate(&preprocess.staged(sample)?)?;
            return Ok(preprocess);
        }
        Ok(self.normalize(sample, image.channels())?.map_or(Preprocess::Raw, Preprocess::from))
    }

    /// What becomes of the samples, in words.
    pub fn describe(&self, preprocess: &Preprocess) -> String {
        let (made, dtype, layout) = match preprocess {
            Preprocess::Normalize(normalize) => {
                let dtype = match normalize.dtype {
                    FloatType::F32 => "f32",
                    FloatType::F16 => "f16",
                };
                ("normalised".to_owned(), dtype, normalize.layout)
            }
            Preprocess::Pipeline(pipeline) => {
                (self.transform.describe(), pipeline.dtype.element().name(), pipeline.layout)
            }
            _ => return "delivered as they are".to_owned(),
        };
        let layout = match layout {
            TensorLayout::Nchw => "NCHW",
            TensorLayout::Nhwc => "NHWC",
        };
        format!("{made} to {dtype}, {layout}")
    }

    fn layout(&self) -> Option<TensorLayout> {
        self.layout.map(|layout| match layout {
            LayoutArg::Nhwc => TensorLayout::Nhwc,
            LayoutArg::Nchw => TensorLayout::Nchw,
        })
    }

    /// A recipe with the values that are asked for. Grey images stay grey where no preset makes colours of them.
    fn with_values(&self, pipeline: Pipeline, channels: usize) -> Result<Pipeline> {
        let grey = self.transform.preset.is_none() && channels == 1;
        let order = if grey { ChannelOrder::Gray } else { pipeline.channels };
        let Pipeline { mean, std, .. } = match self.transform.preset {
            Some(_) => pipeline.clone(),
            None if grey => pipeline.clone().with_channels(order, &[0.0], &[1.0]),
            None => Pipeline::imagenet(),
        };
        let (mean, std) = if self.mean.is_empty() { (mean, std) } else { (self.mean.clone(), self.std.clone()) };
        let layout = self.layout().unwrap_or(pipeline.layout);
        let pipeline = pipeline.with_channels(order, &mean, &std).with_layout(layout);
        Ok(match self.dtype {
            Some(DTypeArg::U8) => {
                ensure!(self.mean.is_empty(), "--dtype u8 delivers pixels: --mean and --std are not for it");
                let (zeros, ones) = (vec![0.0; order.count()], vec![1.0 / 255.0; order.count()]);
                let pixels = TensorType::U8(Quantization { scale: 1.0, zero_point: 0 });
                pipeline.with_channels(order, &zeros, &ones).with_dtype(pixels)
            }
            Some(DTypeArg::F16) => pipeline.with_dtype(TensorType::F16),
            Some(DTypeArg::F32) | None => pipeline,
        })
    }

    /// How images are normalised; `None` where they pass through.
    fn normalize(&self, sample: &SampleLayout, channels: usize) -> Result<Option<Normalize>> {
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
        let layout = self.layout().unwrap_or_default();
        let normalize = match channels {
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
        let all = [
            ("--preset", self.transform.preset.is_some()),
            ("--transform", !self.transform.transform.is_empty()),
            ("--mean", !self.mean.is_empty()),
            ("--std", !self.std.is_empty()),
            ("--layout", self.layout.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use gpufeed::Resize;

    use super::*;
    use crate::transform::PresetArg;

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

    fn transform(preset: Option<PresetArg>, steps: &[&str]) -> TransformArgs {
        TransformArgs { preset, transform: steps.iter().map(|step| step.parse().expect("a step")).collect() }
    }

    #[test]
    fn a_recipe_has_the_presets_values_or_those_of_images_of_its_channels() {
        let of = |args: &FeedArgs, channels| match args.preprocess(&image(channels)).expect("it fits") {
            Preprocess::Pipeline(pipeline) => *pipeline,
            other => panic!("{other:?}"),
        };
        let steps = FeedArgs { transform: transform(None, &["resize=2x3"]), ..FeedArgs::default() };
        let resize = Resize::Exact { height: 2, width: 3 };
        assert_eq!(of(&steps, 3), Pipeline::imagenet().with_resize(resize));
        let grey = Pipeline::new().with_resize(resize).with_channels(ChannelOrder::Gray, &[0.0], &[1.0]);
        assert_eq!(of(&steps, 1), grey);
        let bytes = FeedArgs {
            transform: transform(Some(PresetArg::Opencv), &[]),
            dtype: Some(DTypeArg::U8),
            ..FeedArgs::default()
        };
        let pixels = of(&bytes, 3);
        assert_eq!((pixels.channels, pixels.layout), (ChannelOrder::Bgr, TensorLayout::Nhwc));
        assert_eq!(bytes.describe(&pixels.into()), "opencv to u8, NHWC");
        let mean = FeedArgs { mean: vec![0.1; 3], std: vec![2.0; 3], layout: Some(LayoutArg::Nhwc), ..steps };
        let given = Pipeline::new().with_channels(ChannelOrder::Rgb, &[0.1; 3], &[2.0; 3]).with_resize(resize);
        assert_eq!(of(&mean, 4), given.with_layout(TensorLayout::Nhwc));
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
        let preset = FeedArgs { transform: transform(Some(PresetArg::Yolo), &[]), ..FeedArgs::default() };
        assert!(refused(&preset, &floats).starts_with("--preset is only for u8 images"));
        let pixels = FeedArgs { dtype: Some(DTypeArg::U8), ..FeedArgs { mean: means.mean, std: means.std, ..preset } };
        assert!(refused(&pixels, &image(3)).contains("--mean and --std are not for it"));
        let same = FeedArgs { dtype: Some(DTypeArg::F32), ..FeedArgs::default() };
        assert_eq!(same.preprocess(&floats).expect("as they are"), Preprocess::Raw);
    }
}

//! Transforms of images, by the names that people know from torchvision and YOLO.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use gpufeed::{Anchor, Crop, Filter, Flip, Pipeline, Resize};
use serde::{Deserialize, Serialize};

use crate::units::{self, HxW};

/// What becomes of images of any size.
#[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
#[command(next_help_heading = "Tensor, of u8 images only")]
pub struct TransformArgs {
    /// Make the input of a network of the images, with the preset's size, colours and layout where no other option gives them
    #[arg(long, value_name = "NAME")]
    pub preset: Option<PresetArg>,
    /// What is done to each image, in this order, instead of what the preset does: resize=N (the shorter side), resize=HxW,
    /// center-crop=N, random-resized-crop=N, letterbox=N, flip (left and right change places in half of the images), bicubic (otherwise
    /// bilinear). Pixels are antialiased, but for the presets yolo and opencv. Sizes are N or HxW; what is random depends on --seed and
    /// the epoch alone
    #[arg(long, value_name = "STEP,..", value_delimiter = ',')]
    pub transform: Vec<Step>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PresetArg {
    /// ImageNet's mean and standard deviation
    Imagenet,
    /// torchvision's evaluation: Resize(256), CenterCrop(224), ImageNet's mean and standard deviation
    ImagenetEval,
    /// torchvision's training: RandomResizedCrop(224), RandomHorizontalFlip(), ImageNet's mean and standard deviation
    ImagenetTrain,
    /// Values from -1 to 1
    MinusOneToOne,
    /// Values from 0 to 255
    #[value(name = "zero-to-255")]
    #[serde(rename = "zero-to-255")]
    ZeroTo255,
    /// Ultralytics' YOLO: a letterbox of 640x640 filled with 114, values from 0 to 1
    Yolo,
    /// OpenCV's: blue, green, red from 0 to 255, NHWC
    Opencv,
}

impl PresetArg {
    fn pipeline(self) -> Pipeline {
        match self {
            Self::Imagenet => Pipeline::imagenet(),
            Self::ImagenetEval => Pipeline::imagenet_eval(),
            Self::ImagenetTrain => Pipeline::imagenet_train(224),
            Self::MinusOneToOne => Pipeline::minus_one_to_one(),
            Self::ZeroTo255 => Pipeline::zero_to_255(),
            Self::Yolo => Pipeline::yolo(640),
            // Of the images' own size.
            Self::Opencv => Pipeline::opencv(1, 1).with_resize(Resize::None),
        }
    }

    fn key(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// One step of `--transform`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    ShorterSide(usize),
    Resize(HxW),
    CenterCrop(HxW),
    RandomResizedCrop(HxW),
    Letterbox(HxW),
    Flip,
    Bicubic,
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, size) = match text.split_once('=') {
            Some((name, size)) => (name, Some(size)),
            None => (text, None),
        };
        let side = |size: &str| size.parse().ok().filter(|&side: &usize| side > 0);
        let sized = |make: fn(HxW) -> Self| {
            let size = size.ok_or_else(|| format!("{name} needs a size, as in {name}=224"))?;
            match side(size) {
                Some(side) => Ok(make(HxW { height: side, width: side })),
                None => {
                    units::parse_size(size).map(make).map_err(|_| format!("{size} is no size, as 224 and 224x320 are"))
                }
            }
        };
        match (name, size) {
            ("resize", Some(size)) if side(size).is_some() => Ok(Self::ShorterSide(side(size).unwrap_or_default())),
            ("resize", _) => sized(Self::Resize),
            ("center-crop", _) => sized(Self::CenterCrop),
            ("random-resized-crop", _) => sized(Self::RandomResizedCrop),
            ("letterbox", _) => sized(Self::Letterbox),
            ("flip", None) => Ok(Self::Flip),
            ("bicubic", None) => Ok(Self::Bicubic),
            ("flip" | "bicubic", Some(_)) => Err(format!("{name} takes no number")),
            _ => Err("there are resize, center-crop, random-resized-crop, letterbox, flip and bicubic".to_owned()),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, HxW { height, width }) = match *self {
            Self::ShorterSide(side) => return write!(f, "resize={side}"),
            Self::Flip => return f.write_str("flip"),
            Self::Bicubic => return f.write_str("bicubic"),
            Self::Resize(size) => ("resize", size),
            Self::CenterCrop(size) => ("center-crop", size),
            Self::RandomResizedCrop(size) => ("random-resized-crop", size),
            Self::Letterbox(size) => ("letterbox", size),
        };
        write!(f, "{name}={height}x{width}")
    }
}

impl TransformArgs {
    /// Whether images only become floats of their own size.
    pub fn is_empty(&self) -> bool {
        self.preset.is_none() && self.transform.is_empty()
    }

    /// The recipe, where there is one, without a say in values where no preset has one.
    pub fn pipeline(&self) -> Result<Option<Pipeline>> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut pipeline = self.preset.map_or_else(Pipeline::new, PresetArg::pipeline);
        if !self.transform.is_empty() {
            let Pipeline { filter, .. } = Pipeline::new();
            let (crop, resize, flip) = (Crop::None, Resize::None, Flip::default());
            pipeline = Pipeline { crop, resize, flip, filter, center_crop: None, ..pipeline };
        }
        for (number, step) in self.transform.iter().enumerate() {
            let same = |other: &Step| std::mem::discriminant(other) == std::mem::discriminant(step);
            if self.transform[..number].iter().any(same) {
                bail!("--transform: {step} is a second one of its kind");
            }
            add(&mut pipeline, *step)?;
        }
        Ok(Some(pipeline))
    }

    /// What is done, in the words of the options.
    pub fn describe(&self) -> String {
        let steps: Vec<_> = self.transform.iter().map(Step::to_string).collect();
        let words: Vec<_> = self.preset.map(PresetArg::key).into_iter().chain(steps).collect();
        words.join(",")
    }
}

fn add(pipeline: &mut Pipeline, step: Step) -> Result<()> {
    let resize = match step {
        Step::Flip => {
            pipeline.flip.horizontal = 0.5;
            return Ok(());
        }
        Step::Bicubic => {
            pipeline.filter = Filter::Bicubic;
            return Ok(());
        }
        Step::CenterCrop(HxW { height, width }) => {
            pipeline.center_crop = Some((height, width));
            return Ok(());
        }
        Step::ShorterSide(side) => Resize::ShorterSide(side),
        Step::Resize(HxW { height, width }) => Resize::Exact { height, width },
        Step::Letterbox(HxW { height, width }) => Resize::Letterbox { height, width, anchor: Anchor::Center },
        Step::RandomResizedCrop(HxW { height, width }) => {
            pipeline.crop = Crop::RANDOM;
            Resize::Exact { height, width }
        }
    };
    if pipeline.resize != Resize::None {
        bail!("--transform: {step} would resize what is resized already");
    }
    if pipeline.center_crop.is_some() {
        bail!("--transform: {step} comes before center-crop, which cuts what was resized");
    }
    pipeline.resize = resize;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(preset: Option<PresetArg>, steps: &str) -> Result<Pipeline> {
        let steps = steps.split(',').filter(|step| !step.is_empty()).map(str::parse::<Step>);
        let transform = steps.collect::<Result<_, _>>().map_err(anyhow::Error::msg)?;
        Ok(TransformArgs { preset, transform }.pipeline()?.expect("a recipe"))
    }

    #[test]
    fn torchvisions_transforms_are_the_presets() {
        let steps = [
            (PresetArg::ImagenetEval, "resize=256,center-crop=224"),
            (PresetArg::ImagenetTrain, "random-resized-crop=224,flip"),
        ];
        for (preset, steps) in steps {
            let spelled = parse(Some(PresetArg::Imagenet), steps).expect("valid");
            assert_eq!(spelled, parse(Some(preset), "").expect("valid"), "{steps}");
        }
        let (yolo, own) = (parse(Some(PresetArg::Yolo), ""), parse(Some(PresetArg::Yolo), "letterbox=640x640"));
        assert_eq!(yolo.expect("valid"), own.expect("valid"));
    }

    #[test]
    fn steps_replace_the_geometry_of_a_preset_and_nothing_else() {
        let made = parse(Some(PresetArg::ImagenetTrain), "resize=20x30,bicubic").expect("valid");
        let resize = Resize::Exact { height: 20, width: 30 };
        assert_eq!(made, Pipeline::imagenet().with_resize(resize).with_filter(Filter::Bicubic, true));
    }

    #[test]
    fn steps_that_make_no_sense_are_named() {
        let refused = |steps: &str| parse(None, steps).expect_err("refused").to_string();
        assert!(refused("rotate=3").starts_with("there are resize, "));
        assert_eq!(refused("letterbox"), "letterbox needs a size, as in letterbox=224");
        assert_eq!(refused("resize=0"), "0 is no size, as 224 and 224x320 are");
        assert_eq!(refused("flip=0.5"), "flip takes no number");
        assert!(refused("flip,resize=8,flip").contains("flip is a second one"));
        assert!(refused("resize=8,letterbox=9").contains("letterbox=9x9 would resize what is resized"));
        assert!(refused("center-crop=8,resize=9").contains("resize=9 comes before center-crop"));
    }
}

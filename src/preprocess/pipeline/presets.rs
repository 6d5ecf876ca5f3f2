//! What people copy, by the names that they know it by.

use super::{Anchor, ChannelOrder, Crop, Filter, Flip, Pipeline, Resize, TensorLayout};

/// Of ImageNet's training set, for red, green and blue.
const IMAGENET: ([f64; 3], [f64; 3]) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

impl Pipeline {
    /// torchvision's evaluation of ImageNet: `Resize(256)`, `CenterCrop(224)`, mean and standard deviation of ImageNet.
    #[must_use]
    pub fn imagenet_eval() -> Self {
        Self { center_crop: Some((224, 224)), ..Self::imagenet().with_resize(Resize::ShorterSide(256)) }
    }

    /// torchvision's training on ImageNet: `RandomResizedCrop(pixels)`, `RandomHorizontalFlip()`, mean and standard deviation of ImageNet.
    #[must_use]
    pub fn imagenet_train(pixels: usize) -> Self {
        let resize = Resize::Exact { height: pixels, width: pixels };
        let flip = Flip { horizontal: 0.5, vertical: 0.0 };
        Self { flip, ..Self::imagenet().with_crop(Crop::RANDOM).with_resize(resize) }
    }

    /// Frames of any size with the mean and standard deviation of ImageNet.
    #[must_use]
    pub fn imagenet() -> Self {
        Self::new().with_channels(ChannelOrder::Rgb, &IMAGENET.0, &IMAGENET.1)
    }

    /// Values from -1 to 1: `(x / 255 - 0.5) / 0.5`.
    #[must_use]
    pub fn minus_one_to_one() -> Self {
        Self::new().with_channels(ChannelOrder::Rgb, &[0.5; 3], &[0.5; 3])
    }

    /// Values from 0 to 255, as floats.
    #[must_use]
    pub fn zero_to_255() -> Self {
        Self::new().with_channels(ChannelOrder::Rgb, &[0.0; 3], &[1.0 / 255.0; 3])
    }

    /// The input of Ultralytics' YOLO: a letterbox of `pixels` times `pixels` filled with 114, made by OpenCV's `INTER_LINEAR`; red, green
    /// and blue from 0 to 1.
    #[must_use]
    pub fn yolo(pixels: usize) -> Self {
        let resize = Resize::Letterbox { height: pixels, width: pixels, anchor: Anchor::Center };
        Self { fill: [114.0; 3], ..Self::new().with_resize(resize).with_filter(Filter::Bilinear, false) }
    }

    /// What `cv2.resize(frame, (width, height))` gives: `INTER_LINEAR`, blue, green and red from 0 to 255, as floats, NHWC.
    #[must_use]
    pub fn opencv(height: usize, width: usize) -> Self {
        Self::zero_to_255()
            .with_resize(Resize::Exact { height, width })
            .with_filter(Filter::Bilinear, false)
            .with_channels(ChannelOrder::Bgr, &[0.0; 3], &[1.0 / 255.0; 3])
            .with_layout(TensorLayout::Nhwc)
    }
}

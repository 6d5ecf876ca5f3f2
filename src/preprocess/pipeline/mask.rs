//! Fields that share an image's geometry: label maps, segmentations, anything of which no pixel is to be mixed with its neighbour.

use super::{ChannelOrder, Filter, Jitter, Pipeline, Quantization, TensorLayout, TensorType};
use crate::error::LayoutError;
use crate::layout::{FrameLayout, PixelFormat, Placement, SampleLayout};

/// A field of [`Gray8`](PixelFormat::Gray8) frames, as high and wide as the image, that becomes a tensor of u8 as high and wide as the
/// image's.
///
/// Each of its pixels is the mask's nearest one, of the very crop, size, flip and turn that the image gets: the sample's
/// [`Geometry`](super::Geometry) is read for both. No value is computed, so that classes stay what they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// The field's name.
    pub field: String,
    /// What is around the image, where the image's tensor has its own fill.
    pub fill: u8,
}

impl Pipeline {
    /// The same with another field that shares the image's geometry, and what is around it: often 255, which losses ignore, or 0 for
    /// background.
    ///
    /// ```
    /// use gpufeed::backend::host::HostBackend;
    /// use gpufeed::{Element, Feeder, FeederOptions, Field, Frame, Pipeline, PixelFormat, SampleLayout};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // Two rows of four: an image, which pixel is of which class, and boxes `[x0, y0, x1, y1]`, of variable number.
    /// let layout = SampleLayout::new([
    ///     Field::image("image", 2, 4, 3)?,
    ///     Field::frame("mask", PixelFormat::Gray8, 2, 4)?,
    ///     Field::ragged("boxes", Element::F32, 10, &[4])?.on_host(),
    /// ])?;
    /// let pipeline = Pipeline::yolo(4).with_mask("mask", 255);
    /// let options = FeederOptions { preprocess: pipeline.into(), ..FeederOptions::default() };
    /// let mut feeder = Feeder::new(&HostBackend::new(), layout, options)?;
    /// let batch = feeder.feed_with(1, |frame| {
    ///     frame.field("mask")?.write(&[0, 0, 1, 1, 0, 2, 2, 1])?;
    ///     frame.field("boxes")?.values(&[2.0f32, 0.0, 4.0, 1.0])?;
    ///     frame.write(&[200; 24])
    /// })?;
    /// // A letterbox: a row above and one below.
    /// let mask = batch.read_field("mask")?.expect("on the device");
    /// assert_eq!(mask, [[255; 4], [0, 0, 1, 1], [0, 2, 2, 1], [255; 4]].concat());
    /// let geometry = batch.geometry(0).expect("there is a pipeline");
    /// assert_eq!(geometry.box_to_tensor([2.0, 0.0, 4.0, 1.0]), [2.0, 1.0, 4.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_mask(mut self, field: impl Into<String>, fill: u8) -> Self {
        self.masks.push(Mask { field: field.into(), fill });
        self
    }

    /// Which of the sample's fields is a mask of this name.
    pub(super) fn mask_field(sample: &SampleLayout, mask: &Mask) -> Option<usize> {
        sample.fields().iter().position(|field| field.name() == mask.field)
    }

    /// Masks are fields of their own, of the image's size.
    pub(super) fn check_masks(&self, sample: &SampleLayout, image: &FrameLayout) -> Result<(), LayoutError> {
        let refused = |mask: &Mask, why: String| {
            Err(LayoutError::Pipeline { step: "masks", reason: format!("field `{}` {why}", mask.field) })
        };
        for (number, mask) in self.masks.iter().enumerate() {
            let Some(at) = Self::mask_field(sample, mask) else {
                return refused(mask, "is not one of the sample's".to_owned());
            };
            if at == 0 {
                return refused(mask, "is the image itself".to_owned());
            }
            if self.masks[..number].iter().any(|other| other.field == mask.field) {
                return refused(mask, "is named twice".to_owned());
            }
            let field = &sample.fields()[at];
            let frame = field.as_frame().filter(|frame| frame.format() == PixelFormat::Gray8);
            let Some(frame) = frame else { return refused(mask, format!("holds {field}, and no Gray8 frames")) };
            let (size, wanted) = ((frame.width(), frame.height()), (image.width(), image.height()));
            if size != wanted {
                let why = format!("is of {}x{} pixels, and the image of {}x{}", size.0, size.1, wanted.0, wanted.1);
                return refused(mask, why);
            }
            if field.placement() == Placement::Host {
                return refused(mask, "is placed on the host, where nothing is resampled".to_owned());
            }
        }
        Ok(())
    }

    /// The recipe that makes a mask's tensor of the image's geometry.
    pub(super) fn of_mask(&self, mask: &Mask) -> Self {
        Self {
            filter: Filter::Nearest,
            antialias: false,
            jitter: Jitter::NONE,
            channels: ChannelOrder::Gray,
            fill: [f64::from(mask.fill), 0.0, 0.0],
            mean: vec![0.0],
            std: vec![1.0 / 255.0],
            layout: TensorLayout::Nchw,
            dtype: TensorType::U8(Quantization { scale: 1.0, zero_point: 0 }),
            masks: Vec::new(),
            ..self.clone()
        }
    }
}

use super::*;
use crate::layout::{Element, Field, PixelFormat};
use crate::preprocess::{OutputLayout, Preprocess};

fn sample() -> SampleLayout {
    SampleLayout::frame(PixelFormat::Bgra8, 6, 8).expect("a frame")
}

#[test]
fn parameters_that_cannot_be_used_are_named() {
    let refused = |pipeline: Pipeline| pipeline.validate(&sample()).expect_err("it cannot be used").to_string();
    let flip = Flip { horizontal: 1.5, vertical: 0.0 };
    assert!(refused(Pipeline { flip, ..Pipeline::new() }).contains("flip"));
    let hue = Jitter { hue: (-0.6, 0.0), ..Jitter::NONE };
    assert!(refused(Pipeline { jitter: hue, ..Pipeline::new() }).contains("jitter"));
    let quantization = Quantization { scale: 0.1, zero_point: 200 };
    assert!(refused(Pipeline::new().with_dtype(TensorType::I8(quantization))).contains("zero point of 200"));
    assert!(refused(Pipeline::new().with_channels(ChannelOrder::Gray, &[0.0; 3], &[1.0; 3])).contains("mean has 3"));
    assert!(refused(Pipeline { fill: [0.0, f64::NAN, 0.0], ..Pipeline::new() }).contains("fill"));
    let crop = Crop::Random { scale: (0.0, 1.0), ratio: (1.0, 1.0) };
    assert!(refused(Pipeline::new().with_crop(crop)).contains("crop"));
    let array = SampleLayout::new([Field::array("data", Element::F32, &[4]).expect("a field")]).expect("a sample");
    assert!(matches!(Pipeline::new().validate(&array), Err(LayoutError::NotAFrame { .. })));
}

#[test]
fn samples_carry_a_record_behind_their_own_fields() {
    let preprocess = Preprocess::from(Pipeline::yolo(32));
    let sample = sample().with_label(Element::I64).expect("a label");
    let missing = preprocess.validate(&sample).expect_err("there is no record");
    assert!(matches!(missing, LayoutError::FieldName { name, .. } if name == GEOMETRY));
    let staged = preprocess.staged(&sample).expect("there is room");
    preprocess.validate(&staged).expect("it is there");
    let layout = crate::layout::BatchLayout::new(staged, 3).expect("a batch");
    let output = OutputLayout::new(&preprocess, &layout).expect("it fits");
    let shapes: Vec<_> = output.fields().iter().map(|field| field.desc.shape.as_slice().to_vec()).collect();
    assert_eq!(shapes, [vec![3, 3, 32, 32], vec![3, Geometry::WORDS]]);
    assert_eq!(Preprocess::Raw.staged(&sample).expect("as it is"), sample);
}

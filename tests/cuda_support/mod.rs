//! Shapes, bytes and the check against the CPU.

use gpufeed::backend::cuda::{CudaBackend, CudaTensor};
use gpufeed::backend::{LaneSpec, Tensor};
use gpufeed::preprocess::{error_bound, expected, fingerprint};
use gpufeed::{BatchLayout, FloatType, Normalize, OpenError, Preprocess, SampleLayout, Strategy, TensorLayout};

/// Height, width, channels and batch size.
pub type Case = (usize, usize, usize, usize);

pub const CASES: [Case; 14] = [
    (8, 8, 3, 5),
    (1, 1, 1, 5),
    (1, 1, 3, 5),
    (1, 7, 4, 5),
    (1, 7, 3, 5),
    (31, 17, 3, 5),
    (31, 17, 1, 5),
    (5, 4, 3, 5),
    (5, 4, 4, 5),
    (8, 8, 4, 5),
    (16, 20, 3, 9),
    (67, 61, 3, 4),
    (80, 90, 4, 3),
    (100, 100, 3, 3),
];

pub fn tensors() -> impl Iterator<Item = (TensorLayout, FloatType)> {
    let orders = [TensorLayout::Nchw, TensorLayout::Nhwc];
    orders.into_iter().flat_map(|order| [FloatType::F32, FloatType::F16].map(|dtype| (order, dtype)))
}

/// Runs a test on the first CUDA device, or says why not.
pub fn on_cuda(name: &str, test: impl FnOnce(CudaBackend)) {
    match CudaBackend::open("cuda:0") {
        Ok(backend) => test(backend),
        Err(OpenError::NoDevice { found, .. }) => {
            skip(&format!("skipped: {name}: no such device here (found: {found})"))
        }
        Err(error) => panic!("the device is there and cannot be opened: {error}"),
    }
}

fn skip(line: &str) {
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("GPUFEED_SKIP_LOG") {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(path);
        let written = log.and_then(|mut log| std::io::Write::write_all(&mut log, format!("{line}\n").as_bytes()));
        written.expect("the list of skipped tests can be written");
    }
}

pub fn lane_spec(
    (height, width, channels, batch): Case,
    order: TensorLayout,
    dtype: FloatType,
    strategy: Strategy,
) -> LaneSpec {
    let (mean, std) = ([0.485, 0.456, 0.406, 0.5], [0.229, 0.224, 0.225, 0.25]);
    let normalize = Normalize::new(&mean[..channels], &std[..channels]).with_layout(order).with_dtype(dtype);
    let image = SampleLayout::image(height, width, channels).expect("valid");
    let layout = BatchLayout::new(image, batch).expect("valid");
    LaneSpec { outputs: 4, fingerprints: true, ..LaneSpec::new(layout, normalize.into(), strategy) }
}

/// Images that all differ, with every value in every channel once there are as many pixels.
pub fn image_bytes(layout: &BatchLayout, samples: usize) -> Vec<u8> {
    let one = layout.sample().byte_len();
    let channels = layout.sample().as_image().map_or(1, |image| image.channels());
    (0..one * samples).map(|at| (at % one / channels + at % channels * 85 + at / one * 31) as u8).collect()
}

/// Checks every element and every fingerprint of a tensor that `bytes` became.
pub fn check_tensor(spec: &LaneSpec, bytes: &[u8], tensor: &CudaTensor) {
    let Preprocess::Normalize(normalize) = &spec.preprocess else { panic!("images are normalised") };
    let image = spec.layout.sample().as_image().expect("an image");
    let (one, plane, channels) = (spec.layout.sample().byte_len(), image.plane(), image.channels());
    let samples = bytes.len() / one;
    let read = tensor.read(&spec.preprocess.tensor(&spec.layout, samples)).expect("it can be read");
    let got: Vec<f64> = match normalize.dtype {
        FloatType::F32 => read.as_chunks().0.iter().map(|&b| f64::from(f32::from_le_bytes(b))).collect(),
        FloatType::F16 => read.as_chunks().0.iter().map(|&b| half::f16::from_le_bytes(b).to_f64()).collect(),
    };
    let right = expected(normalize, image, bytes).expect("valid");
    assert_eq!(got.len(), right.len());
    for (at, (&got, &right)) in got.iter().zip(&right).enumerate() {
        let channel = match normalize.layout {
            TensorLayout::Nhwc => at % channels,
            TensorLayout::Nchw => at % one / plane,
        };
        let pixel = (right - normalize.bias(channel)) / normalize.scale(channel);
        let bound = error_bound(normalize, channel, pixel.round() as u8);
        assert!((got - right).abs() <= bound, "{spec_layout:?} {at}: {got} not {right}", spec_layout = spec.layout);
    }
    let right: Vec<u64> = bytes.chunks_exact(one).map(fingerprint).collect();
    assert_eq!(tensor.fingerprints(samples).expect("they can be read"), Some(right), "{:?}", spec.layout);
}

//! PP-OCR's text direction classifier, a MobileNetV3 with 53 convolutions, written out on burn's tensors.
//!
//! Batch normalisation is folded into the convolution before it, as every runtime does for inference.

use anyhow::{Result, ensure};
use burn::tensor::activation::{hard_sigmoid, hard_swish, relu, softmax};
use burn::tensor::module::{adaptive_avg_pool2d, conv2d, linear, max_pool2d};
use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
use burn::tensor::{Device, Tensor, TensorData};

use crate::weights::Weights;

/// The network's input: height and width.
pub const INPUT: [usize; 2] = [48, 192];

/// The blocks, by their numbers in the file, with their activation and the rows that their middle convolution steps over. Columns are
/// never stepped over: text is read along them.
const BLOCKS: [(usize, Activation, usize); 11] = [
    (2, relu::<4>, 2),
    (3, relu::<4>, 2),
    (4, relu::<4>, 1),
    (5, hard_swish::<4>, 2),
    (6, hard_swish::<4>, 1),
    (7, hard_swish::<4>, 1),
    (8, hard_swish::<4>, 1),
    (9, hard_swish::<4>, 1),
    (10, hard_swish::<4>, 2),
    (11, hard_swish::<4>, 1),
    (12, hard_swish::<4>, 1),
];

type Activation = fn(Tensor<4>) -> Tensor<4>;

/// The network on a device.
pub struct Network {
    first: Convolution,
    blocks: Vec<Block>,
    last: Convolution,
    weight: Tensor<2>,
    bias: Tensor<1>,
}

impl Network {
    /// # Errors
    /// The weights are another network's.
    pub fn new(weights: &Weights, device: &Device) -> Result<Self> {
        let file = File { weights, device };
        let blocks = BLOCKS.iter().map(|&(number, activation, rows)| file.block(number, activation, rows));
        Ok(Self {
            first: file.normalised("conv1", [2, 2], false)?,
            blocks: blocks.collect::<Result<_>>()?,
            last: file.normalised("conv_last", [1, 1], false)?,
            weight: file.tensor("fc_0.w_0")?,
            bias: file.tensor("fc_0.b_0")?,
        })
    }

    /// From pictures, NCHW, the probabilities of upright and upside down for each.
    pub fn forward(&self, pictures: Tensor<4>) -> Tensor<2> {
        let mut features = hard_swish(self.first.forward(pictures));
        for block in &self.blocks {
            features = block.forward(features);
        }
        let features = hard_swish(self.last.forward(features));
        let features = max_pool2d(features, MaxPoolOptions::new([2, 2]));
        let features = adaptive_avg_pool2d(features, [1, 1]).flatten::<2>(1, 3);
        softmax(linear(features, self.weight.clone(), Some(self.bias.clone())), 1)
    }
}

/// An inverted residual: more channels, each for itself over space, squeeze and excitation where the file has it, fewer channels.
struct Block {
    expand: Convolution,
    depthwise: Convolution,
    excitation: Option<[Convolution; 2]>,
    project: Convolution,
    activation: Activation,
    /// Whether the input is added to the output, which has its shape then.
    adds: bool,
}

impl Block {
    fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        let mut inner = (self.activation)(self.expand.forward(input.clone()));
        inner = (self.activation)(self.depthwise.forward(inner));
        if let Some([squeeze, excite]) = &self.excitation {
            let means = adaptive_avg_pool2d(inner.clone(), [1, 1]);
            inner = inner * hard_sigmoid(excite.forward(relu(squeeze.forward(means))), 0.2, 0.5);
        }
        let output = self.project.forward(inner);
        if self.adds { input + output } else { output }
    }
}

struct Convolution {
    weight: Tensor<4>,
    bias: Tensor<1>,
    options: ConvOptions<2>,
}

impl Convolution {
    fn forward(&self, input: Tensor<4>) -> Tensor<4> {
        conv2d(input, self.weight.clone(), Some(self.bias.clone()), self.options.clone())
    }
}

/// Where the network comes from and goes to.
struct File<'a> {
    weights: &'a Weights,
    device: &'a Device,
}

impl File<'_> {
    fn block(&self, number: usize, activation: Activation, rows: usize) -> Result<Block> {
        let name = |part: &str| format!("conv{number}_{part}");
        let excites = self.weights.get(&name("se_1_weights")).is_ok();
        let excitation = || Ok::<_, anyhow::Error>([self.plain(&name("se_1"))?, self.plain(&name("se_2"))?]);
        let expand = self.normalised(&name("expand"), [1, 1], false)?;
        let project = self.normalised(&name("linear"), [1, 1], false)?;
        let adds = rows == 1 && expand.weight.dims()[1] == project.weight.dims()[0];
        Ok(Block {
            expand,
            depthwise: self.normalised(&name("depthwise"), [rows, 1], true)?,
            excitation: excites.then(excitation).transpose()?,
            project,
            activation,
            adds,
        })
    }

    /// A convolution with a bias of its own, of 1x1.
    fn plain(&self, name: &str) -> Result<Convolution> {
        let (weight, bias) = (self.tensor(&format!("{name}_weights"))?, self.tensor(&format!("{name}_offset"))?);
        Ok(Convolution { weight, bias, options: ConvOptions::new([1, 1], [0, 0], [1, 1], 1) })
    }

    /// A convolution and the batch normalisation behind it as one: `scale / sqrt(variance + 1e-5)` goes into the weights.
    fn normalised(&self, name: &str, stride: [usize; 2], depthwise: bool) -> Result<Convolution> {
        let weights = self.weights.get(&format!("{name}_weights"))?;
        let part = |part: &str| self.weights.get(&format!("{name}_bn_{part}")).map(|part| &part.values);
        let (scale, offset, mean, variance) = (part("scale")?, part("offset")?, part("mean")?, part("variance")?);
        let &[outputs, inputs, height, width] = weights.shape.as_slice() else {
            anyhow::bail!("`{name}` has {} dimensions and not 4", weights.shape.len());
        };
        let lengths = [scale.len(), offset.len(), mean.len(), variance.len()];
        ensure!(lengths == [outputs; 4], "`{name}` has {outputs} channels, and {lengths:?} values to normalise them");
        let factors: Vec<f32> =
            scale.iter().zip(variance).map(|(scale, variance)| scale / (variance + 1e-5).sqrt()).collect();
        let each = inputs * height * width;
        let folded = weights.values.iter().enumerate().map(|(at, weight)| weight * factors[at / each]).collect();
        let bias = (0..outputs).map(|at| offset[at] - mean[at] * factors[at]).collect();
        Ok(Convolution {
            weight: Tensor::from_data(TensorData::new::<f32, _>(folded, weights.shape.clone()), self.device),
            bias: Tensor::from_data(TensorData::new::<f32, _>(bias, [outputs]), self.device),
            options: ConvOptions::new(stride, [height / 2, width / 2], [1, 1], if depthwise { outputs } else { 1 }),
        })
    }

    fn tensor<const D: usize>(&self, name: &str) -> Result<Tensor<D>> {
        let weights = self.weights.get(name)?;
        ensure!(weights.shape.len() == D, "`{name}` has {} dimensions and not {D}", weights.shape.len());
        let data = TensorData::new(weights.values.clone(), weights.shape.clone());
        Ok(Tensor::from_data(data, self.device))
    }
}

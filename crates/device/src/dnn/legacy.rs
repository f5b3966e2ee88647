//! The legacy interface: one kind of descriptor per noun, with typed setters, and calls that name what they do.

use trompe_base::DType;
use trompe_trace::descriptor::{Direction, ImageLayout};

use super::convolution::Parts;
use super::recurrent::{RnnData, RnnSettings};
use super::tensor::product;
use super::{Dnn, DnnError, Object, Operation, Tensor, graph};

/// Most dimensions that a descriptor may have (`CUDNN_DIM_MAX`).
pub const MAXIMUM_RANK: usize = 8;

/// `CUDNN_TENSOR_NHWC`.
const FORMAT_CHANNELS_LAST: i32 = 1;
/// `CUDNN_FMA_MATH`: no tensor cores, not even TF32.
const MATH_FMA: i32 = 3;

/// A descriptor of the legacy interface.
#[derive(Clone, Debug, PartialEq)]
pub enum Descriptor {
    /// Shape, strides and type.
    Tensor(TensorDescriptor),
    /// Shape, format and type of a filter.
    Filter(FilterDescriptor),
    /// Parameters of a convolution.
    Convolution(ConvolutionDescriptor),
    /// Dropout probability.
    Dropout(DropoutDescriptor),
    /// A recurrent network.
    Rnn(RnnSettings),
    /// Input or output of a recurrent network.
    RnnData(RnnData),
    /// Settings that nothing here asks about (activation, pooling, CTC loss, spatial transformer), in the order of
    /// their setter's arguments.
    Settings(Vec<i64>),
}

/// A tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TensorDescriptor {
    /// `cudnnDataType_t`.
    pub dtype: i32,
    /// Extents.
    pub dimensions: Vec<i32>,
    /// Distances in elements.
    pub strides: Vec<i32>,
}

/// A filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterDescriptor {
    /// `cudnnDataType_t`.
    pub dtype: i32,
    /// `cudnnTensorFormat_t`.
    pub format: i32,
    /// Extents: output channels, input channels per group, spatial.
    pub dimensions: Vec<i32>,
}

/// Parameters of a convolution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvolutionDescriptor {
    /// Padding.
    pub padding: Vec<i32>,
    /// Strides.
    pub stride: Vec<i32>,
    /// Dilation.
    pub dilation: Vec<i32>,
    /// `cudnnDataType_t` of the sums.
    pub compute: i32,
    /// `cudnnMathType_t`.
    pub math: i32,
    /// Groups.
    pub groups: i32,
}

/// Dropout.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DropoutDescriptor {
    /// Probability of dropping.
    pub probability: f32,
    /// Address of the generator states.
    pub states: u64,
    /// Seed.
    pub seed: u64,
}

impl Default for ConvolutionDescriptor {
    fn default() -> Self {
        Self { padding: Vec::new(), stride: Vec::new(), dilation: Vec::new(), compute: 0, math: 0, groups: 1 }
    }
}

impl TensorDescriptor {
    fn tensor(&self) -> Tensor {
        Tensor {
            dimensions: positive(&self.dimensions),
            strides: self.strides.iter().map(|&stride| i64::from(stride)).collect(),
            dtype: super::dtype(self.dtype),
            ..Tensor::default()
        }
    }
}

impl FilterDescriptor {
    fn tensor(&self) -> Tensor {
        let layout = if self.format == FORMAT_CHANNELS_LAST {
            ImageLayout::ChannelsLast
        } else {
            ImageLayout::ChannelsFirst
        };
        let strides = if layout == ImageLayout::ChannelsLast { vec![0, 1] } else { Vec::new() };
        Tensor {
            dimensions: positive(&self.dimensions),
            strides,
            dtype: super::dtype(self.dtype),
            ..Tensor::default()
        }
    }
}

fn positive(extents: &[i32]) -> Vec<u64> {
    extents.iter().map(|&extent| u64::try_from(extent).unwrap_or(0)).collect()
}

/// Handles of a convolution call.
#[derive(Clone, Copy, Debug)]
pub struct ConvolutionCall {
    /// Which product.
    pub direction: Direction,
    /// Tensor descriptor of x or its gradient.
    pub x: u64,
    /// Filter descriptor of w or its gradient.
    pub w: u64,
    /// Convolution descriptor.
    pub convolution: u64,
    /// Tensor descriptor of y or its gradient.
    pub y: u64,
}

/// `bytes` read and written by a call on one tensor shape: `reads` and `writes` times its size.
#[derive(Clone, Copy, Debug)]
pub struct Passes {
    /// How often the tensor's size is read.
    pub reads: u64,
    /// How often it is written.
    pub writes: u64,
}

impl Dnn {
    /// Creates a legacy descriptor.
    pub fn create_legacy(&mut self, descriptor: Descriptor) -> u64 {
        self.objects.insert(Object::Legacy(descriptor)).0
    }

    /// A legacy descriptor.
    ///
    /// # Errors
    /// When the handle is not one's.
    pub fn legacy(&self, handle: u64) -> Result<&Descriptor, DnnError> {
        match self.objects.get(handle)? {
            Object::Legacy(descriptor) => Ok(descriptor),
            Object::Backend(_) => Err(DnnError::BadParameter),
        }
    }

    /// Replaces a legacy descriptor by another of the same sort.
    ///
    /// # Errors
    /// When the handle is not one of a descriptor of that sort.
    pub fn set_legacy(&mut self, handle: u64, descriptor: Descriptor) -> Result<(), DnnError> {
        match self.objects.get_mut(handle)? {
            Object::Legacy(old) if std::mem::discriminant(old) == std::mem::discriminant(&descriptor) => {
                *old = descriptor;
                Ok(())
            }
            _ => Err(DnnError::BadParameter),
        }
    }

    /// A tensor descriptor.
    ///
    /// # Errors
    /// When the handle is not one's.
    pub fn tensor_descriptor(&self, handle: u64) -> Result<&TensorDescriptor, DnnError> {
        match self.legacy(handle)? {
            Descriptor::Tensor(tensor) => Ok(tensor),
            _ => Err(DnnError::BadParameter),
        }
    }

    /// A filter descriptor.
    ///
    /// # Errors
    /// When the handle is not one's.
    pub fn filter_descriptor(&self, handle: u64) -> Result<&FilterDescriptor, DnnError> {
        match self.legacy(handle)? {
            Descriptor::Filter(filter) => Ok(filter),
            _ => Err(DnnError::BadParameter),
        }
    }

    /// A convolution descriptor, to change it.
    ///
    /// # Errors
    /// When the handle is not one's.
    pub fn convolution_descriptor(&mut self, handle: u64) -> Result<&mut ConvolutionDescriptor, DnnError> {
        match self.objects.get_mut(handle)? {
            Object::Legacy(Descriptor::Convolution(convolution)) => Ok(convolution),
            _ => Err(DnnError::BadParameter),
        }
    }

    /// What a convolution call does.
    ///
    /// # Errors
    /// When a handle is not of the right kind.
    pub fn convolution(&self, call: ConvolutionCall) -> Result<Operation, DnnError> {
        let Descriptor::Convolution(parameters) = self.legacy(call.convolution)? else {
            return Err(DnnError::BadParameter);
        };
        let parts = Parts {
            direction: call.direction,
            x: self.tensor_descriptor(call.x)?.tensor(),
            w: self.filter_descriptor(call.w)?.tensor(),
            y: self.tensor_descriptor(call.y)?.tensor(),
            stride: positive(&parameters.stride),
            padding: positive(&parameters.padding),
            dilation: positive(&parameters.dilation),
            accumulator: super::dtype(parameters.compute),
            tensor_cores: parameters.math != MATH_FMA,
        };
        Ok(parts.describe(self.device).map_or_else(|| graph::unknown("convolution"), Operation::Convolution))
    }

    /// A call that passes over the tensor of `handle` some times.
    ///
    /// # Errors
    /// When the handle is no tensor descriptor.
    pub fn passes(&self, handle: u64, name: &str, passes: Passes) -> Result<Operation, DnnError> {
        let tensor = self.tensor_descriptor(handle)?.tensor();
        Ok(Operation::Graph(super::Graph {
            read: tensor.bytes().saturating_mul(passes.reads),
            written: tensor.bytes().saturating_mul(passes.writes),
            detail: format!("{name}: {}", tensor.text()),
        }))
    }

    /// Reserve space in bytes of batch normalisation with a fused activation: one bit per element for the
    /// activation's gradient, and nothing without (cuDNN documents "reserve space" as what the backward call of a fused activation needs).
    ///
    /// # Errors
    /// When the handle is no tensor descriptor.
    pub fn batch_norm_reserve(&self, x: u64, fused: bool) -> Result<u64, DnnError> {
        let elements = self.tensor_descriptor(x)?.tensor().elements();
        Ok(if fused { elements.div_ceil(8).next_multiple_of(32) } else { 0 })
    }

    /// Workspace in bytes of a CTC loss of probabilities `(steps, batch, labels)`: alpha and beta lattices of
    /// `2·label length + 1` states in fp32, where the label length is at most the number of steps.
    ///
    /// # Errors
    /// When the handle is no tensor descriptor.
    pub fn ctc_workspace(&self, probabilities: u64) -> Result<u64, DnnError> {
        let tensor = self.tensor_descriptor(probabilities)?.tensor();
        let states = tensor.extent(0).saturating_mul(2).saturating_add(1);
        Ok(product(&[2, tensor.extent(0), tensor.extent(1), states, DType::F32.size()]))
    }

    /// Strides of a packed tensor: the innermost dimension is contiguous.
    #[must_use]
    pub fn packed_strides(dimensions: &[i32]) -> Vec<i32> {
        let mut strides = vec![1_i32; dimensions.len()];
        for index in (1..dimensions.len()).rev() {
            strides[index - 1] = strides[index].saturating_mul(dimensions[index].max(1));
        }
        strides
    }
}

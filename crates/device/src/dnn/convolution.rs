//! Convolutions, from either interface.

use trompe_base::DType;
use trompe_trace::descriptor::{Convolution, Direction};

use super::backend::{Descriptor, attribute, kind};
use super::{DeviceTraits, Tensor};

/// The tensors and parameters of a convolution, in the forward operation's terms.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Which of the three products.
    pub direction: Direction,
    /// Input (or its gradient).
    pub x: Tensor,
    /// Filter (or its gradient).
    pub w: Tensor,
    /// Output (or its gradient).
    pub y: Tensor,
    /// Strides.
    pub stride: Vec<u64>,
    /// Padding before each dimension.
    pub padding: Vec<u64>,
    /// Dilation.
    pub dilation: Vec<u64>,
    /// Type that products are summed up in.
    pub accumulator: Option<DType>,
    /// fp32 products may use tensor cores.
    pub tensor_cores: bool,
}

impl Parts {
    /// The convolution that these parts make; `None` when a tensor's type is unknown or a shape makes no sense.
    #[must_use]
    pub fn describe(&self, device: DeviceTraits) -> Option<Convolution> {
        let dtype = self.x.dtype?;
        let spatial = |tensor: &Tensor| tensor.dimensions.get(2..).map(<[u64]>::to_vec);
        let per_group = self.w.extent(1);
        let groups = self.x.extent(1).checked_div(per_group)?;
        let tf32 = dtype == DType::F32 && self.tensor_cores && device.has_tf32();
        Some(Convolution {
            direction: self.direction,
            batch: self.x.extent(0),
            in_channels: self.x.extent(1),
            out_channels: self.y.extent(1),
            groups: groups.max(1),
            input: spatial(&self.x)?,
            output: spatial(&self.y)?,
            kernel: spatial(&self.w)?,
            stride: self.stride.clone(),
            padding: self.padding.clone(),
            dilation: self.dilation.clone(),
            dtype,
            compute: if tf32 { DType::Tf32 } else { self.accumulator.unwrap_or(dtype) },
            layout: self.x.layout(),
        })
    }
}

/// The parts of a convolution operation of the backend interface; `None` when `operation` is none.
#[must_use]
pub fn of_operation(operation: &Descriptor, tensor_cores: bool) -> Option<Parts> {
    use attribute as a;
    let (direction, parameters, x, w, y) = match operation.kind() {
        kind::CONVOLUTION_FORWARD => (
            Direction::Forward,
            a::CONVOLUTION_FORWARD_CONV_DESC,
            a::CONVOLUTION_FORWARD_X,
            a::CONVOLUTION_FORWARD_W,
            a::CONVOLUTION_FORWARD_Y,
        ),
        kind::CONVOLUTION_BACKWARD_DATA => (
            Direction::Backward,
            a::CONVOLUTION_BWD_DATA_CONV_DESC,
            a::CONVOLUTION_BWD_DATA_DX,
            a::CONVOLUTION_BWD_DATA_W,
            a::CONVOLUTION_BWD_DATA_DY,
        ),
        kind::CONVOLUTION_BACKWARD_FILTER => (
            Direction::WeightGradient,
            a::CONVOLUTION_BWD_FILTER_CONV_DESC,
            a::CONVOLUTION_BWD_FILTER_X,
            a::CONVOLUTION_BWD_FILTER_DW,
            a::CONVOLUTION_BWD_FILTER_DY,
        ),
        _ => return None,
    };
    let parameters = operation.child(parameters)?;
    let extents =
        |name| parameters.integers(name).into_iter().map(|n| u64::try_from(n).unwrap_or(0)).collect();
    Some(Parts {
        direction,
        x: Tensor::of(operation.child(x)?),
        w: Tensor::of(operation.child(w)?),
        y: Tensor::of(operation.child(y)?),
        stride: extents(a::CONVOLUTION_FILTER_STRIDES),
        padding: extents(a::CONVOLUTION_PRE_PADDINGS),
        dilation: extents(a::CONVOLUTION_DILATIONS),
        accumulator: parameters.number(a::CONVOLUTION_COMP_TYPE).and_then(super::dtype),
        tensor_cores,
    })
}

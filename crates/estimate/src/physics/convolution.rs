//! Convolutions as the matrix products they equal (implicit GEMM, Chetlur et al., "cuDNN", 2014).
//!
//! | direction | m | n | k |
//! |---|---|---|---|
//! | forward | batch · output | out channels | in channels · taps |
//! | input gradient | batch · input | in channels | out channels · taps / strides |
//! | weight gradient | out channels | in channels · taps | batch · output |
//!
//! per group; traffic is the three tensors once. Half-precision products read channels last, so tensors stored
//! channels first are turned round before and after. Depthwise convolutions have no product to speak of and stream.

use trompe_trace::descriptor::{Convolution, Direction, ImageLayout};

use super::Bench;
use super::gemm::{Product, seconds};
use crate::Estimate;

pub(super) fn estimate(convolution: &Convolution, bench: Bench<'_>) -> Estimate {
    let c = &bench.constants.convolution;
    let shape = Shape::of(convolution);
    let floor = bench.constants.kernel.floor_us * 1e-6;
    let bandwidth = bench.device.memory.bandwidth.0 * c.streaming;
    if shape.groups > 1.0 && shape.in_channels <= 4.0 {
        let flops = 2.0 * shape.groups * shape.outputs * shape.out_channels * shape.in_channels * shape.taps;
        let arithmetic = flops / (bench.device.vector_peak(convolution.dtype).0 * c.depthwise);
        let time = floor + arithmetic.max(shape.bytes / bandwidth);
        return Estimate::new(time, c.spread, "physics.convolution.depthwise", crate::Basis::Assumed);
    }
    let (m, n, k, factor) = match convolution.direction {
        Direction::Forward => (shape.outputs, shape.out_channels, shape.in_channels * shape.taps, c.forward),
        Direction::Backward => (
            shape.inputs,
            shape.in_channels,
            (shape.out_channels * shape.taps / shape.strides).max(1.0),
            c.input_gradient,
        ),
        Direction::WeightGradient => {
            (shape.out_channels, shape.in_channels * shape.taps, shape.outputs, c.weight_gradient)
        }
    };
    let dtype =
        if convolution.dtype == trompe_base::DType::F32 { convolution.compute } else { convolution.dtype };
    let operand = convolution.dtype.size() as f64;
    let product = Product { m, n, k, batch: shape.groups, dtype, operand, traffic: shape.bytes };
    let turned = convolution.layout == ImageLayout::ChannelsFirst && operand <= 2.0;
    let turning = if turned { 2.0 * floor + 2.0 * shape.activations / bandwidth } else { 0.0 };
    let time = factor * seconds(&product, bench) + turning;
    Estimate::new(time, c.spread, "physics.convolution", c.basis)
}

struct Shape {
    groups: f64,
    /// Per group.
    in_channels: f64,
    /// Per group.
    out_channels: f64,
    taps: f64,
    strides: f64,
    /// Batch times input positions.
    inputs: f64,
    /// Batch times output positions.
    outputs: f64,
    /// Bytes of input and output.
    activations: f64,
    /// Bytes of input, output and weights.
    bytes: f64,
}

impl Shape {
    fn of(c: &Convolution) -> Self {
        let product = |extents: &[u64]| extents.iter().map(|x| (*x).max(1) as f64).product::<f64>();
        let groups = c.groups.max(1) as f64;
        let [in_all, out_all, batch] = [c.in_channels, c.out_channels, c.batch].map(|x| x.max(1) as f64);
        let (inputs, outputs) = (batch * product(&c.input), batch * product(&c.output));
        let taps = product(&c.kernel);
        let size = c.dtype.size() as f64;
        let activations = size * (inputs * in_all + outputs * out_all);
        Self {
            groups,
            in_channels: in_all / groups,
            out_channels: out_all / groups,
            taps,
            strides: product(&c.stride),
            inputs,
            outputs,
            activations,
            bytes: activations + size * in_all * out_all / groups * taps,
        }
    }
}

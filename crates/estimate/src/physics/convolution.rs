//! Convolutions as the matrix products they equal (implicit GEMM, Chetlur et al., "cuDNN", 2014).
//!
//! | direction | m | n | k |
//! |---|---|---|---|
//! | forward | batch · output | out channels | in channels · taps |
//! | input gradient | batch · input | in channels | out channels · taps / strides |
//! | weight gradient | out channels | in channels · taps | batch · output |
//!
//! per group; traffic is the three tensors once. On tensor cores tensors stored channels first are turned round before
//! and after by kernels of their own (cuDNN 8 and later, Ampere and later). On the ordinary lanes a 3 × 3 convolution with stride 1 may instead be a Winograd convolution
//! F(2 × 2, 3 × 3) (Lavin and Gray, 2016): 16 products over a quarter of the positions, 2.25 times fewer operations.
//! Depthwise convolutions have no product to speak of and stream.

use trompe_base::DType;
use trompe_trace::descriptor::{Convolution, Direction, ImageLayout};

use super::Bench;
use super::gemm::{Product, on_lanes, seconds};
use crate::{Basis, Estimate};

pub(super) fn estimate(convolution: &Convolution, bench: Bench<'_>) -> Estimate {
    let c = &bench.constants.convolution;
    let shape = Shape::of(convolution);
    let floor = bench.constants.kernel.floor_us * 1e-6;
    let bandwidth = bench.device.memory.bandwidth.0 * c.streaming;
    if shape.groups > 1.0 && shape.in_channels <= 4.0 {
        let flops = 2.0 * shape.groups * shape.outputs * shape.out_channels * shape.in_channels * shape.taps;
        let arithmetic = flops / (bench.device.vector_peak(convolution.dtype).0 * c.depthwise);
        let time = floor + arithmetic.max(shape.bytes / bandwidth);
        return Estimate::new(time, c.spread, "physics.convolution.depthwise", Basis::Assumed);
    }
    let dtype = if convolution.dtype == DType::F32 { convolution.compute } else { convolution.dtype };
    let product = shape.product(convolution.direction, dtype, convolution.dtype.size() as f64);
    let factor = |factors: [f64; 3]| match convolution.direction {
        Direction::Forward => factors[0],
        Direction::Backward => factors[1],
        Direction::WeightGradient => factors[2],
    };
    if on_lanes(dtype, bench) {
        let direct = seconds(&product, &c.lanes_product, bench);
        let time = match shape.winograd(convolution, dtype, c.winograd_traffic) {
            Some(transformed) => direct.min(c.winograd * seconds(&transformed, &c.lanes_product, bench)),
            None => direct,
        };
        let time = factor(c.lanes) * time;
        return Estimate::new(
            time,
            c.lanes_product.spread,
            "physics.convolution.lanes",
            c.lanes_product.basis,
        );
    }
    let turned = c.turns && convolution.layout == ImageLayout::ChannelsFirst;
    let turning = if turned { 2.0 * floor + 2.0 * shape.activations / bandwidth } else { 0.0 };
    let time = factor(c.tensor) * seconds(&product, &bench.constants.gemm.tensor, bench) + turning;
    Estimate::new(time, c.spread, "physics.convolution.tensor", c.basis)
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

    /// The equal matrix product.
    fn product(&self, direction: Direction, dtype: DType, operand: f64) -> Product {
        let (m, n, k) = match direction {
            Direction::Forward => (self.outputs, self.out_channels, self.in_channels * self.taps),
            Direction::Backward => {
                (self.inputs, self.in_channels, (self.out_channels * self.taps / self.strides).max(1.0))
            }
            Direction::WeightGradient => (self.out_channels, self.in_channels * self.taps, self.outputs),
        };
        Product { m, n, k, batch: self.groups, dtype, operand, traffic: self.bytes }
    }

    /// The products of a Winograd convolution, where one applies.
    fn winograd(&self, c: &Convolution, dtype: DType, traffic: f64) -> Option<Product> {
        let ones = |extents: &[u64]| extents.iter().all(|x| *x == 1);
        if c.kernel != [3, 3]
            || !ones(&c.stride)
            || !ones(&c.dilation)
            || c.direction == Direction::WeightGradient
        {
            return None;
        }
        let (n, k) = match c.direction {
            Direction::Backward => (self.in_channels, self.out_channels),
            _ => (self.out_channels, self.in_channels),
        };
        let tiles: f64 =
            c.batch.max(1) as f64 * c.output.iter().map(|x| (*x as f64 / 2.0).ceil()).product::<f64>();
        let operand = c.dtype.size() as f64;
        let transformed = operand * 16.0 * tiles * self.groups * (self.in_channels + self.out_channels);
        let traffic = self.bytes + traffic * transformed;
        Some(Product { m: tiles, n, k, batch: 16.0 * self.groups, dtype, operand, traffic })
    }
}

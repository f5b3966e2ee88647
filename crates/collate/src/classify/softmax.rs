//! Softmax and log-softmax, forward and backward.
//!
//! Small rows are done by one warp each (`PersistentSoftmax.cuh`, rows and columns are parameters), larger ones by
//! one block each (`ATen/native/cuda/SoftMax.cu`), and those along an inner dimension by the spatial kernels.

use trompe_trace::descriptor::{Descriptor, Direction, RowWise};

use super::{Kernel, work};
use crate::kernel::types;
use crate::operator::product;

/// Describes softmax kernels.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let base = kernel.name.base.as_str();
    let count = |index| kernel.parameters.count_at(index);
    let (direction, sizes) = match base {
        "softmax_warp_forward" => (Direction::Forward, count(2).zip(count(4))),
        "softmax_warp_backward" => (Direction::Backward, count(3).zip(count(5))),
        "cunn_SpatialSoftMaxForward" => (Direction::Forward, spatial(kernel, 2)),
        "cunn_SpatialSoftMaxBackward" => (Direction::Backward, spatial(kernel, 3)),
        _ if base.starts_with("cunn_SoftMaxForward") => {
            (Direction::Forward, count(2).map(|cols| (u64::from(kernel.grid[0]), cols)))
        }
        _ if base.starts_with("cunn_SoftMaxBackward") => {
            (Direction::Backward, count(3).map(|cols| (u64::from(kernel.grid[0]), cols)))
        }
        _ => return None,
    };
    let types: Vec<_> = kernel.name.arguments.iter().filter_map(|a| types::exact(a)).collect();
    let dtype = *types.first()?;
    let call = kernel.context.call();
    let (rows, cols) = sizes.or_else(|| {
        let inputs = call?.device_inputs();
        let input = inputs.first()?;
        let dim = call?
            .inputs
            .iter()
            .find_map(|v| if let trompe_trace::values::Value::Int(d) = v { Some(*d) } else { None })?;
        let dim = usize::try_from(if dim < 0 { dim + input.sizes.len() as i64 } else { dim }).ok()?;
        let cols = *input.sizes.get(dim)?;
        Some((input.elements() / cols.max(1), cols))
    })?;
    let area = product(&[rows, cols])?;
    // The result may be wider than the input (`half_to_float`).
    let output = call.and_then(|c| c.device_outputs().first()?.dtype).unwrap_or(dtype).size();
    let work = match direction {
        Direction::Forward => work(area * dtype.size(), area * output, 4 * area),
        _ => work(2 * area * dtype.size(), area * output, 4 * area),
    };
    Some(Descriptor::Softmax(RowWise { direction, rows, cols, dtype, work }))
}

/// Outer × inner rows of `dim` elements from the three sizes that start at parameter `first`.
fn spatial(kernel: &Kernel<'_, '_>, first: usize) -> Option<(u64, u64)> {
    let count = |index| kernel.parameters.count_at(index);
    Some((product(&[count(first)?, count(first + 2)?])?, count(first + 1)?))
}

//! Negative log likelihood over class rows.
//!
//! These kernels touch one element per row of the (rows × classes) table: the operator's input size says nothing
//! about the bytes moved. A gathered element costs a 32-byte sector.

use trompe_trace::descriptor::{Descriptor, Direction, RowWise};

use super::{Kernel, work};
use crate::kernel::types;

/// Bytes that one scattered access moves.
pub(super) const SECTOR: u64 = 32;

/// Describes NLL loss kernels.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let base = kernel.name.base.as_str();
    if !base.starts_with("nll_loss") {
        return None;
    }
    let backward = base.contains("backward");
    let count = |index| kernel.parameters.count_at(index);
    // Parameter order: `ATen/native/cuda/Loss.cu`.
    let sizes = match base {
        "nll_loss_forward_reduce_cuda_kernel_2d" | "nll_loss_backward_reduce_cuda_kernel_2d" => {
            count(6).zip(count(7))
        }
        _ => None,
    };
    let by_shape = kernel.context.call().and_then(|call| {
        let tensors = call.device_inputs();
        let table = tensors.iter().max_by_key(|tensor| tensor.elements())?;
        let cols = *table.sizes.get(1).or(table.sizes.first())?;
        Some((table.elements() / cols.max(1), cols))
    });
    let (rows, cols) = by_shape.or(sizes)?;
    let dtype = types::exact(kernel.name.argument(0))?;
    let reduced = base.contains("reduce") && !base.contains("no_reduce");
    let work = if backward {
        work(rows * 8, rows * SECTOR, rows)
    } else {
        let results = if reduced { 2 * dtype.size() } else { rows * dtype.size() };
        work(rows * (8 + SECTOR), results, rows)
    };
    let direction = if backward { Direction::Backward } else { Direction::Forward };
    Some(Descriptor::CrossEntropy(RowWise { direction, rows, cols, dtype, work }))
}

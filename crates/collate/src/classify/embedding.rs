//! Look-up of table rows and the gradient of the table.
//!
//! The look-up is `index_select` inside of `aten::embedding`; only the rows that are looked up are read, however large
//! the table is. The gradient (`ATen/native/cuda/Embedding.cu`, `EmbeddingBackwardKernel.cu`) sorts the indices and
//! sums rows in two steps, or adds up directly when there are few.

use trompe_trace::descriptor::{Descriptor, Direction, Embedding};

use super::{Kernel, work};
use crate::kernel::types;
use crate::operator::{Call, product};

/// Kernels that `index_select` chooses from.
const LOOK_UP: [&str; 4] = [
    "indexSelectSmallIndex",
    "indexSelectLargeIndex",
    "vectorized_gather_kernel",
    "index_elementwise_kernel",
];

/// Describes embedding kernels.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let base = kernel.name.base.as_str();
    let found = if kernel.is(&LOOK_UP) {
        let call = kernel.context.enclosing(&["aten::embedding"])?;
        look_up(&call, 0, 1)?
    } else if base.starts_with("EmbeddingBag_updateOutputKernel") {
        let call =
            kernel.context.enclosing(&["aten::_embedding_bag", "aten::_embedding_bag_forward_only"])?;
        look_up(&call, 0, 1)?
    } else {
        gradient(kernel, base)?
    };
    Some(Descriptor::Embedding(found))
}

fn look_up(call: &Call<'_>, table: usize, indices: usize) -> Option<Embedding> {
    let (table, indices) = (call.tensor(table)?, call.tensor(indices)?);
    let (rows, width, dtype) = (*table.sizes.first()?, *table.sizes.last()?, table.dtype?);
    let tokens = indices.elements();
    let bytes = product(&[tokens, width])? * dtype.size();
    let work = work(bytes + indices.bytes(), bytes, 0);
    Some(Embedding { direction: Direction::Forward, tokens, width, rows, dtype, work })
}

fn gradient(kernel: &Kernel<'_, '_>, base: &str) -> Option<Embedding> {
    let (reads_gradient, writes_rows) = match base {
        "embedding_backward_feature_kernel" => (true, true),
        _ if base.starts_with("compute_grad_weight") => (true, false),
        "sum_and_scatter" => (false, true),
        _ => return None,
    };
    let dtype = types::exact(kernel.name.argument(0))?;
    let call =
        kernel.context.enclosing(&["aten::embedding_dense_backward", "aten::_embedding_bag_dense_backward"]);
    let shapes = call.as_ref().and_then(|call| {
        let (gradient, indices) = (call.tensor(0)?, call.tensor(1)?);
        let rows = call.device_outputs().first().and_then(|table| table.sizes.first().copied());
        Some((indices.elements(), *gradient.sizes.last()?, rows.unwrap_or(0)))
    });
    // `embedding_backward_feature_kernel(indices, gradient, table, int n, int64 stride, padding)`;
    // `compute_grad_weight(indices, gradient, offsets, int64 numel, int64 stride, …)`.
    let count = |index| kernel.parameters.count_at(index);
    let exact = match base {
        "embedding_backward_feature_kernel" | "compute_grad_weight" => {
            count(3).zip(count(4)).map(|(n, w)| (n, w, 0))
        }
        // `sum_and_scatter(indices, table, int64 stride, …)`: a thread per element.
        "sum_and_scatter" => {
            let threads = kernel.blocks() * u64::from(kernel.threads());
            count(2).filter(|width| *width > 0).map(|width| (threads.div_ceil(width), width, 0))
        }
        _ => None,
    };
    let (tokens, width, rows) = shapes.or(exact)?;
    let area = product(&[tokens, width])?;
    let read = if reads_gradient { area * dtype.size() + tokens * 8 } else { area * 4 };
    let written = if writes_rows { area * dtype.size() } else { area * 4 };
    Some(Embedding {
        direction: Direction::Backward,
        tokens,
        width,
        rows,
        dtype,
        work: work(read, written, area),
    })
}

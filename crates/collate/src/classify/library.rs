//! Library calls that have no descriptor of their own in the trace: batch normalisation, transforms, solvers, sparse
//! products, random numbers, operation graphs.

use trompe_base::Bytes;
use trompe_trace::descriptor::{Descriptor, Direction, NormKind, Normalization, Other, Work};

use super::normalization::channels;
use super::unclaimed;
use crate::operator::Context;

/// A library call as recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library<'a> {
    /// API function.
    pub symbol: &'a str,
    /// Bytes read, zero when unknown.
    pub read: u64,
    /// Bytes written, zero when unknown.
    pub written: u64,
}

/// Describes a library call.
pub(crate) fn library(call: Library<'_>, context: &Context<'_, '_>) -> Descriptor {
    let normalizes = ["BatchNormalization", "NormalizationForward", "NormalizationBackward"];
    if normalizes.iter().any(|word| call.symbol.contains(word))
        && let Some(norm) = batch_norm(call, context)
    {
        return norm;
    }
    let mut work = Work { read: Bytes(call.read), written: Bytes(call.written), ..Work::default() };
    if work.bytes() == Bytes::ZERO {
        work = context.call().map(|operator| unclaimed(operator, u64::MAX)).unwrap_or_default();
    }
    Descriptor::Other(Other { work, blocks: 0, threads: 0 })
}

/// cuDNN batch normalisation in training reads its input twice forward (statistics, then result) and, backward, input
/// and gradient twice.
fn batch_norm(call: Library<'_>, context: &Context<'_, '_>) -> Option<Descriptor> {
    let backward = call.symbol.contains("Backward");
    let inference = call.symbol.contains("Inference");
    let (rows, cols, dtype) = channels(context.call()?)?;
    let area = rows * cols * dtype.size();
    let reads = match (backward, inference) {
        (true, _) => 4,
        (false, true) => 1,
        (false, false) => 2,
    };
    let direction = if backward { Direction::Backward } else { Direction::Forward };
    let work = super::work(reads * area, area, 4 * rows * cols);
    Some(Descriptor::Normalization(Normalization {
        kind: NormKind::Batch,
        direction,
        rows,
        cols,
        dtype,
        work,
    }))
}

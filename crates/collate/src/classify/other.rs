//! Kernels that no family claims, with whatever is known about them.

use trompe_base::{Bytes, Flops};
use trompe_trace::descriptor::{Descriptor, Other, Work};

use super::Kernel;
use crate::operator::{Call, distinct_bytes};

/// The most bytes that one thread is assumed to move when only the operator's tensors are known: operators launch
/// helper kernels of a few blocks that do not touch all of them.
const BYTES_PER_THREAD: u64 = 256;

/// Describes an unclaimed kernel: the operator's tensors are an upper estimate, bounded by its size.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Descriptor {
    let (blocks, threads) = (kernel.blocks(), kernel.threads());
    let work =
        kernel.context.call().map(|call| unclaimed(call, blocks * u64::from(threads) * BYTES_PER_THREAD));
    Descriptor::Other(Other { work: work.unwrap_or_default(), blocks, threads })
}

/// Bytes of an operator's tensors, each bounded by `cap`.
pub(crate) fn unclaimed(call: &Call<'_>, cap: u64) -> Work {
    let outputs = call.device_outputs();
    let is_result = |address: u64| address != 0 && outputs.iter().any(|out| out.address == address);
    let inputs = call.device_inputs();
    let reads = inputs.iter().filter(|t| call.in_place() || !is_result(t.address));
    let read: u64 = reads.map(|t| distinct_bytes(t)).sum();
    let mut written: u64 = outputs.iter().map(|t| t.bytes()).sum();
    if outputs.is_empty() && call.in_place() {
        written = call.tensor(0).map_or(0, distinct_bytes);
    }
    Work { read: Bytes(read.min(cap)), written: Bytes(written.min(cap)), flops: Flops::ZERO }
}

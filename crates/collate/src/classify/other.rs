//! Kernels that no family claims, with whatever is known about them.
//!
//! The tensors of the operator that launched one are an upper estimate of its traffic, bounded by its size. Where no
//! operator did (extensions that launch kernels of their own: TransformerEngine, Apex), the allocations that its
//! parameters point into stand for them, also where the pointers lie inside of a struct.

use std::collections::BTreeSet;

use trompe_base::{Bytes, Flops};
use trompe_trace::descriptor::{Descriptor, Other, Work};

use super::Kernel;
use crate::kernel::parameters::long;
use crate::operator::{Call, distinct_bytes};

/// The most bytes that one thread is assumed to move when only the operator's tensors are known: operators launch
/// helper kernels of a few blocks that do not touch all of them.
const BYTES_PER_THREAD: u64 = 256;

/// Describes an unclaimed kernel: the operator's tensors are an upper estimate, bounded by its size.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Descriptor {
    let (blocks, threads) = (kernel.blocks(), kernel.threads());
    let cap = blocks * u64::from(threads) * BYTES_PER_THREAD;
    let mut work = kernel.context.call().map(|call| unclaimed(call, cap)).unwrap_or_default();
    if work.bytes() == Bytes::ZERO {
        work.read = Bytes(pointed_at(kernel, cap).iter().sum::<u64>().min(cap));
    }
    Descriptor::Other(Other { work, blocks, threads })
}

/// Bytes of the allocations that a launch's parameters point into, each from the pointer to its end and at most
/// `most`: pointers are what lies at a multiple of eight in a parameter and in an allocation.
pub(super) fn pointed_at(kernel: &Kernel<'_, '_>, most: u64) -> Vec<u64> {
    let words =
        kernel.parameters.iter().flat_map(|bytes| (0..bytes.len() / 8).filter_map(|at| long(bytes, 8 * at)));
    let pointers: BTreeSet<u64> = words.filter_map(|word| u64::try_from(word).ok()).collect();
    let sizes = pointers.into_iter().map(|pointer| kernel.allocation.rest(pointer).min(most));
    sizes.filter(|size| *size > 0).collect()
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

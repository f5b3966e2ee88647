//! Kernels compiled at run time (Triton, NVRTC): known by their geometry and parameters.
//!
//! Which pointer is read and which written is not visible. Each pointer parameter that lies in an allocation counts
//! once with what is left of that allocation: an upper estimate of the traffic. Without such pointers the tensors of the
//! operator stand in, where one launched the kernel.

use trompe_base::{Bytes, Flops};
use trompe_trace::descriptor::{Descriptor, Triton, Work};

use super::{Kernel, unclaimed};
use crate::kernel::parameters::long;
use crate::operator::MOST_ELEMENTS;

/// Describes kernels of modules loaded at run time.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    if !kernel.from_module {
        return None;
    }
    let pointers =
        kernel.parameters.iter().filter(|bytes| bytes.len() == 8).filter_map(|bytes| long(bytes, 0));
    let bytes = pointers
        .filter_map(|p| u64::try_from(p).ok())
        .map(|p| kernel.allocation.rest(p).min(MOST_ELEMENTS))
        .sum();
    let mut work = Work { read: Bytes(bytes), written: Bytes::ZERO, flops: Flops::ZERO };
    if bytes == 0 {
        work = kernel.context.call().map(|call| unclaimed(call, MOST_ELEMENTS)).unwrap_or_default();
    }
    Some(Descriptor::Triton(Triton {
        work,
        blocks: kernel.blocks(),
        threads: kernel.threads(),
        registers: kernel.registers,
        shared: kernel.shared,
    }))
}

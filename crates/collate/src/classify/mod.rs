//! From a kernel launch to a descriptor.
//!
//! One file per family. Each family looks at the kernel's name first (a kernel is what it is, wherever it was called
//! from), then takes sizes from the best source at hand: launch parameters, which are exact for this launch; the
//! tensors of the operator that launched it; the launch geometry. Every family works without operators.
//!
//! Bytes are ideal: each element that the kernel must touch counts once, whatever the caches do, and elements that a
//! broadcast repeats count once.

mod attention;
mod compiled;
mod cross_entropy;
mod elementwise;
mod embedding;
mod foreach;
mod indexing;
mod library;
mod matmul;
mod normalization;
mod other;
mod random;
mod reduction;
mod signature;
mod softmax;
mod sort;
mod stencil;
#[cfg(test)]
mod tests;
mod transformer_engine;

use trompe_base::{Bytes, DType, Flops};
use trompe_trace::descriptor::{Descriptor, Work};

pub(crate) use library::{Library, library};
pub(crate) use other::unclaimed;

use crate::kernel::{Name, Parameters};
use crate::operator::Context;

/// One kernel launch.
#[derive(Debug)]
pub(crate) struct Kernel<'k, 'a> {
    /// Parsed name.
    pub name: &'k Name,
    /// Parameter values.
    pub parameters: Parameters<'k>,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// Static and dynamic shared memory per block in bytes.
    pub shared: u32,
    /// Registers per thread; zero when unknown.
    pub registers: u32,
    /// Came from a module loaded at run time.
    pub from_module: bool,
    /// What its machine code is made of, where the trace says it.
    pub code: Option<&'k str>,
    /// Operators around it.
    pub context: &'k Context<'k, 'a>,
    /// Bytes from an address to the end of the allocation that it lies in; zero when unknown.
    pub allocation: &'k dyn Allocations,
}

/// Who knows where allocations end.
pub(crate) trait Allocations: std::fmt::Debug {
    /// Bytes from `address` to the end of its allocation, or zero.
    fn rest(&self, address: u64) -> u64;
}

impl Kernel<'_, '_> {
    /// Thread blocks.
    fn blocks(&self) -> u64 {
        // Real grids are far smaller; damaged ones must not overflow what is made of them.
        self.grid.iter().fold(1u64, |a, b| a.saturating_mul(u64::from(*b))).min(1 << 32)
    }

    /// Threads per block.
    fn threads(&self) -> u32 {
        self.block.iter().fold(1u32, |a, b| a.saturating_mul(*b)).min(1024)
    }

    /// Whether the base name is one of `bases`.
    fn is(&self, bases: &[&str]) -> bool {
        bases.contains(&self.name.base.as_str())
    }
}

type Family = fn(&Kernel<'_, '_>) -> Option<Descriptor>;

/// Asked in this order; the first that claims a kernel describes it.
const FAMILIES: [Family; 15] = [
    transformer_engine::describe,
    compiled::describe,
    elementwise::describe,
    foreach::describe,
    matmul::describe,
    reduction::describe,
    normalization::describe,
    softmax::describe,
    attention::describe,
    cross_entropy::describe,
    random::describe,
    embedding::describe,
    indexing::describe,
    sort::describe,
    stencil::describe,
];

/// Describes a kernel launch; one that no family claims is [`Descriptor::Other`].
pub(crate) fn describe(kernel: &Kernel<'_, '_>) -> Descriptor {
    FAMILIES.iter().find_map(|family| family(kernel)).unwrap_or_else(|| other::describe(kernel))
}

/// Work of `read` and `written` bytes and one operation per element of `elements`.
fn work(read: u64, written: u64, elements: u64) -> Work {
    Work { read: Bytes(read), written: Bytes(written), flops: Flops(elements) }
}

/// The widest of some element types, by bytes and then by order.
pub(crate) fn widest(types: impl IntoIterator<Item = DType>) -> Option<DType> {
    types.into_iter().max_by_key(|dtype| (dtype.size(), std::cmp::Reverse(*dtype)))
}

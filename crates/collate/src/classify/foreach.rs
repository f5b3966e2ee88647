//! Kernels over lists of tensors: `multi_tensor_apply_kernel` (foreach operators and fused optimizers).
//!
//! Parameter 0 holds the addresses and element counts of all tensors of the launch and, for each block, its tensor
//! and chunk (`ATen/native/cuda/MultiTensorApply.cuh`): the elements of the launch are summed exactly from that. The
//! functor's template arguments say how many lists are read and written.

use trompe_base::DType;
use trompe_trace::descriptor::{Descriptor, Optimizer};

use super::{Kernel, widest, work};
use crate::kernel::name::{integer, last_component, split_arguments};
use crate::kernel::parameters::{half, int, long};
use crate::kernel::types;

/// Elements that one block works on (`kChunkSize`).
const CHUNK: u64 = 65536;
/// Tensors per launch by number of lists: where kernels take 32 KiB of parameters (CUDA 13), and 4 KiB (before).
const TENSORS: [[usize; 5]; 2] = [[770, 448, 336, 252, 210], [110, 64, 48, 36, 30]];
/// The same with a scalar per tensor.
const TENSORS_WITH_SCALARS: [[usize; 5]; 2] = [[672, 448, 336, 252, 210], [96, 64, 48, 36, 30]];
/// The same with a complex double per tensor.
const TENSORS_WITH_COMPLEX: [[usize; 2]; 2] = [[504, 420], [72, 60]];
/// Blocks per launch, and bytes of a block's tensor index.
const BLOCKS: [(usize, usize); 2] = [(2240, 2), (320, 1)];

/// Describes kernels over lists of tensors.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    if kernel.name.base != "multi_tensor_apply_kernel" {
        return None;
    }
    let functor = Functor::parse(kernel.name.argument(1))?;
    let elements = elements(kernel)
        .or_else(|| from_operator(kernel))
        // Without either, each block has a chunk of its own; the last one of each tensor is not full.
        .unwrap_or(kernel.blocks() * CHUNK);
    Some(Descriptor::Optimizer(Optimizer {
        elements,
        lists: functor.lists,
        dtype: functor.dtype,
        work: work(elements * functor.read, elements * functor.written, elements * u64::from(functor.lists)),
    }))
}

/// What a functor does with the lists.
struct Functor {
    lists: u32,
    dtype: DType,
    /// Bytes read per element of a list.
    read: u64,
    /// Bytes written per element of a list.
    written: u64,
}

impl Functor {
    fn parse(text: &str) -> Option<Self> {
        let (path, arguments) = split_arguments(text);
        let word = last_component(path);
        let dtypes: Vec<DType> = arguments.iter().map_while(|a| types::exact(a)).collect();
        let numbers: Vec<u64> = arguments.iter().filter_map(|a| integer(a)).collect();
        let dtype = widest(dtypes.iter().copied())?;
        let first = dtypes.first()?.size();
        let depth = *numbers.first().unwrap_or(&1);
        let lists = u32::try_from(depth).ok()?;
        let of =
            |read: u64, written: u64| Self { lists, dtype, read: first * read, written: first * written };
        Some(match word {
            "FusedAdamMathFunctorMP" => {
                // The computing type, then one type per list: parameter, gradient, moments.
                let sizes = |skip: Option<usize>| -> u64 {
                    let lists = dtypes.iter().skip(1).take(depth as usize).enumerate();
                    lists.filter(|(i, _)| Some(*i) != skip).map(|(_, d)| d.size()).sum()
                };
                Self { lists, dtype, read: sizes(None), written: sizes(Some(1)) }
            }
            // The gradient is read only (it is written back only when a loss scale is undone).
            _ if word.starts_with("Fused") => of(depth, depth - 1),
            _ if word.starts_with("LpNorm") || word.starts_with("LpMax") => {
                let lists = 1;
                Self { lists, ..of(1, 0) }
            }
            "ZeroFunctor" => of(0, 1),
            "CopyFunctor" => {
                // `CopyFunctor<destination, source, 2, 1, 1>`.
                Self { read: dtypes.get(1).map_or(first, |d| d.size()), ..of(1, 1) }
            }
            // `<T, lists, lists read, result list>` (`ForeachFunctors.cuh`).
            _ => of(*numbers.get(1).unwrap_or(&depth.saturating_sub(1).max(1)), 1),
        })
    }
}

/// Elements of the launch, summed over its blocks.
fn elements(kernel: &Kernel<'_, '_>) -> Option<u64> {
    let metadata = kernel.name.argument(0);
    let (path, arguments) = split_arguments(metadata);
    let kind = last_component(path);
    let depth = integer(arguments.last()?)? as usize;
    let bytes = kernel.parameters.bytes(0)?;
    (0..2).find_map(|generation| {
        let layout = Layout::of(kind, depth, &arguments, generation)?;
        (bytes.len() == layout.total.next_multiple_of(8)).then(|| layout.elements(bytes, kernel.grid[0]))?
    })
}

/// Byte offsets in the metadata structure.
struct Layout {
    counts: usize,
    tensors: usize,
    block_to_tensor: usize,
    index_width: usize,
    block_to_chunk: usize,
    blocks: usize,
    total: usize,
}

impl Layout {
    fn of(kind: &str, depth: usize, arguments: &[&str], generation: usize) -> Option<Self> {
        let list = depth.checked_sub(1)?;
        let scalars =
            if kind == "TensorListScalarListMetadata" { types::size(arguments.first()?)? } else { 0 };
        let tensors = match kind {
            "TensorListScalarListMetadata" if scalars == 16 => *TENSORS_WITH_COMPLEX[generation].get(list)?,
            "TensorListScalarListMetadata" => *TENSORS_WITH_SCALARS[generation].get(list)?,
            _ => *TENSORS[generation].get(list)?,
        };
        let extra = match kind {
            "TensorListMetadata" => 0,
            "TensorListScalarListMetadata" => tensors * scalars as usize,
            // Old releases size the step counters by the scalar table; the two are equal where it is used.
            "FusedOptimizerTensorListMetadata" => tensors * 8,
            _ => return None,
        };
        let (blocks, index_width) = BLOCKS[generation];
        let counts = depth * tensors * 8;
        let block_to_tensor = counts + tensors * 8 + extra;
        let block_to_chunk = (block_to_tensor + blocks * index_width).next_multiple_of(4);
        let tail = if kind == "TensorListScalarListMetadata" { 0 } else { 4 };
        let total = block_to_chunk + blocks * 4 + tail;
        Some(Self { counts, tensors, block_to_tensor, index_width, block_to_chunk, blocks, total })
    }

    fn elements(&self, bytes: &[u8], grid: u32) -> Option<u64> {
        let mut sum = 0;
        for block in 0..(grid as usize).min(self.blocks) {
            let at = self.block_to_tensor + block * self.index_width;
            let tensor = if self.index_width == 2 {
                usize::from(half(bytes, at)?)
            } else {
                usize::from(*bytes.get(at)?)
            };
            if tensor >= self.tensors {
                return None;
            }
            let count = u64::try_from(long(bytes, self.counts + tensor * 8)?).ok()?;
            let chunk = u64::try_from(int(bytes, self.block_to_chunk + block * 4)?).ok()?;
            sum += count.saturating_sub(chunk * CHUNK).min(CHUNK);
        }
        Some(sum)
    }
}

/// Elements of the first list of the operator; right when one launch does them all.
fn from_operator(kernel: &Kernel<'_, '_>) -> Option<u64> {
    use trompe_trace::values::Value;
    let call = kernel.context.call()?;
    let list =
        call.inputs.iter().find_map(|value| if let Value::List(list) = value { Some(list) } else { None })?;
    let sum: u64 =
        list.iter().filter_map(|v| if let Value::Tensor(t) = v { Some(t.elements()) } else { None }).sum();
    (sum > 0).then(|| sum.min(kernel.blocks() * CHUNK))
}

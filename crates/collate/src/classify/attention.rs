//! Fused attention kernels that PyTorch carries itself: FlashAttention 2 (`flash_fwd_kernel`, `flash_bwd_*`) and the
//! memory-efficient ones (`fmha_cutlassF_*`, `fmha_cutlassB_*`).
//!
//! Shapes are the operator's, in (batch, sequence, heads, width) order there. Without operators the FlashAttention
//! parameter block tells them (`Flash_fwd_params`, Dao-AILab flash-attention v2, `csrc/flash_attn/src/flash.h`).

use trompe_base::DType;
use trompe_trace::descriptor::{Attention, AttentionKind, Descriptor, Direction, Elementwise};

use super::{Kernel, work};
use crate::kernel::name::{integer, split_arguments};
use crate::kernel::parameters::int;
use crate::kernel::types;
use crate::operator::{Call, product};

/// Describes attention kernels and their helpers.
pub(super) fn describe(kernel: &Kernel<'_, '_>) -> Option<Descriptor> {
    let base = kernel.name.base.as_str();
    if base.starts_with("flash_") {
        return flash(kernel, base);
    }
    if base.starts_with("fmha_cutlass") { memory_efficient(kernel, base) } else { None }
}

fn flash(kernel: &Kernel<'_, '_>, base: &str) -> Option<Descriptor> {
    let shapes = flash_shapes(kernel, base)?;
    let area = product(&[shapes.batch, shapes.seq_q, shapes.heads, shapes.head_dim])?;
    let keys = product(&[shapes.batch, shapes.seq_kv, shapes.heads, shapes.head_dim])?;
    let rows = shapes.batch * shapes.seq_q * shapes.heads;
    let size = shapes.dtype.size();
    let pass = |read, written| {
        let work = work(read, written, area);
        Some(Descriptor::Elementwise(Elementwise {
            elements: area,
            dtype: DType::F32,
            vectorized: true,
            work,
        }))
    };
    match base {
        // Row sums of the gradient times the result; clears the fp32 accumulator when its flag is set.
        "flash_bwd_dot_do_o_kernel" => {
            let cleared = if kernel.name.flag(0) { area * 4 } else { 0 };
            pass(2 * area * size, rows * 4 + cleared)
        }
        "flash_bwd_convert_dq_kernel" => pass(area * 4, area * size),
        "flash_bwd_convert_dkv_kernel" => pass(2 * keys * 4, 2 * keys * size),
        "flash_fwd_splitkv_combine_kernel" => {
            // Partial results in fp32, one set per split.
            let splits = kernel.name.integer(2).map_or(2, |log2| 1 << log2.min(7));
            pass(splits * area * 4, area * size)
        }
        _ => Some(Descriptor::Attention(shapes)),
    }
}

/// Shapes from the operator, else from the parameter block.
fn flash_shapes(kernel: &Kernel<'_, '_>, base: &str) -> Option<Attention> {
    let (_, traits) = split_arguments(kernel.name.arguments.iter().find(|a| a.contains("kernel_traits<"))?);
    let dtype = traits.iter().find_map(|t| types::exact(t))?;
    let direction = if base.starts_with("flash_bwd") { Direction::Backward } else { Direction::Forward };
    let context = &kernel.context;
    if let Some(call) = context.enclosing(&["aten::_flash_attention_forward"]) {
        return from_call(&call, 0, [3, 5, 6, 7, 8], dtype, direction);
    }
    if let Some(call) = context.enclosing(&["aten::_flash_attention_backward"]) {
        return from_call(&call, 1, [6, 8, 9, 10, 11], dtype, direction);
    }
    let head_dim = integer(traits.first()?)?;
    from_parameters(kernel, base, dtype, head_dim, direction)
}

/// Reads `query, key, value` from argument `first` on and, by the positions in `at`: cumulative query lengths, longest
/// query and key sequence, dropout probability, causal flag.
fn from_call(
    call: &Call<'_>,
    first: usize,
    at: [usize; 5],
    dtype: DType,
    direction: Direction,
) -> Option<Attention> {
    let (query, key, value) = (call.tensor(first)?, call.tensor(first + 1)?, call.tensor(first + 2)?);
    let base = Attention {
        direction,
        kind: AttentionKind::Flash,
        batch: 1,
        heads: 1,
        kv_heads: 1,
        seq_q: 1,
        seq_kv: 1,
        head_dim: *query.sizes.last()?,
        head_dim_v: *value.sizes.last()?,
        causal: call.bool(at[4]).unwrap_or(false),
        dropout: call.float(at[3]).unwrap_or(0.0) > 0.0,
        dtype,
    };
    match (query.sizes.as_slice(), key.sizes.as_slice()) {
        (&[batch, seq_q, heads, _], &[_, seq_kv, kv_heads, _]) => {
            Some(Attention { batch, heads, kv_heads, seq_q, seq_kv, ..base })
        }
        // Packed sequences of various lengths: as if all had the mean length.
        (&[tokens, heads, _], &[keys, kv_heads, _]) => {
            let batch = call.tensor(at[0]).map_or(1, |lengths| lengths.elements().saturating_sub(1).max(1));
            let (seq_q, seq_kv) = (tokens / batch, keys / batch);
            Some(Attention { batch, heads, kv_heads, seq_q, seq_kv, ..base })
        }
        _ => None,
    }
}

/// `Flash_fwd_params`: pointers and strides of q, k, v (96 bytes), heads, pointers and strides of the result and the
/// statistics (to byte 176), then batch, sequence lengths and widths. `Flash_bwd_params` begins in the same way.
fn from_parameters(
    kernel: &Kernel<'_, '_>,
    base: &str,
    dtype: DType,
    head_dim: u64,
    direction: Direction,
) -> Option<Attention> {
    let bytes = kernel.parameters.bytes(0)?;
    let word = |at| int(bytes, at).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0);
    let (heads, kv_heads, batch) = (word(96)?, word(100)?, word(176)?);
    let (seq_q, seq_kv, width) = (word(180)?, word(184)?, word(192)?);
    let plausible = kv_heads <= heads && width <= head_dim && heads < 1 << 16 && batch < 1 << 24;
    // `flash_fwd_kernel<traits, dropout, causal, …>`, `flash_bwd_…<traits, dropout, causal, …>`,
    // `flash_fwd_splitkv_kernel<traits, causal, …>`.
    let split = base.contains("splitkv");
    plausible.then(|| Attention {
        direction,
        kind: AttentionKind::Flash,
        batch,
        heads,
        kv_heads,
        seq_q,
        seq_kv,
        head_dim: width,
        head_dim_v: width,
        causal: kernel.name.flag(if split { 1 } else { 2 }),
        dropout: !split && kernel.name.flag(1),
        dtype,
    })
}

fn memory_efficient(kernel: &Kernel<'_, '_>, base: &str) -> Option<Descriptor> {
    let backward = base.starts_with("fmha_cutlassB");
    let dtype = match base {
        _ if base.contains("_bf16_") => DType::Bf16,
        _ if base.contains("_f16_") => DType::F16,
        _ => DType::F32,
    };
    let (names, first, at, mask) = if backward {
        (["aten::_efficient_attention_backward"], 1, [6, 8, 9, 11, usize::MAX], 14)
    } else {
        (["aten::_efficient_attention_forward"], 0, [4, 6, 7, 8, usize::MAX], 9)
    };
    let call = kernel.context.enclosing(&names)?;
    let direction = if backward { Direction::Backward } else { Direction::Forward };
    let shapes = from_call(&call, first, at, dtype, direction)?;
    // `custom_mask_type`: 0 none, 1 causal from the top left, 2 from the bottom right.
    let causal = call.int(mask).unwrap_or(0) != 0;
    Some(Descriptor::Attention(Attention { kind: AttentionKind::MemoryEfficient, causal, ..shapes }))
}

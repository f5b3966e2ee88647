//! Data moves of the vector lanes, and the plain copies that every pipe has.

use crate::element::{read_number, write_number};
use crate::error::Fault;
use crate::memory::Bank;
use crate::ops::Op;
use crate::program::Space;
use crate::task::Task;

use super::cube::zeroed_end;
use super::layout::{Layout, align, blocks_bytes};
use super::{Context, row_offset};

/// `gm_to_ub_pad`: n_burst, burst_len_byte, src_stride_byte, dst_stride.
pub(super) fn gm_to_ub(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [bursts, length, src_gap, dst_gap] = task.sizes()?;
    let (dst, src) = (&task.views[0], &task.views[1]);
    context.atomics.settle(src.tensor, context.gm);
    let ub = context.memory.bank_mut(Bank::of(Space::Ub, context.sub_block));
    let padded = align(length, 32);
    for burst in 0..bursts {
        let to = (dst.offset + burst * (padded + 32 * dst_gap)) as usize;
        let from = src.offset + burst * (length + src_gap);
        context.gm.read(src.tensor, from, &mut ub[to..to + length as usize]);
        ub[to + length as usize..to + padded as usize].fill(0);
    }
    Ok(())
}

/// `ub_to_gm_pad`: n_burst, burst_len_byte, src_stride, dst_stride_byte.
pub(super) fn ub_to_gm(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [bursts, length, src_gap, dst_gap] = task.sizes()?;
    let (dst, src) = (&task.views[0], &task.views[1]);
    if task.atomic.is_none() {
        context.atomics.settle(dst.tensor, context.gm);
    }
    let ub = context.memory.bank(Bank::of(Space::Ub, context.sub_block));
    for burst in 0..bursts {
        let from = (src.offset + burst * (align(length, 32) + 32 * src_gap)) as usize;
        let bytes = &ub[from..from + length as usize];
        let at = (dst.tensor, dst.offset + burst * (length + dst_gap));
        match task.atomic {
            None => context.gm.write(at.0, at.1, bytes),
            Some(atomic) => context.atomics.push(context.cycle, at, (atomic.kind, dst.dtype), bytes),
        }
    }
    Ok(())
}

/// `ub_to_l1_nd2nz` and `ub_to_l1_nz`: m_dst, n_dst, m_src, n_src.
pub(super) fn ub_to_l1(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [m_dst, n_dst, m_src, n_src] = task.sizes()?;
    let (dst, src) = (task.views[0], task.views[1]);
    let size = dst.dtype.size() as u64;
    let (ub, l1) = context.memory.pair(Bank::of(Space::Ub, context.sub_block), Bank::L1);
    let end = zeroed_end(task, blocks_bytes(Layout::Nz, dst.dtype, m_dst, n_dst));
    // Lanes of a core fill parts of one tensor: only what this one writes is zeroed before.
    let _ = end;
    let c0 = dst.dtype.block() as u64;
    for row in 0..m_src {
        for block in 0..n_src.div_ceil(c0) {
            let count = (c0.min(n_src - block * c0) * size) as usize;
            let from = if task.op == Op::UbToL1Nd {
                row_offset_of(&src, row, n_src) + block * 32
            } else {
                src.offset + (block * m_src + row) * 32
            } as usize;
            let to = (dst.offset + block * align(m_dst, 16) * 32 + row * 32) as usize;
            l1[to..to + count].copy_from_slice(&ub[from..from + count]);
            l1[to + count..to + 32].fill(0);
        }
    }
    Ok(())
}

/// Rows of a strided view keep their stride; a whole tensor has rows of `n` elements.
const fn row_offset_of(view: &crate::compile::View, row: u64, n: u64) -> u64 {
    if view.row_stride as u64 > n {
        row_offset(view, row)
    } else {
        view.offset + row * n * view.dtype.size() as u64
    }
}

/// `ub_to_ub`: n_burst, burst_len, src_stride, dst_stride.
pub(super) fn ub_to_ub(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [bursts, length, src_gap, dst_gap] = task.sizes()?;
    let (dst, src) = (&task.views[0], &task.views[1]);
    let ub = context.memory.bank_mut(Bank::of(Space::Ub, context.sub_block));
    for burst in 0..bursts {
        let from = (src.offset + burst * (length + src_gap) * 32) as usize;
        let to = (dst.offset + burst * (length + dst_gap) * 32) as usize;
        ub.copy_within(from..from + length as usize * 32, to);
    }
    Ok(())
}

/// Element by element between any memories: `copy_shared`, `fill_shared`, `cube_m_copy`, `cube_m_scale`.
pub(super) fn shared(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let (dst, src) = (task.views[0], task.views[1]);
    let fill = task.op == Op::FillShared;
    if !fill && dst.len() != src.len() {
        let problem = format!("{} elements, the source has {}", dst.len(), src.len());
        return Err(Fault::Operand { operand: "dst".to_owned(), problem });
    }
    let cols = u64::from(dst.cols);
    let mut raw = [0; 8];
    for at in 0..dst.len() {
        let value = if fill {
            task.val
        } else {
            let from = element_offset(&src, at, u64::from(src.cols));
            let raw = &mut raw[..src.dtype.size()];
            match Bank::of(src.space, context.sub_block) {
                Bank::Gm => context.gm.read(src.tensor, from, raw),
                bank => {
                    raw.copy_from_slice(&context.memory.bank(bank)[from as usize..from as usize + raw.len()])
                }
            }
            read_number(src.dtype, raw) * if task.op == Op::CubeScale { task.val } else { 1.0 }
        };
        let to = element_offset(&dst, at, cols);
        let raw = &mut raw[..dst.dtype.size()];
        write_number(dst.dtype, value, raw);
        match Bank::of(dst.space, context.sub_block) {
            Bank::Gm => context.gm.write(dst.tensor, to, raw),
            bank => context.memory.bank_mut(bank)[to as usize..to as usize + raw.len()].copy_from_slice(raw),
        }
    }
    Ok(())
}

const fn element_offset(view: &crate::compile::View, at: u64, cols: u64) -> u64 {
    let stride = if view.row_stride == 0 { cols } else { view.row_stride as u64 };
    view.offset + (at / cols * stride + at % cols) * view.dtype.size() as u64
}

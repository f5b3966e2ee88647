//! Data moves of the cube lane.

use crate::element::{ElementType, load_f32, store_f32};
use crate::error::Fault;
use crate::memory::Bank;
use crate::program::Space;
use crate::task::Task;

use super::Context;
use super::layout::{Layout, align, blocks_bytes, index};

/// Elements of a column block in the accumulator.
const ACC: u64 = 16;

/// `gm_to_l1_nd2nz`: M, N, N_src, M_dst.
pub(super) fn gm_to_l1(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [m, n, pitch, m_dst] = task.sizes()?;
    let (dst, src) = (&task.views[0], &task.views[1]);
    let size = dst.dtype.size() as u64;
    context.atomics.settle(src.tensor, context.gm);
    let l1 = context.memory.bank_mut(Bank::L1);
    let end = zeroed_end(task, blocks_bytes(Layout::Nz, dst.dtype, m_dst, n));
    l1[dst.offset as usize..end as usize].fill(0);
    let row = &mut context.scratch.bytes;
    row.resize((n * size) as usize, 0);
    let column = align(m_dst, 16) * 32;
    for r in 0..m {
        context.gm.read(src.tensor, src.offset + r * pitch * size, row);
        for (block, part) in row.chunks(32).enumerate() {
            let at = (dst.offset + block as u64 * column + r * 32) as usize;
            l1[at..at + part.len()].copy_from_slice(part);
        }
    }
    Ok(())
}

/// Where zeroing ends: a whole tensor is zeroed, of a window only the blocks that are written.
pub(super) fn zeroed_end(task: &Task, written: u64) -> u64 {
    let dst = &task.views[0];
    let whole = if dst.row_stride == 0 { 0 } else { dst.bytes() };
    dst.offset + whole.max(written)
}

/// `set_constant_to_l1`: n_blocks, val.
pub(super) fn set_constant(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [blocks] = task.sizes()?;
    let dst = &task.views[0];
    let l1 = context.memory.bank_mut(Bank::L1);
    let range = dst.offset as usize..(dst.offset + blocks * 32) as usize;
    for element in l1[range].chunks_exact_mut(dst.dtype.size()) {
        crate::element::write_number(dst.dtype, task.val, element);
    }
    Ok(())
}

/// `l1_to_l0`: m_dst, n_dst, m_src, n_src, transpose, src_layout, dst_layout, row0, col0.
pub(super) fn l1_to_l0(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [m, n, m_src, n_src, transpose, src_word, dst_word, row0, col0] = task.sizes()?;
    let (dst, src) = (&task.views[0], &task.views[1]);
    let from = if src_word == 1 { Layout::Zz } else { Layout::Nz };
    let to = target_layout(task.views[0].space, transpose != 0, dst_word as i64, context.left_zz);
    let size = dst.dtype.size();
    let (l1, l0) = context.memory.pair(Bank::L1, Bank::of(dst.space, 0));
    let bytes = blocks_bytes(to, dst.dtype, m, n);
    l0[dst.offset as usize..(dst.offset + bytes) as usize].fill(0);
    let (rows, cols) = (m.min(m_src.saturating_sub(row0)), n.min(n_src.saturating_sub(col0)));
    let c0 = src.dtype.block() as u64;
    // Runs of up to c0 elements of a row lie together in NZ and ZZ; in ZN each element goes alone.
    for row in 0..rows {
        let mut col = 0;
        while col < cols {
            let at = index(from, src.dtype, (m_src, n_src), (row0 + row, col0 + col));
            let run = if to != Layout::Zn && col.is_multiple_of(c0) && (col0 + col).is_multiple_of(c0) {
                c0.min(cols - col)
            } else {
                1
            };
            let length = run as usize * size;
            let from = src.offset as usize + at as usize * size;
            let to = dst.offset as usize + index(to, dst.dtype, (m, n), (row, col)) as usize * size;
            l0[to..to + length].copy_from_slice(&l1[from..from + length]);
            col += run;
        }
    }
    Ok(())
}

/// The layout that an operand of the matrix unit gets.
pub(crate) fn target_layout(space: Space, transpose: bool, word: i64, left_zz: bool) -> Layout {
    let auto = if transpose {
        Layout::Zn
    } else if space == Space::L0a && left_zz {
        Layout::Zz
    } else {
        Layout::Nz
    };
    Layout::of(word, auto)
}

/// Row `row` of the accumulator tile as floats.
fn acc_row(
    task: &Task,
    acc: &[u8],
    (m_src, row): (u64, u64),
    (col0, cols): (u64, u64),
    (relu, out): (bool, &mut Vec<f32>),
) {
    let src = &task.views[1];
    out.resize(cols as usize, 0.0);
    let column = align(m_src, 16) * ACC * 4;
    let mut done = 0;
    while done < cols {
        let col = col0 + done;
        let take = (ACC - col % ACC).min(cols - done);
        let at = (src.offset + col / ACC * column + (row * ACC + col % ACC) * 4) as usize;
        let values = &mut out[done as usize..(done + take) as usize];
        load_f32(src.dtype, &acc[at..at + take as usize * 4], values);
        done += take;
    }
    if relu {
        out.iter_mut().for_each(|value| *value = value.max(0.0));
    }
}

/// Row `row` as bytes of `dst`; 32-bit integers are kept exactly.
fn converted_row(
    task: &Task,
    context: &mut Context<'_>,
    rows: (u64, u64),
    cols: (u64, u64),
    (dst, relu): (ElementType, bool),
) {
    let acc = context.memory.bank(Bank::L0c);
    let bytes = &mut context.scratch.bytes;
    bytes.resize(cols.1 as usize * dst.size(), 0);
    if task.views[1].dtype == ElementType::I32 && !dst.is_float() {
        let src = &task.views[1];
        let column = align(rows.0, 16) * ACC * 4;
        for at in 0..cols.1 {
            let col = cols.0 + at;
            let from = (src.offset + col / ACC * column + (rows.1 * ACC + col % ACC) * 4) as usize;
            let mut value = crate::element::read_int(ElementType::I32, &acc[from..from + 4]);
            if relu {
                value = value.max(0);
            }
            let value = match dst {
                ElementType::I8 => value.clamp(-128, 127),
                ElementType::U8 => value.clamp(0, 255),
                ElementType::I16 => value.clamp(-32768, 32767),
                _ => value,
            };
            crate::element::write_int(dst, value, &mut bytes[at as usize * dst.size()..]);
        }
    } else {
        acc_row(task, acc, rows, cols, (relu, &mut context.scratch.values));
        store_f32(dst, &context.scratch.values, bytes);
    }
}

/// `l0c_to_gm_nz2nd`: M, N, N_dst, M_src, relu.
pub(super) fn l0c_to_gm(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [m, n, pitch, m_src, relu] = task.sizes()?;
    let dst = task.views[0];
    let size = dst.dtype.size() as u64;
    if task.atomic.is_none() {
        context.atomics.settle(dst.tensor, context.gm);
    }
    for row in 0..m {
        converted_row(task, context, (m_src, row), (0, n), (dst.dtype, relu != 0));
        let at = (dst.tensor, dst.offset + row * pitch * size);
        match task.atomic {
            None => context.gm.write(at.0, at.1, &context.scratch.bytes),
            Some(atomic) => {
                let op = (atomic.kind, dst.dtype);
                context.atomics.push(context.cycle, at, op, &context.scratch.bytes);
            }
        }
    }
    Ok(())
}

/// `l0c_to_l1`: M, N, M_dst, M_src, relu.
pub(super) fn l0c_to_l1(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [m, n, m_dst, m_src, relu] = task.sizes()?;
    let dst = task.views[0];
    let end = zeroed_end(task, blocks_bytes(Layout::Nz, dst.dtype, m_dst, n));
    context.memory.bank_mut(Bank::L1)[dst.offset as usize..end as usize].fill(0);
    let column = align(m_dst, 16) * 32;
    for row in 0..m {
        converted_row(task, context, (m_src, row), (0, n), (dst.dtype, relu != 0));
        let l1 = context.memory.bank_mut(Bank::L1);
        for (block, part) in context.scratch.bytes.chunks(32).enumerate() {
            let at = (dst.offset + block as u64 * column + row * 32) as usize;
            l1[at..at + part.len()].copy_from_slice(part);
        }
    }
    Ok(())
}

/// `l0c_to_ub`: M, N, N_dst, M_src, dual_mode, sub_block_id, relu.
pub(super) fn l0c_to_ub(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [m, n, pitch, m_src, mode, sub_block, relu] = task.sizes()?;
    let dst = task.views[0];
    for (target, rows, cols) in halves(mode, sub_block, m, n) {
        for row in 0..rows.1 {
            converted_row(task, context, (m_src, rows.0 + row), cols, (dst.dtype, relu != 0));
            let at = (dst.offset + row * pitch * dst.dtype.size() as u64) as usize;
            let ub = context.memory.bank_mut(Bank::of(Space::Ub, target));
            ub[at..at + context.scratch.bytes.len()].copy_from_slice(&context.scratch.bytes);
        }
    }
    Ok(())
}

type Half = (usize, (u64, u64), (u64, u64));

/// Which unified buffer gets which rows (first, count) and columns (first, count).
pub(super) fn halves(mode: u64, sub_block: u64, m: u64, n: u64) -> impl Iterator<Item = Half> {
    let parts: [Option<Half>; 2] = match mode {
        1 => [Some((0, (0, m / 2), (0, n))), Some((1, (m / 2, m - m / 2), (0, n)))],
        2 => [Some((0, (0, m), (0, n / 2))), Some((1, (0, m), (n / 2, n - n / 2)))],
        _ => [Some((usize::from(sub_block != 0), (0, m), (0, n))), None],
    };
    parts.into_iter().flatten()
}

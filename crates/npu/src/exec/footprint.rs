//! Which bytes an instruction touches, and whether it may.

use crate::device::Device;
use crate::element::ElementType;
use crate::error::Fault;
use crate::memory::{Bank, Footprint, Region};
use crate::ops::Op;
use crate::program::Space;
use crate::task::Task;

use super::cube::{halves, target_layout, zeroed_end};
use super::layout::{Layout, align, blocks_bytes};
use super::vector::{Plan, VectorState, check_types, plan};

/// What a footprint depends on besides the task.
pub(crate) struct Limits<'a> {
    pub(crate) device: &'a Device,
    /// Which unified buffer is the lane's own.
    pub(crate) sub_block: usize,
    pub(crate) left_zz: bool,
    /// The lane is the cube's.
    pub(crate) cube: bool,
}

/// The bytes that `task` reads and writes; fails when an operand is of the wrong type or memory, misaligned, out of its
/// bounds, or a parameter is beyond the device's.
pub(crate) fn footprint(task: &Task, state: &VectorState, limits: &Limits<'_>) -> Result<Footprint, Fault> {
    let mut out = Footprint::default();
    check_types(task)?;
    let [dst, a, b, c] = task.views;
    let ub = Bank::of(Space::Ub, limits.sub_block);
    let size = dst.dtype.size() as u64;
    match task.op {
        Op::GmToL1 => {
            let [m, n, pitch, m_dst] = task.sizes()?;
            place(&[("dst", &dst, Space::L1), ("src", &a, Space::Gm)])?;
            if n > pitch || m > m_dst {
                let problem = format!("{m} x {n}, more than M_dst {m_dst} x N_src {pitch}");
                return Err(Fault::Operand { operand: "M, N".to_owned(), problem });
            }
            out.add(Region::run("src", a, Bank::Gm, n * size).times(m, (pitch * size) as i64));
            let end = zeroed_end(task, blocks_bytes(Layout::Nz, dst.dtype, m_dst, n));
            out.add(Region::run("dst", dst, Bank::L1, end - dst.offset).writes());
        }
        Op::SetConstantL1 => {
            let [blocks] = task.sizes()?;
            place(&[("tensor", &dst, Space::L1)])?;
            out.add(Region::run("tensor", dst, Bank::L1, blocks * 32).writes());
        }
        Op::L1ToL0 => {
            let [m, n, m_src, n_src, transpose, src_word, dst_word, row0, col0] = task.sizes()?;
            if !matches!(dst.space, Space::L0a | Space::L0b) {
                return Err(wrong_space("dst", "l0a or l0b", dst.space));
            }
            place(&[("src", &a, Space::L1)])?;
            let to = target_layout(dst.space, transpose != 0, dst_word as i64, limits.left_zz);
            let bank = Bank::of(dst.space, 0);
            let bytes = blocks_bytes(to, dst.dtype, m, n);
            let (rows, cols) = (m.min(m_src.saturating_sub(row0)), n.min(n_src.saturating_sub(col0)));
            let c0 = a.dtype.block() as u64;
            if src_word == 1 {
                out.add(Region::run("src", a, Bank::L1, blocks_bytes(Layout::Zz, a.dtype, m_src, n_src)));
            } else if rows > 0 && cols > 0 {
                let blocks = (col0 % c0 + cols).div_ceil(c0);
                let column = align(m_src, 16) * 32;
                let first = col0 / c0 * column + row0 * 32;
                out.add(Region::run("src", a, Bank::L1, rows * 32).skip(first).times(blocks, column as i64));
            }
            out.add(Region::run("dst", dst, bank, bytes).writes());
        }
        Op::Mmad => {
            let [m, n, k, is_init, a_word, b_word, row0, col0, rows] = task.sizes()?;
            place(&[("dst", &dst, Space::L0c), ("src_a", &a, Space::L0a), ("src_b", &b, Space::L0b)])?;
            let operand = |layout, dtype, rows, k| match layout {
                Layout::Zn => blocks_bytes(layout, dtype, k, rows),
                _ => blocks_bytes(layout, dtype, rows, k),
            };
            let left = target_layout(Space::L0a, false, a_word as i64, limits.left_zz);
            let right = target_layout(Space::L0b, false, b_word as i64, false);
            out.add(Region::run("src_a", a, Bank::L0a, operand(left, a.dtype, m, k)));
            out.add(Region::run("src_b", b, Bank::L0b, operand(right, b.dtype, n, k)));
            if col0 % 16 != 0 || row0 + m > align(rows, 16) {
                let problem = format!("{row0}, {col0} of {rows} rows: columns begin at multiples of 16");
                return Err(Fault::Operand { operand: "dst_row0, dst_col0".to_owned(), problem });
            }
            let column = align(rows, 16) * 64;
            let window = Region::run("dst", dst, Bank::L0c, m * 64)
                .skip(col0 / 16 * column + row0 * 64)
                .times(n.div_ceil(16), column as i64);
            if is_init == 0 {
                out.add(window);
            }
            out.add(window.writes());
        }
        Op::L0cToGm => {
            let [m, n, pitch, m_src] = task.sizes()?;
            place(&[("dst", &dst, Space::Gm), ("src", &a, Space::L0c)])?;
            out.add(accumulator(task, m, n, m_src));
            out.add(Region::run("dst", dst, Bank::Gm, n * size).times(m, (pitch * size) as i64).writes());
        }
        Op::L0cToL1 => {
            let [m, n, m_dst, m_src] = task.sizes()?;
            place(&[("dst", &dst, Space::L1), ("src", &a, Space::L0c)])?;
            out.add(accumulator(task, m, n, m_src));
            let end = zeroed_end(task, blocks_bytes(Layout::Nz, dst.dtype, m_dst.max(m), n));
            out.add(Region::run("dst", dst, Bank::L1, end - dst.offset).writes());
        }
        Op::L0cToUb => {
            let [m, n, pitch, m_src, mode, sub_block] = task.sizes()?;
            place(&[("dst", &dst, Space::Ub), ("src", &a, Space::L0c)])?;
            let split = if mode == 1 { m } else { n };
            if mode != 0 && split % 2 != 0 {
                let (which, value) = if mode == 1 { ("M", m) } else { ("N", n) };
                return Err(Fault::Operand {
                    operand: which.to_owned(),
                    problem: format!("{value}; a split needs an even number"),
                });
            }
            out.add(accumulator(task, m, n, m_src));
            for (target, rows, cols) in halves(mode, sub_block, m, n) {
                let bank = Bank::of(Space::Ub, target);
                let row = cols.1 * size;
                out.add(Region::run("dst", dst, bank, row).times(rows.1, (pitch * size) as i64).writes());
            }
        }
        Op::CubeCopy | Op::CubeScale | Op::CopyShared | Op::FillShared => {
            if limits.cube && [dst.space, a.space].contains(&Space::Ub) {
                return Err(wrong_space("dst or src", "a memory of the cube", Space::Ub));
            }
            for (operand, view, write) in [("src", a, false), ("dst", dst, true)] {
                if view.rows > 0 {
                    let bank = Bank::of(view.space, limits.sub_block);
                    let item = view.dtype.size() as u64;
                    let step = i64::from(view.row_stride.max(view.cols)) * item as i64;
                    let mut region = Region::run(operand, view, bank, u64::from(view.cols) * item);
                    region.write = write;
                    out.add(region.times(u64::from(view.rows), step));
                }
            }
        }
        Op::GmToUb | Op::UbToGm => {
            let [bursts, length, src_gap, dst_gap] = task.sizes()?;
            let limit = &limits.device.limits;
            within("n_burst", bursts, limit.bursts)?;
            within("the source stride", src_gap, limit.stride)?;
            within("the destination stride", dst_gap, limit.stride)?;
            let padded = align(length, 32);
            if task.op == Op::GmToUb {
                place(&[("dst", &dst, Space::Ub), ("src", &a, Space::Gm)])?;
                out.add(Region::run("src", a, Bank::Gm, length).times(bursts, (length + src_gap) as i64));
                let to = Region::run("dst", dst, ub, padded).times(bursts, (padded + 32 * dst_gap) as i64);
                out.add(to.writes());
            } else {
                place(&[("dst", &dst, Space::Gm), ("src", &a, Space::Ub)])?;
                out.add(Region::run("src", a, ub, length).times(bursts, (padded + 32 * src_gap) as i64));
                let to = Region::run("dst", dst, Bank::Gm, length).times(bursts, (length + dst_gap) as i64);
                out.add(to.writes());
            }
        }
        Op::UbToL1Nd | Op::UbToL1Nz => {
            let [m_dst, _, m_src, n_src] = task.sizes()?;
            place(&[("dst", &dst, Space::L1), ("src", &a, Space::Ub)])?;
            let c0 = dst.dtype.block() as u64;
            let blocks = n_src.div_ceil(c0);
            if task.op == Op::UbToL1Nd {
                let pitch = if u64::from(a.row_stride) > n_src { u64::from(a.row_stride) } else { n_src };
                out.add(Region::run("src", a, ub, n_src * size).times(m_src, (pitch * size) as i64));
            } else {
                out.add(Region::run("src", a, ub, blocks * m_src * 32));
            }
            let column = align(m_dst, 16) * 32;
            out.add(Region::run("dst", dst, Bank::L1, m_src * 32).times(blocks, column as i64).writes());
        }
        Op::UbToUb => {
            let [bursts, length, src_gap, dst_gap] = task.sizes()?;
            place(&[("dst", &dst, Space::Ub), ("src", &a, Space::Ub)])?;
            within("n_burst", bursts, limits.device.limits.bursts)?;
            out.add(Region::run("src", a, ub, length * 32).times(bursts, ((length + src_gap) * 32) as i64));
            out.add(
                Region::run("dst", dst, ub, length * 32)
                    .times(bursts, ((length + dst_gap) * 32) as i64)
                    .writes(),
            );
        }
        Op::Brcb => {
            let [repeat, block, stride] = task.sizes()?;
            place(&[("dst", &dst, Space::Ub), ("src", &a, Space::Ub)])?;
            within("repeat", repeat, limits.device.limits.repeat)?;
            out.add(Region::run("src", a, ub, repeat * 8 * size));
            let to = Region::run("dst", dst, ub, 32)
                .times(8, (block * 32) as i64)
                .again(repeat, (stride * 32) as i64);
            out.add(to.writes());
        }
        Op::Sort32 => {
            let [repeat] = task.sizes()?;
            place(&[("dst", &dst, Space::Ub), ("src", &a, Space::Ub), ("idx", &b, Space::Ub)])?;
            out.add(Region::run("src", a, ub, repeat * 32 * a.dtype.size() as u64));
            out.add(Region::run("idx", b, ub, repeat * 32 * 4));
            out.add(Region::run("dst", dst, ub, repeat * 32 * 8).writes());
        }
        Op::MergeSort4 => {
            let [length, repeat] = task.sizes()?;
            place(&[("dst", &dst, Space::Ub), ("src", &a, Space::Ub)])?;
            out.add(Region::run("src", a, ub, repeat * length * 32));
            out.add(Region::run("dst", dst, ub, repeat * length * 32).writes());
        }
        Op::MergeSort2 => {
            let [one, two] = task.sizes()?;
            place(&[("dst", &dst, Space::Ub), ("src1", &a, Space::Ub), ("src2", &b, Space::Ub)])?;
            out.add(Region::run("src1", a, ub, one * 8));
            out.add(Region::run("src2", b, ub, two * 8));
            out.add(Region::run("dst", dst, ub, (one + two) * 8).writes());
        }
        Op::Gather | Op::Scatter => {
            let [_, repeat, stride] = task.sizes()?;
            place(&[("dst", &dst, Space::Ub), ("src", &a, Space::Ub), ("offset", &b, Space::Ub)])?;
            let lanes = 256 / size.max(b.dtype.size() as u64);
            out.add(Region::run("offset", b, ub, repeat * lanes * b.dtype.size() as u64));
            // The table is touched somewhere: its whole extent counts.
            let table = if task.op == Op::Gather { ("src", a) } else { ("dst", dst) };
            let data = if task.op == Op::Gather { ("dst", dst) } else { ("src", a) };
            let gather = task.op == Op::Gather;
            let mut table = Region::run(table.0, table.1, ub, table.1.limit - table.1.offset);
            let mut data = Region::run(data.0, data.1, ub, lanes * size).times(repeat, (stride * 32) as i64);
            (table.write, data.write) = (!gather, gather);
            out.add(table);
            out.add(data);
        }
        _ => {
            if let Some(plan) = plan(task, state)? {
                within(
                    "repeat",
                    plan.repeats,
                    limits.device.limits.repeat.max(plan.whole.map_or(0, |_| plan.repeats)),
                )?;
                vector(task, &plan, state, ub, &mut out)?;
            }
        }
    }
    let _ = c;
    check_ranges(&out, limits.device)?;
    Ok(out)
}

/// The accumulator tile that a FIX instruction reads.
fn accumulator(task: &Task, m: u64, n: u64, m_src: u64) -> Region {
    let column = align(m_src, 16) * 64;
    Region::run("src", task.views[1], Bank::L0c, m * 64).times(n.div_ceil(16), column as i64)
}

fn within(quantity: &str, value: u64, limit: u64) -> Result<(), Fault> {
    if value <= limit {
        return Ok(());
    }
    Err(Fault::Limit { quantity: quantity.to_owned(), value: value.min(i64::MAX as u64) as i64, limit })
}

fn wrong_space(operand: &str, wanted: &str, found: Space) -> Fault {
    Fault::Operand {
        operand: operand.to_owned(),
        problem: format!("in {}; it must be in {wanted}", found.name()),
    }
}

fn place(operands: &[(&str, &crate::compile::View, Space)]) -> Result<(), Fault> {
    for (operand, view, space) in operands {
        if view.space != *space {
            return Err(wrong_space(operand, space.name(), view.space));
        }
    }
    Ok(())
}

/// The regions of an instruction in repeats.
fn vector(task: &Task, plan: &Plan, state: &VectorState, ub: Bank, out: &mut Footprint) -> Result<(), Fault> {
    let select = task.op == Op::Select;
    let names: [(&'static str, usize); 3] = match task.op {
        Op::Select => [("dst", 0), ("src1", 2), ("src2", 3)],
        _ if plan.sources == 2 => [("dst", 0), ("src1", 1), ("src2", 2)],
        _ => [("dst", 0), ("src", 1), ("src", 1)],
    };
    let (_, lanes) = plan.active(state, 256 / plan.lanes);
    let reads_old = matches!(task.op, Op::MulAddDst | Op::Axpy);
    let total = plan.repeats.saturating_sub(1) * plan.lanes as u64 + plan.tail as u64;
    for at in (0..=plan.sources).rev() {
        let (name, index) = names[at];
        let view = task.views[index];
        if view.space != Space::Ub {
            return Err(wrong_space(name, "ub", view.space));
        }
        let stream = &plan.streams[at];
        let size = view.dtype.size() as u64;
        let result = at == 0;
        let per_repeat: Option<u64> = match task.op {
            Op::Compare | Op::CompareScalar if result => Some(plan.lanes as u64 / 8),
            Op::Cmax | Op::Cmin | Op::Cadd if result => Some(size),
            Op::Cgmax | Op::Cgmin | Op::Cgadd if result => Some((lanes as u64 * size).div_ceil(32) * size),
            Op::Cpadd if result => Some((lanes as u64).div_ceil(2) * size),
            _ => None,
        };
        let region = if let Some(bytes) = per_repeat {
            if plan.whole.is_some() && matches!(task.op, Op::Compare | Op::CompareScalar) {
                Region::run(name, view, ub, total.div_ceil(8)).times(plan.rows, stream.row as i64)
            } else {
                Region::run(name, view, ub, bytes).times(plan.repeats, stream.repeat as i64)
            }
        } else if let Some(cols) = plan.whole {
            Region::run(name, view, ub, cols * size).times(plan.rows, stream.row as i64)
        } else if !plan.masked && stream.block == 32 && stream.repeat == plan.lanes as u64 * size {
            Region::run(name, view, ub, total * size)
        } else if view.dtype.size() * plan.lanes < 256 || !plan.masked {
            // The narrower side of a cast, or no mask: contiguous lanes of each repeat.
            let bytes = lanes as u64 * size;
            if stream.block == 32 {
                Region::run(name, view, ub, bytes).times(plan.repeats, stream.repeat as i64)
            } else {
                let blocks = bytes.div_ceil(32);
                let run = Region::run(name, view, ub, 32).times(blocks, stream.block as i64);
                run.again(plan.repeats, stream.repeat as i64)
            }
        } else {
            let blocks = (lanes as u64 * size).div_ceil(32);
            let run = Region::run(name, view, ub, 32).times(blocks, stream.block as i64);
            let mut run = run.again(plan.repeats, stream.repeat as i64);
            run.masked = true;
            if blocks == 8
                && lanes as u64 * size == 256
                && stream.block == 32
                && state.bytes(size as usize) == [u32::MAX; 8]
            {
                run = Region::run(name, view, ub, 256).times(plan.repeats, stream.repeat as i64);
            }
            run
        };
        if result {
            if reads_old {
                out.add(region);
            }
            out.add(region.writes());
        } else {
            out.add(region);
        }
    }
    if select {
        let mask = task.views[1];
        if mask.space != Space::Ub {
            return Err(wrong_space("selmask", "ub", mask.space));
        }
        out.add(Region::run("selmask", mask, ub, (plan.rows * total).div_ceil(8)));
    }
    Ok(())
}

fn check_ranges(footprint: &Footprint, device: &Device) -> Result<(), Fault> {
    for region in footprint.iter() {
        let (start, end) = region.span();
        if start < region.view.offset as i64 || end < start || end as u64 > region.view.limit {
            return Err(Fault::Range {
                operand: region.operand.to_owned(),
                tensor: region.view.tensor.to_string(),
                start,
                end,
                limit: region.view.limit,
            });
        }
        if region.bank == Bank::Gm {
            continue;
        }
        // Blocks of local memory are 32 bytes; a scalar result may lie anywhere.
        let scalar = region.length < 32 && region.view.dtype != ElementType::U8;
        let alignment = if scalar { region.view.dtype.size() as u64 } else { 32.min(device.alignment.ub) };
        if region.view.offset % alignment != 0 && region.length >= 32
            || region.view.offset % region.view.dtype.size() as u64 != 0
        {
            return Err(Fault::Alignment {
                operand: region.operand.to_owned(),
                offset: region.view.offset,
                alignment,
            });
        }
    }
    Ok(())
}

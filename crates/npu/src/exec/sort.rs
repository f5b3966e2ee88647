//! Sorting: pairs of 8 bytes, a value (f32, or f16 in the first two bytes) and a 32-bit index, in descending order.
//!
//! Equal values keep the order of their sources.

use crate::compile::View;
use crate::element::load_f32;
use crate::error::Fault;
use crate::memory::Bank;
use crate::ops::Op;
use crate::program::Space;
use crate::task::Task;

use super::Context;

const PAIR: usize = 8;

/// Runs `sort32`, `mergesort4` or `mergesort_2seq`.
pub(super) fn run(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let ub = context.memory.bank_mut(Bank::of(Space::Ub, context.sub_block));
    let keys = &mut context.scratch.keys;
    match task.op {
        Op::Sort32 => sort32(task, ub, keys),
        Op::MergeSort4 => {
            let [length, repeat] = task.sizes()?;
            for r in 0..repeat {
                let start = task.views[1].offset + r * 4 * length * PAIR as u64;
                let runs = [0, 1, 2, 3].map(|run| (start + run * length * PAIR as u64, length));
                let to = task.views[0].offset + r * 4 * length * PAIR as u64;
                merge(ub, &task.views[1], &runs, to, keys)?;
            }
            Ok(())
        }
        _ => {
            let [one, two] = task.sizes()?;
            let runs = [(task.views[1].offset, one), (task.views[2].offset, two)];
            merge(ub, &task.views[1], &runs, task.views[0].offset, keys)
        }
    }
}

fn sort32(task: &Task, ub: &mut [u8], keys: &mut Vec<(f32, [u8; PAIR])>) -> Result<(), Fault> {
    let [repeat] = task.sizes()?;
    let (dst, src, idx) = (&task.views[0], &task.views[1], &task.views[2]);
    let size = src.dtype.size();
    for r in 0..repeat as usize {
        keys.clear();
        for lane in 0..32 {
            let from = src.offset as usize + (r * 32 + lane) * size;
            let mut value = [0.0];
            load_f32(src.dtype, &ub[from..from + size], &mut value);
            let mut pair = [0; PAIR];
            pair[..size].copy_from_slice(&ub[from..from + size]);
            let at = idx.offset as usize + (r * 32 + lane) * 4;
            pair[4..].copy_from_slice(&ub[at..at + 4]);
            keys.push((value[0], pair));
        }
        keys.sort_by(|a, b| b.0.total_cmp(&a.0));
        let to = dst.offset as usize + r * 32 * PAIR;
        for (lane, (_, pair)) in keys.iter().enumerate() {
            ub[to + lane * PAIR..to + (lane + 1) * PAIR].copy_from_slice(pair);
        }
    }
    Ok(())
}

/// Merges runs that are each in descending order.
fn merge(
    ub: &mut [u8],
    view: &View,
    runs: &[(u64, u64)],
    to: u64,
    keys: &mut Vec<(f32, [u8; PAIR])>,
) -> Result<(), Fault> {
    keys.clear();
    for (number, &(start, length)) in runs.iter().enumerate() {
        let mut last = f32::INFINITY;
        for at in 0..length as usize {
            let from = start as usize + at * PAIR;
            let mut value = [0.0];
            let size = if view.dtype.size() == 2 { 2 } else { 4 };
            load_f32(view.dtype, &ub[from..from + size], &mut value);
            if value[0] > last {
                let problem = format!(
                    "not in descending order: run {number} rises to {} at {at}; sort it first",
                    value[0]
                );
                return Err(Fault::Operand { operand: "src".to_owned(), problem });
            }
            last = value[0];
            let mut pair = [0; PAIR];
            pair.copy_from_slice(&ub[from..from + PAIR]);
            keys.push((value[0], pair));
        }
    }
    keys.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (at, (_, pair)) in keys.iter().enumerate() {
        let to = to as usize + at * PAIR;
        ub[to..to + PAIR].copy_from_slice(pair);
    }
    Ok(())
}

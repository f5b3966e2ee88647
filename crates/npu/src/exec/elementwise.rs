//! Lane by lane arithmetic of the vector unit: repeats in order, each read before it is written.
//!
//! Floats are computed in `f32`, integers in `i64` and wrapped when stored.

use crate::compile::Comparison;
use crate::element::{ElementType, load_f32, read_int, store_f32, write_int};
use crate::error::Fault;
use crate::memory::Bank;
use crate::ops::Op;
use crate::program::Space;
use crate::task::Task;

use super::vector::{Plan, Stream, VectorState};
use super::{Context, math};

/// Lanes of the narrowest type.
const LANES: usize = 256;

/// Runs `task` over the turns of `plan`.
pub(super) fn run(task: &Task, plan: &Plan, context: &mut Context<'_>) -> Result<(), Fault> {
    let bank = Bank::of(Space::Ub, context.sub_block);
    let ub = context.memory.bank_mut(bank);
    let mut turn = Turn { a: [0.0; LANES], b: [0.0; LANES], old: [0.0; LANES], ints: [[0; LANES]; 3] };
    for row in 0..plan.rows {
        for repeat in 0..plan.repeats {
            let lanes = if repeat + 1 == plan.repeats { plan.tail } else { plan.lanes };
            let starts = plan.streams.map(|stream| stream.start + row * stream.row + repeat * stream.repeat);
            let at = At { starts, lanes, row, repeat };
            match task.op {
                Op::Compare | Op::CompareScalar => compare(task, plan, ub, &at, &mut turn),
                Op::Select => select(task, plan, (ub, context.vector), &at),
                Op::Cast => cast(task, plan, (ub, context.vector, context.compat), &at, &mut turn),
                Op::Cmax | Op::Cmin | Op::Cadd | Op::Cgmax | Op::Cgmin | Op::Cgadd | Op::Cpadd => {
                    reduce(task, plan, (ub, context.vector), &at, &mut turn);
                }
                _ => arithmetic(task, plan, (ub, context.vector), &at, &mut turn),
            }
        }
    }
    Ok(())
}

/// Where a turn reads and writes.
struct At {
    starts: [u64; 3],
    lanes: usize,
    row: u64,
    repeat: u64,
}

/// Values of one repeat.
struct Turn {
    a: [f32; LANES],
    b: [f32; LANES],
    old: [f32; LANES],
    ints: [[i64; LANES]; 3],
}

/// Copies `lanes` lanes of a stream together.
fn gather<'a>(
    ub: &'a [u8],
    stream: &Stream,
    (start, lanes, size): (u64, usize, usize),
    room: &'a mut [u8; 256],
) -> &'a [u8] {
    let start = start as usize;
    let bytes = lanes * size;
    if stream.block == 32 {
        return &ub[start..(start + bytes).min(ub.len())];
    }
    for (block, part) in room[..bytes].chunks_mut(32).enumerate() {
        let at = start + block * stream.block as usize;
        part.copy_from_slice(&ub[at..at + part.len()]);
    }
    &room[..bytes]
}

/// Writes the active lanes of `values` to a stream.
fn scatter(
    ub: &mut [u8],
    stream: &Stream,
    (start, lanes, size): (u64, usize, usize),
    (values, masked, state): (&[u8], bool, &VectorState),
) {
    let start = start as usize;
    let all = !masked || (0..lanes).all(|lane| state.lane(lane, size));
    if all && stream.block == 32 {
        ub[start..start + lanes * size].copy_from_slice(&values[..lanes * size]);
        return;
    }
    for lane in (0..lanes).filter(|&lane| all || state.lane(lane, size)) {
        let byte = lane * size;
        let at = start + byte / 32 * stream.block as usize + byte % 32;
        ub[at..at + size].copy_from_slice(&values[byte..byte + size]);
    }
}

fn arithmetic(task: &Task, plan: &Plan, (ub, state): (&mut [u8], &VectorState), at: &At, turn: &mut Turn) {
    let dst = &task.views[0];
    let kind = dst.dtype;
    let size = kind.size();
    let lanes = plan.active(state, size).1.min(at.lanes);
    let mut room = [0; 256];
    let mut out = [0; 256];
    let reads_old = matches!(task.op, Op::MulAddDst | Op::Axpy);
    if kind.is_float() {
        let (a, b, old) = (&mut turn.a[..lanes], &mut turn.b[..lanes], &mut turn.old[..lanes]);
        if plan.sources > 0 {
            let from = task.views[1].dtype;
            load_f32(from, gather(ub, &plan.streams[1], (at.starts[1], lanes, from.size()), &mut room), a);
        }
        if plan.sources > 1 {
            let from = task.views[2].dtype;
            load_f32(from, gather(ub, &plan.streams[2], (at.starts[2], lanes, from.size()), &mut room), b);
        }
        if reads_old {
            load_f32(kind, gather(ub, &plan.streams[0], (at.starts[0], lanes, size), &mut room), old);
        }
        floats(task.op, a, b, old, task.val as f32);
        store_f32(kind, a, &mut out);
    } else {
        let [a, b, old] = &mut turn.ints;
        let mut load = |to: &mut [i64; LANES], which: usize| {
            let kind = task.views[which].dtype;
            let bytes = gather(ub, &plan.streams[which], (at.starts[which], lanes, kind.size()), &mut room);
            to.iter_mut()
                .zip(bytes.chunks_exact(kind.size()))
                .for_each(|(to, raw)| *to = read_int(kind, raw));
        };
        (1..=plan.sources).for_each(|which| load(if which == 1 { a } else { b }, which));
        if reads_old {
            load(old, 0);
        }
        for lane in 0..lanes {
            let value = integer(task.op, a[lane], b[lane], old[lane], task.val);
            write_int(kind, value, &mut out[lane * size..]);
        }
    }
    scatter(ub, &plan.streams[0], (at.starts[0], lanes, size), (&out, plan.masked, state));
}

/// The results replace `a`.
fn floats(op: Op, a: &mut [f32], b: &[f32], old: &[f32], val: f32) {
    let two = |a: &mut [f32], f: fn(f32, f32) -> f32| a.iter_mut().zip(b).for_each(|(a, &b)| *a = f(*a, b));
    let one = |a: &mut [f32], f: &dyn Fn(f32) -> f32| a.iter_mut().for_each(|a| *a = f(*a));
    match op {
        Op::Add => a.iter_mut().zip(b).for_each(|(a, &b)| *a += b),
        Op::Sub => a.iter_mut().zip(b).for_each(|(a, &b)| *a -= b),
        Op::Mul => a.iter_mut().zip(b).for_each(|(a, &b)| *a *= b),
        Op::Div => a.iter_mut().zip(b).for_each(|(a, &b)| *a /= b),
        Op::Vmax => two(a, f32::max),
        Op::Vmin => two(a, f32::min),
        Op::MulAddDst => {
            a.iter_mut().zip(b).zip(old).for_each(|((a, &b), &old)| *a = old + *a * b);
        }
        Op::Axpy => a.iter_mut().zip(old).for_each(|(a, &old)| *a = old + *a * val),
        Op::Exp => math::exp(a),
        Op::Ln => one(a, &libm::logf),
        Op::Abs => one(a, &f32::abs),
        Op::Rec => one(a, &|a| 1.0 / a),
        Op::Sqrt => one(a, &f32::sqrt),
        Op::Rsqrt => one(a, &|a| 1.0 / a.sqrt()),
        Op::Relu => one(a, &|a| a.max(0.0)),
        Op::Adds => a.iter_mut().for_each(|a| *a += val),
        Op::Muls => a.iter_mut().for_each(|a| *a *= val),
        Op::Vmaxs => one(a, &|a| a.max(val)),
        Op::Vmins => one(a, &|a| a.min(val)),
        Op::Lrelu => one(a, &|a| if a > 0.0 { a } else { a * val }),
        Op::Dup => a.fill(val),
        _ => unreachable!("{op:?} is not elementwise"),
    }
}

fn integer(op: Op, a: i64, b: i64, old: i64, val: f64) -> i64 {
    let v = val as i64;
    match op {
        Op::Add => a.wrapping_add(b),
        Op::Sub => a.wrapping_sub(b),
        Op::Mul => a.wrapping_mul(b),
        Op::Div => a.checked_div(b).unwrap_or(0),
        Op::Vmax => a.max(b),
        Op::Vmin => a.min(b),
        Op::Vand => a & b,
        Op::Vor => a | b,
        Op::MulAddDst => old.wrapping_add(a.wrapping_mul(b)),
        Op::Axpy => old.wrapping_add(a.wrapping_mul(v)),
        Op::Abs => a.wrapping_abs(),
        Op::Vnot => !a,
        Op::Relu => a.max(0),
        Op::Adds => a.wrapping_add(v),
        Op::Muls => a.wrapping_mul(v),
        Op::Vmaxs => a.max(v),
        Op::Vmins => a.min(v),
        Op::Lrelu => {
            if a > 0 {
                a
            } else {
                a.wrapping_mul(v)
            }
        }
        Op::Dup => v,
        _ => unreachable!("{op:?} is not elementwise"),
    }
}

/// `mode` is the first number, as for all instructions with words.
fn compare(task: &Task, plan: &Plan, ub: &mut [u8], at: &At, turn: &mut Turn) {
    let mode = Comparison::ALL[task.ints[0] as usize];
    let kind = task.views[1].dtype;
    let mut room = [0; 256];
    let lanes = at.lanes;
    let mut bits = [0u8; 32];
    let mut set = |lane: usize, holds: bool| bits[lane / 8] |= u8::from(holds) << (lane % 8);
    let load = |which: usize, room: &mut [u8; 256], to: &mut [f32]| {
        load_f32(kind, gather(ub, &plan.streams[which], (at.starts[which], lanes, kind.size()), room), to);
    };
    if kind.is_float() {
        load(1, &mut room, &mut turn.a[..lanes]);
        if plan.sources > 1 {
            load(2, &mut room, &mut turn.b[..lanes]);
        } else {
            turn.b.fill(task.val as f32);
        }
        (0..lanes).for_each(|lane| set(lane, mode.holds(&turn.a[lane], &turn.b[lane])));
    } else {
        for lane in 0..lanes {
            let read = |which: usize| {
                let byte = lane * kind.size();
                let from =
                    at.starts[which] as usize + byte / 32 * plan.streams[which].block as usize + byte % 32;
                read_int(kind, &ub[from..])
            };
            let b = if plan.sources > 1 { read(2) } else { task.val as i64 };
            set(lane, mode.holds(&read(1), &b));
        }
    }
    let to = at.starts[0] as usize;
    ub[to..to + lanes.div_ceil(8)].copy_from_slice(&bits[..lanes.div_ceil(8)]);
}

fn select(task: &Task, plan: &Plan, (ub, state): (&mut [u8], &VectorState), at: &At) {
    let kind = task.views[0].dtype;
    let size = kind.size();
    let mask = &task.views[1];
    let lanes = plan.active(state, size).1.min(at.lanes);
    let bits = mask.offset as usize + (at.row * plan.repeats + at.repeat) as usize * plan.lanes / 8;
    let mut scalar = [0; 8];
    crate::element::write_number(kind, task.val, &mut scalar);
    let mut out = [0; 256];
    for lane in 0..lanes {
        let byte = lane * size;
        let source = if ub[bits + lane / 8] >> (lane % 8) & 1 == 1 { 1 } else { 2 };
        let value = if source == 2 && plan.sources == 1 {
            &scalar[..size]
        } else {
            let from =
                at.starts[source] as usize + byte / 32 * plan.streams[source].block as usize + byte % 32;
            &ub[from..from + size]
        };
        out[byte..byte + size].copy_from_slice(value);
    }
    scatter(ub, &plan.streams[0], (at.starts[0], lanes, size), (&out, plan.masked, state));
}

/// Rounds as `CAST_NONE|CAST_RINT|CAST_FLOOR|CAST_CEIL|CAST_ROUND|CAST_TRUNC`.
pub(super) fn rounded(value: f32, mode: i64, compat: bool) -> f32 {
    match mode {
        1 => value.round_ties_even(),
        2 => value.floor(),
        3 => value.ceil(),
        4 if compat => math::reference_round(value),
        4 => value.round(),
        _ => value.trunc(),
    }
}

fn cast(
    task: &Task,
    plan: &Plan,
    (ub, state, compat): (&mut [u8], &VectorState, bool),
    at: &At,
    turn: &mut Turn,
) {
    let (to, from) = (task.views[0].dtype, task.views[1].dtype);
    let wide = to.size().max(from.size());
    let lanes = plan.active(state, wide).1.min(at.lanes);
    let mut room = [0; 256];
    let bytes = gather(ub, &plan.streams[1], (at.starts[1], lanes, from.size()), &mut room);
    let mut out = [0; 256];
    if from.is_float() || to.is_float() {
        let values = &mut turn.a[..lanes];
        load_f32(from, bytes, values);
        if !to.is_float() {
            values.iter_mut().for_each(|value| *value = rounded(*value, task.ints[0], compat));
        } else if from == ElementType::F32 && to == ElementType::F32 && task.ints[0] != 0 {
            values.iter_mut().for_each(|value| *value = rounded(*value, task.ints[0], compat));
        }
        store_f32(to, values, &mut out);
    } else {
        for (lane, raw) in bytes.chunks_exact(from.size()).take(lanes).enumerate() {
            write_int(to, read_int(from, raw), &mut out[lane * to.size()..]);
        }
    }
    // The mask counts lanes of the wider type.
    let start = at.starts[0] as usize;
    for lane in (0..lanes).filter(|&lane| !plan.masked || state.lane(lane, wide)) {
        let byte = lane * to.size();
        ub[start + byte..start + byte + to.size()].copy_from_slice(&out[byte..byte + to.size()]);
    }
}

fn reduce(task: &Task, plan: &Plan, (ub, state): (&mut [u8], &VectorState), at: &At, turn: &mut Turn) {
    let kind = task.views[1].dtype;
    let size = kind.size();
    let lanes = plan.active(state, size).1.min(at.lanes);
    let mut packed = [0; 256];
    let bytes = gather(ub, &plan.streams[1], (at.starts[1], lanes, size), &mut packed);
    let active = |lane: usize| !plan.masked || state.lane(lane, size);
    let (values, room) = (&mut turn.a[..lanes], &mut turn.b);
    load_f32(kind, bytes, values);
    let start = match task.op {
        Op::Cmax | Op::Cgmax => f32::NEG_INFINITY,
        Op::Cmin | Op::Cgmin => f32::INFINITY,
        _ => 0.0,
    };
    let mut fold = |range: std::ops::Range<usize>| {
        let kept = range.filter(|&lane| lane < lanes && active(lane)).map(|lane| values[lane]);
        match task.op {
            Op::Cmax | Op::Cgmax => kept.fold(start, f32::max),
            Op::Cmin | Op::Cgmin => kept.fold(start, f32::min),
            // Pairwise, as trees of adders do; the order is fixed.
            _ => {
                let mut count = 0;
                for value in kept {
                    room[count] = value;
                    count += 1;
                }
                tree_sum(&mut room[..count])
            }
        }
    };
    let per_block = 32 / size;
    let mut results = [0.0; 128];
    let count = match task.op {
        Op::Cmax | Op::Cmin | Op::Cadd => {
            results[0] = fold(0..lanes);
            1
        }
        Op::Cpadd => {
            let pairs = plan.lanes / 2;
            for (pair, result) in results[..pairs].iter_mut().enumerate() {
                *result = fold(pair * 2..pair * 2 + 2);
            }
            lanes.div_ceil(2)
        }
        _ => {
            let blocks = lanes.div_ceil(per_block);
            for (block, result) in results[..blocks].iter_mut().enumerate() {
                *result = fold(block * per_block..(block + 1) * per_block);
            }
            blocks
        }
    };
    let to = at.starts[0] as usize;
    store_f32(task.views[0].dtype, &results[..count], &mut ub[to..]);
}

/// Sums neighbours until one value is left.
pub(super) fn tree_sum(values: &mut [f32]) -> f32 {
    let mut count = values.len();
    while count > 1 {
        for at in 0..count / 2 {
            values[at] = values[2 * at] + values[2 * at + 1];
        }
        if count % 2 == 1 {
            values[count / 2] = values[count - 1];
        }
        count = count.div_ceil(2);
    }
    values.first().copied().unwrap_or(0.0)
}

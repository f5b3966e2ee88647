//! How many cycles a task takes under a profile, and what limits it.

use crate::device::{MicroRate, Path, Profile};
use crate::element::ElementType;
use crate::exec::layout_of;
use crate::exec::{Limits, MicroCount, Plan, align, blocks_bytes};
use crate::ops::{Op, spec_of};
use crate::task::Task;

/// What a task's cycles come from; the names are those of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Model {
    Bandwidth,
    Compute,
    Vector,
    Micro,
    Marker,
    Fallback,
}

impl Model {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bandwidth => "bandwidth",
            Self::Compute => "compute",
            Self::Vector => "vpipe_compute",
            Self::Micro => "vpipe_micro",
            Self::Marker => "sync_marker",
            Self::Fallback => "fallback",
        }
    }
}

/// Cycles and their source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) cycles: u64,
    pub(crate) model: Model,
    /// Bytes, multiply-adds or instructions, as the model has it.
    pub(crate) quantity: u64,
}

const fn cost(cycles: u64, model: Model, quantity: u64) -> Cost {
    Cost { cycles, model, quantity }
}

/// The cost of a task that is no micro program.
pub(crate) fn cost_of(task: &Task, plan: Option<&Plan>, profile: &Profile, limits: &Limits<'_>) -> Cost {
    let [dst, a, ..] = task.views;
    let (ed, es) = (dst.dtype.size() as u64, a.dtype.size() as u64);
    let n = task.ints.map(|value| value.max(0) as u64);
    let paths = &profile.paths;
    let by = |path: Path, bytes: u64| cost(path.cycles(bytes), Model::Bandwidth, bytes);
    let accumulator = |columns: u64, rows: u64| columns.div_ceil(16) * align(rows, 16) * 16 * es;
    let window = |rows: u64, columns: u64, pitch: u64| {
        if paths.charge_gaps { rows.saturating_sub(1) * pitch + columns } else { rows * columns }
    };
    match task.op {
        Op::GmToL1 => by(paths.gm_to_l1, window(n[0], n[1], n[2]) * es),
        Op::GmToUb => by(paths.gm_to_ub, n[0] * n[1]),
        Op::UbToGm => by(paths.ub_to_gm, n[0] * n[1]),
        Op::SetConstantL1 => by(paths.set_constant, n[0] * 32),
        Op::L1ToL0 => {
            let (rows, cols) = (n[7] + n[0], n[8] + n[1]);
            let from = if n[5] == 1 { layout_of(2) } else { layout_of(1) };
            let to = crate::exec::target_of(dst.space, n[4] != 0, n[6] as i64, limits.left_zz);
            let bytes = blocks_bytes(from, a.dtype, rows, cols).max(blocks_bytes(to, dst.dtype, n[0], n[1]));
            by(paths.l1_to_l0, bytes)
        }
        Op::Mmad => {
            let rate = &profile.mmad;
            let per_cycle = macs_per_cycle(a.dtype, profile);
            let macs = if rate.padded {
                align(n[0], 16) * align(n[1], 16) * align(n[2], 32 / es)
            } else {
                n[0] * n[1] * n[2]
            };
            let path = Path { overhead: rate.overhead, bytes_per_cycle: per_cycle as f64 };
            cost(path.cycles(macs), Model::Compute, n[0] * n[1] * n[2])
        }
        Op::L0cToGm => by(paths.l0c_to_gm, accumulator(n[1], n[3]).max(window(n[0], n[1], n[2]) * ed)),
        Op::L0cToL1 => {
            let c0 = 32 / ed;
            by(paths.l0c_to_l1, accumulator(n[1], n[3]).max(n[1].div_ceil(c0) * align(n[2], 16) * 32))
        }
        Op::L0cToUb => {
            let payload = n[0] * n[1] / if n[4] == 0 { 1 } else { 2 };
            by(paths.l0c_to_ub, accumulator(n[1], n[3]).max(payload * ed))
        }
        Op::UbToL1Nd | Op::UbToL1Nz => {
            let c0 = 32 / ed;
            let blocks = n[3].div_ceil(c0);
            let written = (blocks.saturating_sub(1) * align(n[0], 16) * c0 + n[2] * c0) * ed;
            if task.op == Op::UbToL1Nd {
                by(paths.ub_to_l1_nd, (n[2] * n[3] * es).max(written))
            } else {
                by(paths.ub_to_l1_nz, (blocks * n[2] * c0 * es).max(written))
            }
        }
        Op::CopyShared | Op::FillShared | Op::CubeCopy | Op::CubeScale => {
            by(paths.shared, dst.bytes().max(a.bytes()))
        }
        Op::Noop => cost(1, Model::Fallback, 0),
        Op::SetMask
        | Op::ResetMask
        | Op::SetMaskByCount
        | Op::SetMaskCount
        | Op::SetMaskCounter
        | Op::SetMaskNormal => cost(profile.sync.marker, Model::Marker, 0),
        Op::UbToUb if paths.ub_to_ub.is_some() => {
            by(paths.ub_to_ub.unwrap_or(paths.shared), n[0] * n[1] * 32)
        }
        Op::Sort32 if paths.sort.is_some() => {
            cost(paths.sort.unwrap_or(paths.shared).cycles(n[0] * 32), Model::Vector, n[0])
        }
        Op::MergeSort4 if paths.merge.is_some() => {
            cost(paths.merge.unwrap_or(paths.shared).cycles(n[0] * 4 * n[1]), Model::Vector, n[1])
        }
        Op::MergeSort2 if paths.merge.is_some() => {
            cost(paths.merge.unwrap_or(paths.shared).cycles(n[0] + n[1]), Model::Vector, 1)
        }
        _ => vector(task, plan, profile),
    }
}

/// Two cycles per repeat under the reference; without repeats the largest operand in steps of 256 bytes.
fn vector(task: &Task, plan: Option<&Plan>, profile: &Profile) -> Cost {
    let whole = || {
        let largest = task.views.iter().map(crate::compile::View::bytes).max().unwrap_or(0);
        largest.div_ceil(profile.largest_vector_bytes).max(1)
    };
    let instructions = match (plan, task.op) {
        (Some(plan), _) if plan.whole.is_none() => plan.instructions(),
        (_, Op::Brcb) => task.ints[0].max(0) as u64,
        (_, Op::Sort32) => task.ints[0].max(0) as u64,
        (_, Op::MergeSort4 | Op::Gather | Op::Scatter) => task.ints[1].max(0) as u64,
        _ => whole(),
    };
    if !profile.vector.operations.is_empty() {
        let dtype = if task.views[1].rows > 0 { task.views[1].dtype } else { task.views[0].dtype };
        let key = format!("{}:{}", spec_of(task.op).name, dtype.name());
        if let Some(path) = profile.vector.operations.get(&key) {
            let bytes = plan.map_or(instructions * 256, |plan| match plan.whole {
                Some(cols) => plan.rows * cols * dtype.size() as u64,
                None => instructions * 256,
            });
            return cost(path.cycles(bytes), Model::Vector, instructions);
        }
    }
    let cycles = profile.vector.overhead + instructions * profile.vector.cycles_per_instruction;
    cost(cycles, Model::Vector, instructions)
}

/// The cost of a micro program.
pub(crate) fn micro_cost(count: &MicroCount, profile: &Profile) -> Cost {
    let cycles = match &profile.micro {
        MicroRate::Counted { cycles_per_instruction } => count.counted * cycles_per_instruction,
        MicroRate::Units(units) => {
            let conflict = |rate: crate::device::Conflict, runs: u64, ways: u64| {
                runs as f64 * rate.base + ways as f64 * rate.per_way
            };
            let load = count.loads as f64 * units.load
                + conflict(units.conflict_load, count.strided_loads, count.strided_load_ways);
            let store = count.stores as f64 * units.store
                + conflict(units.conflict_store, count.strided_stores, count.strided_store_ways);
            let busiest = load
                .max(store)
                .max(count.scalars as f64 * units.scalar)
                .max(count.executed as f64 * units.execute)
                .max(count.chain as f64 * units.raw);
            (units.start + busiest + units.end).ceil() as u64
        }
    };
    cost(cycles, Model::Micro, count.counted)
}

/// Multiply-adds of the matrix unit per cycle for operands of this type.
pub(crate) const fn macs_per_cycle(dtype: ElementType, profile: &Profile) -> u64 {
    match dtype.size() {
        1 => profile.mmad.macs_per_cycle_8,
        2 => profile.mmad.macs_per_cycle_16,
        _ => profile.mmad.macs_per_cycle_32,
    }
}

/// Bytes per cycle of the path called `name` by [`path_of`], and whether every vector lane has one of its own.
pub(crate) fn path_rate(name: &str, profile: &Profile) -> (f64, bool) {
    let paths = &profile.paths;
    let (path, per_lane) = match name {
        "gm to l1" => (paths.gm_to_l1, false),
        "gm to ub" => (paths.gm_to_ub, true),
        "ub to gm" => (paths.ub_to_gm, true),
        "l1 to l0" => (paths.l1_to_l0, false),
        "l0c to gm" => (paths.l0c_to_gm, false),
        "l0c to l1" => (paths.l0c_to_l1, false),
        "l0c to ub" => (paths.l0c_to_ub, false),
        "ub to l1" => (paths.ub_to_l1_nd, true),
        _ => (paths.ub_to_ub.unwrap_or(paths.shared), true),
    };
    (path.bytes_per_cycle, per_lane)
}

/// The path that a task's bytes take, for the summary.
pub(crate) const fn path_of(op: Op) -> Option<&'static str> {
    match op {
        Op::GmToL1 => Some("gm to l1"),
        Op::GmToUb => Some("gm to ub"),
        Op::UbToGm => Some("ub to gm"),
        Op::L1ToL0 => Some("l1 to l0"),
        Op::L0cToGm => Some("l0c to gm"),
        Op::L0cToL1 => Some("l0c to l1"),
        Op::L0cToUb => Some("l0c to ub"),
        Op::UbToL1Nd | Op::UbToL1Nz => Some("ub to l1"),
        Op::UbToUb => Some("ub to ub"),
        _ => None,
    }
}

//! What instructions do to memory, and which bytes they touch.
//!
//! [`footprint()`] says it before anything happens: ranges, poison, hazards and bytes moved all come from it, so the code
//! that moves data checks nothing again. [`execute`] moves the data.

mod atomics;
mod cube;
mod elementwise;
mod footprint;
mod layout;
mod math;
mod matmul;
mod micro;
mod moves;
mod sort;
mod vector;

use crate::compile::View;
use crate::error::Fault;
use crate::memory::{GlobalMemory, LocalMemory};
use crate::task::Task;

pub(crate) use atomics::{AtomicLog, apply_in_order};
pub(crate) use cube::target_layout as target_of;
pub(crate) use footprint::{Limits, footprint};
pub(crate) use layout::{Layout, align, blocks_bytes};
pub(crate) use micro::{MicroCount, MicroMachine, MicroRun};
pub(crate) use vector::{Plan, VectorState, plan};

/// What an instruction works on.
pub(crate) struct Context<'a> {
    pub(crate) memory: &'a mut LocalMemory,
    pub(crate) gm: &'a GlobalMemory,
    pub(crate) atomics: &'a mut AtomicLog,
    pub(crate) vector: &'a mut VectorState,
    pub(crate) scratch: &'a mut Scratch,
    /// Which unified buffer is the lane's own.
    pub(crate) sub_block: usize,
    /// Layout of the matrix unit's left operand where an instruction leaves it open.
    pub(crate) left_zz: bool,
    /// Round and mask as the reference does.
    pub(crate) compat: bool,
    pub(crate) cycle: u64,
}

/// Buffers that grow once and are used again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) values: Vec<f32>,
    pub(crate) left: Vec<f32>,
    pub(crate) right: Vec<f32>,
    pub(crate) ints_left: Vec<std::num::Wrapping<i32>>,
    pub(crate) ints_right: Vec<std::num::Wrapping<i32>>,
    pub(crate) keys: Vec<(f32, [u8; 8])>,
}

/// Moves the data of one task.
pub(crate) fn execute(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    use crate::ops::Op;
    match task.op {
        Op::GmToL1 => cube::gm_to_l1(task, context),
        Op::SetConstantL1 => cube::set_constant(task, context),
        Op::L1ToL0 => cube::l1_to_l0(task, context),
        Op::Mmad => matmul::mmad(task, context),
        Op::L0cToGm => cube::l0c_to_gm(task, context),
        Op::L0cToL1 => cube::l0c_to_l1(task, context),
        Op::L0cToUb => cube::l0c_to_ub(task, context),
        Op::CubeCopy | Op::CubeScale | Op::CopyShared | Op::FillShared => moves::shared(task, context),
        Op::GmToUb => moves::gm_to_ub(task, context),
        Op::UbToGm => moves::ub_to_gm(task, context),
        Op::UbToL1Nd | Op::UbToL1Nz => moves::ub_to_l1(task, context),
        Op::UbToUb => moves::ub_to_ub(task, context),
        Op::Sort32 | Op::MergeSort4 | Op::MergeSort2 => sort::run(task, context),
        _ => vector::execute(task, context),
    }
}

/// The layout of the word at `word` in `auto|NZ|ZZ|ZN`.
pub(crate) const fn layout_of(word: i64) -> Layout {
    Layout::of(word, Layout::Nz)
}

/// What the vector masks do, on their pipe.
pub(crate) fn set_vector_state(task: &Task, state: &mut VectorState) -> bool {
    state.set(task)
}

/// Where the first element of a view's row lies.
pub(crate) const fn row_offset(view: &View, row: u64) -> u64 {
    view.offset + row * view.row_stride as u64 * view.dtype.size() as u64
}

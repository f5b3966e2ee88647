//! A task: an instruction on its way through a pipe, with everything resolved.

use crate::compile::View;
use crate::element::ElementType;
use crate::error::Fault;
use crate::ops::Op;
use crate::program::Space;

/// The most numbers an instruction of a pipe has.
pub(crate) const NUMBERS: usize = 12;

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) op: Op,
    /// Index in the lane's code.
    pub(crate) instr: u32,
    /// The control actor's cycle when it dispatched the task.
    pub(crate) issued: u64,
    /// Version of the control actor's vector clock at that time.
    pub(crate) clock: u32,
    pub(crate) atomic: Option<Atomic>,
    /// Operands; those left out are empty.
    pub(crate) views: [View; 4],
    pub(crate) ints: [i64; NUMBERS],
    pub(crate) val: f64,
    /// The earliest start that serialised operands allow (`--compat reference` only).
    pub(crate) earliest: u64,
}

/// A view of nothing.
pub(crate) const NO_VIEW: View = View {
    space: Space::Gm,
    dtype: ElementType::U8,
    tensor: u32::MAX,
    rows: 0,
    cols: 0,
    row_stride: 0,
    offset: 0,
    limit: 0,
};

/// What a store to global memory does with what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atomic {
    pub(crate) kind: AtomicKind,
    /// The type it computes in, where the lane set one.
    pub(crate) dtype: Option<ElementType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicKind {
    Add,
    Max,
    Min,
}

impl Task {
    /// The first numbers as sizes.
    ///
    /// # Errors
    /// When one of them is negative.
    pub(crate) fn sizes<const N: usize>(&self) -> Result<[u64; N], Fault> {
        let mut sizes = [0; N];
        for (at, size) in sizes.iter_mut().enumerate() {
            *size = u64::try_from(self.ints[at]).map_err(|_| Fault::Operand {
                operand: operand_name(self.op, at),
                problem: format!("{}, which is negative", self.ints[at]),
            })?;
        }
        Ok(sizes)
    }
}

/// The name of the instruction's number at `at`.
pub(crate) fn operand_name(op: Op, at: usize) -> String {
    use crate::ops::Kind;
    let counted = |kind: &Kind| {
        matches!(kind, Kind::Integer | Kind::Number | Kind::Word(_) | Kind::Pipe | Kind::Element)
    };
    let mut names = crate::ops::spec_of(op)
        .operands
        .iter()
        .filter(|operand| counted(&operand.kind))
        .map(|operand| operand.name);
    names.nth(at).unwrap_or("?").to_owned()
}

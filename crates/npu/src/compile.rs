//! From a program to code: names become indices once, conditions become trees once, everything wrong is said here.
//!
//! What passes here cannot fail at run time for a name, an operand's kind or the shape of the control flow; what depends
//! on values (ranges, synchronisation) is checked when it runs.

mod condition;
mod lane;
mod micro;
mod names;
mod place;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::device::Device;
use crate::element::ElementType;
use crate::error::{ProgramError, Site};
use crate::ops::Op;
use crate::program::{Instruction, LaneName, Pipe, Program, Role, Space};

pub(crate) use condition::{Comparison, Condition};
pub(crate) use micro::{MicroCode, MicroInstr};

/// "No such thing": an operand that was left out.
pub(crate) const NONE: u32 = u32::MAX;

/// A program that can run.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) name: String,
    pub(crate) cores: u32,
    pub(crate) tensors: Vec<Placed>,
    /// Bytes used in each of L1, L0A, L0B, L0C and the unified buffer.
    pub(crate) used: BTreeMap<Space, u64>,
    pub(crate) lanes: [Option<Arc<Code>>; 3],
    pub(crate) micros: Vec<MicroCode>,
}

/// A tensor with its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) shape: Vec<u64>,
    pub(crate) view: View,
    /// Bytes; 0 for a view of another tensor.
    pub(crate) bytes: u64,
}

/// A piece of memory as an operand: resolved to storage when an instruction is dispatched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) space: Space,
    pub(crate) dtype: ElementType,
    /// The tensor whose storage it is.
    pub(crate) tensor: u32,
    pub(crate) rows: u32,
    pub(crate) cols: u32,
    /// Elements from row to row.
    pub(crate) row_stride: u32,
    /// First byte, in its memory (in its tensor, for global memory).
    pub(crate) offset: u64,
    /// One past the last byte that it may touch.
    pub(crate) limit: u64,
}

impl View {
    /// Number of elements.
    pub(crate) const fn len(&self) -> u64 {
        self.rows as u64 * self.cols as u64
    }

    /// Number of bytes of its elements.
    pub(crate) const fn bytes(&self) -> u64 {
        self.len() * self.dtype.size() as u64
    }
}

/// Which lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lane {
    Cube,
    Vec0,
    Vec1,
}

impl Lane {
    pub(crate) const ALL: [Self; 3] = [Self::Cube, Self::Vec0, Self::Vec1];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cube => "cube",
            Self::Vec0 => "vec0",
            Self::Vec1 => "vec1",
        }
    }

    /// 0 for the cube and `vec0`, 1 for `vec1`.
    pub(crate) const fn sub_block(self) -> usize {
        matches!(self, Self::Vec1) as usize
    }

    /// The pipes of the lane, control first.
    pub(crate) const fn pipes(self) -> &'static [Pipe] {
        match self {
            Self::Cube => &[Pipe::S, Pipe::Mte2, Pipe::Mte1, Pipe::M, Pipe::Fix],
            _ => &[Pipe::S, Pipe::Mte2, Pipe::V, Pipe::Mte3],
        }
    }
}

/// The code of one lane.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) instrs: Vec<Instr>,
    pub(crate) sites: Vec<Site>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) lists: Vec<String>,
    /// Names of tensors and views; those of the tensors come first and in the order of [`Compiled::tensors`].
    pub(crate) views: Vec<String>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) loops: usize,
    pub(crate) events: Vec<EventDefinition>,
    /// Slots of `get_buf`, as indices of views.
    pub(crate) buffers: Vec<Vec<u32>>,
    pub(crate) calls: Vec<Call>,
    pub(crate) prints: Vec<Vec<Printed>>,
    pub(crate) texts: Vec<String>,
    /// No instruction synchronises pipes: each task is done before the next is dispatched.
    pub(crate) serial: bool,
}

/// A variable.
#[derive(Debug)]
pub(crate) struct Variable {
    /// What `GetValueFrom` casts to.
    pub(crate) dtype: Option<ElementType>,
}

/// An instruction of a lane.
#[derive(Debug)]
pub(crate) struct Instr {
    pub(crate) op: Op,
    /// `S`: the control actor itself.
    pub(crate) pipe: Pipe,
    pub(crate) tensors: [u32; 4],
    /// Variable or view that it sets; an event's index; a loop's index.
    pub(crate) out: u32,
    pub(crate) ints: Box<[Operand]>,
    pub(crate) val: Operand,
    /// Where to go: past the loop, to the next branch.
    pub(crate) jump: u32,
    /// Index of a condition, buffer, call, print or text; the end of an if; a pipe.
    pub(crate) aux: u32,
}

/// A number as an operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Operand {
    Absent,
    Int(i64),
    Float(f64),
    Variable(u32),
    Item { list: u32, at: Index },
}

/// An index into a list of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    At(u32),
    Variable(u32),
}

/// An event between two pipes of a lane.
#[derive(Debug)]
pub(crate) struct EventDefinition {
    pub(crate) name: String,
    pub(crate) source: Pipe,
    pub(crate) target: Pipe,
    pub(crate) flags: usize,
    pub(crate) preset: bool,
}

/// A `call_micro`.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) micro: u32,
    pub(crate) tensors: Vec<u32>,
    pub(crate) scalars: Vec<Operand>,
}

/// A part of a `sim_print`.
#[derive(Debug)]
pub(crate) enum Printed {
    Text(String),
    Number(Operand),
    Tensor(u32),
}

/// Resolves `program` for `device`.
pub(crate) fn compile(program: &Program, device: &Device, overlap: bool) -> Result<Compiled, ProgramError> {
    let cores = if program.cores == 0 { device.cores } else { program.cores };
    if cores > device.cores {
        let problem = format!(
            "the program asks for {cores} cores, `{}` has {}; ask for fewer",
            device.name, device.cores
        );
        return Err(ProgramError::Whole(problem));
    }
    let (tensors, used) = place::place(&program.tensors, device)?;
    let names: Vec<&String> = program.micros.keys().collect();
    let micros = program
        .micros
        .iter()
        .map(|(name, micro)| micro::compile(name, micro))
        .collect::<Result<Vec<_>, _>>()?;
    let mut lists: [Option<Vec<Instruction>>; 3] = [None, None, None];
    for lane in &program.lanes {
        let which: &[Lane] = match lane.lane {
            LaneName::Cube => &[Lane::Cube],
            LaneName::Vec => &[Lane::Vec0, Lane::Vec1],
            LaneName::Vec0 => &[Lane::Vec0],
            LaneName::Vec1 => &[Lane::Vec1],
        };
        for &lane_id in which {
            let (name, pipes) = (lane_id.name(), lane_id.pipes());
            let expanded = crate::auto_sync::expand(name, &lane.instructions, &program.tensors, pipes)?;
            if lists[lane_id as usize].replace(expanded).is_some() {
                let problem = format!("lane `{}` has two lists of instructions; join them", lane_id.name());
                return Err(ProgramError::Whole(problem));
            }
        }
    }
    let mut lanes: [Option<Arc<Code>>; 3] = [None, None, None];
    for lane in Lane::ALL {
        if let Some(instructions) = &lists[lane as usize] {
            let unit = lane::Unit { lane, tensors: &tensors, micros: &micros, micro_names: &names, device };
            lanes[lane as usize] = Some(Arc::new(lane::compile(instructions, &unit)?));
        }
    }
    if lanes.iter().all(Option::is_none) {
        return Err(ProgramError::Whole("the program has no lane with instructions".to_owned()));
    }
    if overlap {
        place::check_overlaps(&tensors, &lanes)?;
    }
    Ok(Compiled { name: program.name.clone(), cores, tensors, used, lanes, micros })
}

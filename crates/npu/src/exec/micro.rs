//! Micro programs: a small machine of 256-byte registers, lane masks and scalars.
//!
//! Lanes that a mask leaves out become zero (the device's zeroing mode); stores leave memory alone there. With
//! `--compat reference` masks of arithmetic are ignored. Counting needs no data: control flow depends on numbers only.

mod arithmetic;
mod count;
mod masks;
mod transfer;

use crate::compile::{MicroCode, MicroInstr, NONE, Operand, View};
use crate::element::{ElementType, load_f32, read_int};
use crate::error::Fault;
use crate::ops::Op;

pub(crate) use count::MicroCount;

use super::vector::VectorState;

const BYTES: usize = 256;
type Lanes = [bool; BYTES];

/// Registers and variables, kept from call to call so that nothing is allocated.
#[derive(Debug, Default)]
pub(crate) struct MicroMachine {
    registers: Vec<[u8; BYTES]>,
    masks: Vec<Lanes>,
    tensors: Vec<View>,
    variables: Vec<i64>,
    floats: Vec<Option<f64>>,
    loops: Vec<(i64, i64, i64)>,
}

/// One call.
pub(crate) struct MicroRun<'a> {
    pub(crate) code: &'a MicroCode,
    pub(crate) tensors: &'a [View],
    pub(crate) scalars: &'a [f64],
    pub(crate) compat: bool,
    pub(crate) vector: VectorState,
    /// Instructions that may still run.
    pub(crate) budget: u64,
}

/// What sees the accesses of a micro program: offset of the first byte, bytes, and whether it is a store.
pub(crate) type Watch<'a> = dyn FnMut(&View, u64, u64, bool) -> Result<(), Fault> + 'a;

impl MicroMachine {
    /// Runs a call on `ub`; with `None` only counts.
    pub(crate) fn run(
        &mut self,
        call: &MicroRun<'_>,
        mut ub: Option<(&mut [u8], &mut Watch<'_>)>,
    ) -> Result<MicroCount, Fault> {
        self.begin(call);
        let mut count = MicroCount::default();
        let instrs = &call.code.instrs;
        let (mut at, mut ran) = (0, 0u64);
        while let Some(instr) = instrs.get(at) {
            ran += 1;
            if ran > call.budget {
                return Err(Fault::Budget { budget: call.budget });
            }
            at += 1;
            match instr.op {
                Op::StartLoop | Op::StartMicroLoop => {
                    let [start, stop, step, _] = instr.ints.map(|operand| self.int(operand));
                    if step == 0 {
                        return Err(Fault::ZeroStep);
                    }
                    self.loops[instr.aux as usize] = (start, stop, step);
                    self.set(instr.out, start as f64);
                    if step > 0 && start >= stop || step < 0 && start <= stop {
                        at = instr.jump as usize + 1;
                    }
                }
                Op::EndLoop => {
                    let start = &instrs[instr.jump as usize];
                    let (value, stop, step) = &mut self.loops[start.aux as usize];
                    *value += *step;
                    let goes_on = if *step > 0 { *value < *stop } else { *value > *stop };
                    let value = *value;
                    if goes_on {
                        self.set(start.out, value as f64);
                        at = instr.jump as usize + 1;
                    }
                }
                Op::CreateVar => {
                    let value = self.number(instr.ints[0]);
                    self.set(instr.out, value);
                }
                Op::VarAdd | Op::VarSub | Op::VarMul => {
                    let (a, b) = (self.number(instr.ints[0]), self.number(instr.ints[1]));
                    let value = match instr.op {
                        Op::VarAdd => a + b,
                        Op::VarSub => a - b,
                        _ => a * b,
                    };
                    self.set(instr.out, value);
                }
                Op::MicroSlice => {
                    let offset = self.int(instr.ints[0]);
                    let mut view = self.tensors[instr.tensors[0] as usize];
                    let start = view.offset as i64 + offset * view.dtype.size() as i64;
                    if start < 0 || start as u64 > view.limit {
                        return Err(Fault::Operand {
                            operand: "offset".to_owned(),
                            problem: format!("{offset}, outside the tensor"),
                        });
                    }
                    view.offset = start as u64;
                    self.tensors[instr.tensors[1] as usize] = view;
                    count.other();
                }
                _ => {
                    count.instruction(instr, self, call);
                    if instr.op == Op::UpdateMask {
                        self.update_mask(instr);
                    } else if let Some((ub, watch)) = &mut ub {
                        self.data(instr, call, ub, *watch)?;
                    }
                }
            }
        }
        Ok(count)
    }

    fn begin(&mut self, call: &MicroRun<'_>) {
        let code = call.code;
        self.registers.clear();
        self.registers.resize(code.registers.len(), [0; BYTES]);
        self.masks.clear();
        self.masks.resize(code.masks, [true; BYTES]);
        self.variables.clear();
        self.variables.resize(code.variables, 0);
        self.floats.clear();
        self.floats.resize(code.variables, None);
        self.loops.clear();
        self.loops.resize(code.loops, (0, 0, 1));
        self.tensors.clear();
        self.tensors.extend_from_slice(call.tensors);
        self.tensors.resize(code.tensors.len(), crate::task::NO_VIEW);
        for (at, &value) in call.scalars.iter().enumerate() {
            self.set(at as u32, value);
        }
    }

    fn set(&mut self, variable: u32, value: f64) {
        let at = variable as usize;
        self.variables[at] = value as i64;
        self.floats[at] = (value.fract() != 0.0).then_some(value);
    }

    fn number(&self, operand: Operand) -> f64 {
        match operand {
            Operand::Float(value) => value,
            Operand::Variable(at) => self.floats[at as usize].unwrap_or(self.variables[at as usize] as f64),
            other => self.int(other) as f64,
        }
    }

    fn int(&self, operand: Operand) -> i64 {
        match operand {
            Operand::Int(value) => value,
            Operand::Float(value) => value as i64,
            Operand::Variable(at) => self.variables[at as usize],
            Operand::Absent | Operand::Item { .. } => 0,
        }
    }

    /// The register that an operand names at this moment.
    fn register(&self, instr: &MicroInstr, at: usize) -> Result<usize, Fault> {
        let register = instr.registers[at];
        let index = self.int(register.index);
        if index < 0 || index >= i64::from(register.length) {
            let length = register.length as usize;
            return Err(Fault::Index { list: "the list of registers".to_owned(), index, length });
        }
        Ok((register.base as usize) + index as usize)
    }

    /// The mask operand, or all lanes.
    fn mask(&self, instr: &MicroInstr, at: usize, call: &MicroRun<'_>) -> Lanes {
        match instr.masks[at] {
            NONE => [true; BYTES],
            _ if call.compat && !matches!(instr.op, Op::RSelect | Op::MaskSel | Op::GatherMask) => {
                [true; BYTES]
            }
            mask => self.masks[mask as usize],
        }
    }

    /// A register's lanes as floats.
    fn floats_of(&self, register: usize, kind: ElementType, out: &mut [f32; BYTES]) -> usize {
        let lanes = BYTES / kind.size();
        load_f32(kind, &self.registers[register], &mut out[..lanes]);
        lanes
    }

    /// A register's lanes as integers.
    fn ints_of(&self, register: usize, kind: ElementType, out: &mut [i64; BYTES]) -> usize {
        let chunks = self.registers[register].chunks_exact(kind.size());
        out.iter_mut().zip(chunks).for_each(|(value, raw)| *value = read_int(kind, raw));
        BYTES / kind.size()
    }

    fn data(
        &mut self,
        instr: &MicroInstr,
        call: &MicroRun<'_>,
        ub: &mut [u8],
        watch: &mut Watch<'_>,
    ) -> Result<(), Fault> {
        match instr.op {
            Op::CreateReg | Op::CreateReglist | Op::RCopy | Op::RDup => self.arithmetic(instr, call),
            Op::Ub2Reg
            | Op::Reg2Ub
            | Op::Ub2RegCont
            | Op::Reg2UbCont
            | Op::DataCopyGather
            | Op::DataCopyScatter => self.transfer(instr, call, ub, watch),
            Op::CreateMaskreg
            | Op::MaskNot
            | Op::MaskMov
            | Op::MaskAnd
            | Op::MaskOr
            | Op::MaskXor
            | Op::MaskSel
            | Op::MaskInterleave
            | Op::MaskDeinterleave
            | Op::MaskPack
            | Op::MaskUnpack
            | Op::MoveMaskSpr => {
                self.mask_instruction(instr, call);
                Ok(())
            }
            _ => self.arithmetic(instr, call),
        }
    }
}

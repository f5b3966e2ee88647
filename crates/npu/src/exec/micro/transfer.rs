//! Between registers and the unified buffer.

use crate::compile::{MicroInstr, View};
use crate::element::read_int;
use crate::error::Fault;
use crate::ops::Op;

use super::{BYTES, MicroMachine, MicroRun, Watch};

/// Contiguous loads: bytes of an element in memory, and what becomes of it.
#[derive(Clone, Copy)]
enum Load {
    Plain,
    Skip(usize),
    Double(usize),
    Broadcast(usize),
    Block(usize),
    Extend { from: usize, to: usize },
}

const LOADS: [Load; 14] = [
    Load::Plain,
    Load::Skip(1),
    Load::Skip(2),
    Load::Double(1),
    Load::Double(2),
    Load::Broadcast(1),
    Load::Broadcast(2),
    Load::Broadcast(4),
    Load::Block(2),
    Load::Block(4),
    Load::Extend { from: 1, to: 2 },
    Load::Extend { from: 2, to: 4 },
    Load::Extend { from: 4, to: 8 },
    Load::Extend { from: 1, to: 4 },
];

/// Contiguous stores: bytes of an element in the register and in memory; 0 for "as the register has it".
const STORES: [(usize, usize, bool); 11] = [
    (1, 1, false),
    (2, 2, false),
    (4, 4, false),
    (0, 0, false),
    (2, 1, false),
    (4, 2, false),
    (8, 4, false),
    (4, 1, false),
    (1, 1, true),
    (2, 2, true),
    (4, 4, true),
];

/// Checks a range of a tensor and says where it is in the buffer.
fn range(
    view: &View,
    (offset, length, store): (i64, usize, bool),
    watch: &mut Watch<'_>,
) -> Result<std::ops::Range<usize>, Fault> {
    let start = view.offset as i64 + offset;
    let end = start + length as i64;
    if start < 0 || end > view.limit as i64 {
        return Err(Fault::Range {
            operand: if store { "dst" } else { "src" }.to_owned(),
            tensor: String::new(),
            start,
            end,
            limit: view.limit,
        });
    }
    watch(view, start as u64, length as u64, store)?;
    Ok(start as usize..end as usize)
}

impl MicroMachine {
    pub(super) fn transfer(
        &mut self,
        instr: &MicroInstr,
        call: &MicroRun<'_>,
        ub: &mut [u8],
        watch: &mut Watch<'_>,
    ) -> Result<(), Fault> {
        let register = self.register(instr, 0)?;
        let kind = call.code.registers[register];
        let size = kind.size();
        let view = self.tensors[instr.tensors[0] as usize];
        let mask = self.mask(instr, 0, call);
        let lanes_of_block = 32 / size;
        match instr.op {
            Op::Ub2Reg | Op::Reg2Ub => {
                let (stride, offset) = (self.int(instr.ints[0]) * 32, self.int(instr.ints[1]) * size as i64);
                let store = instr.op == Op::Reg2Ub;
                for block in 0..8 {
                    let lanes = block * lanes_of_block..(block + 1) * lanes_of_block;
                    let inside = block * 32..block * 32 + 32;
                    if !lanes.into_iter().any(|lane| mask[lane]) {
                        if !store {
                            self.registers[register][inside].fill(0);
                        }
                        continue;
                    }
                    let bytes = range(&view, (offset + block as i64 * stride, 32, store), watch)?;
                    if store {
                        ub[bytes].copy_from_slice(&self.registers[register][inside]);
                    } else {
                        self.registers[register][inside].copy_from_slice(&ub[bytes]);
                    }
                }
            }
            Op::Ub2RegCont => {
                let (mode, offset) = (
                    LOADS[self.int(instr.ints[0]) as usize],
                    self.int(instr.ints[1]) * view.dtype.size() as i64,
                );
                let length = match mode {
                    Load::Plain => BYTES,
                    Load::Skip(_) => 2 * BYTES,
                    Load::Double(_) => BYTES / 2,
                    Load::Broadcast(size) => size,
                    Load::Block(size) => 8 * size,
                    Load::Extend { from, to } => BYTES / to * from,
                };
                // A plain load at the end of a tensor reads what is there.
                let room = (view.limit as i64 - view.offset as i64 - offset).max(0) as usize;
                let length = if matches!(mode, Load::Plain) { length.min(room) } else { length };
                let bytes = &ub[range(&view, (offset, length, false), watch)?];
                let register = &mut self.registers[register];
                register.fill(0);
                match mode {
                    Load::Plain => register[..length].copy_from_slice(bytes),
                    Load::Skip(size) => {
                        let kept = bytes.chunks_exact(size).step_by(2);
                        register
                            .chunks_exact_mut(size)
                            .zip(kept)
                            .for_each(|(to, from)| to.copy_from_slice(from));
                    }
                    Load::Double(size) => {
                        for (to, from) in register.chunks_exact_mut(2 * size).zip(bytes.chunks_exact(size)) {
                            to[..size].copy_from_slice(from);
                            to[size..].copy_from_slice(from);
                        }
                    }
                    Load::Broadcast(size) => {
                        register.chunks_exact_mut(size).for_each(|to| to.copy_from_slice(bytes));
                    }
                    Load::Block(size) => {
                        for (block, from) in register.chunks_exact_mut(32).zip(bytes.chunks_exact(size)) {
                            block.chunks_exact_mut(size).for_each(|to| to.copy_from_slice(from));
                        }
                    }
                    Load::Extend { from, to } => {
                        for (wide, narrow) in register.chunks_exact_mut(to).zip(bytes.chunks_exact(from)) {
                            wide[..from].copy_from_slice(narrow);
                        }
                    }
                }
            }
            Op::Reg2UbCont => {
                let (wide, narrow, first) = STORES[self.int(instr.ints[0]) as usize];
                let (wide, narrow) = if wide == 0 { (size, size) } else { (wide, narrow) };
                let offset = self.int(instr.ints[1]) * view.dtype.size() as i64;
                let lanes = if first { 1 } else { BYTES / wide };
                // Only lanes up to the last active one are stored.
                let last = (0..lanes).rev().find(|&lane| mask[lane]).map_or(0, |lane| lane + 1);
                if last == 0 {
                    return Ok(());
                }
                let whole = mask[..last].iter().all(|&lane| lane);
                if whole {
                    let bytes = range(&view, (offset, last * narrow, true), watch)?;
                    let target = ub[bytes].chunks_exact_mut(narrow);
                    let source = self.registers[register].chunks_exact(wide);
                    target.zip(source).for_each(|(to, from)| to.copy_from_slice(&from[..narrow]));
                } else {
                    for lane in (0..last).filter(|&lane| mask[lane]) {
                        let bytes = range(&view, (offset + (lane * narrow) as i64, narrow, true), watch)?;
                        let from = lane * wide;
                        ub[bytes].copy_from_slice(&self.registers[register][from..from + narrow]);
                    }
                }
            }
            _ => {
                let index = self.register(instr, 1)?;
                let index_kind = call.code.registers[index];
                let gather = instr.op == Op::DataCopyGather;
                let lanes = BYTES / size.max(index_kind.size());
                let mut result = [0; BYTES];
                for lane in (0..lanes).filter(|&lane| mask[lane]) {
                    let at = read_int(index_kind, &self.registers[index][lane * index_kind.size()..]);
                    let bytes = range(&view, (at * size as i64, size, !gather), watch)?;
                    let inside = lane * size..(lane + 1) * size;
                    if gather {
                        result[inside].copy_from_slice(&ub[bytes]);
                    } else {
                        ub[bytes].copy_from_slice(&self.registers[register][inside]);
                    }
                }
                if gather {
                    self.registers[register] = result;
                }
            }
        }
        Ok(())
    }
}

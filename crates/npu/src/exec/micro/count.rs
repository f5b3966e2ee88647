//! What a micro program's cycles depend on.

use crate::compile::{MicroInstr, NONE};
use crate::ops::Op;

use super::{MicroMachine, MicroRun};

/// Dynamic counts of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MicroCount {
    /// Instructions but declarations, loops, scalars and register moves.
    pub(crate) counted: u64,
    pub(crate) loads: u64,
    pub(crate) stores: u64,
    pub(crate) scalars: u64,
    pub(crate) executed: u64,
    /// Longest chain of instructions through registers, loads and stores included.
    pub(crate) chain: u64,
    /// Strided loads and stores by the blocks that meet in one bank, beyond the first.
    pub(crate) strided_loads: u64,
    pub(crate) strided_load_ways: u64,
    pub(crate) strided_stores: u64,
    pub(crate) strided_store_ways: u64,
    depth: [u16; 32],
}

impl MicroCount {
    pub(super) fn other(&mut self) {
        self.counted += 1;
        self.scalars += 1;
    }

    pub(super) fn instruction(&mut self, instr: &MicroInstr, machine: &MicroMachine, call: &MicroRun<'_>) {
        let _ = call;
        let moves = match instr.op {
            Op::CreateReg | Op::CreateReglist | Op::CreateMaskreg => return,
            Op::Ub2Reg | Op::Ub2RegCont => {
                self.loads += 1;
                true
            }
            Op::Reg2Ub | Op::Reg2UbCont => {
                self.stores += 1;
                true
            }
            Op::DataCopyGather => {
                self.loads += 1;
                false
            }
            Op::DataCopyScatter => {
                self.stores += 1;
                false
            }
            Op::UpdateMask => {
                self.scalars += 1;
                false
            }
            _ => {
                self.executed += 1;
                false
            }
        };
        self.counted += u64::from(!moves);
        if matches!(instr.op, Op::Ub2Reg | Op::Reg2Ub) {
            let stride = machine.int(instr.ints[0]);
            if stride != 1 {
                let (runs, ways, banks) = if instr.op == Op::Ub2Reg {
                    (&mut self.strided_loads, &mut self.strided_load_ways, 4)
                } else {
                    (&mut self.strided_stores, &mut self.strided_store_ways, 8)
                };
                let mut load = [0u64; 8];
                (0..8).for_each(|block: i64| load[(block * stride).rem_euclid(banks) as usize] += 1);
                *runs += 1;
                *ways += load.iter().max().copied().unwrap_or(1) - 1;
            }
        }
        self.chain_through(instr, machine);
    }

    /// Depth of each register (by its number modulo 32); a load starts a chain.
    fn chain_through(&mut self, instr: &MicroInstr, machine: &MicroMachine) {
        let registers = instr.registers.map(|register| {
            (register.base != NONE)
                .then(|| (register.base as usize + machine.int(register.index).max(0) as usize) % 32)
        });
        let stores = matches!(
            instr.op,
            Op::Reg2Ub | Op::Reg2UbCont | Op::DataCopyScatter | Op::RCompare | Op::RCompares
        );
        let two = matches!(instr.op, Op::RInterleave | Op::RDeinterleave);
        let first = if stores { 0 } else { 1 + usize::from(two) };
        let deepest = registers[first..].iter().flatten().map(|&at| self.depth[at]).max().unwrap_or(0);
        let depth = deepest.saturating_add(1);
        for at in registers[..first].iter().flatten() {
            self.depth[*at] = depth;
        }
        self.chain = self.chain.max(u64::from(depth));
    }
}

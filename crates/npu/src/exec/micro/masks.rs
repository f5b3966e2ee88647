//! Instructions on masks.

use crate::compile::MicroInstr;
use crate::ops::Op;

use super::{BYTES, Lanes, MicroMachine, MicroRun};
use crate::element::ElementType;

impl MicroMachine {
    pub(super) fn mask_instruction(&mut self, instr: &MicroInstr, call: &MicroRun<'_>) {
        let get = |at: usize| self.masks[instr.masks[at] as usize];
        let by = |f: &dyn Fn(usize) -> bool| -> Lanes { std::array::from_fn(f) };
        let two = matches!(instr.op, Op::MaskInterleave | Op::MaskDeinterleave);
        let result = match instr.op {
            Op::CreateMaskreg => {
                let kind = ElementType::ALL[self.int(instr.ints[3]) as usize];
                initial(instr.aux, BYTES / kind.size())
            }
            Op::MaskNot => {
                let (a, m) = (get(1), self.mask(instr, 2, call));
                by(&|lane| m[lane] && !a[lane])
            }
            Op::MaskMov => {
                let (a, m) = (get(1), self.mask(instr, 2, call));
                by(&|lane| m[lane] && a[lane])
            }
            Op::MaskAnd | Op::MaskOr | Op::MaskXor => {
                let (a, b, m) = (get(1), get(2), self.mask(instr, 3, call));
                by(&|lane| {
                    m[lane]
                        && match instr.op {
                            Op::MaskAnd => a[lane] & b[lane],
                            Op::MaskOr => a[lane] | b[lane],
                            _ => a[lane] ^ b[lane],
                        }
                })
            }
            Op::MaskSel => {
                let (a, b, m) = (get(1), get(2), get(3));
                by(&|lane| if m[lane] { a[lane] } else { b[lane] })
            }
            Op::MaskInterleave | Op::MaskDeinterleave => {
                let (a, b) = (get(2), get(3));
                let joined = |at: usize| if at < BYTES { a[at] } else { b[at - BYTES] };
                let turn = |at: usize| if at.is_multiple_of(2) { a[at / 2] } else { b[at / 2] };
                let interleave = instr.op == Op::MaskInterleave;
                let second: Lanes =
                    std::array::from_fn(|at| if interleave { turn(at + BYTES) } else { joined(2 * at + 1) });
                let first: Lanes =
                    std::array::from_fn(|at| if interleave { turn(at) } else { joined(2 * at) });
                self.masks[instr.masks[1] as usize] = second;
                first
            }
            Op::MaskPack => {
                let a = get(1);
                let high = self.int(instr.ints[0]) == 1;
                by(&|lane| (lane >= BYTES / 2) == high && a[lane % (BYTES / 2) * 2])
            }
            Op::MaskUnpack => {
                let a = get(1);
                let high = self.int(instr.ints[0]) == 1;
                by(&|lane| lane.is_multiple_of(2) && a[lane / 2 + if high { BYTES / 2 } else { 0 }])
            }
            Op::MoveMaskSpr => {
                let state = call.vector;
                by(&|lane| state.lane(lane % 128, 2))
            }
            _ => unreachable!("{:?} works on no mask", instr.op),
        };
        debug_assert!(!two || instr.masks[0] != instr.masks[1]);
        self.masks[instr.masks[0] as usize] = result;
    }

    /// `updatemask`: lanes of four bytes.
    pub(super) fn update_mask(&mut self, instr: &MicroInstr) {
        let left = self.variables[instr.out as usize];
        let lanes = (BYTES / 4) as i64;
        self.masks[instr.masks[0] as usize] = std::array::from_fn(|lane| (lane as i64) < left.min(lanes));
        self.set(instr.out, (left - lanes).max(0) as f64);
    }
}

/// See `mask_mode` of the compiler.
fn initial(mode: u32, lanes: usize) -> Lanes {
    std::array::from_fn(|lane| match mode {
        1 => false,
        2 => lane < lanes / 2,
        3 => lane < lanes / 4,
        4 => lane < lanes && lane.is_multiple_of(3),
        5 => lane < lanes && lane.is_multiple_of(4),
        100..400 => lane < (mode - 100) as usize,
        _ => true,
    })
}

//! Arithmetic on registers.

use crate::compile::{Comparison, MicroInstr};
use crate::element::{ElementType, read_int, store_f32, write_int};
use crate::error::Fault;
use crate::exec::elementwise::{rounded, tree_sum};
use crate::exec::math;
use crate::ops::Op;

use super::{BYTES, Lanes, MicroMachine, MicroRun};

impl MicroMachine {
    pub(super) fn arithmetic(&mut self, instr: &MicroInstr, call: &MicroRun<'_>) -> Result<(), Fault> {
        match instr.op {
            Op::CreateReg | Op::CreateReglist => {
                for at in 0..instr.registers[0].length {
                    self.registers[(instr.registers[0].base + at) as usize] = [0; BYTES];
                }
                return Ok(());
            }
            Op::RInterleave | Op::RDeinterleave => return self.interleave(instr, call),
            Op::RCompare | Op::RCompares => return self.compare(instr, call),
            Op::RCast => return self.cast(instr, call),
            Op::RegGather | Op::GatherMask | Op::RDupLane => return self.rearrange(instr, call),
            Op::RArange => return self.arange(instr, call),
            _ => {}
        }
        let target = self.register(instr, 0)?;
        let kind = call.code.registers[target];
        let lanes = BYTES / kind.size();
        let mask = self.mask(instr, 0, call);
        let sources =
            instr.registers[1..].iter().filter(|register| register.base != crate::compile::NONE).count();
        for at in 1..=sources {
            let source = self.register(instr, at)?;
            let found = call.code.registers[source];
            if found.size() != kind.size() {
                return Err(Fault::Types(format!("registers of {} and {}", kind.name(), found.name())));
            }
        }
        let val = self.number(instr.val);
        if kind.is_float()
            && !matches!(instr.op, Op::RAnd | Op::ROr | Op::RXor | Op::RNot | Op::RShl | Op::RShr)
        {
            let (mut a, mut b, mut old) = ([0.0; BYTES], [0.0; BYTES], [0.0; BYTES]);
            if sources > 0 {
                let source = self.register(instr, 1)?;
                self.floats_of(source, kind, &mut a);
            }
            if sources > 1 {
                let source = self.register(instr, 2)?;
                self.floats_of(source, kind, &mut b);
            }
            if instr.op == Op::RAxpy {
                self.floats_of(target, kind, &mut old);
            }
            let written = floats(instr.op, (&mut a[..lanes], &b, &old), val as f32, &mask, kind.size());
            if !written {
                (0..lanes).filter(|&lane| !mask[lane]).for_each(|lane| a[lane] = 0.0);
            }
            store_f32(kind, &a[..lanes], &mut self.registers[target]);
        } else {
            let (mut a, mut b, mut old) = ([0; BYTES], [0; BYTES], [0; BYTES]);
            if sources > 0 {
                let source = self.register(instr, 1)?;
                self.ints_of(source, kind, &mut a);
            }
            if sources > 1 {
                let source = self.register(instr, 2)?;
                self.ints_of(source, kind, &mut b);
            }
            if instr.op == Op::RAxpy {
                self.ints_of(target, kind, &mut old);
            }
            integers(instr.op, (&mut a[..lanes], &b, &old), val as i64, &mask, kind);
            for (lane, raw) in self.registers[target].chunks_exact_mut(kind.size()).enumerate() {
                write_int(kind, a[lane], raw);
            }
        }
        Ok(())
    }

    fn arange(&mut self, instr: &MicroInstr, call: &MicroRun<'_>) -> Result<(), Fault> {
        let target = self.register(instr, 0)?;
        let kind = call.code.registers[target];
        let (start, step) = (self.number(instr.val), if self.int(instr.ints[0]) == 0 { 1.0 } else { -1.0 });
        for (lane, raw) in self.registers[target].chunks_exact_mut(kind.size()).enumerate() {
            crate::element::write_number(kind, start + step * lane as f64, raw);
        }
        Ok(())
    }

    /// Register gathers: `gather`, `gathermask`, `vduplane`.
    fn rearrange(&mut self, instr: &MicroInstr, call: &MicroRun<'_>) -> Result<(), Fault> {
        let (target, source) = (self.register(instr, 0)?, self.register(instr, 1)?);
        let kind = call.code.registers[target];
        let size = kind.size();
        let lanes = BYTES / size;
        let mask = self.mask(instr, 0, call);
        let from = self.registers[source];
        let mut out = [0; BYTES];
        let mut next = 0;
        for lane in (0..lanes).filter(|&lane| mask[lane]) {
            let (to, at) = match instr.op {
                Op::RDupLane => (lane, 0),
                Op::GatherMask => {
                    next += 1;
                    (next - 1, lane)
                }
                _ => {
                    let index = self.register(instr, 2)?;
                    let index_kind = call.code.registers[index];
                    if index_kind.size() != size {
                        let problem =
                            format!("indices of {} for lanes of {}", index_kind.name(), kind.name());
                        return Err(Fault::Types(problem));
                    }
                    let index = read_int(index_kind, &self.registers[index][lane * size..]);
                    if index < 0 || index >= lanes as i64 {
                        return Err(Fault::Index { list: "the register".to_owned(), index, length: lanes });
                    }
                    (lane, index as usize)
                }
            };
            out[to * size..(to + 1) * size].copy_from_slice(&from[at * size..(at + 1) * size]);
        }
        self.registers[target] = out;
        Ok(())
    }

    fn interleave(&mut self, instr: &MicroInstr, call: &MicroRun<'_>) -> Result<(), Fault> {
        let registers = [0, 1, 2, 3].map(|at| self.register(instr, at));
        let [first, second, a, b] = registers;
        let (first, second, a, b) = (first?, second?, self.registers[a?], self.registers[b?]);
        let size = call.code.registers[first].size();
        let lanes = BYTES / size;
        let lane = |at: usize| {
            let (from, at) = if at < lanes { (&a, at) } else { (&b, at - lanes) };
            &from[at * size..(at + 1) * size]
        };
        let mut out = [0; 2 * BYTES];
        for at in 0..2 * lanes {
            let from = if instr.op == Op::RInterleave {
                at / 2 + if at % 2 == 1 { lanes } else { 0 }
            } else {
                2 * at % (2 * lanes) + at / lanes
            };
            out[at * size..(at + 1) * size].copy_from_slice(lane(from));
        }
        self.registers[first].copy_from_slice(&out[..BYTES]);
        self.registers[second].copy_from_slice(&out[BYTES..]);
        Ok(())
    }

    fn compare(&mut self, instr: &MicroInstr, call: &MicroRun<'_>) -> Result<(), Fault> {
        let left = self.register(instr, 0)?;
        let kind = call.code.registers[left];
        let mode = Comparison::ALL[self.int(instr.ints[0]) as usize];
        let mask = self.mask(instr, 1, call);
        let mut result = [false; BYTES];
        let lanes = BYTES / kind.size();
        if kind.is_float() {
            let (mut a, mut b) = ([0.0; BYTES], [self.number(instr.val) as f32; BYTES]);
            self.floats_of(left, kind, &mut a);
            if instr.op == Op::RCompare {
                let right = self.register(instr, 1)?;
                self.floats_of(right, kind, &mut b);
            }
            (0..lanes).for_each(|lane| result[lane] = mask[lane] && mode.holds(&a[lane], &b[lane]));
        } else {
            let (mut a, mut b) = ([0; BYTES], [self.int(instr.val); BYTES]);
            self.ints_of(left, kind, &mut a);
            if instr.op == Op::RCompare {
                let right = self.register(instr, 1)?;
                self.ints_of(right, kind, &mut b);
            }
            (0..lanes).for_each(|lane| result[lane] = mask[lane] && mode.holds(&a[lane], &b[lane]));
        }
        self.masks[instr.masks[0] as usize] = result;
        Ok(())
    }

    /// Between widths the layout picks one lane of each group of the narrower type.
    fn cast(&mut self, instr: &MicroInstr, call: &MicroRun<'_>) -> Result<(), Fault> {
        let (target, source) = (self.register(instr, 0)?, self.register(instr, 1)?);
        let (to, from) = (call.code.registers[target], call.code.registers[source]);
        let [mode, layout, saturate, _] = instr.ints.map(|operand| self.int(operand));
        let group = to.size().max(from.size()) / to.size().min(from.size());
        let layout = layout as usize;
        if layout >= group {
            return Err(Fault::Operand {
                operand: "reg_layout".to_owned(),
                problem: format!("lane {layout} of groups of {group}; use a lower one"),
            });
        }
        let mask = self.mask(instr, 0, call);
        let lanes = BYTES / to.size().max(from.size());
        let source = self.registers[source];
        let mut out = [0; BYTES];
        for lane in (0..lanes).filter(|&lane| mask[lane]) {
            let at = |kind: ElementType, narrow: bool| {
                (if narrow { lane * group + layout } else { lane }) * kind.size()
            };
            let read = &source[at(from, from.size() < to.size())..];
            let write = &mut out[at(to, to.size() < from.size())..];
            if from.is_float() || to.is_float() {
                let mut value = crate::element::read_number(from, read) as f32;
                if !to.is_float() {
                    value = rounded(value, mode, call.compat);
                }
                if to.is_float() || saturate != 0 {
                    store_f32(to, &[value], &mut write[..to.size()]);
                } else {
                    write_int(to, value as i64, write);
                }
            } else {
                let mut value = read_int(from, read);
                if saturate != 0 && to.size() < 8 {
                    let bits = to.size() as u32 * 8;
                    let signed = matches!(to, ElementType::I8 | ElementType::I16 | ElementType::I32);
                    let (low, high) = if signed {
                        (-(1i64 << (bits - 1)), (1i64 << (bits - 1)) - 1)
                    } else {
                        (0, (1i64 << bits) - 1)
                    };
                    value = value.clamp(low, high);
                }
                write_int(to, value, write);
            }
        }
        self.registers[target] = out;
        Ok(())
    }
}

/// The results replace `a`; true when lanes were placed by the operation itself (reductions).
fn floats(op: Op, (a, b, old): (&mut [f32], &[f32], &[f32]), val: f32, mask: &Lanes, size: usize) -> bool {
    let two = |a: &mut [f32], f: fn(f32, f32) -> f32| a.iter_mut().zip(b).for_each(|(a, &b)| *a = f(*a, b));
    let one = |a: &mut [f32], f: &dyn Fn(f32) -> f32| a.iter_mut().for_each(|a| *a = f(*a));
    match op {
        Op::RAdd => two(a, |a, b| a + b),
        Op::RSub => two(a, |a, b| a - b),
        Op::RMul => two(a, |a, b| a * b),
        Op::RDiv => two(a, |a, b| a / b),
        Op::RMax => two(a, f32::max),
        Op::RMin => two(a, f32::min),
        Op::RPrelu => two(a, |a, b| if a > 0.0 { a } else { a * b }),
        Op::RAbs => one(a, &f32::abs),
        Op::RNeg => one(a, &|a| -a),
        Op::RCopy => {}
        Op::RExp => math::exp(a),
        Op::RRelu => one(a, &|a| a.max(0.0)),
        Op::RSqrt => one(a, &f32::sqrt),
        Op::RLn | Op::RLog => one(a, &libm::logf),
        Op::RLog2 => one(a, &libm::log2f),
        Op::RLog10 => one(a, &libm::log10f),
        Op::RAdds => one(a, &|a| a + val),
        Op::RMuls => one(a, &|a| a * val),
        Op::RMaxs => one(a, &|a| a.max(val)),
        Op::RMins => one(a, &|a| a.min(val)),
        Op::RLrelu => one(a, &|a| if a > 0.0 { a } else { a * val }),
        Op::RAxpy => a.iter_mut().zip(old).for_each(|(a, &old)| *a = old + *a * val),
        Op::RDup => a.fill(val),
        Op::RSelect => {
            (0..a.len()).filter(|&lane| !mask[lane]).for_each(|lane| a[lane] = b[lane]);
            return true;
        }
        _ => {
            reduce(op, a, mask, size);
            return true;
        }
    }
    false
}

fn reduce(op: Op, a: &mut [f32], mask: &Lanes, size: usize) {
    let lanes = a.len();
    let start = match op {
        Op::RCmax | Op::RCgmax => f32::NEG_INFINITY,
        Op::RCmin | Op::RCgmin => f32::INFINITY,
        _ => 0.0,
    };
    let mut values = [start; 256];
    let values = &mut values[..lanes];
    (0..lanes).filter(|&lane| mask[lane]).for_each(|lane| values[lane] = a[lane]);
    a.fill(0.0);
    let fold = |values: &mut [f32]| match op {
        Op::RCmax | Op::RCgmax => values.iter().copied().fold(start, f32::max),
        Op::RCmin | Op::RCgmin => values.iter().copied().fold(start, f32::min),
        _ => tree_sum(values),
    };
    let group = match op {
        Op::RCadd | Op::RCmax | Op::RCmin => lanes,
        Op::RCpadd => 2,
        _ => 32 / size,
    };
    for (result, part) in a.iter_mut().zip(values.chunks_mut(group)) {
        *result = fold(part);
    }
}

fn integers(op: Op, (a, b, old): (&mut [i64], &[i64], &[i64]), val: i64, mask: &Lanes, kind: ElementType) {
    let bits = kind.size() as u32 * 8;
    let unsigned = |value: i64| if bits == 64 { value as u64 } else { value as u64 & ((1 << bits) - 1) };
    let signed = matches!(kind, ElementType::I8 | ElementType::I16 | ElementType::I32 | ElementType::I64);
    let lanes = a.len();
    match op {
        Op::RSelect => {
            (0..lanes).filter(|&lane| !mask[lane]).for_each(|lane| a[lane] = b[lane]);
            return;
        }
        Op::RCadd | Op::RCmax | Op::RCmin | Op::RCgadd | Op::RCgmax | Op::RCgmin | Op::RCpadd => {
            let group = match op {
                Op::RCadd | Op::RCmax | Op::RCmin => lanes,
                Op::RCpadd => 2,
                _ => 32 / kind.size(),
            };
            let mut values = [None; 256];
            (0..lanes).filter(|&lane| mask[lane]).for_each(|lane| values[lane] = Some(a[lane]));
            a.fill(0);
            for (result, part) in a.iter_mut().zip(values[..lanes].chunks(group)) {
                let kept = part.iter().flatten().copied();
                *result = match op {
                    Op::RCmax | Op::RCgmax => kept.max().unwrap_or(0),
                    Op::RCmin | Op::RCgmin => kept.min().unwrap_or(0),
                    _ => kept.fold(0, i64::wrapping_add),
                };
            }
            return;
        }
        _ => {}
    }
    for lane in 0..lanes {
        let (x, y) = (a[lane], b[lane]);
        a[lane] = if !mask[lane] {
            0
        } else {
            match op {
                Op::RAdd => x.wrapping_add(y),
                Op::RSub => x.wrapping_sub(y),
                Op::RMul => x.wrapping_mul(y),
                Op::RDiv => x.checked_div(y).unwrap_or(0),
                Op::RMax => x.max(y),
                Op::RMin => x.min(y),
                Op::RAnd => x & y,
                Op::ROr => x | y,
                Op::RXor => x ^ y,
                Op::RPrelu => {
                    if x > 0 {
                        x
                    } else {
                        x.wrapping_mul(y)
                    }
                }
                Op::RAbs => x.wrapping_abs(),
                Op::RNeg => x.wrapping_neg(),
                Op::RNot => !x,
                Op::RRelu => x.max(0),
                Op::RAdds => x.wrapping_add(val),
                Op::RMuls => x.wrapping_mul(val),
                Op::RMaxs => x.max(val),
                Op::RMins => x.min(val),
                Op::RLrelu => {
                    if x > 0 {
                        x
                    } else {
                        x.wrapping_mul(val)
                    }
                }
                Op::RShl => {
                    if val >= i64::from(bits) {
                        0
                    } else {
                        x << val.clamp(0, 63)
                    }
                }
                Op::RShr if signed => x >> val.clamp(0, 63),
                Op::RShr => {
                    if val >= i64::from(bits) {
                        0
                    } else {
                        (unsigned(x) >> val.clamp(0, 63)) as i64
                    }
                }
                Op::RAxpy => old[lane].wrapping_add(x.wrapping_mul(val)),
                Op::RDup => val,
                _ => x,
            }
        };
    }
}

//! Views and scalars in memory: what the control actor does with tensors itself.

use crate::compile::{Instr, Lane, NONE, Operand, Printed, View};
use crate::element::{read_number, write_number};
use crate::error::Fault;
use crate::memory::{Bank, Region};
use crate::ops::Op;
use crate::program::Space;
use crate::task::NO_VIEW;

use super::control::whole;
use super::core::{Core, Value, control_of};

impl Core {
    pub(super) fn view(&self, lane: Lane, at: u32) -> Result<View, Fault> {
        if at == NONE {
            return Ok(NO_VIEW);
        }
        let state = self.lanes[lane as usize].as_ref().expect("the lane runs");
        let view = state.views[at as usize];
        if view.tensor == u32::MAX {
            let operand = state.code.views[at as usize].clone();
            return Err(Fault::Operand { operand, problem: "used before anything made the view".to_owned() });
        }
        Ok(view)
    }

    /// A list operand: its length stands before its four members.
    fn members(&self, lane: Lane, instr: &Instr, list: usize) -> Result<[i64; 4], Fault> {
        let mut members = [0; 4];
        for (at, member) in members.iter_mut().enumerate() {
            let value = self.value(lane, instr.ints[list * 5 + 1 + at])?;
            *member =
                whole(value).filter(|value| (0..1 << 40).contains(value)).ok_or_else(|| Fault::Operand {
                    operand: ["offset", "src_dim or span", "span or src_dim"][list.min(2)].to_owned(),
                    problem: format!("{value:?}; it must be a whole number from 0 on"),
                })?;
        }
        Ok(members)
    }

    pub(super) fn slice_gm(&mut self, lane: Lane, instr: &Instr) -> Result<(), Fault> {
        let source = self.view(lane, instr.tensors[0])?;
        if source.space != Space::Gm {
            return Err(Fault::Operand {
                operand: "source_name".to_owned(),
                problem: "not in global memory".to_owned(),
            });
        }
        let dims = |list: usize| match instr.ints[list * 5] {
            Operand::Int(count) => count as usize,
            _ => 0,
        };
        let count = dims(0);
        if dims(1) != count || dims(2) != count {
            return Err(Fault::Other("offset, src_dim and span must have as many members".into()));
        }
        let (offset, dim, span) =
            (self.members(lane, instr, 0)?, self.members(lane, instr, 1)?, self.members(lane, instr, 2)?);
        for axis in 0..count {
            if offset[axis] + span[axis] > dim[axis] {
                return Err(Fault::Operand {
                    operand: "span".to_owned(),
                    problem: format!(
                        "{} from {} on, axis {axis} has {}",
                        span[axis], offset[axis], dim[axis]
                    ),
                });
            }
        }
        let flat = (0..count).fold(0, |flat, axis| flat * dim[axis] + offset[axis]) as u64;
        let size = source.dtype.size() as u64;
        let (rows, cols) = match count {
            1 => (1, span[0]),
            2 => (span[0], span[1]),
            _ => (1, span[..count].iter().product()),
        };
        let stride = if count == 2 { dim[1] } else { cols };
        let length = if count == 2 { (rows - 1).max(0) * dim[1] + cols } else { cols } as u64;
        let start = source.offset + flat * size;
        let limit = start + length * size;
        if limit > source.limit {
            return Err(Fault::Range {
                operand: "span".to_owned(),
                tensor: source.tensor.to_string(),
                start: start as i64,
                end: limit as i64,
                limit: source.limit,
            });
        }
        let view = View {
            rows: rows as u32,
            cols: cols as u32,
            row_stride: stride as u32,
            offset: start,
            limit,
            ..source
        };
        self.lane(lane).views[instr.out as usize] = view;
        Ok(())
    }

    pub(super) fn slice_local(&mut self, lane: Lane, instr: &Instr) -> Result<(), Fault> {
        let source = self.view(lane, instr.tensors[0])?;
        let (offset, span, dim) =
            (self.members(lane, instr, 0)?, self.members(lane, instr, 1)?, self.members(lane, instr, 2)?);
        let two = instr.ints[0] == Operand::Int(2);
        let ((row, col), (rows, cols)) =
            if two { ((offset[0], offset[1]), (span[0], span[1])) } else { ((0, offset[0]), (1, span[0])) };
        let (row, col, rows, cols) = (row as u64, col as u64, rows as u64, cols as u64);
        let given = instr.ints[10] != Operand::Int(0);
        let (dim_rows, dim_cols) = match (given, two) {
            (true, true) => (dim[0] as u64, dim[1] as u64),
            (true, false) => (1, dim[0] as u64),
            (false, true) => (u64::from(source.rows), u64::from(source.cols)),
            (false, false) => (1, source.len()),
        };
        if row + rows > dim_rows || col + cols > dim_cols {
            return Err(Fault::Operand {
                operand: "span".to_owned(),
                problem: format!(
                    "{rows} x {cols} from {row}, {col} on, the source is {dim_rows} x {dim_cols}"
                ),
            });
        }
        let size = source.dtype.size() as u64;
        let view = if source.space == Space::Ub || source.space == Space::Gm {
            let stride =
                if given || source.row_stride == 0 { dim_cols } else { u64::from(source.row_stride) };
            let stride = if two { stride } else { cols };
            let start = source.offset + (row * stride + col) * size;
            let limit = start + (rows.saturating_sub(1) * stride + cols) * size;
            View {
                rows: rows as u32,
                cols: cols as u32,
                row_stride: stride as u32,
                offset: start,
                limit,
                ..source
            }
        } else {
            // A window of a fractal matrix runs to the end of its root; 0 marks that it is no whole tensor.
            let c0 = if source.space == Space::L0c { 16 } else { source.dtype.block() as u64 };
            let element = col / c0 * dim_rows.next_multiple_of(16) * c0 + row * c0 + col % c0;
            let offset = source.offset + element * size;
            View { rows: rows as u32, cols: cols as u32, row_stride: 0, offset, ..source }
        };
        if view.offset > source.limit || view.limit > source.limit {
            return Err(Fault::Range {
                operand: "span".to_owned(),
                tensor: source.tensor.to_string(),
                start: view.offset as i64,
                end: view.limit as i64,
                limit: source.limit,
            });
        }
        self.lane(lane).views[instr.out as usize] = view;
        Ok(())
    }

    pub(super) fn scalar_access(&mut self, lane: Lane, instr: &Instr) -> Result<(), Fault> {
        let view = self.view(lane, instr.tensors[0])?;
        if view.space != Space::Gm && (view.space != Space::Ub || lane == Lane::Cube) {
            let problem = format!("in {}; scalars go to gm, and to ub on vector lanes", view.space.name());
            return Err(Fault::Operand { operand: "tensor".to_owned(), problem });
        }
        let size = view.dtype.size();
        if view.limit < view.offset + size as u64 {
            return Err(Fault::Operand { operand: "tensor".to_owned(), problem: "an empty view".to_owned() });
        }
        let reads = instr.op == Op::GetValueFrom;
        if self.shared.options.timing_only {
            if reads {
                return Err(Fault::Other(
                    "control flow reads memory, which is not there in a timing-only run; run it with data"
                        .into(),
                ));
            }
            return Ok(());
        }
        let bank = Bank::of(view.space, lane.sub_block());
        let mut region = Region::run("tensor", view, bank, size as u64);
        region.write = !reads;
        let control = control_of(lane);
        self.note_access(
            control,
            self.lanes[lane as usize].as_ref().map_or(0, |state| state.at),
            std::iter::once(&region),
            &[u32::MAX; 8],
        )?;
        let clock = self.clocks[control];
        self.set_control_clock(lane, clock);
        let mut raw = [0; 8];
        let raw = &mut raw[..size];
        if reads {
            match bank {
                Bank::Gm => {
                    self.atomics.settle(view.tensor, &self.shared.gm);
                    self.shared.gm.read(view.tensor, view.offset, raw);
                }
                bank => raw.copy_from_slice(
                    &self.memory.bank(bank)[view.offset as usize..view.offset as usize + size],
                ),
            }
            let kind = match instr.out {
                NONE => None,
                out => self.lane(lane).code.variables[out as usize].dtype,
            };
            let kind = kind.unwrap_or(view.dtype);
            let number = read_number(view.dtype, raw);
            let value = if kind.is_float() { Value::Float(number) } else { Value::Int(number as i64) };
            self.assign(lane, instr, value)
        } else {
            let value = self.value(lane, instr.ints[0])?;
            match value {
                Value::Int(value) if !view.dtype.is_float() => {
                    crate::element::write_int(view.dtype, value, raw)
                }
                value => write_number(view.dtype, value.as_float(), raw),
            }
            match bank {
                Bank::Gm => {
                    self.atomics.settle(view.tensor, &self.shared.gm);
                    self.shared.gm.write(view.tensor, view.offset, raw);
                }
                bank => {
                    let at = view.offset as usize;
                    self.memory.bank_mut(bank)[at..at + size].copy_from_slice(raw);
                }
            }
            Ok(())
        }
    }

    pub(super) fn debug(&mut self, lane: Lane, instr: &Instr) -> Result<(), Fault> {
        let code = std::sync::Arc::clone(&self.lane(lane).code);
        let content = |core: &Self, view: &View| -> Vec<u8> {
            let length = view.limit - view.offset;
            match Bank::of(view.space, lane.sub_block()) {
                Bank::Gm => {
                    let mut bytes = vec![0; length as usize];
                    core.shared.gm.read(view.tensor, view.offset, &mut bytes);
                    bytes
                }
                bank => core.memory.bank(bank)[view.offset as usize..view.limit as usize].to_vec(),
            }
        };
        if instr.op == Op::SimDump {
            let view = self.view(lane, instr.tensors[0])?;
            if !self.shared.options.timing_only {
                let bytes = content(self, &view);
                let name = format!("{}.core{}.{}", code.texts[instr.aux as usize], self.index, lane.name());
                self.dumps.push((name, view, bytes));
            }
            return Ok(());
        }
        let mut line = format!("core{}.{}:", self.index, lane.name());
        for part in &code.prints[instr.aux as usize] {
            line.push(' ');
            match part {
                Printed::Text(text) => line.push_str(text),
                Printed::Number(operand) => match self.value(lane, *operand)? {
                    Value::Int(value) => line.push_str(&value.to_string()),
                    Value::Float(value) => line.push_str(&value.to_string()),
                },
                Printed::Tensor(_) if self.shared.options.timing_only => line.push_str("(no data)"),
                Printed::Tensor(view) => {
                    let view = self.view(lane, *view)?;
                    let bytes = content(self, &view);
                    let numbers = bytes.chunks_exact(view.dtype.size()).take(8);
                    let numbers: Vec<String> =
                        numbers.map(|raw| read_number(view.dtype, raw).to_string()).collect();
                    line.push_str(&format!("[{}]", numbers.join(" ")));
                }
            }
        }
        self.prints.push(line);
        Ok(())
    }
}

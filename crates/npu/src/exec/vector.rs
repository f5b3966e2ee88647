//! Vector instructions in repeats: which lanes of which blocks an instruction works on.
//!
//! A repeat is eight blocks of 32 bytes; block `b` of repeat `r` begins at `r x rep_stride x 32 + b x blk_stride x 32`
//! bytes. Without repeats an instruction works on whole views, row by row, and takes no mask.

use crate::compile::View;
use crate::element::ElementType;
use crate::error::Fault;
use crate::memory::Bank;
use crate::ops::Op;
use crate::program::Space;
use crate::task::{Task, operand_name};

use super::{Context, elementwise};

/// What `set_mask` and its relatives leave on the pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VectorState {
    low: u64,
    high: u64,
    /// Counter mode: instructions work on this many elements.
    count: Option<u64>,
}

impl Default for VectorState {
    fn default() -> Self {
        Self { low: u64::MAX, high: u64::MAX, count: None }
    }
}

impl VectorState {
    /// Applies a mask instruction; false when `task` is none.
    pub(crate) fn set(&mut self, task: &Task) -> bool {
        match task.op {
            Op::SetMask => {
                self.low = task.ints[0] as u64;
                self.high = task.ints[1] as u64;
                self.count = self.count.map(|_| self.low);
            }
            Op::ResetMask => (self.low, self.high) = (u64::MAX, u64::MAX),
            Op::SetMaskByCount => self.count = Some(task.ints[0].max(0) as u64),
            Op::SetMaskCount | Op::SetMaskCounter => self.count = Some(self.low),
            Op::SetMaskNormal => self.count = None,
            _ => return false,
        }
        true
    }

    /// Whether a lane is active; types of one byte have two lanes per bit.
    pub(crate) const fn lane(&self, lane: usize, size: usize) -> bool {
        let bit = if size == 1 { lane / 2 } else { lane };
        if bit < 64 { self.low >> bit & 1 == 1 } else { self.high >> (bit - 64) & 1 == 1 }
    }

    const fn is_full(&self, size: usize) -> bool {
        self.low == u64::MAX && (size >= 4 || self.high == u64::MAX)
    }

    /// One past the last active lane.
    fn lanes(&self, size: usize) -> usize {
        let bits = if self.high != 0 && size < 4 {
            128 - self.high.leading_zeros()
        } else {
            64 - self.low.leading_zeros()
        };
        let lanes = if size == 1 { bits as usize * 2 } else { bits as usize };
        lanes.min(256 / size)
    }

    /// The bytes of each block that active lanes cover.
    pub(crate) fn bytes(&self, size: usize) -> [u32; 8] {
        if self.is_full(size) || self.count.is_some() {
            return [u32::MAX; 8];
        }
        let mut masks = [0; 8];
        let lane_bytes = (1u64 << size) - 1;
        for lane in (0..256 / size).filter(|&lane| self.lane(lane, size)) {
            let at = lane * size;
            masks[at / 32] |= (lane_bytes << (at % 32)) as u32;
        }
        masks
    }
}

/// Where one operand's blocks lie, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) start: u64,
    pub(crate) block: u64,
    pub(crate) repeat: u64,
    /// From row to row, for whole views.
    pub(crate) row: u64,
}

/// The turns of an elementwise instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// dst, then the sources.
    pub(crate) streams: [Stream; 3],
    pub(crate) sources: usize,
    pub(crate) rows: u64,
    pub(crate) repeats: u64,
    /// Lanes of a repeat.
    pub(crate) lanes: usize,
    /// Lanes of the last repeat of a row.
    pub(crate) tail: usize,
    /// The lane mask applies.
    pub(crate) masked: bool,
    /// Elements of a row when views are taken whole.
    pub(crate) whole: Option<u64>,
}

/// Where an instruction keeps its repeat count and strides.
struct Shape {
    repeat: usize,
    /// Block and repeat strides of dst and sources as indices of numbers.
    blocks: [Option<usize>; 3],
    repeats: [Option<usize>; 3],
    views: [usize; 3],
    sources: usize,
}

fn shape(op: Op) -> Option<Shape> {
    let shape =
        |repeat, blocks, repeats, views, sources| Some(Shape { repeat, blocks, repeats, views, sources });
    match op {
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Vmax | Op::Vmin | Op::Vand | Op::Vor | Op::MulAddDst => {
            shape(0, [Some(1), Some(2), Some(3)], [Some(4), Some(5), Some(6)], [0, 1, 2], 2)
        }
        Op::Exp
        | Op::Ln
        | Op::Abs
        | Op::Rec
        | Op::Sqrt
        | Op::Rsqrt
        | Op::Vnot
        | Op::Relu
        | Op::Adds
        | Op::Muls
        | Op::Vmaxs
        | Op::Vmins
        | Op::Lrelu
        | Op::Axpy => shape(0, [Some(1), Some(2), None], [Some(3), Some(4), None], [0, 1, 1], 1),
        Op::Dup => shape(0, [Some(1), None, None], [Some(2), None, None], [0, 0, 0], 0),
        Op::Cast => shape(1, [None; 3], [Some(2), Some(3), None], [0, 1, 1], 1),
        Op::Select => shape(1, [Some(2), Some(3), Some(4)], [Some(5), Some(6), Some(7)], [0, 2, 3], 2),
        Op::Compare => shape(1, [None, Some(2), Some(3)], [None, Some(4), Some(5)], [0, 1, 2], 2),
        Op::CompareScalar => shape(1, [None, Some(2), None], [None, Some(3), None], [0, 1, 1], 1),
        Op::Cmax | Op::Cmin | Op::Cadd | Op::Cgmax | Op::Cgmin | Op::Cgadd | Op::Cpadd => {
            shape(0, [None, Some(2), None], [Some(1), Some(3), None], [0, 1, 1], 1)
        }
        _ => None,
    }
}

/// The turns of `task`; `None` when it is no elementwise instruction, comparison or reduction.
pub(crate) fn plan(task: &Task, state: &VectorState) -> Result<Option<Plan>, Fault> {
    let Some(shape) = shape(task.op) else { return Ok(None) };
    let number = |at: usize| {
        u64::try_from(task.ints[at]).map_err(|_| Fault::Operand {
            operand: operand_name(task.op, at),
            problem: format!("{}, which is negative", task.ints[at]),
        })
    };
    let mut sources = shape.sources;
    if task.op == Op::Select && task.ints[0] == 1 {
        sources = 1;
    }
    let views: [&View; 3] = shape.views.map(|at| &task.views[at]);
    // The wider type decides how many elements a repeat has; results of comparisons are bits.
    let bits = matches!(task.op, Op::Compare | Op::CompareScalar);
    let first = usize::from(bits);
    let size = views[first..=sources].iter().map(|view| view.dtype.size()).max().unwrap_or(1);
    let lanes = 256 / size;
    let mut streams = [Stream::default(); 3];
    let repeat = number(shape.repeat)?;
    if repeat == 0 && state.count.is_none() {
        // `views[first]` gives the shape.
        let (rows, cols) = rows_of(&views[first..=sources])?;
        for (stream, view) in streams.iter_mut().zip(views).take(sources + 1) {
            let size = view.dtype.size() as u64;
            *stream = Stream {
                start: view.offset,
                block: 32,
                repeat: lanes as u64 * size,
                row: if rows == 1 { 0 } else { u64::from(view.row_stride) * size },
            };
        }
        if bits {
            streams[0] =
                Stream { start: views[0].offset, block: 32, repeat: lanes as u64 / 8, row: cols.div_ceil(8) };
        }
        let repeats = cols.div_ceil(lanes as u64);
        let tail = (cols - repeats.saturating_sub(1) * lanes as u64) as usize;
        let plan = Plan { streams, sources, rows, repeats, lanes, tail, masked: false, whole: Some(cols) };
        return Ok(Some(plan));
    }
    for (at, stream) in streams.iter_mut().enumerate().take(sources + 1) {
        stream.start = views[at].offset;
        stream.block = shape.blocks[at].map(number).transpose()?.unwrap_or(1) * 32;
        stream.repeat = shape.repeats[at].map(number).transpose()?.unwrap_or(8) * 32;
    }
    let element = views[0].dtype.size() as u64;
    match task.op {
        Op::Cmax | Op::Cmin | Op::Cadd => streams[0].repeat = number(1)? * element,
        Op::Cgmax | Op::Cgmin | Op::Cgadd => streams[0].repeat = number(1)? * 8 * element,
        Op::Cpadd => streams[0].repeat = number(1)? * 128,
        Op::Compare | Op::CompareScalar => streams[0].repeat = lanes as u64 / 8,
        _ => {}
    }
    let (repeats, tail) = match state.count {
        None => (repeat, lanes),
        Some(count) => {
            let repeats = count.div_ceil(lanes as u64);
            (repeats, (count - repeats.saturating_sub(1) * lanes as u64) as usize)
        }
    };
    let masked = state.count.is_none() && !bits;
    Ok(Some(Plan { streams, sources, rows: 1, repeats, lanes, tail, masked, whole: None }))
}

/// Rows and columns in which views of one length can be walked together.
fn rows_of(views: &[&View]) -> Result<(u64, u64), Fault> {
    let first = views[0];
    if let Some(other) = views.iter().find(|view| view.len() != first.len()) {
        return Err(Fault::Types(format!(
            "without repeats all operands have one size; one has {} elements, one {}",
            first.len(),
            other.len()
        )));
    }
    let flat = |view: &&View| view.rows == 1 || view.row_stride == view.cols;
    if views.iter().all(flat) {
        return Ok((1, first.len()));
    }
    if let Some(other) = views.iter().find(|view| view.rows != first.rows) {
        return Err(Fault::Types(format!(
            "without repeats strided operands have one shape; one has {} rows, one {}",
            first.rows, other.rows
        )));
    }
    Ok((u64::from(first.rows), u64::from(first.cols)))
}

impl Plan {
    /// Vector instructions that the plan stands for.
    pub(crate) fn instructions(&self) -> u64 {
        self.repeats
    }

    /// Blocks of a repeat that hold active lanes, for a type of this size, and lanes to work on.
    pub(crate) fn active(&self, state: &VectorState, size: usize) -> (u64, usize) {
        let lanes =
            if self.masked { state.lanes(size.max(256 / self.lanes)).min(self.lanes) } else { self.lanes };
        ((lanes * size).div_ceil(32) as u64, lanes)
    }
}

/// Runs a vector instruction.
pub(super) fn execute(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    if let Some(plan) = plan(task, context.vector)? {
        return elementwise::run(task, &plan, context);
    }
    let bank = Bank::of(Space::Ub, context.sub_block);
    let ub = context.memory.bank_mut(bank);
    match task.op {
        Op::Brcb => {
            let [repeat, block, stride] = task.sizes()?;
            let (dst, src) = (&task.views[0], &task.views[1]);
            let size = src.dtype.size();
            for r in 0..repeat {
                for b in 0..8 {
                    let from = src.offset as usize + (r * 8 + b) as usize * size;
                    let mut value = [0; 8];
                    value[..size].copy_from_slice(&ub[from..from + size]);
                    let to = (dst.offset + r * stride * 32 + b * block * 32) as usize;
                    ub[to..to + 32]
                        .chunks_exact_mut(size)
                        .for_each(|lane| lane.copy_from_slice(&value[..size]));
                }
            }
        }
        Op::Gather | Op::Scatter => {
            let [start, repeat, stride] = task.sizes()?;
            let gather = task.op == Op::Gather;
            let offsets = &task.views[2];
            let (table, data) =
                if gather { (&task.views[1], &task.views[0]) } else { (&task.views[0], &task.views[1]) };
            let size = table.dtype.size();
            let lanes = (256 / size.max(offsets.dtype.size())) as u64;
            for r in 0..repeat {
                for lane in 0..lanes {
                    if !context.vector.lane(lane as usize, size) {
                        continue;
                    }
                    let at = offsets.offset as usize + (r * lanes + lane) as usize * offsets.dtype.size();
                    let offset = crate::element::read_int(offsets.dtype, &ub[at..]) as u64 & 0xffff_ffff;
                    let element = table.offset + start + offset;
                    if element + size as u64 > table.limit {
                        return Err(Fault::Index {
                            list: "the gathered tensor (in bytes)".to_owned(),
                            index: (start + offset) as i64,
                            length: (table.limit - table.offset) as usize,
                        });
                    }
                    let place = (data.offset + r * stride * 32) as usize + lane as usize * size;
                    let element = element as usize;
                    if gather {
                        ub.copy_within(element..element + size, place);
                    } else {
                        ub.copy_within(place..place + size, element);
                    }
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Element types that a vector instruction takes.
pub(crate) fn check_types(task: &Task) -> Result<(), Fault> {
    let [dst, a, b, c] = &task.views;
    let same = |x: &View, y: &View| {
        if x.dtype == y.dtype {
            Ok(())
        } else {
            Err(Fault::Types(format!("{} and {} must be of one type", x.dtype.name(), y.dtype.name())))
        }
    };
    match task.op {
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Vmax | Op::Vmin | Op::MulAddDst => {
            same(dst, a)?;
            same(a, b)
        }
        Op::Vand | Op::Vor | Op::Vnot => {
            if !matches!(dst.dtype, ElementType::I16 | ElementType::U16) {
                return Err(Fault::Types(format!("it takes i16 or u16, not {}", dst.dtype.name())));
            }
            same(dst, a)?;
            if task.op == Op::Vnot { Ok(()) } else { same(a, b) }
        }
        Op::Exp | Op::Ln | Op::Rec | Op::Sqrt | Op::Rsqrt => {
            if !dst.dtype.is_float() {
                return Err(Fault::Types(format!("it takes floats, not {}", dst.dtype.name())));
            }
            same(dst, a)
        }
        Op::Abs
        | Op::Relu
        | Op::Adds
        | Op::Muls
        | Op::Vmaxs
        | Op::Vmins
        | Op::Lrelu
        | Op::Cmax
        | Op::Cmin
        | Op::Cadd
        | Op::Cgmax
        | Op::Cgmin
        | Op::Cgadd
        | Op::Cpadd
        | Op::Brcb
        | Op::Gather
        | Op::Scatter
        | Op::UbToUb
        | Op::GmToUb
        | Op::UbToGm
        | Op::UbToL1Nd
        | Op::UbToL1Nz
        | Op::GmToL1 => same(dst, a),
        // A comparison writes bits, so its sources are views 1 and 2.
        Op::Compare => same(a, b),
        Op::Axpy if dst.dtype == ElementType::F32 && a.dtype == ElementType::F16 => Ok(()),
        Op::Axpy => same(dst, a),
        Op::Select => {
            same(dst, b)?;
            if task.ints[0] == 0 { same(b, c) } else { Ok(()) }
        }
        Op::Mmad => {
            same(a, b)?;
            let fits = if a.dtype.is_float() { ElementType::F32 } else { ElementType::I32 };
            if dst.dtype == fits {
                Ok(())
            } else {
                let (operand, wanted) = (a.dtype.name(), fits.name());
                Err(Fault::Types(format!(
                    "{operand} operands accumulate in {wanted}, not {}",
                    dst.dtype.name()
                )))
            }
        }
        Op::L1ToL0 => same(dst, a),
        _ => Ok(()),
    }
}

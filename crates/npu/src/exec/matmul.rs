//! The matrix unit.
//!
//! Operands are unpacked to panels of 4 rows and 16 columns; the kernel adds the products of one output element in
//! the order of K and without fusing, so that the result does not depend on the machine's vector width.

use std::num::Wrapping;
use std::ops::{AddAssign, Mul};

use crate::compile::View;
use crate::element::{ElementType, load_f32, read_int};
use crate::error::Fault;
use crate::memory::Bank;
use crate::program::Space;
use crate::task::Task;

use super::Context;
use super::cube::target_layout;
use super::layout::{Layout, align, index};

const ROWS: usize = 4;
const COLS: usize = 16;

/// `mmad`: M, N, K, is_init, a_layout, b_layout, dst_row0, dst_col0, dst_rows.
pub(super) fn mmad(task: &Task, context: &mut Context<'_>) -> Result<(), Fault> {
    let [m, n, k, is_init, a_word, b_word, row0, col0, dst_rows] = task.sizes()?;
    let [dst, a, b, _] = task.views;
    let a_layout = operand_layout(&a, a_word as i64, context.left_zz);
    let b_layout = operand_layout(&b, b_word as i64, false);
    let (left, right) = (context.memory.bank(Bank::L0a), context.memory.bank(Bank::L0b));
    let place = Place { offset: dst.offset, rows: dst_rows, row0, col0, init: is_init != 0 };
    if dst.dtype == ElementType::I32 {
        let scratch = &mut *context.scratch;
        pack((&a, left), (a_layout, m, k), ROWS, &mut scratch.ints_left, decode_int);
        pack((&b, right), (b_layout, n, k), COLS, &mut scratch.ints_right, decode_int);
        let (left, right) = (&scratch.ints_left, &scratch.ints_right);
        let acc = context.memory.bank_mut(Bank::L0c);
        multiply(left, right, (m as usize, n as usize, k as usize), |tile, at| {
            merge(
                tile,
                at,
                &place,
                acc,
                (|raw| Wrapping(i32::from_le_bytes(raw)), |v: Wrapping<i32>| v.0.to_le_bytes()),
            );
        });
    } else {
        let scratch = &mut *context.scratch;
        pack((&a, left), (a_layout, m, k), ROWS, &mut scratch.left, load_f32);
        pack((&b, right), (b_layout, n, k), COLS, &mut scratch.right, load_f32);
        let (left, right) = (&scratch.left, &scratch.right);
        let acc = context.memory.bank_mut(Bank::L0c);
        multiply(left, right, (m as usize, n as usize, k as usize), |tile, at| {
            merge(tile, at, &place, acc, (f32::from_le_bytes, f32::to_le_bytes));
        });
    }
    Ok(())
}

fn operand_layout(view: &View, word: i64, left_zz: bool) -> Layout {
    target_layout(if view.space == Space::L0a { Space::L0a } else { Space::L0b }, false, word, left_zz)
}

fn decode_int(kind: ElementType, bytes: &[u8], out: &mut [Wrapping<i32>]) {
    for (value, raw) in out.iter_mut().zip(bytes.chunks_exact(kind.size())) {
        *value = Wrapping(read_int(kind, raw) as i32);
    }
}

/// Unpacks a logical `rows` x `k` operand to panels: for each `width` rows, `k` groups of `width` values.
fn pack<T: Copy + Default>(
    (view, bank): (&View, &[u8]),
    (layout, rows, k): (Layout, u64, u64),
    width: usize,
    out: &mut Vec<T>,
    decode: fn(ElementType, &[u8], &mut [T]),
) {
    let panels = (rows as usize).div_ceil(width);
    out.clear();
    out.resize(panels * width * k as usize, T::default());
    let size = view.dtype.size();
    let mut run = [T::default(); 32];
    let mut take = |element: u64, count: usize| {
        let at = view.offset as usize + element as usize * size;
        decode(view.dtype, &bank[at..at + count * size], &mut run[..count]);
        run
    };
    if layout == Layout::Zn {
        // Stored k x rows: runs go along k.
        let block = super::layout::row_block(view.dtype);
        for row in 0..rows {
            let (panel, lane) = (row as usize / width * width * k as usize, row as usize % width);
            for first in (0..k).step_by(block as usize) {
                let count = block.min(k - first) as usize;
                let values = take(index(layout, view.dtype, (k, rows), (first, row)), count);
                for (at, value) in values[..count].iter().enumerate() {
                    out[panel + (first as usize + at) * width + lane] = *value;
                }
            }
        }
        return;
    }
    let c0 = view.dtype.block() as u64;
    for first in (0..k).step_by(c0 as usize) {
        let count = c0.min(k - first) as usize;
        for row in 0..rows {
            let (panel, lane) = (row as usize / width * width * k as usize, row as usize % width);
            let values = take(index(layout, view.dtype, (rows, k), (row, first)), count);
            let panel = &mut out[panel + first as usize * width + lane..];
            for (at, value) in values[..count].iter().enumerate() {
                panel[at * width] = *value;
            }
        }
    }
}

/// Where in the accumulator a result goes.
struct Place {
    offset: u64,
    rows: u64,
    row0: u64,
    col0: u64,
    /// Replace, do not add.
    init: bool,
}

type Load<T> = fn([u8; 4]) -> T;
type Store<T> = fn(T) -> [u8; 4];

/// Stores or adds one tile of up to 4 x 16.
fn merge<T: Copy + AddAssign>(
    tile: &[[T; COLS]],
    (row, col): (usize, usize),
    place: &Place,
    acc: &mut [u8],
    (load, store): (Load<T>, Store<T>),
) {
    let block = (place.col0 + col as u64) / COLS as u64;
    let first = block * align(place.rows, 16) + place.row0 + row as u64;
    for (at, values) in tile.iter().enumerate() {
        let from = (place.offset + (first + at as u64) * 64) as usize;
        for (value, raw) in values.iter().zip(acc[from..from + 64].as_chunks_mut::<4>().0) {
            let mut sum = *value;
            if !place.init {
                let mut old = load(*raw);
                old += sum;
                sum = old;
            }
            *raw = store(sum);
        }
    }
}

/// All tiles of the product of packed operands.
fn multiply<T>(
    left: &[T],
    right: &[T],
    (m, n, k): (usize, usize, usize),
    mut done: impl FnMut(&[[T; COLS]], (usize, usize)),
) where
    T: Copy + Default + AddAssign + Mul<Output = T> + Sync + Send,
{
    let arch = pulp::Arch::new();
    for col in (0..n).step_by(COLS) {
        let right = &right[col / COLS * COLS * k..][..COLS * k];
        for row in (0..m).step_by(ROWS) {
            let left = &left[row / ROWS * ROWS * k..][..ROWS * k];
            let tile = arch.dispatch(
                #[inline(always)]
                || tile(left, right),
            );
            done(&tile[..ROWS.min(m - row)], (row, col));
        }
    }
}

#[inline(always)]
fn tile<T: Copy + Default + AddAssign + Mul<Output = T>>(left: &[T], right: &[T]) -> [[T; COLS]; ROWS] {
    let mut sums = [[T::default(); COLS]; ROWS];
    for (a, b) in left.as_chunks::<ROWS>().0.iter().zip(right.as_chunks::<COLS>().0) {
        for (sums, &a) in sums.iter_mut().zip(a) {
            for (sum, &b) in sums.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
    }
    sums
}

//! Fractal layouts: where an element of a matrix lies.
//!
//! * **NZ**: column blocks of `c0` elements (32 bytes; 16 elements in the accumulator), each `align16(rows)` x `c0`.
//! * **ZZ**: panels of 16 rows, each a row of 16 x `c0` blocks.
//! * **ZN**: the stored matrix is the transpose; row blocks of 16 (32 for one-byte types), each `align(columns)` x block.

use crate::element::ElementType;

/// A layout; the numbers are those of the words `auto|NZ|ZZ|ZN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Nz,
    Zz,
    Zn,
}

impl Layout {
    /// From an operand `auto|NZ|ZZ|ZN`.
    pub(crate) const fn of(word: i64, auto: Self) -> Self {
        match word {
            1 => Self::Nz,
            2 => Self::Zz,
            3 => Self::Zn,
            _ => auto,
        }
    }
}

/// `value` rounded up to a multiple of `to`.
pub(crate) const fn align(value: u64, to: u64) -> u64 {
    value.div_ceil(to) * to
}

/// Rows of a row block in ZN.
pub(crate) const fn row_block(dtype: ElementType) -> u64 {
    if dtype.size() == 1 { 32 } else { 16 }
}

/// Columns of a ZN block: `c0`, at least 16, and 32 for one-byte types.
pub(crate) const fn zn_columns(dtype: ElementType) -> u64 {
    let block = dtype.block() as u64;
    if dtype.size() == 1 { 32 } else { block }
}

/// Bytes that a `rows` x `cols` matrix takes (for ZN: the stored one, `rows` x `cols`).
pub(crate) const fn blocks_bytes(layout: Layout, dtype: ElementType, rows: u64, cols: u64) -> u64 {
    let c0 = dtype.block() as u64;
    let elements = match layout {
        Layout::Nz => cols.div_ceil(c0) * align(rows, 16) * c0,
        Layout::Zz => rows.div_ceil(16) * align(cols, c0) * 16,
        Layout::Zn => align(rows, row_block(dtype)) * align(cols, zn_columns(dtype)),
    };
    elements * dtype.size() as u64
}

/// Element index of (`row`, `col`) in a matrix of `rows` x `cols`.
pub(crate) const fn index(layout: Layout, dtype: ElementType, shape: (u64, u64), at: (u64, u64)) -> u64 {
    let c0 = dtype.block() as u64;
    let ((rows, cols), (row, col)) = (shape, at);
    match layout {
        Layout::Nz => col / c0 * align(rows, 16) * c0 + row * c0 + col % c0,
        Layout::Zz => row / 16 * align(cols, c0) * 16 + col / c0 * 16 * c0 + row % 16 * c0 + col % c0,
        Layout::Zn => {
            let block = row_block(dtype);
            row / block * align(cols, zn_columns(dtype)) * block + col * block + row % block
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each layout is a bijection into the bytes it claims.
    #[test]
    fn elements_do_not_collide() {
        for layout in [Layout::Nz, Layout::Zz, Layout::Zn] {
            for dtype in [ElementType::F16, ElementType::F32, ElementType::I8] {
                let (rows, cols) = (35, 50);
                let room = blocks_bytes(layout, dtype, rows, cols) / dtype.size() as u64;
                let mut seen = vec![false; room as usize];
                for row in 0..rows {
                    for col in 0..cols {
                        let at = index(layout, dtype, (rows, cols), (row, col)) as usize;
                        assert!(!std::mem::replace(&mut seen[at], true), "{layout:?} {dtype:?} {row} {col}");
                    }
                }
            }
        }
    }
}

//! cuBLASLt: matrix layouts, operation descriptors and preferences as stores of numbered attributes.

use std::collections::BTreeMap;

use super::{Blas, Operand, Product};
use crate::handle::NotLive;

/// Attributes with numbers below this are kept in place.
const IN_PLACE: usize = 48;

/// Attributes by number, as bytes. Frameworks make several of these for each product, so what fits into a word (nearly
/// everything) is kept in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    words: [u64; IN_PLACE],
    lengths: [u8; IN_PLACE],
    others: BTreeMap<i32, Vec<u8>>,
}

impl Default for Attributes {
    fn default() -> Self {
        Self { words: [0; IN_PLACE], lengths: [0; IN_PLACE], others: BTreeMap::new() }
    }
}

impl Attributes {
    /// Keeps a value.
    pub fn set(&mut self, name: i32, bytes: &[u8]) {
        match usize::try_from(name) {
            Ok(index) if index < IN_PLACE && bytes.len() <= 8 => {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                self.words[index] = u64::from_le_bytes(word);
                self.lengths[index] = bytes.len() as u8;
            }
            _ => {
                self.others.insert(name, bytes.to_vec());
            }
        }
    }

    /// The bytes that were set; empty when none were.
    #[must_use]
    pub fn get(&self, name: i32) -> Vec<u8> {
        match usize::try_from(name) {
            Ok(index) if index < IN_PLACE && self.lengths[index] > 0 => {
                self.words[index].to_le_bytes()[..usize::from(self.lengths[index])].to_vec()
            }
            _ => self.others.get(&name).cloned().unwrap_or_default(),
        }
    }

    fn set_number(&mut self, name: i32, value: i32) {
        self.set(name, &value.to_le_bytes());
    }

    /// A number of four bytes; zero when it was not set, the default of nearly all attributes.
    fn i32(&self, name: i32) -> i32 {
        self.i64(name) as i32
    }

    /// A number of eight bytes; zero when it was not set.
    fn i64(&self, name: i32) -> i64 {
        usize::try_from(name).ok().and_then(|index| self.words.get(index)).map_or(0, |word| *word as i64)
    }
}

/// Attribute numbers of layouts (`cublasLtMatrixLayoutAttribute_t`).
mod layout {
    pub(super) const TYPE: i32 = 0;
    pub(super) const ORDER: i32 = 1;
    pub(super) const ROWS: i32 = 2;
    pub(super) const COLUMNS: i32 = 3;
    pub(super) const LEADING: i32 = 4;
    pub(super) const BATCH_COUNT: i32 = 5;
    pub(super) const BATCH_STRIDE: i32 = 6;
}

/// Attribute numbers of operations (`cublasLtMatmulDescAttributes_t`).
mod operation {
    pub(super) const COMPUTE_TYPE: i32 = 0;
    pub(super) const SCALE_TYPE: i32 = 1;
    pub(super) const POINTER_MODE: i32 = 2;
    pub(super) const TRANSPOSE_A: i32 = 3;
    pub(super) const TRANSPOSE_B: i32 = 4;
    pub(super) const EPILOGUE: i32 = 7;
}

/// `CUBLASLT_ORDER_ROW`.
const ORDER_ROW: i32 = 1;

/// A matrix layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout(Attributes);

/// A matrix product's descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation(Attributes);

/// Arguments of `cublasLtMatrixLayoutCreate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `cudaDataType_t` number.
    pub dtype: i32,
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub columns: u64,
    /// Leading dimension in elements.
    pub leading: i64,
}

impl Layout {
    /// A layout of one column-major matrix.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let mut attributes = Attributes::default();
        attributes.set_number(layout::TYPE, shape.dtype);
        attributes.set_number(layout::ORDER, 0);
        attributes.set(layout::ROWS, &shape.rows.to_le_bytes());
        attributes.set(layout::COLUMNS, &shape.columns.to_le_bytes());
        attributes.set(layout::LEADING, &shape.leading.to_le_bytes());
        attributes.set_number(layout::BATCH_COUNT, 1);
        attributes.set(layout::BATCH_STRIDE, &0_i64.to_le_bytes());
        Self(attributes)
    }

    fn operand(&self) -> Operand {
        Operand {
            dtype: self.0.i32(layout::TYPE),
            leading: self.0.i64(layout::LEADING),
            stride: self.0.i64(layout::BATCH_STRIDE),
        }
    }

    /// Rows and columns.
    fn sides(&self) -> [i64; 2] {
        [layout::ROWS, layout::COLUMNS].map(|name| self.0.i64(name))
    }

    fn is_row_major(&self) -> bool {
        self.0.i32(layout::ORDER) == ORDER_ROW
    }
}

impl Operation {
    /// A product with the given `cublasComputeType_t` and `cudaDataType_t` of alpha and beta.
    #[must_use]
    pub fn new(compute: i32, scale: i32) -> Self {
        let mut attributes = Attributes::default();
        let defaults = [
            (operation::COMPUTE_TYPE, compute),
            (operation::SCALE_TYPE, scale),
            (operation::POINTER_MODE, 0),
            (operation::TRANSPOSE_A, 0),
            (operation::TRANSPOSE_B, 0),
            (operation::EPILOGUE, 1),
        ];
        for (name, value) in defaults {
            attributes.set_number(name, value);
        }
        Self(attributes)
    }

    /// `cudaDataType_t` of alpha and beta.
    #[must_use]
    pub fn scale_type(&self) -> i32 {
        self.0.i32(operation::SCALE_TYPE)
    }

    /// Whether alpha and beta are in host memory.
    #[must_use]
    pub fn host_scalars(&self) -> bool {
        self.0.i32(operation::POINTER_MODE) == 0
    }
}

/// Handles of a `cublasLtMatmul` call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Operation descriptor.
    pub operation: u64,
    /// Layouts of A, B and D.
    pub layouts: [u64; 3],
    /// Whether C is read.
    pub accumulate: bool,
}

impl Blas {
    /// Creates a cuBLASLt handle.
    pub fn create_lt(&mut self) -> u64 {
        self.lt_libraries.insert(()).0
    }

    /// Destroys a cuBLASLt handle.
    ///
    /// # Errors
    /// When it is not live.
    pub fn destroy_lt(&mut self, handle: u64) -> Result<(), NotLive> {
        self.lt_libraries.remove(handle)
    }

    /// Creates a layout.
    pub fn create_layout(&mut self, shape: Shape) -> u64 {
        self.layouts.insert(Layout::new(shape)).0
    }

    /// Creates an operation descriptor.
    pub fn create_operation(&mut self, compute: i32, scale: i32) -> u64 {
        self.operations.insert(Operation::new(compute, scale)).0
    }

    /// Creates a preference.
    pub fn create_preference(&mut self) -> u64 {
        self.preferences.insert(Attributes::default()).0
    }

    /// Destroys a layout, operation descriptor or preference.
    ///
    /// # Errors
    /// When it is not live.
    pub fn destroy_object(&mut self, handle: u64) -> Result<(), NotLive> {
        let found = self.layouts.remove(handle).is_ok()
            || self.operations.remove(handle).is_ok()
            || self.preferences.remove(handle).is_ok();
        if found { Ok(()) } else { Err(NotLive(handle)) }
    }

    /// Attributes of a layout, operation descriptor or preference.
    ///
    /// # Errors
    /// When it is not live.
    pub fn attributes(&mut self, handle: u64) -> Result<&mut Attributes, NotLive> {
        if self.layouts.get(handle).is_ok() {
            return Ok(&mut self.layouts.get_mut(handle)?.0);
        }
        if self.operations.get(handle).is_ok() {
            return Ok(&mut self.operations.get_mut(handle)?.0);
        }
        self.preferences.get_mut(handle)
    }

    /// An operation descriptor.
    ///
    /// # Errors
    /// When it is not live.
    pub fn operation(&self, handle: u64) -> Result<&Operation, NotLive> {
        self.operations.get(handle)
    }

    /// What a `cublasLtMatmul` call computes.
    ///
    /// # Errors
    /// When a handle is not live.
    pub fn product(&self, call: Call) -> Result<Product, NotLive> {
        let operation = &self.operations.get(call.operation)?.0;
        let [a, b, d] = call.layouts;
        let (a, b, d) = (self.layouts.get(a)?, self.layouts.get(b)?, self.layouts.get(d)?);
        let asked = [operation::TRANSPOSE_A, operation::TRANSPOSE_B].map(|name| operation.i32(name) != 0);
        let [rows, columns] = d.sides();
        let [a_rows, a_columns] = a.sides();
        Ok(Product {
            // A row-major matrix is the transpose of what lies in memory column-major.
            transpose: [i32::from(asked[0] != a.is_row_major()), i32::from(asked[1] != b.is_row_major())],
            shape: [rows, columns, if asked[0] { a_rows } else { a_columns }],
            batch: i64::from(d.0.i32(layout::BATCH_COUNT)),
            operands: [a.operand(), b.operand(), d.operand()],
            compute: operation.i32(operation::COMPUTE_TYPE),
            accumulate: call.accumulate,
            epilogue: operation.i32(operation::EPILOGUE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(orders: [i32; 3], transpose_a: i32) -> Product {
        let mut blas = Blas::new();
        // A 4×6 (or 6×4 transposed), B 6×5, D 4×5.
        let a = if transpose_a == 0 { (4, 6) } else { (6, 4) };
        let layouts = [a, (6, 5), (4, 5)]
            .map(|(rows, columns)| blas.create_layout(Shape { dtype: 14, rows, columns, leading: 8 }));
        for (layout, order) in layouts.into_iter().zip(orders) {
            blas.attributes(layout).unwrap().set(layout::ORDER, &i32::to_le_bytes(order));
        }
        let operation = blas.create_operation(68, 0);
        blas.attributes(operation).unwrap().set(operation::TRANSPOSE_A, &i32::to_le_bytes(transpose_a));
        blas.product(Call { operation, layouts, accumulate: false }).unwrap()
    }

    #[test]
    fn shapes_follow_transposition_and_order() {
        let check = |orders, transpose_a, expect: [i32; 2]| {
            let product = product(orders, transpose_a);
            assert_eq!((product.shape, product.transpose), ([4, 5, 6], expect));
        };
        check([0, 0, 0], 0, [0, 0]);
        check([0, 0, 0], 1, [1, 0]);
        check([1, 0, 0], 0, [1, 0]);
        check([1, 1, 1], 1, [0, 1]);
    }

    #[test]
    fn values_of_any_length_are_kept() {
        let mut attributes = Attributes::default();
        let check = |attributes: &mut Attributes, name, bytes: &[u8]| {
            attributes.set(name, bytes);
            assert_eq!(attributes.get(name), bytes);
        };
        for name in [0, 7, 47, 48, 1000, -1] {
            assert_eq!(attributes.get(name), [0_u8; 0]);
            check(&mut attributes, name, &[1, 2, 3, 4]);
        }
        check(&mut attributes, 99, &[7; 40]);
        assert_eq!(attributes.i32(7), 0x0403_0201);
    }

    #[test]
    fn dead_handles_are_told() {
        let mut blas = Blas::new();
        let layout = blas.create_layout(Shape { dtype: 0, rows: 1, columns: 1, leading: 1 });
        assert!(blas.attributes(layout).is_ok());
        assert!(blas.destroy_object(layout).is_ok());
        assert!(blas.destroy_object(layout).is_err());
        assert!(blas.product(Call { operation: layout, layouts: [layout; 3], accumulate: true }).is_err());
    }
}

//! Matrix products.
//!
//! A row's `m × n` result is row-major, as frameworks call it: `layout` TN is `y = x Wᵀ` (forward), NN the gradient of
//! the input, NT that of the weight. BLAS is column-major: its m and n are the row's n and m, and its first operand is
//! the row's second. Rows of direct library calls (`direction` unknown) state BLAS's own m, n and transpositions.

use trompe_base::DType;
use trompe_trace::descriptor::{Descriptor, Epilogue, Gemm};

use super::{Found, one};
use crate::row::Row;

pub(super) fn operations(row: &Row<'_>) -> Result<Vec<Found>, String> {
    if row.text("dtype") == "fp8_block" {
        return Err("block-scaled fp8 products are other kernels than the library's".to_owned());
    }
    let dtype = row.dtype()?;
    let (m, n, k) = (row.size("m")?, row.size("n")?, row.size("k")?);
    let batch = row.whole("batch").unwrap_or(1).max(1);
    let native = row.text("direction") == "unknown";
    let (m, n) = if native { (m, n) } else { (n, m) };
    let (a, b) = match row.text("layout") {
        "TN" | "" => (true, false),
        "NN" => (false, false),
        "NT" => (false, true),
        "TT" => (true, true),
        other => return Err(format!("unknown layout `{other}`")),
    };
    let gemm = product(dtype, [m, n, k, batch], (a, b), row.text("accumulate") == "1");
    let large = m.max(n) >= 512 && m.min(n) >= 256 && k >= 512;
    let size = if batch > 1 {
        "batched"
    } else if large {
        "large"
    } else {
        "small"
    };
    let direction = match row.text("direction") {
        "dgrad" => " dgrad",
        "wgrad" => " wgrad",
        _ => "",
    };
    one(row, Descriptor::Gemm(gemm), format!("{dtype} {size}{direction}"))
}

/// A dense product of the library.
pub(super) fn product(
    dtype: DType,
    [m, n, k, batch]: [u64; 4],
    (transpose_a, transpose_b): (bool, bool),
    accumulate: bool,
) -> Gemm {
    let storage = if dtype == DType::Tf32 { DType::F32 } else { dtype };
    let result = if dtype.size() == 1 { DType::Bf16 } else { storage };
    Gemm {
        m,
        n,
        k,
        batch,
        transpose_a,
        transpose_b,
        a: storage,
        b: storage,
        c: result,
        compute: if dtype == DType::Tf32 { DType::Tf32 } else { DType::F32 },
        epilogue: Epilogue::None,
        accumulate,
        leading: [if transpose_a { k } else { m }, if transpose_b { n } else { k }, m],
        strides: if batch > 1 { [m * k, k * n, m * n] } else { [0; 3] },
    }
}

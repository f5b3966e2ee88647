//! Grouped matrix products of mixture-of-experts layers. Rows of whole expert modules hold several kernels whose
//! split is not stated; they are left out.

use trompe_trace::descriptor::Descriptor;

use super::gemm::product;
use super::{Found, one};
use crate::row::Row;

pub(super) fn operations(row: &Row<'_>) -> Result<Vec<Found>, String> {
    if row.text("op") != "grouped_gemm" {
        return Err(format!("`{}` is no single kernel", row.text("op")));
    }
    let dtype = row.dtype()?;
    let (groups, tokens) = (row.size("groups")?, row.size("m_per_group")?);
    let (n, k) = (row.size("n")?, row.size("k")?);
    let (transposes, what) = match row.text("direction") {
        "dgrad" => ((false, false), " dgrad"),
        "wgrad" => ((false, true), " wgrad"),
        _ => ((true, false), ""),
    };
    let gemm = product(dtype, [n, tokens, k, groups], transposes, row.text("accumulate") == "1");
    one(row, Descriptor::Gemm(gemm), format!("{dtype} grouped{what}"))
}

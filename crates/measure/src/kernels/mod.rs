//! From the columns of each kind of table to operations, one file per kind.

mod attention;
mod convolution;
mod gemm;
mod model_operators;
mod moe;
mod pointwise;

use trompe_trace::descriptor::Descriptor;

use crate::row::{Row, Schema};

/// What one time of a row covers.
pub(crate) struct Found {
    pub(crate) operations: Vec<Descriptor>,
    pub(crate) label: String,
    pub(crate) microseconds: f64,
    /// See [`Conditions::cache_write`](trompe_estimate::features::Conditions::cache_write).
    pub(crate) cache_write: bool,
}

/// What the times of a row cover, or why the row says nothing about any operation.
pub(crate) fn operations(schema: Schema, row: &Row<'_>) -> Result<Vec<Found>, String> {
    match schema {
        Schema::Gemm => gemm::operations(row),
        Schema::Attention => attention::operations(row),
        Schema::Pointwise => pointwise::operations(row),
        Schema::Convolution => convolution::operations(row),
        Schema::Moe => moe::operations(row),
        Schema::ModelOperators => model_operators::operations(row),
    }
}

/// One time for one operation.
fn one(row: &Row<'_>, operation: Descriptor, label: String) -> Result<Vec<Found>, String> {
    let microseconds = time(row)?;
    Ok(vec![Found { operations: vec![operation], label, microseconds, cache_write: false }])
}

fn time(row: &Row<'_>) -> Result<f64, String> {
    row.real("time_us").ok_or_else(|| "no number in `time_us`".to_owned())
}

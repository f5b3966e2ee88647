//! Times of whole operators of GPT models (Megatron), whose shapes follow from the size of their weight.
//!
//! With hidden size h, tensor-parallel degree t and s = 2048 positions: `qkv` is h → 3h/t, `dense` h/t → h, the MLP
//! h → 4h/t → h. Other splits (`algo` 1 with t > 1) and other models do not state their shapes.

use trompe_trace::descriptor::Descriptor;

use super::Found;
use super::gemm::product;
use crate::row::Row;

const POSITIONS: u64 = 2048;

pub(super) fn operations(row: &Row<'_>) -> Result<Vec<Found>, String> {
    let (op, model) = (row.text("op"), row.text("model"));
    let tensor_parallel = row.size("tp")?;
    if !model.starts_with("gpt_") || (row.text("algo") == "1" && tensor_parallel > 1) {
        return Err("an operator whose shapes are not stated".to_owned());
    }
    let weight = row.real("weight_mb").unwrap_or(0.0) * f64::from(1 << 20) / 2.0 * tensor_parallel as f64;
    // Elements of the whole weight over the square of the hidden size.
    let (squares, split_outputs) = match op {
        "enc-attention-qkv" => (3.0, true),
        "enc-attention-dense" => (1.0, false),
        "enc-MLP-GEMM-1" => (4.0, true),
        "enc-MLP-GEMM-2" => (4.0, false),
        other => return Err(format!("`{other}` is no matrix product with a weight")),
    };
    let hidden = (weight / squares).sqrt().round() as u64;
    if hidden == 0 || !hidden.is_multiple_of(64) || !hidden.is_multiple_of(tensor_parallel) {
        return Err("an operator whose shapes are not stated".to_owned());
    }
    let wide = hidden * squares as u64 / tensor_parallel;
    let narrow = if op == "enc-attention-dense" { hidden / tensor_parallel } else { wide };
    let (outputs, inputs) = if split_outputs { (wide, hidden) } else { (hidden, narrow) };
    let tokens = row.size("micro_batch")? * POSITIONS;
    let dtype = row.dtype()?;
    if tensor_parallel > 1 {
        return Err("an operator whose time contains a collective".to_owned());
    }
    let forward = product(dtype, [outputs, tokens, inputs, 1], (true, false), false);
    let dgrad = product(dtype, [inputs, tokens, outputs, 1], (false, false), false);
    let wgrad = product(dtype, [inputs, outputs, tokens, 1], (false, true), true);
    let found = |operations: Vec<_>, label: &str, column: &str| {
        let microseconds = row.real(column).ok_or_else(|| format!("no number in `{column}`"))?;
        let operations = operations.into_iter().map(Descriptor::Gemm).collect();
        Ok::<_, String>(Found {
            operations,
            label: format!("{dtype} {label}"),
            microseconds,
            cache_write: false,
        })
    };
    Ok(vec![
        found(vec![forward], "model fwd", "fwd_time_us")?,
        found(vec![dgrad, wgrad], "model dgrad+wgrad", "bwd_time_us")?,
    ])
}

//! Fused attention.
//!
//! Which kernel generation ran follows from the library and the device: serving engines use FlashAttention 3 or newer
//! from Hopper on, FlashAttention 2 before.

use trompe_trace::descriptor::{Attention, AttentionKind, Descriptor, Direction};

use super::{Found, time};
use crate::row::Row;

pub(super) fn operations(row: &Row<'_>) -> Result<Vec<Found>, String> {
    let library = row.text("impl");
    let gpu = row.text("gpu").to_ascii_uppercase();
    let newest =
        ["H100", "H200", "H800", "H20", "GH200", "B200", "GB200", "B300"].iter().any(|g| gpu.starts_with(g));
    let serving = matches!(library, "vllm" | "sglang" | "trtllm");
    let kind = match library {
        "fa2" | "flash_attn" | "flash" | "" => AttentionKind::Flash,
        "cudnn" | "te" => AttentionKind::Cudnn,
        "fa3" => AttentionKind::Flash3,
        _ if serving && newest => AttentionKind::Flash3,
        _ if serving => AttentionKind::Flash,
        "xformers" | "efficient" => AttentionKind::MemoryEfficient,
        other => return Err(format!("attention of `{other}` is no kernel that is modelled")),
    };
    if row.whole("window").unwrap_or(0) > 0 {
        return Err("attention in a sliding window".to_owned());
    }
    let (seq_q, head_dim) = (row.size("seq_q")?, row.size("head_dim")?);
    if head_dim > 256 {
        return Err("attention with heads wider than 256".to_owned());
    }
    if seq_q < 16 {
        return Err("decoding (fewer than 16 query positions)".to_owned());
    }
    let causal = row.text("causal") == "1";
    let attention = Attention {
        direction: Direction::Forward,
        kind,
        batch: row.size("batch")?,
        heads: row.size("heads")?,
        kv_heads: row.size("kv_heads")?,
        seq_q,
        seq_kv: row.size("seq_kv")?,
        head_dim,
        head_dim_v: row.whole("head_dim_v").filter(|width| *width > 0).unwrap_or(head_dim),
        causal,
        dropout: false,
        dtype: row.dtype()?,
    };
    let backward = Attention { direction: Direction::Backward, ..attention.clone() };
    let operations = match row.text("direction") {
        "fwd_bwd" => vec![attention, backward],
        "bwd" => vec![backward],
        _ => vec![attention],
    };
    let length = if seq_q >= 512 { "seq >= 512" } else { "seq < 512" };
    let direction = if row.text("direction").is_empty() { "fwd" } else { row.text("direction") };
    Ok(vec![Found {
        operations: operations.into_iter().map(Descriptor::Attention).collect(),
        label: format!("{direction} {library} {length}"),
        microseconds: time(row)?,
        cache_write: serving && causal,
    }])
}

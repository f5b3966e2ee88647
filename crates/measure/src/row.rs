//! A row of a table, addressed by column name, and the kinds of table.

use csv::StringRecord;
use trompe_base::DType;
use trompe_trace::descriptor::Direction;

/// Kinds of table, told by their columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Schema {
    /// Matrix products.
    Gemm,
    /// Fused attention.
    Attention,
    /// Norms, softmax, activations, …
    Pointwise,
    /// Two-dimensional convolutions.
    Convolution,
    /// Mixture-of-experts modules and grouped products.
    Moe,
    /// Forward and backward times of whole model operators.
    ModelOperators,
}

impl Schema {
    /// Every kind with the columns that it cannot do without.
    pub const ALL: [(Self, &'static [&'static str]); 6] = [
        (Self::Attention, &["gpu", "dtype", "batch", "heads", "kv_heads", "seq_q", "seq_kv", "head_dim"]),
        (
            Self::Convolution,
            &["gpu", "dtype", "batch", "in_channels", "out_channels", "in_h", "in_w", "kernel_h", "kernel_w"],
        ),
        (Self::Moe, &["gpu", "dtype", "op", "groups", "m_per_group", "n", "k"]),
        (Self::Gemm, &["gpu", "dtype", "m", "n", "k"]),
        (Self::ModelOperators, &["gpu", "dtype", "model", "op", "fwd_time_us", "weight_mb"]),
        (Self::Pointwise, &["gpu", "dtype", "op", "rows", "cols", "bytes_moved"]),
    ];

    /// The name in messages and in `sources.toml`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Attention => "attention",
            Self::Pointwise => "pointwise",
            Self::Convolution => "convolution",
            Self::Moe => "moe",
            Self::ModelOperators => "model_operators",
        }
    }

    /// The kind of a table with the columns `headers`.
    #[must_use]
    pub fn of(headers: &StringRecord) -> Option<Self> {
        let has = |column: &&str| headers.iter().any(|header| header.trim() == *column);
        Self::ALL.iter().find(|(_, columns)| columns.iter().all(has)).map(|(schema, _)| *schema)
    }
}

/// A row addressed by column name.
pub(crate) struct Row<'a> {
    headers: &'a StringRecord,
    record: &'a StringRecord,
}

impl<'a> Row<'a> {
    pub(crate) fn new(headers: &'a StringRecord, record: &'a StringRecord) -> Self {
        Self { headers, record }
    }

    pub(crate) fn text(&self, column: &str) -> &'a str {
        let at = self.headers.iter().position(|header| header.trim() == column);
        at.and_then(|at| self.record.get(at)).map_or("", str::trim)
    }

    pub(crate) fn real(&self, column: &str) -> Option<f64> {
        self.text(column).parse().ok()
    }

    pub(crate) fn whole(&self, column: &str) -> Option<u64> {
        self.real(column).filter(|x| *x >= 0.0).map(|x| x as u64)
    }

    /// A length that must be there and positive.
    pub(crate) fn size(&self, column: &'static str) -> Result<u64, String> {
        match self.whole(column) {
            Some(size) if size > 0 => Ok(size),
            _ => Err(format!("no positive number in `{column}`")),
        }
    }

    pub(crate) fn dtype(&self) -> Result<DType, String> {
        let name = self.text("dtype");
        Ok(match name {
            "bfloat16" | "bf16" => DType::Bf16,
            "float16" | "fp16" | "half" => DType::F16,
            "float32" | "fp32" | "float" => DType::F32,
            "tf32" => DType::Tf32,
            "float64" | "fp64" => DType::F64,
            "fp8" | "fp8_e4m3" => DType::F8E4M3,
            "fp8_e5m2" => DType::F8E5M2,
            "int8" => DType::I8,
            _ => return Err(format!("unknown element type `{name}`")),
        })
    }

    pub(crate) fn direction(&self) -> Result<Direction, String> {
        Ok(match self.text("direction") {
            "fwd" | "forward" | "unknown" | "" => Direction::Forward,
            "bwd" | "backward" | "dgrad" => Direction::Backward,
            "wgrad" => Direction::WeightGradient,
            other => return Err(format!("direction `{other}` has no single operation")),
        })
    }
}

//! Tensor element types.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Element type of a tensor or matrix operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum DType {
    F64,
    F32,
    /// fp32 storage, multiplied with TF32 tensor cores.
    Tf32,
    F16,
    Bf16,
    /// fp8 with 4 exponent and 3 mantissa bits.
    F8E4M3,
    /// fp8 with 5 exponent and 2 mantissa bits.
    F8E5M2,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
    /// Two fp32 values.
    C64,
    /// Two fp64 values.
    C128,
}

impl DType {
    /// Storage per element in bytes.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            Self::C128 => 16,
            Self::F64 | Self::I64 | Self::C64 => 8,
            Self::F32 | Self::Tf32 | Self::I32 => 4,
            Self::F16 | Self::Bf16 | Self::I16 => 2,
            Self::F8E4M3 | Self::F8E5M2 | Self::I8 | Self::U8 | Self::Bool => 1,
        }
    }

    /// The type with PyTorch's `c10::ScalarType` number `n`; `None` for quantised and sub-byte types.
    ///
    /// Source: `c10/core/ScalarType.h`.
    #[must_use]
    pub const fn from_torch(n: u8) -> Option<Self> {
        Some(match n {
            0 => Self::U8,
            1 => Self::I8,
            2 => Self::I16,
            3 => Self::I32,
            4 => Self::I64,
            5 => Self::F16,
            6 => Self::F32,
            7 => Self::F64,
            9 => Self::C64,
            10 => Self::C128,
            11 => Self::Bool,
            15 => Self::Bf16,
            23 => Self::F8E5M2,
            24 => Self::F8E4M3,
            _ => return None,
        })
    }

    /// Whether the type is a real floating-point type.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            Self::F64 | Self::F32 | Self::Tf32 | Self::F16 | Self::Bf16 | Self::F8E4M3 | Self::F8E5M2
        )
    }

    /// The lower-case name used in tables, reports and model files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F64 => "fp64",
            Self::F32 => "fp32",
            Self::Tf32 => "tf32",
            Self::F16 => "fp16",
            Self::Bf16 => "bf16",
            Self::F8E4M3 => "fp8_e4m3",
            Self::F8E5M2 => "fp8_e5m2",
            Self::I64 => "int64",
            Self::I32 => "int32",
            Self::I16 => "int16",
            Self::I8 => "int8",
            Self::U8 => "uint8",
            Self::Bool => "bool",
            Self::C64 => "complex64",
            Self::C128 => "complex128",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

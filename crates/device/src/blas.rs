//! cuBLAS and cuBLASLt: handles, descriptors, and what a matrix product call means.
//!
//! What it is: the state that a program sets and reads back, the numbers of the libraries' enumerations, and the
//! translation of a call's arguments into a [`Gemm`].
//!
//! What it is not: it multiplies nothing and chooses no algorithm.

pub mod lt;

use trompe_base::DType;
use trompe_trace::descriptor::{Epilogue, Gemm};

use crate::handle::{HandleTable, Kind, NotLive};

/// `CUBLAS_TF32_TENSOR_OP_MATH`: fp32 products may use TF32 tensor cores.
const MATH_TF32: u32 = 3;
/// The low bits of a math mode choose it; the others are flags (`CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION` = 16).
const MATH_MASK: u32 = 0xf;

/// The element type with the `cudaDataType_t` number; `None` for types of less than eight bits and 16-bit complex ones.
#[must_use]
pub const fn dtype(number: i32) -> Option<DType> {
    Some(match number {
        0 => DType::F32,
        1 => DType::F64,
        2 => DType::F16,
        3 => DType::I8,
        4 => DType::C64,
        5 => DType::C128,
        8 => DType::U8,
        10 => DType::I32,
        14 => DType::Bf16,
        20 => DType::I16,
        24 => DType::I64,
        28 => DType::F8E4M3,
        29 => DType::F8E5M2,
        _ => return None,
    })
}

/// The type that products are computed in, from `cublasComputeType_t`, the type of A, and the handle's math mode.
#[must_use]
pub const fn compute_dtype(
    compute: i32,
    a: DType,
    math_mode: u32,
    device: crate::dnn::DeviceTraits,
) -> DType {
    let fp32_inputs = matches!(a, DType::F32 | DType::C64);
    match compute {
        64 | 65 => DType::F16,
        68 if fp32_inputs && math_mode & MATH_MASK == MATH_TF32 && device.has_tf32() => DType::Tf32,
        77 if fp32_inputs && device.has_tf32() => DType::Tf32,
        74 if fp32_inputs => DType::F16,
        75 if fp32_inputs => DType::Bf16,
        70 | 71 | 79 => DType::F64,
        72 | 73 => DType::I32,
        _ => DType::F32,
    }
}

/// The epilogue with the `cublasLtEpilogue_t` number, which is a set of bits.
#[must_use]
pub const fn epilogue(number: i32) -> Epilogue {
    const RELU: i32 = 2;
    const BIAS: i32 = 4;
    const D_RELU: i32 = 8;
    const BIAS_GRADIENT: i32 = 16;
    const GELU: i32 = 32;
    const D_GELU: i32 = 64;
    const AUX: i32 = 128;
    const OPERAND_GRADIENT: i32 = 256 | 512;
    let known = 1 | RELU | BIAS | D_RELU | BIAS_GRADIENT | GELU | D_GELU | AUX | OPERAND_GRADIENT;
    match number {
        0 | 1 => Epilogue::None,
        n if n & !known != 0 => Epilogue::Other,
        n if n & (D_RELU | D_GELU) != 0 => Epilogue::ActivationGradient,
        n if n & (OPERAND_GRADIENT | BIAS_GRADIENT) != 0 => Epilogue::BiasGradient,
        n if n & GELU != 0 && n & AUX != 0 => Epilogue::GeluAux,
        n if n & GELU != 0 => Epilogue::Gelu,
        n if n & RELU != 0 => Epilogue::Relu,
        n if n & BIAS != 0 => Epilogue::Bias,
        _ => Epilogue::Other,
    }
}

/// Bytes of the workspace that a cuBLAS handle allocates for itself.
///
/// Source: cuBLAS documentation, `cublasSetWorkspace` ("the default workspace pool allocated during the cuBLAS context
/// creation") with its table of sizes: 32 MiB on Hopper and Blackwell, 4 MiB before.
#[must_use]
pub const fn default_workspace(compute_capability: u32) -> u64 {
    if compute_capability >= 90 { 32 << 20 } else { 4 << 20 }
}

/// One operand of a product.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    /// `cudaDataType_t` number.
    pub dtype: i32,
    /// Leading dimension in elements.
    pub leading: i64,
    /// Distance between batch entries in elements; zero where not strided.
    pub stride: i64,
}

/// The arguments of a product call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Product {
    /// `cublasOperation_t` of A and B: 0 as it is, 1 transposed, 2 conjugate-transposed.
    pub transpose: [i32; 2],
    /// Rows, columns, contraction length.
    pub shape: [i64; 3],
    /// Independent products.
    pub batch: i64,
    /// A, B and C.
    pub operands: [Operand; 3],
    /// `cublasComputeType_t` number.
    pub compute: i32,
    /// Whether C is read (`beta` is not zero, or not known).
    pub accumulate: bool,
    /// `cublasLtEpilogue_t` number.
    pub epilogue: i32,
}

impl Product {
    /// The product as a descriptor; `None` when an operand's type has no name here (below eight bits).
    #[must_use]
    pub fn describe(&self, math_mode: u32, device: crate::dnn::DeviceTraits) -> Option<Gemm> {
        let positive = |n: i64| u64::try_from(n).unwrap_or(0);
        let [a, b, c] = self.operands.map(|operand| dtype(operand.dtype));
        let a = a?;
        Some(Gemm {
            m: positive(self.shape[0]),
            n: positive(self.shape[1]),
            k: positive(self.shape[2]),
            batch: positive(self.batch),
            transpose_a: self.transpose[0] != 0,
            transpose_b: self.transpose[1] != 0,
            a,
            b: b?,
            c: c?,
            compute: compute_dtype(self.compute, a, math_mode, device),
            epilogue: epilogue(self.epilogue),
            accumulate: self.accumulate,
            leading: self.operands.map(|operand| positive(operand.leading)),
            strides: self.operands.map(|operand| positive(operand.stride)),
        })
    }

    /// The same for people, where [`Self::describe`] has no words.
    #[must_use]
    pub fn text(&self) -> String {
        let [m, n, k] = self.shape;
        let types = self.operands.map(|operand| operand.dtype);
        format!(
            "gemm m {m} n {n} k {k} batch {} cuda data types {types:?} compute {}",
            self.batch, self.compute
        )
    }
}

/// State of one cuBLAS handle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// Stream handle.
    pub stream: u64,
    /// `cublasMath_t`.
    pub math_mode: u32,
    /// `cublasPointerMode_t`: 0 host, 1 device.
    pub pointer_mode: i32,
    /// `cublasAtomicsMode_t`.
    pub atomics_mode: i32,
    /// Streaming multiprocessors that kernels should use; 0 means all.
    pub sm_count_target: i32,
    /// Bytes of default workspace charged to the device.
    pub charged: u64,
}

/// All cuBLAS and cuBLASLt state of a process.
#[derive(Debug)]
pub struct Blas {
    libraries: HandleTable<Library>,
    lt_libraries: HandleTable<()>,
    layouts: HandleTable<lt::Layout>,
    operations: HandleTable<lt::Operation>,
    preferences: HandleTable<lt::Attributes>,
}

impl Default for Blas {
    fn default() -> Self {
        Self::new()
    }
}

impl Blas {
    /// No handles yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            libraries: HandleTable::new(Kind::Blas),
            lt_libraries: HandleTable::new(Kind::BlasLt),
            layouts: HandleTable::new(Kind::BlasLtLayout),
            operations: HandleTable::new(Kind::BlasLtOperation),
            preferences: HandleTable::new(Kind::BlasLtPreference),
        }
    }

    /// Creates a cuBLAS handle whose default workspace takes `charged` bytes.
    pub fn create(&mut self, charged: u64) -> u64 {
        self.libraries.insert(Library { charged, ..Library::default() }).0
    }

    /// Destroys a cuBLAS handle.
    ///
    /// # Errors
    /// When it is not live.
    pub fn destroy(&mut self, handle: u64) -> Result<Library, NotLive> {
        self.libraries.remove(handle)
    }

    /// State of a cuBLAS handle. cuBLASLt takes cuBLAS handles for its own and the other way round.
    ///
    /// # Errors
    /// When it is not live.
    pub fn library(&self, handle: u64) -> Result<&Library, NotLive> {
        self.libraries.get(handle)
    }

    /// State of a cuBLAS handle, to change it.
    ///
    /// # Errors
    /// When it is not live.
    pub fn library_mut(&mut self, handle: u64) -> Result<&mut Library, NotLive> {
        self.libraries.get_mut(handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dnn::DeviceTraits;

    const HOPPER: DeviceTraits = DeviceTraits { compute_capability: 90 };
    const VOLTA: DeviceTraits = DeviceTraits { compute_capability: 70 };

    #[test]
    fn tf32_needs_fp32_operands_a_mode_and_a_device() {
        let check =
            |compute, a, mode, device, expect| assert_eq!(compute_dtype(compute, a, mode, device), expect);
        check(68, DType::F32, 0, HOPPER, DType::F32);
        check(68, DType::F32, MATH_TF32, HOPPER, DType::Tf32);
        check(68, DType::F32, MATH_TF32 | 16, HOPPER, DType::Tf32);
        check(68, DType::F32, MATH_TF32, VOLTA, DType::F32);
        check(77, DType::F32, 0, HOPPER, DType::Tf32);
        check(77, DType::F32, 0, VOLTA, DType::F32);
        check(68, DType::Bf16, MATH_TF32, HOPPER, DType::F32);
        check(64, DType::F16, 0, HOPPER, DType::F16);
        check(75, DType::F32, 0, HOPPER, DType::Bf16);
        check(70, DType::F64, 0, HOPPER, DType::F64);
        check(72, DType::I8, 0, HOPPER, DType::I32);
    }

    #[test]
    fn epilogues_are_sets_of_bits() {
        let check = |number, expect| assert_eq!(epilogue(number), expect, "{number}");
        check(1, Epilogue::None);
        check(2, Epilogue::Relu);
        check(4, Epilogue::Bias);
        check(6, Epilogue::Relu);
        check(32, Epilogue::Gelu);
        check(36, Epilogue::Gelu);
        check(164, Epilogue::GeluAux);
        check(208, Epilogue::ActivationGradient);
        check(152, Epilogue::ActivationGradient);
        check(256, Epilogue::BiasGradient);
        check(512, Epilogue::BiasGradient);
        check(1 << 20, Epilogue::Other);
    }
}

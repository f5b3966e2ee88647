//! What a device operation computes, in the terms that decide its time.
//!
//! A descriptor is open: what is known is stated, what is not is `None` or zero, and a kernel that nobody understands
//! is an [`Other`] with its raw name kept beside it. Estimators price descriptors and nothing else.

mod work;

use serde::{Deserialize, Serialize};
use trompe_base::{Bytes, DType, Flops};

/// One device operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Descriptor {
    /// Dense matrix product, batched or not.
    Gemm(Gemm),
    /// 1-D to 3-D convolution or one of its gradients.
    Convolution(Convolution),
    /// Fused scaled-dot-product attention.
    Attention(Attention),
    /// Layer, RMS, batch, group or instance normalisation.
    Normalization(Normalization),
    /// Softmax or log-softmax along one dimension.
    Softmax(RowWise),
    /// Fused or unfused cross-entropy / negative log likelihood over class rows.
    CrossEntropy(RowWise),
    /// One pass over tensors, element by element (activation, add, cast, copy between layouts, dropout, …).
    Elementwise(Elementwise),
    /// Sum, mean, max, norm, … over some dimensions.
    Reduction(Reduction),
    /// Look-up of rows in a table, or its gradient.
    Embedding(Embedding),
    /// Gather, scatter, index, concatenation, transposition: moves data by index.
    Indexing(Indexing),
    /// Parameter update over many tensors (foreach or fused).
    Optimizer(Optimizer),
    /// Sort, top-k, scan, unique, histogram.
    Sort(Sort),
    /// Pooling, up-sampling and other stencils.
    Stencil(Work),
    /// Recurrent network (LSTM, GRU, RNN) executed by the library in one call.
    Rnn(Rnn),
    /// A compiled kernel (Triton, NVRTC) known by its geometry and parameters.
    Triton(Triton),
    /// A memory copy.
    Copy(Copy),
    /// A memory fill.
    Set(Set),
    /// Anything else, with whatever is known.
    Other(Other),
    /// A kernel given as a program for the cores of an NPU.
    NpuKernel(NpuKernel),
    /// An operation of which another tool told how long it took.
    Recorded(Recorded),
    /// A compiled kernel whose machine code is known too.
    Compiled(Compiled),
}

/// A time that was measured elsewhere, and holds on every device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Recorded {
    /// How long it took.
    pub time: trompe_base::Duration,
    /// What is known of its work.
    pub work: Work,
}

/// Bytes moved and operations done: the least that a roofline needs. Zero means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Work {
    /// Bytes read from device memory, ideal (each input element once).
    pub read: Bytes,
    /// Bytes written to device memory, ideal.
    pub written: Bytes,
    /// Floating-point operations.
    pub flops: Flops,
}

impl Work {
    /// Bytes read and written.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        self.read + self.written
    }
}

/// Whether an operation belongs to the forward pass or computes gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Forward pass (also recomputation of it).
    #[default]
    Forward,
    /// Gradient with respect to inputs, or to everything where one kernel does it all.
    Backward,
    /// Gradient with respect to weights.
    WeightGradient,
}

/// What a matrix product does to its result before storing it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Epilogue {
    /// Nothing.
    #[default]
    None,
    /// Adds a bias vector.
    Bias,
    /// Rectified linear unit, with or without bias.
    Relu,
    /// GeLU, with or without bias.
    Gelu,
    /// GeLU that also stores its input.
    GeluAux,
    /// Gradient of an activation, with or without bias gradient.
    ActivationGradient,
    /// Column sums of an operand (bias gradient).
    BiasGradient,
    /// Another one that the library knows.
    Other,
}

/// `C (m × n) = op(A) (m × k) · op(B) (k × n)` per batch entry, column-major as BLAS calls it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Gemm {
    /// Rows of C.
    pub m: u64,
    /// Columns of C.
    pub n: u64,
    /// Contraction length.
    pub k: u64,
    /// Independent products in the call.
    pub batch: u64,
    /// A is given transposed (or conjugate-transposed).
    pub transpose_a: bool,
    /// B is given transposed.
    pub transpose_b: bool,
    /// Element type of A.
    pub a: DType,
    /// Element type of B.
    pub b: DType,
    /// Element type of C.
    pub c: DType,
    /// Type the product is computed in: [`DType::Tf32`] when TF32 tensor cores are allowed, otherwise the
    /// accumulator's type.
    pub compute: DType,
    /// What happens to the result.
    pub epilogue: Epilogue,
    /// C is read as well (`beta != 0`), as gradient accumulation does.
    pub accumulate: bool,
    /// Leading dimensions of A, B and C in elements.
    pub leading: [u64; 3],
    /// Batch strides of A, B and C in elements; zero where not strided.
    pub strides: [u64; 3],
}

/// Storage order of a convolution's activations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageLayout {
    /// Batch, channels, spatial.
    #[default]
    ChannelsFirst,
    /// Batch, spatial, channels.
    ChannelsLast,
}

/// A convolution `y (batch, out_channels, output…) = x (batch, in_channels, input…) * w`, or a gradient of it: the
/// shapes are those of the forward operation in every direction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Convolution {
    /// Which of the three products.
    pub direction: Direction,
    /// Batch entries.
    pub batch: u64,
    /// Channels of x (all groups together).
    pub in_channels: u64,
    /// Channels of y (all groups together).
    pub out_channels: u64,
    /// Groups; equal to the channels in a depthwise convolution.
    pub groups: u64,
    /// Spatial extent of x, one to three entries.
    pub input: Vec<u64>,
    /// Spatial extent of y.
    pub output: Vec<u64>,
    /// Spatial extent of w.
    pub kernel: Vec<u64>,
    /// Strides.
    pub stride: Vec<u64>,
    /// Padding before each dimension.
    pub padding: Vec<u64>,
    /// Dilation.
    pub dilation: Vec<u64>,
    /// Element type of x.
    pub dtype: DType,
    /// Type the product is computed in (see [`Gemm::compute`]).
    pub compute: DType,
    /// Storage order of x and y.
    pub layout: ImageLayout,
}

/// The library or kernel generation that runs attention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// FlashAttention 2, as PyTorch bundles it.
    #[default]
    Flash,
    /// FlashAttention 3 or newer (Hopper, Blackwell).
    Flash3,
    /// cuDNN's fused attention.
    Cudnn,
    /// The memory-efficient kernels of xFormers/PyTorch.
    MemoryEfficient,
}

/// Fused attention over `q (batch, heads, seq_q, head_dim)`, `k`/`v (batch, kv_heads, seq_kv, head_dim)`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attention {
    /// Forward or backward.
    pub direction: Direction,
    /// Which implementation.
    pub kind: AttentionKind,
    /// Sequences.
    pub batch: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Query positions per sequence.
    pub seq_q: u64,
    /// Key positions per sequence.
    pub seq_kv: u64,
    /// Width of q and k per head.
    pub head_dim: u64,
    /// Width of v per head.
    pub head_dim_v: u64,
    /// Keys after the query are masked.
    pub causal: bool,
    /// Attention dropout is on.
    pub dropout: bool,
    /// Element type.
    pub dtype: DType,
}

/// Kinds of normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum NormKind {
    Layer,
    Rms,
    Batch,
    Group,
}

/// A normalisation over `rows` rows of `cols` elements (batch norm: rows = channels).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Normalization {
    /// Which one.
    pub kind: NormKind,
    /// Forward, gradient of the input, or gradient of weight and bias.
    pub direction: Direction,
    /// Independent rows.
    pub rows: u64,
    /// Elements per row.
    pub cols: u64,
    /// Element type of the input.
    pub dtype: DType,
    /// Bytes and operations.
    pub work: Work,
}

/// An operation along rows: `rows` rows of `cols` elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowWise {
    /// Forward or backward.
    pub direction: Direction,
    /// Independent rows.
    pub rows: u64,
    /// Elements per row.
    pub cols: u64,
    /// Element type of the input.
    pub dtype: DType,
    /// Bytes and operations.
    pub work: Work,
}

/// An element-wise pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Elementwise {
    /// Output elements.
    pub elements: u64,
    /// Widest element type that the pass touches.
    pub dtype: DType,
    /// Whether the kernel moves several elements per access (`vectorized_elementwise_kernel`).
    pub vectorized: bool,
    /// Bytes and operations.
    pub work: Work,
}

/// A reduction of `inputs` elements to `outputs` elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Reduction {
    /// Elements read.
    pub inputs: u64,
    /// Elements written.
    pub outputs: u64,
    /// Element type of the input.
    pub dtype: DType,
    /// Bytes and operations.
    pub work: Work,
}

/// `tokens` rows of `width` elements looked up in (or accumulated into) a table of `rows` rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Embedding {
    /// Forward, or gradient of the table.
    pub direction: Direction,
    /// Indices.
    pub tokens: u64,
    /// Elements per row.
    pub width: u64,
    /// Rows of the table.
    pub rows: u64,
    /// Element type of the table.
    pub dtype: DType,
    /// Bytes and operations.
    pub work: Work,
}

/// Data moved by index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Indexing {
    /// Elements written.
    pub elements: u64,
    /// Element type.
    pub dtype: DType,
    /// Bytes and operations.
    pub work: Work,
}

/// An update over the elements of many tensors in one launch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Optimizer {
    /// Elements per tensor list (for example parameters updated).
    pub elements: u64,
    /// Tensor lists the kernel walks (Adam: parameter, gradient, two moments = 4).
    pub lists: u32,
    /// Widest element type.
    pub dtype: DType,
    /// Bytes and operations.
    pub work: Work,
}

/// Sort, top-k, scan, …
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Sort {
    /// Input elements.
    pub elements: u64,
    /// Element type.
    pub dtype: DType,
    /// Bytes and operations.
    pub work: Work,
}

/// A recurrent network in one library call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rnn {
    /// Forward, gradient of the data or gradient of the weights.
    pub direction: Direction,
    /// Gates per cell: 4 LSTM, 3 GRU, 1 plain.
    pub gates: u32,
    /// Layers times directions.
    pub layers: u64,
    /// Width of the input.
    pub input: u64,
    /// Width of the hidden state.
    pub hidden: u64,
    /// Sequences.
    pub batch: u64,
    /// Time steps.
    pub steps: u64,
    /// Element type.
    pub dtype: DType,
}

/// A compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Triton {
    /// Bytes and operations where they could be derived.
    pub work: Work,
    /// Thread blocks.
    pub blocks: u64,
    /// Threads per block.
    pub threads: u32,
    /// Registers per thread.
    pub registers: u32,
    /// Static and dynamic shared memory per block in bytes.
    pub shared: u32,
}

/// A compiled kernel (Triton, NVRTC) with what its machine code is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Compiled {
    /// Bytes and operations where they could be derived; with matrix instructions the operations are theirs.
    pub work: Work,
    /// Thread blocks.
    pub blocks: u64,
    /// Threads per block.
    pub threads: u32,
    /// Registers per thread.
    pub registers: u32,
    /// Static and dynamic shared memory per block in bytes.
    pub shared: u32,
    /// Multiply-adds that a warp's matrix instructions do per pass through the loops; zero without such instructions.
    pub multiplies: u64,
    /// Weighted issue slots of the other instructions that belong to them: of the loops, where there are some.
    pub slots: u32,
    /// Weighted issue slots of all instructions but matrix products, each once.
    pub all_slots: u32,
}

/// Where one side of a copy lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Device memory of the stream's device.
    Device,
    /// Device memory of another device.
    Peer,
    /// Page-locked host memory.
    Pinned,
    /// Ordinary host memory.
    Pageable,
}

/// A copy of `bytes` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Copy {
    /// Source.
    pub from: Place,
    /// Destination.
    pub to: Place,
    /// Length.
    pub bytes: Bytes,
}

/// A fill of `bytes` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Set {
    /// Length.
    pub bytes: Bytes,
}

/// A device operation that no family claims.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Other {
    /// Whatever could be derived.
    pub work: Work,
    /// Thread blocks; zero when unknown (library calls).
    pub blocks: u64,
    /// Threads per block; zero when unknown.
    pub threads: u32,
}

/// A kernel given as a program for the cores of an NPU: a simulator of such cores prices it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NpuKernel {
    /// The text of the program file (JSON, `docs/npu/program.schema.json`); shapes are part of it.
    pub program: String,
    /// What it counts for in the breakdown of a step.
    pub does: NpuWork,
    /// Element type of its matrix products, or the widest one that it reads.
    pub dtype: DType,
    /// Bytes of its inputs and outputs, and operations of its matrix products.
    pub work: Work,
}

/// What an NPU kernel counts for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum NpuWork {
    Gemm,
    Attention,
    Normalization,
    Elementwise,
    Reduction,
    Embedding,
    Optimizer,
    #[default]
    Other,
}

impl Descriptor {
    /// The family's name as tables, reports and configuration files use it.
    #[must_use]
    pub const fn family(&self) -> &'static str {
        match self {
            Self::Gemm(_) => "gemm",
            Self::Convolution(_) => "convolution",
            Self::Attention(_) => "attention",
            Self::Normalization(_) => "normalization",
            Self::Softmax(_) => "softmax",
            Self::CrossEntropy(_) => "cross_entropy",
            Self::Elementwise(_) => "elementwise",
            Self::Reduction(_) => "reduction",
            Self::Embedding(_) => "embedding",
            Self::Indexing(_) => "indexing",
            Self::Optimizer(_) => "optimizer",
            Self::Sort(_) => "sort",
            Self::Stencil(_) => "stencil",
            Self::Rnn(_) => "rnn",
            Self::Triton(_) => "triton",
            Self::Copy(_) => "copy",
            Self::Set(_) => "set",
            Self::Other(_) => "other",
            Self::NpuKernel(_) => "npu_kernel",
            Self::Recorded(_) => "recorded",
            Self::Compiled(_) => "triton",
        }
    }

    /// Floating-point operations of the matrix products only (GEMM, convolution, attention, RNN, NPU kernel): what MFU counts.
    ///
    /// Formulas: GEMM `2·m·n·k·batch`; convolution `2·batch·out·(in/groups)·kernel·output`; attention forward
    /// `2·b·h·s_q·s_kv·(d + d_v)`, half when causal, backward 2.5 times that (Dao, FlashAttention-2, 2023, §4);
    /// RNN `2·gates·hidden·(input + hidden)` per layer, step and sequence, the data gradient the same again.
    #[must_use]
    pub fn matmul_flops(&self) -> Flops {
        match self {
            Self::Gemm(g) => Flops(2 * g.m * g.n * g.k * g.batch),
            Self::Convolution(c) => {
                let taps: u64 = c.kernel.iter().product();
                let out: u64 = c.output.iter().product();
                Flops(2 * c.batch * c.out_channels * (c.in_channels / c.groups.max(1)) * taps * out)
            }
            Self::Attention(a) => {
                let full = 2.0
                    * (a.batch * a.heads) as f64
                    * (a.seq_q * a.seq_kv) as f64
                    * (a.head_dim + a.head_dim_v) as f64;
                let masked = if a.causal { full / 2.0 } else { full };
                let factor = if a.direction == Direction::Forward { 1.0 } else { 2.5 };
                Flops((masked * factor) as u64)
            }
            Self::Rnn(r) => {
                let cell = 2 * u64::from(r.gates) * r.hidden * (r.input + r.hidden);
                Flops(cell * r.layers * r.steps * r.batch)
            }
            Self::NpuKernel(kernel) => kernel.work.flops,
            _ => Flops::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causal_attention_does_half_the_work_and_backward_two_and_a_half_times() {
        let forward = Attention {
            direction: Direction::Forward,
            kind: AttentionKind::Flash,
            batch: 2,
            heads: 4,
            kv_heads: 4,
            seq_q: 128,
            seq_kv: 128,
            head_dim: 64,
            head_dim_v: 64,
            causal: false,
            dropout: false,
            dtype: DType::Bf16,
        };
        let flops = |a: &Attention| Descriptor::Attention(a.clone()).matmul_flops().0;
        assert_eq!(flops(&forward), 4 * 2 * 4 * 128 * 128 * 64);
        assert_eq!(flops(&Attention { causal: true, ..forward.clone() }) * 2, flops(&forward));
        let backward = Attention { direction: Direction::Backward, ..forward.clone() };
        assert_eq!(flops(&backward) * 2, flops(&forward) * 5);
    }
}

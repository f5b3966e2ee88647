//! How much an operation must move and compute at least.

use trompe_base::{Bytes, DType};

use super::{Descriptor, Direction, Work};

impl Descriptor {
    /// Ideal work of the operation: each operand moved once, [`Self::matmul_flops`] computed.
    #[must_use]
    pub fn work(&self) -> Work {
        let flops = self.matmul_flops();
        let of = |read: u64, written: u64| Work { read: Bytes(read), written: Bytes(written), flops };
        match self {
            Descriptor::Gemm(g) => {
                let size = |dtype: DType| dtype.size();
                let c = g.m * g.n * g.batch * size(g.c);
                let operands = g.batch * (g.m * g.k * size(g.a) + g.k * g.n * size(g.b));
                of(operands + if g.accumulate { c } else { 0 }, c)
            }
            Descriptor::Convolution(c) => {
                let size = c.dtype.size();
                let pixels = |extent: &[u64]| extent.iter().product::<u64>();
                let x = c.batch * c.in_channels * pixels(&c.input) * size;
                let y = c.batch * c.out_channels * pixels(&c.output) * size;
                let w = c.out_channels * (c.in_channels / c.groups.max(1)) * pixels(&c.kernel) * size;
                of(x + w, y)
            }
            Descriptor::Attention(a) => {
                let size = a.dtype.size();
                let q = a.batch * a.heads * a.seq_q * a.head_dim * size;
                let kv = a.batch * a.kv_heads * a.seq_kv * (a.head_dim + a.head_dim_v) * size;
                let o = a.batch * a.heads * a.seq_q * a.head_dim_v * size;
                if a.direction == Direction::Forward { of(q + kv, o) } else { of(q + kv + 2 * o, q + kv) }
            }
            Descriptor::Normalization(norm) => norm.work,
            Descriptor::Softmax(rows) | Descriptor::CrossEntropy(rows) => rows.work,
            Descriptor::Elementwise(pass) => pass.work,
            Descriptor::Reduction(reduction) => reduction.work,
            Descriptor::Embedding(embedding) => embedding.work,
            Descriptor::Indexing(indexing) => indexing.work,
            Descriptor::Optimizer(optimizer) => optimizer.work,
            Descriptor::Sort(sort) => sort.work,
            Descriptor::Stencil(work) => *work,
            Descriptor::Triton(triton) => triton.work,
            Descriptor::Compiled(kernel) => kernel.work,
            Descriptor::Other(other) => other.work,
            Descriptor::NpuKernel(kernel) => kernel.work,
            Descriptor::Recorded(recorded) => recorded.work,
            Descriptor::Set(set) => of(0, set.bytes.0),
            Descriptor::Copy(copy) => of(copy.bytes.0, copy.bytes.0),
            Descriptor::Rnn(_) => of(0, 0),
        }
    }
}

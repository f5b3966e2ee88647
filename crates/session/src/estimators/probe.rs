//! The question that a user's estimator is asked when it is loaded: an operation of its own family, of ordinary size.

use trompe_base::{Bytes, DType, Flops};
use trompe_trace::descriptor::{
    Attention, AttentionKind, Convolution, Copy, Descriptor, Direction, Elementwise, Embedding, Epilogue,
    Gemm, ImageLayout, Indexing, NormKind, Normalization, Optimizer, Other, Place, Reduction, Rnn, RowWise,
    Set, Sort, Triton, Work,
};

const ROWS: u64 = 4096;
const COLS: u64 = 1024;
const ELEMENTS: u64 = ROWS * COLS;

/// An operation of `family`, or of the last kind that a program can be asked about where that is unknown.
pub(super) fn probe(family: &str) -> Descriptor {
    let dtype = DType::Bf16;
    let direction = Direction::Forward;
    let work = Work { read: Bytes(2 * ELEMENTS), written: Bytes(2 * ELEMENTS), flops: Flops(ELEMENTS) };
    let row_wise = RowWise { direction, rows: ROWS, cols: COLS, dtype, work };
    match family {
        "gemm" => Descriptor::Gemm(Gemm {
            m: COLS,
            n: ROWS,
            k: COLS,
            batch: 1,
            transpose_a: true,
            transpose_b: false,
            a: dtype,
            b: dtype,
            c: dtype,
            compute: DType::F32,
            epilogue: Epilogue::None,
            accumulate: false,
            leading: [COLS; 3],
            strides: [0; 3],
        }),
        "convolution" => Descriptor::Convolution(Convolution {
            direction,
            batch: 32,
            in_channels: 64,
            out_channels: 64,
            groups: 1,
            input: vec![56, 56],
            output: vec![56, 56],
            kernel: vec![3, 3],
            stride: vec![1, 1],
            padding: vec![1, 1],
            dilation: vec![1, 1],
            dtype,
            compute: DType::F32,
            layout: ImageLayout::ChannelsLast,
        }),
        "attention" => Descriptor::Attention(Attention {
            direction,
            kind: AttentionKind::Flash,
            batch: 4,
            heads: 16,
            kv_heads: 16,
            seq_q: 1024,
            seq_kv: 1024,
            head_dim: 64,
            head_dim_v: 64,
            causal: true,
            dropout: false,
            dtype,
        }),
        "normalization" => Descriptor::Normalization(Normalization {
            kind: NormKind::Layer,
            direction,
            rows: ROWS,
            cols: COLS,
            dtype,
            work,
        }),
        "softmax" => Descriptor::Softmax(row_wise),
        "cross_entropy" => Descriptor::CrossEntropy(row_wise),
        "elementwise" => {
            Descriptor::Elementwise(Elementwise { elements: ELEMENTS, dtype, vectorized: true, work })
        }
        "reduction" => Descriptor::Reduction(Reduction { inputs: ELEMENTS, outputs: ROWS, dtype, work }),
        "embedding" => Descriptor::Embedding(Embedding {
            direction,
            tokens: ROWS,
            width: COLS,
            rows: 50_000,
            dtype,
            work,
        }),
        "indexing" => Descriptor::Indexing(Indexing { elements: ELEMENTS, dtype, work }),
        "optimizer" => {
            Descriptor::Optimizer(Optimizer { elements: ELEMENTS, lists: 4, dtype: DType::F32, work })
        }
        "sort" => Descriptor::Sort(Sort { elements: ELEMENTS, dtype: DType::I64, work }),
        "stencil" => Descriptor::Stencil(work),
        "rnn" => Descriptor::Rnn(Rnn {
            direction,
            gates: 4,
            layers: 1,
            input: 256,
            hidden: 256,
            batch: 32,
            steps: 64,
            dtype,
        }),
        "triton" => {
            Descriptor::Triton(Triton { work, blocks: ROWS, threads: 128, registers: 64, shared: 4096 })
        }
        "copy" => {
            Descriptor::Copy(Copy { from: Place::Pinned, to: Place::Device, bytes: Bytes(2 * ELEMENTS) })
        }
        "set" => Descriptor::Set(Set { bytes: Bytes(2 * ELEMENTS) }),
        _ => Descriptor::Other(Other { work, blocks: ROWS, threads: 256 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_asked_about_itself() {
        for family in super::super::FAMILIES {
            assert_eq!(probe(family).family(), family);
        }
    }
}

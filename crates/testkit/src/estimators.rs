//! The contract of kernel estimators, as a suite that any of them is put through: the built-in ones, tables, a user's
//! model, another program.

use trompe_base::{Bytes, DType, Duration, Flops};
use trompe_estimate::{Estimate, KernelEstimator};
use trompe_hardware::{Catalogue, DeviceSheet};
use trompe_trace::descriptor::{
    Attention, AttentionKind, Compiled, Convolution, Copy, Descriptor, Direction, Elementwise, Embedding,
    Epilogue, Gemm, ImageLayout, Indexing, NormKind, Normalization, Optimizer, Other, Place, Reduction, Rnn,
    RowWise, Set, Sort, Triton, Work,
};

/// Asserts that `estimator` keeps the contract on every built-in device: it answers every question with a positive
/// finite time inside its interval and a named method, answers the same question alike whether it was told to prepare
/// or not, and never gives much more work much less time.
///
/// # Panics
/// When it does not.
pub fn check_contract(estimator: &dyn KernelEstimator) {
    for device in devices() {
        let operations: Vec<Descriptor> =
            [0, 1, 4, 64].into_iter().flat_map(families).chain(unknown()).collect();
        let before: Vec<Estimate> = operations.iter().map(|o| estimator.estimate(o, &device)).collect();
        estimator.prepare(&operations.iter().collect::<Vec<_>>(), &device);
        for (operation, before) in operations.iter().zip(&before) {
            sound(operation, before);
            assert_eq!(before, &estimator.estimate(operation, &device), "{operation:?} asked again");
        }
        for (small, large) in families(4).iter().zip(&families(64)) {
            let (little, much) = (estimator.estimate(small, &device), estimator.estimate(large, &device));
            let least = little.time.scale(0.9);
            assert!(
                much.time >= least,
                "{}: {large:?} takes {}, {small:?} {}",
                device.name,
                much.time,
                little.time
            );
        }
    }
}

/// Every built-in device.
///
/// # Panics
/// Never: built-in sheets load.
#[must_use]
pub fn devices() -> Vec<DeviceSheet> {
    let catalogue = Catalogue::builtin();
    catalogue.devices().into_iter().map(|name| catalogue.device(name).unwrap()).collect()
}

/// Traffic and operations of an element-wise pass.
#[must_use]
pub fn work(elements: u64) -> Work {
    Work { read: Bytes(2 * elements), written: Bytes(2 * elements), flops: Flops(elements) }
}

/// A matrix product as a linear layer makes it.
#[must_use]
pub fn gemm(m: u64, n: u64, k: u64, batch: u64, dtype: DType) -> Descriptor {
    Descriptor::Gemm(Gemm {
        m,
        n,
        k,
        batch,
        transpose_a: true,
        transpose_b: false,
        a: dtype,
        b: dtype,
        c: dtype,
        compute: DType::F32,
        epilogue: Epilogue::None,
        accumulate: false,
        leading: [k, k, m],
        strides: [0; 3],
    })
}

fn convolution(direction: Direction, batch: u64, channels: u64, groups: u64) -> Descriptor {
    Descriptor::Convolution(Convolution {
        direction,
        batch,
        in_channels: channels,
        out_channels: channels,
        groups,
        input: vec![28, 28],
        output: vec![28, 28],
        kernel: vec![3, 3],
        stride: vec![1, 1],
        padding: vec![1, 1],
        dilation: vec![1, 1],
        dtype: DType::F16,
        compute: DType::F32,
        layout: ImageLayout::ChannelsLast,
    })
}

fn attention(direction: Direction, batch: u64, seq: u64, causal: bool) -> Descriptor {
    Descriptor::Attention(Attention {
        direction,
        kind: AttentionKind::Flash,
        batch,
        heads: 12,
        kv_heads: 12,
        seq_q: seq,
        seq_kv: seq,
        head_dim: 64,
        head_dim_v: 64,
        causal,
        dropout: false,
        dtype: DType::Bf16,
    })
}

/// One operation of every family and direction at size `scale` (1 is tiny).
#[must_use]
pub fn families(scale: u64) -> Vec<Descriptor> {
    use Descriptor as D;
    use Direction::{Backward, Forward, WeightGradient};
    let dtype = DType::Bf16;
    let (rows, cols) = (64 * scale, 1024);
    let elements = rows * cols;
    let work = work(elements);
    let norm = |direction, kind| D::Normalization(Normalization { kind, direction, rows, cols, dtype, work });
    let row_wise = |direction| RowWise { direction, rows, cols, dtype, work };
    let rnn = |direction| {
        D::Rnn(Rnn {
            direction,
            gates: 4,
            layers: 2,
            input: 256,
            hidden: 256,
            batch: 8,
            steps: 4 * scale,
            dtype,
        })
    };
    let copy = |from, to| D::Copy(Copy { from, to, bytes: Bytes(elements) });
    let mut all = vec![
        gemm(rows, 768, 768, 1, dtype),
        gemm(rows, 64, 128, 12, DType::F16),
        gemm(rows, 512, 512, 1, DType::F32),
        gemm(rows, 512, 512, 1, DType::F64),
        gemm(rows, 512, 512, 1, DType::F8E4M3),
        gemm(rows, 512, 512, 1, DType::I8),
        norm(Forward, NormKind::Layer),
        norm(Backward, NormKind::Batch),
        norm(WeightGradient, NormKind::Rms),
        D::Softmax(row_wise(Forward)),
        D::Softmax(row_wise(Backward)),
        D::CrossEntropy(row_wise(Forward)),
        D::Elementwise(Elementwise { elements, dtype, vectorized: true, work }),
        D::Elementwise(Elementwise { elements, dtype, vectorized: false, work }),
        D::Reduction(Reduction { inputs: elements, outputs: rows, dtype, work }),
        D::Embedding(Embedding { direction: Forward, tokens: rows, width: cols, rows: 50_000, dtype, work }),
        D::Embedding(Embedding { direction: Backward, tokens: rows, width: cols, rows: 50_000, dtype, work }),
        D::Indexing(Indexing { elements, dtype, work }),
        D::Optimizer(Optimizer { elements, lists: 4, dtype: DType::F32, work }),
        D::Sort(Sort { elements, dtype: DType::I64, work }),
        D::Stencil(work),
        rnn(Forward),
        rnn(Backward),
        rnn(WeightGradient),
        D::Triton(Triton { work, blocks: rows, threads: 128, registers: 64, shared: 4096 }),
        D::Compiled(Compiled {
            work,
            blocks: rows,
            threads: 128,
            registers: 64,
            shared: 4096,
            multiplies: 4096,
            slots: 100,
            all_slots: 200,
        }),
        D::Triton(Triton { work: Work::default(), blocks: rows, threads: 128, registers: 64, shared: 0 }),
        copy(Place::Device, Place::Device),
        copy(Place::Pinned, Place::Device),
        copy(Place::Device, Place::Pageable),
        copy(Place::Device, Place::Peer),
        D::Set(Set { bytes: Bytes(elements) }),
        D::Other(Other { work, blocks: rows, threads: 256 }),
        D::Other(Other { work: Work::default(), blocks: rows, threads: 256 }),
    ];
    for direction in [Forward, Backward, WeightGradient] {
        all.push(convolution(direction, scale, 64, 1));
        all.push(convolution(direction, scale, 64, 64));
    }
    for causal in [false, true] {
        all.push(attention(Forward, scale, 512, causal));
        all.push(attention(Backward, 1, 64 * scale, causal));
    }
    all
}

/// Operations of which nothing is known.
#[must_use]
pub fn unknown() -> Vec<Descriptor> {
    let none = Work::default();
    vec![
        Descriptor::Other(Other { work: none, blocks: 0, threads: 0 }),
        Descriptor::Compiled(Compiled::default()),
        Descriptor::Triton(Triton { work: none, blocks: 0, threads: 0, registers: 0, shared: 0 }),
        Descriptor::Stencil(none),
    ]
}

fn sound(operation: &Descriptor, estimate: &Estimate) {
    assert!(!estimate.time.is_zero(), "{operation:?} is free");
    assert!(estimate.time < Duration::from_secs_f64(3600.0), "{operation:?} takes {}", estimate.time);
    assert!(estimate.low <= estimate.time && estimate.time <= estimate.high, "{operation:?}: {estimate:?}");
    assert!(!estimate.low.is_zero() && !estimate.method.is_empty(), "{operation:?}: {estimate:?}");
}

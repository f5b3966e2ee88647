//! What every estimator promises, checked on a grid of operations of every family and on every built-in device.

use trompe_base::{Bytes, DType, Duration, Flops};
use trompe_estimate::{Basis, Estimate, Fixed, KernelEstimator, Physics};
use trompe_hardware::{BytesPerSecond, Catalogue, DeviceSheet, FlopsPerSecond, Rates};
use trompe_trace::descriptor::{
    Attention, AttentionKind, Convolution, Copy, Descriptor, Direction, Elementwise, Embedding, Epilogue,
    Gemm, ImageLayout, Indexing, NormKind, Normalization, Optimizer, Other, Place, Reduction, Rnn, RowWise,
    Set, Sort, Triton, Work,
};

fn devices() -> Vec<DeviceSheet> {
    let catalogue = Catalogue::builtin();
    catalogue.devices().into_iter().map(|name| catalogue.device(name).unwrap()).collect()
}

fn work(elements: u64) -> Work {
    Work { read: Bytes(2 * elements), written: Bytes(2 * elements), flops: Flops(elements) }
}

fn gemm(m: u64, n: u64, k: u64, batch: u64, dtype: DType) -> Descriptor {
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
fn families(scale: u64) -> Vec<Descriptor> {
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
fn unknown() -> Vec<Descriptor> {
    let none = Work::default();
    vec![
        Descriptor::Other(Other { work: none, blocks: 0, threads: 0 }),
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

#[test]
fn every_answer_is_sound_and_repeatable() {
    let (physics, again) = (Physics::new(), Physics::new());
    for device in devices() {
        for operation in [0, 1, 4, 64].into_iter().flat_map(families).chain(unknown()) {
            let estimate = physics.estimate(&operation, &device);
            sound(&operation, &estimate);
            assert_eq!(estimate, again.estimate(&operation, &device), "{operation:?}");
        }
    }
    let fixed = Fixed(Duration::from_micros(3)).estimate(&gemm(1, 1, 1, 1, DType::F32), &devices()[0]);
    assert_eq!(fixed.time, Duration::from_micros(3));
}

#[test]
fn nothing_is_faster_than_the_shortest_kernel() {
    let physics = Physics::new();
    for device in devices() {
        for operation in families(1).into_iter().chain(unknown()) {
            let time = physics.estimate(&operation, &device).time;
            assert!(time >= Duration::from_nanos(900), "{operation:?} takes {time} on {}", device.name);
        }
    }
}

#[test]
fn more_work_is_never_faster() {
    let physics = Physics::new();
    for device in devices() {
        let mut before: Option<(u64, Vec<Duration>)> = None;
        for scale in [1, 2, 3, 5, 8, 13, 34, 144, 610] {
            let times: Vec<Duration> =
                families(scale).iter().map(|operation| physics.estimate(operation, &device).time).collect();
            if let Some((smaller, earlier)) = before {
                for ((operation, time), earlier) in families(scale).iter().zip(&times).zip(&earlier) {
                    assert!(
                        time >= earlier,
                        "{}: {operation:?} is faster than at scale {smaller}",
                        device.name
                    );
                }
            }
            before = Some((scale, times));
        }
    }
}

#[test]
fn a_product_grows_with_each_of_its_sides() {
    let physics = Physics::new();
    for device in devices() {
        let time = |m, n, k, b| physics.estimate(&gemm(m, n, k, b, DType::F16), &device).time;
        let sides = [1, 31, 64, 100, 129, 255, 256, 257, 511, 512, 513, 1000, 3000, 4096, 9999];
        for pair in sides.windows(2) {
            let (small, large) = (pair[0], pair[1]);
            let check = |a, b| assert!(a <= b, "{}: {small} takes {a}, {large} takes {b}", device.name);
            check(time(small, 512, 512, 1), time(large, 512, 512, 1));
            check(time(512, small, 512, 1), time(512, large, 512, 1));
            check(time(512, 512, small, 1), time(512, 512, large, 1));
            check(time(512, 512, 64, small), time(512, 512, 64, large));
        }
    }
}

fn faster(rates: &Rates) -> Rates {
    let twice = |rate: Option<FlopsPerSecond>| rate.map(|rate| FlopsPerSecond(rate.0 * 2.0));
    Rates {
        fp64: twice(rates.fp64),
        fp32: twice(rates.fp32),
        tf32: twice(rates.tf32),
        fp16: twice(rates.fp16),
        bf16: twice(rates.bf16),
        fp8: twice(rates.fp8),
        int8: twice(rates.int8),
    }
}

#[test]
fn a_faster_device_is_never_slower() {
    let physics = Physics::new();
    for slow in devices() {
        let mut memory = slow.clone();
        memory.memory.bandwidth = BytesPerSecond(slow.memory.bandwidth.0 * 2.0);
        let mut cache = slow.clone();
        cache.memory.l2 = Bytes(slow.memory.l2.0 * 2);
        let mut arithmetic = slow.clone();
        arithmetic.peaks.vector = faster(&slow.peaks.vector);
        arithmetic.peaks.tensor = faster(&slow.peaks.tensor);
        let mut links = slow.clone();
        links.interconnect.pcie_bandwidth = BytesPerSecond(slow.interconnect.pcie_bandwidth.0 * 2.0);
        for operation in [1, 13, 144].into_iter().flat_map(families) {
            let time = physics.estimate(&operation, &slow).time;
            for (what, fast) in
                [("memory", &memory), ("cache", &cache), ("arithmetic", &arithmetic), ("links", &links)]
            {
                let better = physics.estimate(&operation, fast).time;
                assert!(better <= time, "{} with faster {what}: {operation:?} {time} -> {better}", slow.name);
            }
        }
    }
}

#[test]
fn large_work_approaches_the_hardware_and_never_passes_it() {
    let physics = Physics::new();
    for device in devices() {
        let product = gemm(8192, 8192, 8192, 1, DType::F16);
        let time = physics.estimate(&product, &device).time.as_secs_f64();
        let share = product.matmul_flops().as_f64() / device.matrix_peak(DType::F16).0 / time;
        assert!(
            (0.45..=1.0).contains(&share),
            "{}: a large product reaches {share:.2} of the peak",
            device.name
        );
        let elements = 1 << 30;
        let pass = Elementwise { elements, dtype: DType::Bf16, vectorized: true, work: work(elements) };
        let time = physics.estimate(&Descriptor::Elementwise(pass), &device).time.as_secs_f64();
        let share = 4.0 * elements as f64 / device.memory.bandwidth.0 / time;
        assert!((0.75..=1.0).contains(&share), "{}: a large pass reaches {share:.2}", device.name);
    }
}

#[test]
fn what_is_not_understood_is_marked_and_says_why() {
    let physics = Physics::new();
    let device = &devices()[0];
    for operation in unknown() {
        let estimate = physics.estimate(&operation, device);
        assert_eq!(estimate.basis, Basis::Fallback, "{operation:?}");
        assert!(estimate.note.is_some(), "{operation:?}");
    }
    let elements = 1 << 20;
    let pass = Elementwise { elements, dtype: DType::F32, vectorized: true, work: Work::default() };
    let estimate = physics.estimate(&Descriptor::Elementwise(pass), device);
    assert_ne!(estimate.basis, Basis::Fitted);
    assert!(estimate.time > Duration::from_micros(3), "derived bytes are charged: {}", estimate.time);
    let fitted = physics.estimate(&gemm(4096, 4096, 4096, 1, DType::Bf16), device);
    assert_eq!((fitted.basis, fitted.method.as_ref()), (Basis::Fitted, "physics.gemm.tensor"));
}

#[test]
fn every_constant_names_its_source() {
    let physics = Physics::new();
    for device in devices() {
        let sources = physics.sources(device.architecture());
        assert!(sources.len() > 20);
        for (table, source) in sources {
            assert!(source.len() > 20, "{}: {table} has no source", device.name);
        }
    }
}

//! The kernels of `trompe_npu::kernels` against plain loops.

use trompe_npu::kernels::{
    Attention, Matmul, RowKernel, all_reduce, attention, matmul, mix, rotation, row_kernel, top_k, vector_add,
};
use trompe_npu::{ElementType, Options};

use crate::support::*;

/// `a[m, k] b[n, k]^T` in doubles.
fn product(a: &[f32], b: &[f32], (m, n, k): (usize, usize, usize)) -> Vec<f32> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            let sum: f64 = (0..k).map(|x| f64::from(a[i * k + x]) * f64::from(b[j * k + x])).sum();
            c[i * n + j] = sum as f32;
        }
    }
    c
}

#[test]
fn vector_add_with_tails() {
    for (n, tile, cores) in [(64, 64, 1), (1000, 256, 1), (4099, 512, 2), (7, 64, 1), (10_001, 1024, 4)] {
        let (x, y) = (noise(1, n), noise(2, n));
        let program = vector_add(n as u64, tile, cores);
        let inputs = [("x", f32s(&[n as u64], &x)), ("y", f32s(&[n as u64], &y))];
        let outcome = simulate(&program, &inputs, &Options::default()).unwrap();
        let expect: Vec<f32> = x.iter().zip(&y).map(|(x, y)| x + y).collect();
        close(&output(&outcome, "z"), &expect, 0.0);
    }
}

fn check_matmul(shape: Matmul) {
    let Matmul { m, n, k, .. } = shape;
    let (a, b) = (noise(3, (m * k) as usize), noise(4, (n * k) as usize));
    let sizes = (m as usize, n as usize, k as usize);
    let (inputs, expect) = match shape.dtype {
        ElementType::F16 => {
            let ((left, a), (right, b)) = (f16s(&[m, k], &a), f16s(&[n, k], &b));
            ([("a", left), ("b", right)], product(&a, &b, sizes))
        }
        ElementType::F32 => ([("a", f32s(&[m, k], &a)), ("b", f32s(&[n, k], &b))], product(&a, &b, sizes)),
        other => panic!("{other:?}"),
    };
    for device in ["ascend-950", "ascend-910b1"] {
        let outcome =
            simulate_on(device, "reference", &matmul(&shape), &inputs, &Options::default()).unwrap();
        close(&output(&outcome, "c"), &expect, 2e-5);
    }
}

const SMALL: Matmul = Matmul {
    m: 128,
    n: 128,
    k: 128,
    tile: [64, 64, 64],
    split_k: 1,
    cores: 1,
    dtype: ElementType::F16,
    slots: 1,
};

#[test]
fn matmul_on_one_core() {
    check_matmul(SMALL);
    check_matmul(Matmul { slots: 2, ..SMALL });
    check_matmul(Matmul { tile: [48, 80, 32], m: 96, n: 160, k: 96, slots: 2, ..SMALL });
    check_matmul(Matmul { dtype: ElementType::F32, slots: 2, ..SMALL });
    check_matmul(Matmul { tile: [17, 20, 24], m: 34, n: 40, k: 72, ..SMALL });
}

#[test]
fn matmul_on_many_cores() {
    check_matmul(Matmul { cores: 4, slots: 2, ..SMALL });
    check_matmul(Matmul { cores: 4, slots: 2, split_k: 2, ..SMALL });
}

#[test]
fn matmul_of_integers() {
    let shape = Matmul { dtype: ElementType::I8, tile: [32, 32, 32], ..SMALL };
    let values = |seed| -> Vec<i64> { noise(seed, 128 * 128).iter().map(|x| (x * 127.0) as i64).collect() };
    let (a, b) = (values(5), values(6));
    let inputs =
        [("a", ints(ElementType::I8, &[128, 128], &a)), ("b", ints(ElementType::I8, &[128, 128], &b))];
    let outcome = simulate(&matmul(&shape), &inputs, &Options::default()).unwrap();
    let c = &outcome.outputs[0].content.bytes;
    for i in 0..128 {
        for j in 0..128 {
            let expect: i64 = (0..128).map(|x| a[i * 128 + x] * b[j * 128 + x]).sum();
            let at = (i * 128 + j) * 4;
            let found = i32::from_le_bytes(c[at..at + 4].try_into().unwrap());
            assert_eq!(i64::from(found), expect, "{i} {j}");
        }
    }
}

#[test]
fn cube_and_vector_lanes_together() {
    let (rows, cores) = (1024, 4);
    let ((a, left), (b, right)) = (f16s(&[rows, 128], &noise(7, 131_072)), f16s(&[64, 128], &noise(8, 8192)));
    let outcome = simulate(&mix(rows, cores), &[("a", a), ("b", b)], &Options::default()).unwrap();
    let expect: Vec<f32> = product(&left, &right, (1024, 64, 128)).iter().map(|x| 3.0 * x + 1.0).collect();
    close(&output(&outcome, "y"), &expect, 1e-5);
}

#[test]
fn rows() {
    let x = noise(9, 256 * 128);
    for which in [RowKernel::Softmax, RowKernel::LayerNorm, RowKernel::RmsNorm] {
        let outcome =
            simulate(&row_kernel(which, 256, 1), &[("x", f32s(&[256, 128], &x))], &Options::default())
                .unwrap();
        let mut expect = Vec::new();
        for row in x.chunks(128) {
            let row: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
            let mean = row.iter().sum::<f64>() / 128.0;
            let square = |shift: f64| row.iter().map(|x| (x - shift).powi(2)).sum::<f64>() / 128.0;
            let top = row.iter().copied().fold(f64::MIN, f64::max);
            let total: f64 = row.iter().map(|x| (x - top).exp()).sum();
            expect.extend(row.iter().map(|x| match which {
                RowKernel::Softmax => ((x - top).exp() / total) as f32,
                RowKernel::LayerNorm => ((x - mean) / (square(mean) + 1e-5).sqrt()) as f32,
                RowKernel::RmsNorm => (x / (square(0.0) + 1e-5).sqrt()) as f32,
            }));
        }
        close(&output(&outcome, "y"), &expect, 2e-6);
    }
}

#[test]
fn fused_attention() {
    for (queries, keys, cores) in [(128, 256, 1), (256, 384, 2)] {
        let [q, k, v] = [(10, queries), (11, keys), (12, keys)]
            .map(|(seed, rows)| f16s(&[rows, 128], &noise(seed, rows as usize * 128)));
        let inputs = [("q", q.0), ("k", k.0), ("v", v.0)];
        let outcome =
            simulate(&attention(&Attention { queries, keys, cores }), &inputs, &Options::default()).unwrap();
        let scores = product(&q.1, &k.1, (queries as usize, keys as usize, 128));
        let mut expect = Vec::new();
        for row in scores.chunks(keys as usize) {
            let weights: Vec<f64> = row.iter().map(|&s| (f64::from(s) / 128f64.sqrt()).exp()).collect();
            let total: f64 = weights.iter().sum();
            for column in 0..128 {
                let sum: f64 =
                    weights.iter().enumerate().map(|(at, w)| w * f64::from(v.1[at * 128 + column])).sum();
                expect.push((sum / total) as f32);
            }
        }
        // Probabilities are halves.
        close(&output(&outcome, "out"), &expect, 5e-4);
    }
}

#[test]
fn top_values_in_order() {
    let x = noise(13, 128);
    let index: Vec<i64> = (0..128).collect();
    let inputs = [("x", f32s(&[128], &x)), ("index", ints(ElementType::U32, &[128], &index))];
    let outcome = simulate(&top_k(), &inputs, &Options::default()).unwrap();
    let mut order: Vec<usize> = (0..128).collect();
    order.sort_by(|&a, &b| x[b].total_cmp(&x[a]));
    for (pair, at) in outcome.outputs[0].content.bytes.chunks_exact(8).zip(order) {
        assert_eq!(f32::from_le_bytes(pair[..4].try_into().unwrap()).to_bits(), x[at].to_bits());
        assert_eq!(u32::from_le_bytes(pair[4..].try_into().unwrap()), at as u32);
    }
}

#[test]
fn atomics_and_a_collective_are_the_same_with_any_number_of_threads() {
    let x = noise(14, 16 * 64);
    let inputs = [("x", f32s(&[16, 64], &x))];
    let runs: Vec<_> = [1, 2, 3, 8]
        .map(|threads| {
            simulate(&all_reduce(8, 0), &inputs, &Options { threads, ..Options::default() }).unwrap()
        })
        .into();
    let mut expect = vec![0.0; 64];
    x.chunks(64).for_each(|row| expect.iter_mut().zip(row).for_each(|(sum, x)| *sum += x));
    close(&output(&runs[0], "total"), &expect, 1e-6);
    let copies = output(&runs[0], "copies");
    for (lane, copy) in copies.chunks(64).enumerate() {
        assert_eq!(copy, output(&runs[0], "total"), "lane {lane}");
    }
    for run in &runs[1..] {
        assert_eq!(run.outputs, runs[0].outputs);
        assert_eq!(run.makespan, runs[0].makespan);
    }
}

#[test]
fn events_in_rotation() {
    let x = noise(15, 6 * 4096);
    for slots in 1..=2 {
        let inputs = [("x", f32s(&[384, 64], &x))];
        let outcome = simulate(&rotation(6, slots), &inputs, &Options::default()).unwrap();
        close(&output(&outcome, "y"), &x.iter().map(|x| 2.0 * x).collect::<Vec<_>>(), 0.0);
    }
}

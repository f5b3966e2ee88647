//! What every estimator promises, checked on a grid of operations of every family and on every built-in device.
//!
//! The suite that any estimator must pass is `trompe_testkit::estimators`; what follows here is more, and only of the
//! physics-bounded models.

use trompe_base::{Bytes, DType, Duration};
use trompe_estimate::table::Table;
use trompe_estimate::{Basis, Cached, Fixed, KernelEstimator, Physics, Stack};
use trompe_hardware::{BytesPerSecond, FlopsPerSecond, Rates};
use trompe_testkit::estimators::{check_contract, devices, families, gemm, unknown, work};
use trompe_trace::descriptor::{Descriptor, Elementwise, Work};

#[test]
fn every_estimator_keeps_the_contract() {
    check_contract(&Physics::new());
    check_contract(&Stack::builtin());
    check_contract(&Cached::new(Stack::builtin()));
    check_contract(&Fixed(Duration::from_micros(3)));
    let mut table = Table::new("mine");
    let device = &devices()[0];
    for operation in families(4) {
        table.add(&operation, device, Physics::new().estimate(&operation, device).time.as_secs_f64());
    }
    check_contract(&Stack::physics().with_table(table));
}

#[test]
fn the_same_estimator_made_twice_gives_the_same_answers() {
    let (one, two) = (Stack::builtin(), Stack::builtin());
    for device in devices() {
        for operation in [1, 64].into_iter().flat_map(families).chain(unknown()) {
            assert_eq!(one.estimate(&operation, &device), two.estimate(&operation, &device), "{operation:?}");
        }
    }
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

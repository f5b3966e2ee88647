//! What a run allocates grows with the program and its tensors, not with the tasks.

use trompe_npu::kernels::{Attention, Matmul, RowKernel, attention, matmul, mix, row_kernel};
use trompe_npu::{ElementType, Input, Options, Program, Role};

use crate::support::*;

/// Allocations and tasks of a run of a program, after one that filled whatever is filled once.
fn count(program: &Program, options: &Options) -> (u64, u64) {
    let zeros = |tensor: &trompe_npu::Tensor| Input {
        dtype: tensor.dtype,
        shape: tensor.shape.clone(),
        bytes: vec![0; tensor.shape.iter().product::<u64>() as usize * tensor.dtype.size()],
    };
    let inputs: Vec<(&str, Input)> = program
        .tensors
        .iter()
        .filter(|tensor| tensor.role == Role::Input && !options.timing_only)
        .map(|tensor| (tensor.name.as_str(), zeros(tensor)))
        .collect();
    let mut tasks = 0;
    let counted = allocation_counter::measure(|| {
        tasks = simulate(program, &inputs, options).unwrap().tasks;
    });
    (counted.count_total, tasks)
}

/// Compares a small and a large size of a kernel: for hundreds to tens of thousands of tasks more, only lists grow.
fn check(make: impl Fn(u64) -> Program, options: &Options) {
    let (small, large) = (make(1), make(if options.timing_only { 4 } else { 2 }));
    count(&small, options);
    let ((few, first), (many, second)) = (count(&small, options), count(&large, options));
    let (allocations, tasks) = (many.saturating_sub(few), second - first);
    assert!(tasks > 100, "{tasks} tasks");
    assert!(
        allocations < 120,
        "{allocations} more allocations for {tasks} more tasks ({few} for {first}, {many} for {second})"
    );
}

#[test]
fn no_task_allocates() {
    let product = |scale: u64| {
        let size = 128 * scale;
        let [m, n, k] = [size * 2, size, size];
        matmul(&Matmul {
            m,
            n,
            k,
            tile: [32, 32, 32],
            split_k: 1,
            cores: 1,
            dtype: ElementType::F16,
            slots: 2,
        })
    };
    let fused = |scale: u64| attention(&Attention { queries: 128 * scale, keys: 256, cores: 1 });
    let rows = |scale: u64| row_kernel(RowKernel::Softmax, 1024 * scale, 1);
    let micro = |scale: u64| mix(3840 * scale, 1);
    check(micro, &timing());
    for options in [timing(), Options::default()] {
        check(rows, &options);
        check(product, &options);
        check(fused, &options);
    }
}

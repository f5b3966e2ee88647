//! What holds for every kernel.

use proptest::prelude::*;
use trompe_npu::kernels::{Matmul, matmul, vector_add};
use trompe_npu::{Device, ElementType, Options, Profile, Program};

use crate::support::*;

fn kernels() -> impl Strategy<Value = Program> {
    let products = (1u64..4, 1u64..4, 1u64..5, 1u32..5, 1usize..3, 1u64..3).prop_map(
        |(m, n, k, cores, slots, split_k)| {
            matmul(&Matmul {
                m: m * 32,
                n: n * 48,
                k: k * 64 * split_k,
                tile: [32, 48, 64],
                split_k,
                cores,
                dtype: ElementType::F16,
                slots,
            })
        },
    );
    let sums = (1u64..5000, 1u64..8, 1u32..5).prop_map(|(n, tile, cores)| vector_add(n, tile * 64, cores));
    prop_oneof![products, sums]
}

fn inputs(program: &Program) -> Vec<(&str, trompe_npu::Input)> {
    let wanted = program.tensors.iter().filter(|tensor| tensor.role == trompe_npu::Role::Input);
    wanted
        .map(|tensor| {
            let values = noise(tensor.name.len() as u64, tensor.shape.iter().product::<u64>() as usize);
            let input = match tensor.dtype {
                ElementType::F16 => f16s(&tensor.shape, &values).0,
                _ => f32s(&tensor.shape, &values),
            };
            (tensor.name.as_str(), input)
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn threads_and_data_change_no_cycle_and_no_byte(program in kernels()) {
        let data = inputs(&program);
        let one = simulate(&program, &data, &Options::default()).unwrap();
        let many = simulate(&program, &data, &Options { threads: 3, ..Options::default() }).unwrap();
        prop_assert_eq!(&one.outputs, &many.outputs);
        prop_assert_eq!(one.makespan, many.makespan);
        prop_assert_eq!(one.makespan, simulate(&program, &[], &timing()).unwrap().makespan);
    }

    #[test]
    fn no_pipe_is_busy_longer_than_the_run_and_the_critical_path_fits(program in kernels()) {
        let outcome = simulate(&program, &[], &timing()).unwrap();
        for pipe in &outcome.pipes {
            let waiting: u64 = pipe.stalls.iter().map(|stall| stall.1).sum();
            prop_assert!(pipe.busy + waiting <= outcome.makespan);
        }
        let steps = &outcome.critical_path;
        prop_assert!(steps.windows(2).all(|pair| pair[0].end <= pair[1].start));
        prop_assert!(steps.iter().map(|step| step.end - step.start).sum::<u64>() <= outcome.makespan);
    }

    #[test]
    fn a_faster_memory_is_never_slower(program in kernels()) {
        let device = Device::named("ascend-950").unwrap();
        let slow = Profile::named("reference", &device).unwrap();
        let mut fast = slow.clone();
        for path in [&mut fast.paths.gm_to_l1, &mut fast.paths.gm_to_ub, &mut fast.paths.ub_to_gm] {
            path.bytes_per_cycle *= 2.0;
        }
        let makespan = |profile| {
            trompe_npu::run(&program, &device, profile, &std::collections::BTreeMap::new(), &timing()).unwrap().makespan
        };
        prop_assert!(makespan(&fast) <= makespan(&slow));
    }
}

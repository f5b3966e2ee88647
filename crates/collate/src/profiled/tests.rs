//! Kernels of real traces and what they come to.

use trompe_trace::descriptor::{Descriptor as D, Direction};

use super::*;

fn floats(shapes: &[&[u64]]) -> Vec<Value> {
    shapes.iter().enumerate().map(|(place, sizes)| tensor(sizes, "float", None, place)).collect()
}

fn described(name: &str, operators: &[(&str, Vec<Value>)], does_more: bool) -> Described {
    let operators: Vec<Operator> = operators
        .iter()
        .map(|(name, inputs)| Operator {
            name: (*name).to_owned(),
            inputs: inputs.clone(),
            outputs: Vec::new(),
            does_more,
        })
        .collect();
    describe(&Launched {
        name,
        grid: [64, 1, 1],
        block: [128, 1, 1],
        registers: 0,
        shared: 0,
        operators: &operators,
    })
}

#[test]
fn products_are_read_off_their_operator_and_their_letters() {
    let check = |name: &str, operator: &str, shapes: &[&[u64]], more: bool, expect: &str| {
        let found = described(name, &[(operator, floats(shapes))], more);
        let D::Gemm(g) = &found.descriptor else { panic!("{found:?}") };
        let letter = |flag| if flag { 't' } else { 'n' };
        let text = format!(
            "{}{} {}x{}x{}x{} {} {:?} {}",
            letter(g.transpose_a),
            letter(g.transpose_b),
            g.m,
            g.n,
            g.k,
            g.batch,
            g.compute,
            g.epilogue,
            g.accumulate
        );
        assert_eq!((text.as_str(), found.exact), (expect, true), "{name}");
    };
    let (mm, addmm) = ([&[32, 1000][..], &[1000, 2048]], [&[1000][..], &[32, 2048], &[2048, 1000]]);
    check("volta_sgemm_128x64_nn", "aten::mm", &mm, false, "nn 2048x32x1000x1 fp32 None false");
    check("volta_sgemm_32x128_tn", "aten::addmm", &addmm, true, "tn 1000x32x2048x1 fp32 None true");
    check("ampere_sgemm_32x128_tn", "aten::addmm", &addmm, false, "tn 1000x32x2048x1 fp32 Bias false");
    let cutlass = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_nt_align4>(cutlass_80_tensorop_s1688gemm_64x64_32x6_nt_align4::Params)";
    check(cutlass, "aten::mm", &mm, false, "nt 2048x32x1000x1 tf32 None false");
    let bmm = [&[8, 16, 32][..], &[8, 32, 64]];
    check(
        "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32",
        "aten::bmm",
        &bmm,
        false,
        "tn 64x16x32x8 tf32 None false",
    );
}

#[test]
fn convolutions_are_told_apart_by_operator_or_name() {
    let inputs = floats(&[&[32, 512, 7, 7], &[32, 2048, 7, 7], &[2048, 512, 1, 1]]);
    let check = |name: &str, operators: &[&str], expect: Option<Direction>| {
        let operators: Vec<_> = operators.iter().map(|operator| (*operator, inputs.clone())).collect();
        let found = described(name, &operators, false);
        let direction = if let D::Convolution(c) = &found.descriptor { Some(c.direction) } else { None };
        assert_eq!(direction, expect, "{name}");
    };
    let (old, new) = ("aten::cudnn_convolution_backward", "aten::convolution_backward");
    let weight = "aten::cudnn_convolution_backward_weight";
    check(
        "volta_scudnn_128x64_stridedB_splitK_xregs_large_nn_v1",
        &[weight, old],
        Some(Direction::WeightGradient),
    );
    check("void cudnn::detail::dgrad_engine<float, 512, 6>(int)", &[old], Some(Direction::Backward));
    let first = floats(&[&[32, 2048, 7, 7], &[32, 512, 7, 7], &[2048, 512, 1, 1]]);
    let found = described("sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32", &[(new, first)], false);
    let D::Convolution(c) = &found.descriptor else { panic!("{found:?}") };
    assert_eq!(
        (c.compute, c.output.as_slice(), c.stride.as_slice()),
        (DType::Tf32, &[7, 7][..], &[1, 1][..])
    );
}

#[test]
fn own_kernels_take_their_sizes_from_shapes() {
    let add = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)";
    let found = described(add, &[("aten::add", floats(&[&[1024, 768], &[1024, 768], &[]]))], false);
    let D::Elementwise(e) = &found.descriptor else { panic!("{found:?}") };
    assert_eq!((e.elements, e.work.bytes().0, found.exact), (1024 * 768, 3 * 4 * 1024 * 768, true));
    let norm =
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)";
    let found =
        described(norm, &[("aten::native_layer_norm", floats(&[&[64, 512], &[], &[512], &[512]]))], false);
    let D::Normalization(n) = &found.descriptor else { panic!("{found:?}") };
    assert_eq!((n.rows, n.cols, found.exact), (64, 512, true));
    // Without shapes nothing is claimed.
    assert!(!described(add, &[("aten::add", Vec::new())], false).exact);
    assert!(!described("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", &[], false).exact);
}

#[test]
fn names_agree_with_those_of_emulated_runs() {
    let mangled = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_";
    let plain = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int)";
    assert_eq!(short_name(mangled), short_name(plain));
}

//! Classification cases: a real kernel name, its parameters and its operator, and what they come to.

use trompe_base::DType::{Bf16, F32, I64};
use trompe_testkit::values::{encode, strided, tensor};
use trompe_trace::values::Value;

use super::{Kernel, describe};
use crate::kernel::{Name, Parameters, short};
use crate::memory::Live;
use crate::operator::{Context, Frame, FrameKind};

/// An operator: name, inputs, outputs.
type Operator<'o> = (&'o str, Vec<Value>, Vec<Value>);

/// Describes a launch of 108 × 256 threads and returns `short name | family | numbers`.
fn described(mangled: &str, parameters: &[&[u8]], operator: Option<&Operator<'_>>) -> String {
    let name = Name::parse(mangled);
    let sizes: Vec<u16> = parameters.iter().map(|p| p.len() as u16).collect();
    let values = parameters.concat();
    let (inputs, outputs) = operator.map(|(_, i, o)| (encode(i), encode(o))).unwrap_or_default();
    let frames: Vec<_> = operator
        .iter()
        .map(|(name, ..)| Frame {
            name,
            kind: FrameKind::Operator,
            parent: None,
            inputs: &inputs,
            outputs: &outputs,
            phase: trompe_trace::job::Phase::Forward,
            range: None,
            begin: 0,
        })
        .collect();
    let context = Context::new(&frames, (!frames.is_empty()).then_some(0));
    let kernel = Kernel {
        name: &name,
        parameters: Parameters::new(&sizes, &values),
        grid: [108, 1, 1],
        block: [256, 1, 1],
        shared: 0,
        registers: 32,
        from_module: false,
        context: &context,
        allocation: &Live::default(),
    };
    format!("{} | {}", short::short_name(&name), numbers(&describe(&kernel)))
}

/// The numbers of a descriptor that tests look at.
fn numbers(descriptor: &trompe_trace::descriptor::Descriptor) -> String {
    use trompe_trace::descriptor::Descriptor as D;
    let family = descriptor.family();
    let (sizes, work) = match descriptor {
        D::Elementwise(e) => {
            (format!("{} {}{}", e.elements, e.dtype, if e.vectorized { " vector" } else { "" }), e.work)
        }
        D::Reduction(r) => (format!("{} to {} {}", r.inputs, r.outputs, r.dtype), r.work),
        D::Optimizer(o) => (format!("{} in {} lists {}", o.elements, o.lists, o.dtype), o.work),
        D::Normalization(n) => {
            (format!("{:?} {:?} {}x{} {}", n.kind, n.direction, n.rows, n.cols, n.dtype), n.work)
        }
        D::Softmax(r) | D::CrossEntropy(r) => {
            (format!("{:?} {}x{} {}", r.direction, r.rows, r.cols, r.dtype), r.work)
        }
        D::Embedding(e) => {
            (format!("{:?} {}x{} of {} {}", e.direction, e.tokens, e.width, e.rows, e.dtype), e.work)
        }
        D::Indexing(i) => (format!("{} {}", i.elements, i.dtype), i.work),
        D::Sort(s) => (format!("{} {}", s.elements, s.dtype), s.work),
        D::Stencil(w) => (String::new(), *w),
        D::Attention(a) => {
            let shape = format!(
                "{:?} {}x{}/{}x{}x{}x{}",
                a.direction, a.batch, a.heads, a.kv_heads, a.seq_q, a.seq_kv, a.head_dim
            );
            (format!("{shape} {}{}", a.dtype, if a.causal { " causal" } else { "" }), Default::default())
        }
        D::Other(o) => (format!("{}x{}", o.blocks, o.threads), o.work),
        other => (format!("{other:?}"), Default::default()),
    };
    format!("{family} {sizes} r{} w{}", work.read.0, work.written.0)
}

fn check(mangled: &str, parameters: &[&[u8]], operator: Option<Operator<'_>>, expect: &str) {
    assert_eq!(described(mangled, parameters, operator.as_ref()), expect, "{}", Name::parse(mangled).full);
}

const ADD: &str = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EELb0EEEviT0_T1_";

#[test]
fn element_wise_kernels_take_their_bytes_from_shapes_or_from_types() {
    let n = 8192i32.to_le_bytes();
    let parameters: &[&[u8]] = &[&n, &[0; 4], &[0; 24]];
    check(
        ADD,
        parameters,
        None,
        "vectorized_elementwise<add, fp32> | elementwise 8192 fp32 vector r65536 w32768",
    );
    let full = tensor(F32, &[8, 1024], 64);
    let row = strided(F32, &[8, 1024], &[0, 1], 128);
    let out = tensor(F32, &[8, 1024], 256);
    let broadcast = ("aten::add", vec![full.clone(), row, Value::Int(1)], vec![out.clone()]);
    check(
        ADD,
        parameters,
        Some(broadcast),
        "vectorized_elementwise<add, fp32> | elementwise 8192 fp32 vector r36864 w32768",
    );
    let in_place = ("aten::add_", vec![full.clone(), out], vec![full]);
    check(
        ADD,
        parameters,
        Some(in_place),
        "vectorized_elementwise<add, fp32> | elementwise 8192 fp32 vector r65536 w32768",
    );
    let other_size = ("aten::mul", vec![tensor(Bf16, &[100], 64)], vec![tensor(Bf16, &[100], 128)]);
    check(
        ADD,
        parameters,
        Some(other_size),
        "vectorized_elementwise<add, fp32> | elementwise 8192 fp32 vector r65536 w32768",
    );
    let _ = I64;
}

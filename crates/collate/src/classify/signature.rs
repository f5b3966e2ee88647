//! The element types that a functor reads and writes, from its C++ type name.

use trompe_base::DType;

use crate::kernel::short::inner_arguments;
use crate::kernel::types;

/// Types of one element's operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signature {
    /// Operands read.
    pub inputs: Vec<DType>,
    /// Result.
    pub output: Option<DType>,
}

/// Reads the signature off a functor's type name, as far as it says.
///
/// Sources: `BinaryFunctor<A, B, R, F>`, `AUnaryFunctor` (first operand is a scalar) and `BUnaryFunctor` (second is)
/// in `ATen/native/cuda/Loops.cuh`; `FillFunctor<T>`; lambdas name their parameter types.
pub(crate) fn signature(functor: &str) -> Signature {
    let typed = |text: &str| types::exact(text);
    if let Some(arguments) = inner_arguments(functor, "FillFunctor") {
        return Signature { inputs: vec![], output: arguments.first().and_then(|t| typed(t)) };
    }
    for (wrapper, operands) in
        [("AUnaryFunctor", &[1usize][..]), ("BUnaryFunctor", &[0][..]), ("BinaryFunctor", &[0, 1][..])]
    {
        if let Some(arguments) = inner_arguments(functor, wrapper) {
            let inputs = operands.iter().filter_map(|i| arguments.get(*i).and_then(|t| typed(t))).collect();
            return Signature { inputs, output: arguments.get(2).and_then(|t| typed(t)) };
        }
    }
    // `converting_copy_kernel_cuda<source, destination>`.
    if let Some(arguments) = inner_arguments(functor, "converting_copy_kernel_cuda") {
        let mut types = arguments.iter().map(|t| typed(t));
        return Signature {
            inputs: types.next().flatten().into_iter().collect(),
            output: types.next().flatten(),
        };
    }
    if let Some(inputs) = lambda_parameters(functor) {
        let output = converted(functor).or_else(|| inputs.first().copied()).or_else(|| types::first(functor));
        return Signature { inputs, output };
    }
    Signature { inputs: vec![], output: types::first(functor) }
}

/// Parameter types of the last lambda in the name that takes element types.
fn lambda_parameters(functor: &str) -> Option<Vec<DType>> {
    functor.rmatch_indices("{lambda(").find_map(|(at, open)| {
        let rest = &functor[at + open.len()..];
        let list = rest.split(")#").next()?;
        let types: Option<Vec<_>> =
            crate::kernel::name::split_list(list).into_iter().map(types::exact).collect();
        types.filter(|types| !types.is_empty() && !rest.starts_with("int)"))
    })
}

/// The result type of the copy kernels that convert (`bfloat16_copy_kernel_cuda` and its like).
fn converted(functor: &str) -> Option<DType> {
    [
        ("bfloat16_copy_kernel_cuda", DType::Bf16),
        ("bfloat16tofloat32_copy_kernel_cuda", DType::F32),
        ("float16tofloat32_copy_kernel_cuda", DType::F32),
        ("float16_copy_kernel_cuda", DType::F16),
    ]
    .into_iter()
    .find(|(name, _)| functor.contains(name))
    .map(|(_, dtype)| dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(functor: &str, inputs: &[DType], output: Option<DType>) {
        let expect = Signature { inputs: inputs.to_vec(), output };
        assert_eq!(signature(functor), expect, "{functor}");
    }

    #[test]
    fn functors_name_their_operands() {
        use DType::{Bf16, Bool, F32};
        check("at::native::FillFunctor<float>", &[], Some(F32));
        check("at::native::CUDAFunctor_add<c10::BFloat16>", &[], Some(Bf16));
        check("at::native::BinaryFunctor<float, float, bool, X<float> >", &[F32, F32], Some(Bool));
        check("at::native::AUnaryFunctor<float, c10::BFloat16, float, X>", &[Bf16], Some(F32));
        check("at::native::BUnaryFunctor<float, c10::BFloat16, bool, X>", &[F32], Some(Bool));
        check(
            "at::f(at::T&)::{lambda()#1}::operator()() const::{lambda(float, bool)#1}",
            &[F32, Bool],
            Some(F32),
        );
        check("at::native::bfloat16_copy_kernel_cuda(at::T&)::{lambda(float)#1}", &[F32], Some(Bf16));
    }
}

//! Kernel names for people: what it does and on which type, without the C++ around it.
//!
//! `void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(…)::{lambda(c10::BFloat16)#1},
//! std::array<char*, 2ul> >(…)` becomes `vectorized_elementwise<gelu, bf16>`.

use super::name::{Name, last_component, split_arguments, split_list};
use super::types;

/// Functors that only wrap another one: the interesting name is their last template argument.
const WRAPPERS: [&str; 13] = [
    "AUnaryFunctor",
    "BUnaryFunctor",
    "BinaryFunctor",
    "CompositeFunctor",
    "gpu_kernel_impl",
    "gpu_kernel_impl_nocast",
    "gpu_kernel_with_index",
    "gpu_index_kernel",
    "func_wrapper_t",
    "ReduceOp",
    "OpMathAUnaryFunctor",
    "opmath_gpu_kernel_with_scalars",
    "unary_wrapper",
];

/// Names that every CUTLASS kernel has.
const CUTLASS: [&str; 3] = ["Kernel", "Kernel2", "device_kernel"];

/// The short name of a kernel.
pub(crate) fn short_name(name: &Name) -> String {
    let base = if name.full.contains("cutlass") && CUTLASS.contains(&name.base.as_str()) {
        "cutlass"
    } else {
        strip(&name.base)
    };
    let functor = functor_argument(name);
    let mut parts = Vec::new();
    if let Some(word) = functor.and_then(|argument| innermost(argument, 0)).filter(|word| !word.is_empty()) {
        parts.push(readable(&word));
    }
    let arguments = functor.into_iter().chain(name.arguments.iter().map(String::as_str));
    let mut elements = arguments.filter_map(element);
    parts.extend(elements.next());
    if parts.is_empty() { base.to_owned() } else { format!("{base}<{}>", parts.join(", ")) }
}

/// The element type that a template argument mentions; `2B` for one of two bytes that is moved without a look.
fn element(argument: &str) -> Option<String> {
    if let Some(size) = types::opaque(argument) {
        return Some(format!("{size}B"));
    }
    types::first(argument).map(|dtype| dtype.name().to_owned())
}

/// The template argument that says what the kernel does.
fn functor_argument(name: &Name) -> Option<&str> {
    const MARKS: [&str; 6] = ["Functor", "lambda", "Ops<", "_wrapper_t", "Epilogue", "Kernel"];
    name.arguments
        .iter()
        .map(String::as_str)
        .find(|argument| MARKS.iter().any(|mark| argument.contains(mark)))
}

/// Wrappers nest at most this deep.
const MAX_DEPTH: u32 = 8;

/// The identifier that says what a functor type does.
fn innermost(text: &str, depth: u32) -> Option<String> {
    if depth > MAX_DEPTH {
        return None;
    }
    // A lambda is named after the function that defines it: take the first component that is followed by `(`.
    if let Some(function) = enclosing_function(text) {
        let (path, arguments) = split_arguments(function);
        let word = last_component(path);
        if word == "operator" {
            // The call operator of a functor: the functor's own name counts.
            let (path, _) = split_arguments(path[..path.len() - word.len()].trim_end_matches(':'));
            return Some(last_component(path).to_owned());
        }
        if is_wrapper(word) {
            return arguments.last().and_then(|inner| innermost(inner, depth + 1));
        }
        return Some(word.to_owned());
    }
    let (path, arguments) = split_arguments(text);
    let word = last_component(path);
    if is_wrapper(word) {
        let inner = arguments.iter().rev().find(|a| {
            a.contains("Functor") || a.contains("Ops") || a.contains("lambda") || a.contains("wrapper")
        });
        if let Some(found) = inner.and_then(|inner| innermost(inner, depth + 1)) {
            return Some(found);
        }
    }
    Some(word.to_owned())
}

fn is_wrapper(word: &str) -> bool {
    WRAPPERS.contains(&word)
}

/// `a::b<T>` of `a::b<T>(x, y)::{lambda(…)#1}::operator()() const`.
fn enclosing_function(text: &str) -> Option<&str> {
    if !text.contains("{lambda") && !text.contains("'lambda") {
        return None;
    }
    let mut depth = 0i32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' if depth == 0 && !text[at..].starts_with("(anonymous") => return Some(&text[..at]),
            b'(' | b'<' | b'{' | b'[' => depth += 1,
            b'>' if text[..at].ends_with('-') => {}
            b')' | b'>' | b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// `GeluCUDAKernelImpl` → `gelu`, `direct_copy_kernel_cuda` → `copy`, `CUDAFunctor_add` → `add`.
fn readable(word: &str) -> String {
    let mut word = word;
    for start in ["CUDAFunctorOnSelf_", "CUDAFunctorOnOther_", "CUDAFunctor_", "direct_", "_cuda_"] {
        word = word.trim_start_matches(start);
    }
    for _ in 0..4 {
        for end in [
            "_kernel_cuda",
            "_kernel_impl",
            "CUDAKernelImpl",
            "KernelImpl",
            "_cuda",
            "_kernel",
            "_impl",
            "Functor",
            "_functor",
            "Kernel",
            "Ops",
            "Epilogue",
            "_out",
        ] {
            word = word.strip_suffix(end).filter(|rest| !rest.is_empty()).unwrap_or(word);
        }
    }
    snake(word)
}

/// `LogSoftMaxForward` → `log_soft_max_forward`; names without capitals stay.
fn snake(word: &str) -> String {
    let mut out = String::with_capacity(word.len() + 4);
    let mut lower_before = false;
    for c in word.chars() {
        if c.is_ascii_uppercase() && lower_before {
            out.push('_');
        }
        lower_before = c.is_ascii_lowercase() || c.is_ascii_digit();
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Takes the words off a base name that every kernel has.
fn strip(base: &str) -> &str {
    let base =
        base.strip_suffix("CUDAKernelTemplate").or_else(|| base.strip_suffix("CUDAKernel")).unwrap_or(base);
    let base = base.strip_suffix("_cuda_kernel").or_else(|| base.strip_suffix("_kernel")).unwrap_or(base);
    let base = base.strip_suffix("Kernel").filter(|rest| !rest.is_empty()).unwrap_or(base);
    base.trim_start_matches('_')
}

/// The template arguments of `wrapper` inside of a type name.
pub(crate) fn inner_arguments<'a>(text: &'a str, wrapper: &str) -> Option<Vec<&'a str>> {
    let start = text.find(wrapper)? + wrapper.len();
    let rest = text[start..].strip_prefix('<')?;
    let mut depth = 1i32;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            b'>' if rest[..at].ends_with('-') => {}
            b'>' | b')' | b'}' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(split_list(&rest[..at]));
        }
    }
    None
}

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

/// The short name of a kernel.
pub(crate) fn short_name(name: &Name) -> String {
    if name.arguments.is_empty() {
        return strip(&name.base).to_owned();
    }
    let base = strip(&name.base);
    let mut parts = Vec::new();
    if let Some(functor) = functor(name) {
        parts.push(functor);
    }
    if let Some(dtype) = name.arguments.iter().find_map(|a| types::first(a)) {
        parts.push(dtype.name().to_owned());
    }
    if parts.is_empty() { base.to_owned() } else { format!("{base}<{}>", parts.join(", ")) }
}

/// What the functor among the template arguments does, in lower case, for example `gelu`.
pub(crate) fn functor(name: &Name) -> Option<String> {
    name.arguments.iter().find_map(|argument| {
        let interesting = argument.contains("Functor")
            || argument.contains("lambda")
            || argument.contains("Ops<")
            || argument.contains("_wrapper_t")
            || argument.contains("Epilogue")
            || argument.contains("Kernel");
        if !interesting {
            return None;
        }
        let word = innermost(argument, 0)?;
        (!word.is_empty()).then(|| readable(&word))
    })
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
    let mut word = word.trim_start_matches("CUDAFunctor_").trim_start_matches("direct_");
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
    let base = base.strip_suffix("Kernel").unwrap_or(base);
    base.trim_start_matches('_')
}

/// The functor arguments of a name as a list, for those who look deeper than [`functor`].
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

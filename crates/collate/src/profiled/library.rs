//! Calls of cuBLAS and cuDNN from the operator that made them and the letters in their kernels' names.
//!
//! Products: `_tn`, `_nn`, `_nt` in a kernel's name (`ampere_sgemm_128x64_tn`, `sm80_xmma_gemm_…_tn_n_…`,
//! `nvjet_tst_…_TNT`) are BLAS's own transpositions, and `tf32` or `s1688` on fp32 operands says that TF32 was computed in.
//! Convolutions: one operator computes one or more of forward, gradient of the input and of the weight; `dgrad`, `bgrad`,
//! `wgrad`, `bwd_filter` and the like in the names tell which ([`part`]). Strides and paddings that were not recorded
//! follow from the sizes where only one plausible pair does ("same" padding).

use trompe_base::DType;
use trompe_trace::descriptor::{Convolution, Descriptor, Direction, Epilogue, Gemm, ImageLayout};
use trompe_trace::values::{Tensor, Value};

use super::{Launched, Operator};
use crate::classify::{Library, library};
use crate::kernel::Name;
use crate::operator::{Call, Context, product};

/// What a kernel below a library's operator belongs to: several kernels of one part are one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A product, a forward convolution, a normalisation: everything that the operator does.
    Whole,
    /// Gradient of a convolution's input.
    InputGradient,
    /// Gradient of a convolution's weight.
    WeightGradient,
    /// A helper (change of layout, scaling) of the next kernel that is none.
    Helper,
}

/// Products and the place of their first matrix.
const PRODUCTS: [(&str, usize); 6] = [
    ("aten::mm", 0),
    ("aten::bmm", 0),
    ("aten::addmm", 1),
    ("aten::baddbmm", 1),
    ("aten::_addmm_activation", 1),
    ("aten::_scaled_mm", 0),
];

/// Convolutions: name, direction when there is only one, places of input, weight and gradient of the output, place of
/// stride, padding and dilation.
struct Site {
    name: &'static str,
    direction: Option<Direction>,
    input: usize,
    weight: usize,
    gradient: Option<usize>,
    stride: usize,
    padding: usize,
    dilation: usize,
    groups: usize,
}

const CONVOLUTIONS: [Site; 4] = [
    Site {
        name: "aten::convolution_backward",
        direction: None,
        input: 1,
        weight: 2,
        gradient: Some(0),
        stride: 4,
        padding: 5,
        dilation: 6,
        groups: 9,
    },
    Site {
        name: "aten::cudnn_convolution_backward",
        direction: None,
        input: 0,
        weight: 2,
        gradient: Some(1),
        stride: 4,
        padding: 3,
        dilation: 5,
        groups: 6,
    },
    Site {
        name: "aten::cudnn_convolution",
        direction: Some(Direction::Forward),
        input: 0,
        weight: 1,
        gradient: None,
        stride: 3,
        padding: 2,
        dilation: 4,
        groups: 5,
    },
    Site {
        name: "aten::convolution",
        direction: Some(Direction::Forward),
        input: 0,
        weight: 1,
        gradient: None,
        stride: 3,
        padding: 4,
        dilation: 5,
        groups: 8,
    },
];

/// Batch normalisations by cuDNN and the call that they make.
const NORMS: [(&str, &str); 2] = [
    ("aten::cudnn_batch_norm", "cudnnBatchNormalizationForwardTrainingEx"),
    ("aten::cudnn_batch_norm_backward", "cudnnBatchNormalizationBackwardEx"),
];

/// The place, among the operators from the innermost outwards, of the call of a library that `launched` is part of, and
/// which part; `None` for a kernel of the framework's own.
#[must_use]
pub fn part(launched: &Launched<'_>) -> Option<(usize, Part)> {
    let name = launched.name;
    // Copies of operands into a layout that the library wants are kernels of their own.
    if name.contains("at::native::") {
        return None;
    }
    let near =
        |names: &dyn Fn(&str) -> bool| launched.operators.iter().position(|operator| names(&operator.name));
    if let Some(at) = near(&|name| CONVOLUTIONS.iter().any(|site| site.name == name)) {
        // The input gradient of a convolution without a library is a product.
        let site = CONVOLUTIONS.iter().find(|site| site.name == launched.operators[at].name)?;
        return Some((at, site.direction.map_or_else(|| gradient_part(launched), |_| Part::Whole)));
    }
    // The innermost operator only: a product inside of a fused call belongs to that.
    let innermost = launched.operators.first()?;
    let known = PRODUCTS.iter().any(|(own, _)| *own == innermost.name)
        || NORMS.iter().any(|(own, _)| *own == innermost.name);
    known.then_some((0, Part::Whole))
}

/// The family of a call of a library by its operator's name; for calls whose shapes were not recorded.
#[must_use]
pub fn family(operator: &str, part: Part) -> &'static str {
    match part {
        _ if PRODUCTS.iter().any(|(own, _)| *own == operator) => "gemm",
        _ if NORMS.iter().any(|(own, _)| *own == operator) => "normalization",
        Part::InputGradient => "convolution backward",
        Part::WeightGradient => "convolution weight_gradient",
        Part::Whole | Part::Helper => "convolution forward",
    }
}

/// The input, weight and result of a gradient's convolution, by their places among its arguments.
#[must_use]
pub fn gradient_of(operator: &str) -> Option<[usize; 3]> {
    let site = CONVOLUTIONS.iter().find(|site| site.name == operator)?;
    Some([site.input, site.weight, site.gradient?])
}

fn gradient_part(launched: &Launched<'_>) -> Part {
    // Older PyTorch has an operator for each.
    let inside = |name: &str| launched.operators.iter().any(|operator| operator.name.ends_with(name));
    if inside("convolution_backward_weight") {
        return Part::WeightGradient;
    }
    if inside("convolution_backward_input") {
        return Part::InputGradient;
    }
    let name = launched.name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["wgrad", "bwd_filter", "backward_filter", "filter_grad", "filtergrad"]) {
        Part::WeightGradient
    } else if has(&["dgrad", "bwd_data", "backward_data", "bgrad", "strided_b", "stridedb"]) {
        Part::InputGradient
    } else {
        Part::Helper
    }
}

/// The call of a library that `launched` is part of.
pub(super) fn describe(launched: &Launched<'_>, name: &Name) -> Option<Descriptor> {
    let (at, part) = part(launched)?;
    let operator = &launched.operators[at];
    if let Some((_, first)) = PRODUCTS.iter().find(|(own, _)| *own == operator.name) {
        return gemm(operator, *first, name).map(Descriptor::Gemm);
    }
    if let Some(site) = CONVOLUTIONS.iter().find(|site| site.name == operator.name) {
        let direction = match part {
            Part::WeightGradient => Direction::WeightGradient,
            Part::InputGradient => Direction::Backward,
            Part::Whole => Direction::Forward,
            Part::Helper => return None,
        };
        return convolution(operator, site, direction, name).map(Descriptor::Convolution);
    }
    let (_, symbol) = NORMS.iter().find(|(own, _)| *own == operator.name)?;
    let calls = [Call { name: &operator.name, inputs: operator.inputs.clone(), outputs: Vec::new() }];
    let described = library(Library { symbol, read: 0, written: 0 }, &Context::of_calls(&calls));
    matches!(described, Descriptor::Normalization(_)).then_some(described)
}

fn tensor(operator: &Operator, at: usize) -> Option<&Tensor> {
    match operator.inputs.get(at) {
        Some(Value::Tensor(tensor)) => Some(tensor),
        _ => None,
    }
}

fn gemm(operator: &Operator, first: usize, name: &Name) -> Option<Gemm> {
    let (left, right) = (tensor(operator, first)?, tensor(operator, first + 1)?);
    let (rows, inner, cols, batch) = match (left.sizes.as_slice(), right.sizes.as_slice()) {
        (&[rows, inner], &[other, cols]) if inner == other => (rows, inner, cols, 1),
        (&[batch, rows, inner], &[_, other, cols]) if inner == other => (rows, inner, cols, batch),
        _ => return None,
    };
    product(&[rows, inner, cols.max(1), batch])?;
    let (a, b) = (right.dtype?, left.dtype?);
    // BLAS is column-major: its first matrix is the right one, which is not transposed when its rows are dense.
    let (transpose_a, transpose_b) =
        letters(&name.full).unwrap_or((is_transposed(right), is_transposed(left)));
    let full = name.full.to_ascii_lowercase();
    let tf32 =
        a == DType::F32 && (full.contains("tf32") || full.contains("s1688") || full.contains("tensorop_s"));
    let bias = first == 1 && tensor(operator, 0).is_some_and(|bias| bias.sizes.len() == 1);
    let (epilogue, accumulate) = match operator.name.as_str() {
        "aten::_addmm_activation" => (Epilogue::Relu, false),
        "aten::addmm" if bias && !operator.does_more => (Epilogue::Bias, false),
        "aten::addmm" | "aten::baddbmm" => (Epilogue::None, true),
        _ => (Epilogue::None, false),
    };
    let result = if a.size() == 1 { DType::Bf16 } else { a };
    Some(Gemm {
        m: cols,
        n: rows,
        k: inner,
        batch,
        transpose_a,
        transpose_b,
        a,
        b,
        c: result,
        compute: if tf32 { DType::Tf32 } else { DType::F32 },
        epilogue,
        accumulate,
        leading: [if transpose_a { inner } else { cols }, if transpose_b { rows } else { inner }, cols],
        strides: if batch > 1 { [cols * inner, rows * inner, cols * rows] } else { [0; 3] },
    })
}

fn is_transposed(tensor: &Tensor) -> bool {
    tensor.strides.last().is_some_and(|stride| *stride != 1) && tensor.sizes.last() != Some(&1)
}

/// BLAS's transpositions of the first and second matrix, as kernels of cuBLAS and CUTLASS are named.
fn letters(name: &str) -> Option<(bool, bool)> {
    let word = |word: &str| -> Option<(bool, bool)> {
        let plain = word.to_ascii_lowercase();
        // `nvjet` adds the result's letter.
        let two = if plain.len() == 3 && name.contains("nvjet") { &plain[..2] } else { plain.as_str() };
        match two {
            "nn" => Some((false, false)),
            "tn" => Some((true, false)),
            "nt" => Some((false, true)),
            "tt" => Some((true, true)),
            _ => None,
        }
    };
    name.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(word).next_back()
}

fn convolution(operator: &Operator, site: &Site, direction: Direction, name: &Name) -> Option<Convolution> {
    let (x, w) = (tensor(operator, site.input)?, tensor(operator, site.weight)?);
    let (&[batch, in_channels], input) = x.sizes.split_first_chunk::<2>()?;
    let (&[out_channels, per_group], kernel) = w.sizes.split_first_chunk::<2>()?;
    if input.len() != kernel.len() || input.is_empty() || per_group == 0 {
        return None;
    }
    let dims = input.len();
    let stated = |at: usize| numbers(operator.inputs.get(at)?, dims);
    let result = || match operator.outputs.first() {
        Some(Value::Tensor(result)) => Some(result),
        _ => None,
    };
    let y = site.gradient.map_or_else(result, |at| tensor(operator, at)).and_then(|y| y.sizes.get(2..));
    let dilation = stated(site.dilation).unwrap_or_else(|| vec![1; dims]);
    let (stride, padding) = match (stated(site.stride), stated(site.padding)) {
        (Some(stride), Some(padding)) => (stride, padding),
        // What "same" padding and the result's size, where it is known, lead to.
        _ => {
            let padding: Vec<u64> = kernel.iter().map(|k| (k - k.min(&1)) / 2).collect();
            let y = y?;
            let stride: Option<Vec<u64>> = (0..dims)
                .map(|at| {
                    (1..=8).find(|s| {
                        (input[at] + 2 * padding[at]).checked_sub(kernel[at]).map(|r| r / s + 1)
                            == Some(y[at])
                    })
                })
                .collect();
            (stride?, padding)
        }
    };
    let output = match y {
        Some(y) => y.to_vec(),
        None => (0..dims)
            .map(|at| {
                let reach = dilation[at] * kernel[at].checked_sub(1)? + 1;
                Some((input[at] + 2 * padding[at]).checked_sub(reach)? / stride[at].max(1) + 1)
            })
            .collect::<Option<Vec<u64>>>()?,
    };
    let dtype = x.dtype?;
    let full = name.full.to_ascii_lowercase();
    let channels_last = x.channels_last || x.strides.get(1) == Some(&1) && in_channels > 1 && !x.contiguous;
    let groups = match operator.inputs.get(site.groups) {
        Some(Value::Int(groups)) => u64::try_from(*groups).ok()?,
        _ => in_channels / per_group,
    };
    Some(Convolution {
        direction,
        batch,
        in_channels,
        out_channels,
        groups,
        input: input.to_vec(),
        output,
        kernel: kernel.to_vec(),
        stride,
        padding,
        dilation,
        dtype,
        compute: if dtype == DType::F32 && full.contains("tf32") { DType::Tf32 } else { DType::F32 },
        layout: if channels_last { ImageLayout::ChannelsLast } else { ImageLayout::ChannelsFirst },
    })
}

/// `dims` positive integers of a list.
fn numbers(value: &Value, dims: usize) -> Option<Vec<u64>> {
    let Value::List(list) = value else { return None };
    let numbers: Option<Vec<u64>> = list
        .iter()
        .map(|value| if let Value::Int(n) = value { u64::try_from(*n).ok() } else { None })
        .collect();
    numbers.filter(|numbers| numbers.len() == dims)
}

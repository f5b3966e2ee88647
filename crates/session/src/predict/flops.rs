//! Floating-point work of a step against the device's peak.

use std::collections::BTreeMap;

use trompe_base::{DType, Flops};
use trompe_hardware::{DeviceSheet, Provenance};
use trompe_results::FlopsUse;
use trompe_trace::descriptor::Descriptor;
use trompe_trace::job::{Action, Phase, RankTemplate};

use super::place;

/// Matrix work of the events in `range` of a template, by the element type it is done in.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Work {
    by_dtype: BTreeMap<DType, u64>,
    /// Work that the model needs: recomputation is not counted.
    model: Flops,
    /// Work that is executed.
    hardware: Flops,
}

impl Work {
    /// The work of one of `steps` steps, rounded down.
    pub(super) fn per_step(mut self, steps: usize) -> Self {
        let steps = steps.max(1) as u64;
        self.model.0 /= steps;
        self.hardware.0 /= steps;
        self.by_dtype.values_mut().for_each(|flops| *flops /= steps);
        self
    }
}

/// Sums up a range of events.
pub(super) fn work(template: &RankTemplate, range: std::ops::Range<usize>) -> Work {
    let mut work = Work::default();
    for event in &template.events[range] {
        let recomputed = template.sites.get(event.site as usize).is_some_and(|s| s.phase == Phase::Recompute);
        let rows: &[u32] = match &event.action {
            Action::Enqueue { operation, .. } => std::slice::from_ref(operation),
            Action::Graph { operations, .. } => operations,
            _ => &[],
        };
        for row in rows {
            let Some(operation) = template.operations.get(*row as usize) else { continue };
            let flops = operation.descriptor.matmul_flops();
            if flops == Flops::ZERO {
                continue;
            }
            work.hardware += flops;
            if !recomputed {
                work.model += flops;
            }
            if let Some(dtype) = dtype(&operation.descriptor) {
                *work.by_dtype.entry(dtype).or_default() += flops.0;
            }
        }
    }
    work
}

/// The type in which a matrix operation runs on the device.
fn dtype(descriptor: &Descriptor) -> Option<DType> {
    let of = |operand: DType, compute: DType| if compute == DType::Tf32 { DType::Tf32 } else { operand };
    match descriptor {
        Descriptor::Gemm(gemm) => Some(of(gemm.a, gemm.compute)),
        Descriptor::Convolution(convolution) => Some(of(convolution.dtype, convolution.compute)),
        Descriptor::Attention(attention) => Some(attention.dtype),
        Descriptor::Rnn(rnn) => Some(rnn.dtype),
        Descriptor::NpuKernel(kernel) => Some(kernel.dtype),
        _ => None,
    }
}

/// The work against the peak of the type that most of it is done in; `None` without matrix work.
pub(super) fn usage(
    work: &Work,
    step_seconds: f64,
    device: &DeviceSheet,
    provenance: &Provenance,
) -> Option<FlopsUse> {
    // The last of equal maxima would depend on the order of types: the first is taken.
    let (&dtype, _) = work.by_dtype.iter().rev().max_by_key(|(_, flops)| **flops)?;
    let peak = device.matrix_peak(dtype).0;
    let share = |flops: Flops| if step_seconds > 0.0 { flops.as_f64() / (step_seconds * peak) } else { 0.0 };
    Some(FlopsUse {
        model_flops: work.model.as_f64(),
        hardware_flops: work.hardware.as_f64(),
        mfu: share(work.model),
        hfu: share(work.hardware),
        peak_flops_per_second: peak,
        peak_dtype: Some(dtype),
        peak_source: format!(
            "dense {dtype} peak of {}: {}",
            device.marketing_name,
            place::source(provenance, &peak_path(device, dtype))
        ),
        found_by: "shapes of the recorded matrix products, convolutions and attention calls".to_owned(),
    })
}

/// The sheet's field that [`DeviceSheet::matrix_peak`] takes for `dtype`.
fn peak_path(device: &DeviceSheet, dtype: DType) -> String {
    let tensor = &device.peaks.tensor;
    let (name, on_tensor) = match dtype {
        DType::F64 | DType::C128 => ("fp64", tensor.fp64.is_some()),
        DType::Tf32 => ("tf32", tensor.tf32.is_some()),
        DType::F16 => ("fp16", tensor.fp16.is_some()),
        DType::Bf16 => ("bf16", tensor.bf16.is_some()),
        DType::F8E4M3 | DType::F8E5M2 if tensor.fp8.is_some() => ("fp8", true),
        DType::F8E4M3 | DType::F8E5M2 => ("bf16", tensor.bf16.is_some()),
        DType::I8 | DType::U8 if tensor.int8.is_some() => ("int8", true),
        _ => ("fp32", false),
    };
    match (on_tensor, name) {
        (true, name) => format!("peaks.tensor.{name}"),
        (false, "fp64") => "peaks.vector.fp64".to_owned(),
        (false, _) => "peaks.vector.fp32".to_owned(),
    }
}

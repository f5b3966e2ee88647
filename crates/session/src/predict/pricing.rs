//! Prices for every distinct operation of a job, and how each is known.

use trompe_base::DType;
use trompe_cluster::{Price, Prices};
use trompe_estimate::{Basis, Estimate};
use trompe_hardware::DeviceSheet;
use trompe_results::{Bound, Method};
use trompe_trace::descriptor::Descriptor;
use trompe_trace::job::{JobTrace, Operation};

use crate::estimators::KernelPricing;

/// One operation with its price.
#[derive(Clone, Debug)]
pub(super) struct Priced {
    pub(super) price: Price,
    pub(super) method: Method,
    pub(super) bound: Option<Bound>,
    /// Floating-point operations, where known.
    pub(super) flops: Option<f64>,
    /// Ideal bytes to and from device memory, where known.
    pub(super) bytes: Option<f64>,
    /// Share of the highest clock that the price is for.
    pub(super) clock: f64,
    /// What the estimator had to assume.
    pub(super) note: Option<String>,
}

/// Prices of all operations by template, in the order of its operations.
pub(super) fn price(job: &JobTrace, device: &DeviceSheet, pricing: &KernelPricing<'_>) -> Vec<Vec<Priced>> {
    let all: Vec<&Descriptor> =
        job.templates.iter().flat_map(|t| t.operations.iter().map(|o| &o.descriptor)).collect();
    pricing.estimator.prepare(&all, device);
    let placed = pricing.oracle.map(|oracle| oracle.place(job));
    let one = |template: usize, row: usize, operation: &Operation| {
        let descriptor = &operation.descriptor;
        let place = placed.as_ref().and_then(|placed| placed[template].get(&(row as u32)));
        if let Some(measured) = pricing.oracle.and_then(|oracle| oracle.estimate(operation, place)) {
            return priced(descriptor, device, &measured);
        }
        if let Some(measured) = pricing.calibration.and_then(|own| own.estimate(operation, device)) {
            return priced(descriptor, device, &measured);
        }
        let row = priced(descriptor, device, &pricing.estimator.estimate(descriptor, device));
        if pricing.clock >= 1.0 || row.method == Method::Measured {
            return row;
        }
        let clock = sustained(pricing.clock, utilisation(descriptor, device, &row));
        if clock >= 1.0 {
            return row;
        }
        let slower = |time: trompe_base::Duration| time.scale(1.0 / clock);
        let price =
            Price { time: slower(row.price.time), low: slower(row.price.low), high: slower(row.price.high) };
        let note = format!("slowed to the sustained clock, {:.0} % of the highest", clock * 100.0);
        Priced { price, clock, note: row.note.clone().or(Some(note)), ..row }
    };
    let templates = job.templates.iter().enumerate();
    let rows = |(number, template): (usize, &trompe_trace::job::RankTemplate)| {
        template.operations.iter().enumerate().map(|(row, operation)| one(number, row, operation)).collect()
    };
    templates.map(rows).collect()
}

/// Shares of the peak between which a kernel comes to draw so much power that clocks fall.
const DRAWS: [f64; 2] = [0.4, 0.6];

/// The share of the highest clock at which a kernel runs that reaches `utilisation` of the peak, where `clock` is what
/// large products sustain.
///
/// A GPU lowers its clock when its power limit is reached, and only arithmetic near the peak draws so much: kernels that
/// wait for memory, for softmax between two products or for their own launch keep the highest clock.
fn sustained(clock: f64, utilisation: f64) -> f64 {
    let [from, to] = DRAWS;
    1.0 - (1.0 - clock) * ((utilisation - from) / (to - from)).clamp(0.0, 1.0)
}

/// Arithmetic of a kernel in its predicted time, as a share of the device's peak.
fn utilisation(descriptor: &Descriptor, device: &DeviceSheet, row: &Priced) -> f64 {
    if row.bound != Some(Bound::Compute) {
        return 0.0; // memory has a clock of its own
    }
    row.flops.unwrap_or(0.0) / (peak(descriptor, device) * row.price.time.as_secs_f64())
}

/// The same for the replay, which only wants times.
pub(super) fn prices(priced: &[Vec<Priced>]) -> Prices {
    Prices { templates: priced.iter().map(|rows| rows.iter().map(|row| row.price).collect()).collect() }
}

fn priced(descriptor: &Descriptor, device: &DeviceSheet, estimate: &Estimate) -> Priced {
    let work = descriptor.work();
    let flops = Some(work.flops.as_f64()).filter(|flops| *flops > 0.0);
    let bytes = Some(work.bytes().as_f64()).filter(|bytes| *bytes > 0.0);
    let method = match estimate.basis {
        Basis::Measured => Method::Measured,
        Basis::Learned => Method::Learned,
        Basis::Simulated => Method::Simulated,
        Basis::Fallback => Method::Fallback,
        Basis::Fitted | Basis::Assumed => Method::Physics,
    };
    Priced {
        price: Price { time: estimate.time, low: estimate.low, high: estimate.high },
        method,
        bound: bound(descriptor, device, flops, bytes, estimate.time.as_secs_f64()),
        flops,
        bytes,
        clock: 1.0,
        note: estimate.note.as_ref().map(|note| note.clone().into_owned()),
    }
}

/// What limits an operation: the longer of its arithmetic and its traffic at the device's peaks, unless it takes several
/// times as long as both, which leaves the fixed cost of running at all.
fn bound(
    descriptor: &Descriptor,
    device: &DeviceSheet,
    flops: Option<f64>,
    bytes: Option<f64>,
    seconds: f64,
) -> Option<Bound> {
    const FIXED: f64 = 4.0;
    if matches!(descriptor, Descriptor::Copy(_)) {
        return None;
    }
    let arithmetic = flops.unwrap_or(0.0) / peak(descriptor, device);
    let traffic = bytes.unwrap_or(0.0) / device.memory.bandwidth.0;
    let ideal = arithmetic.max(traffic);
    if ideal <= 0.0 {
        return None;
    }
    Some(if seconds > FIXED * ideal && seconds < 20e-6 {
        Bound::Launch
    } else if arithmetic > traffic {
        Bound::Compute
    } else {
        Bound::Memory
    })
}

/// Floating-point operations per second at the device's peak, of the units that the operation uses.
fn peak(descriptor: &Descriptor, device: &DeviceSheet) -> f64 {
    let (matrix, dtype) = match descriptor {
        Descriptor::Gemm(gemm) if gemm.compute == DType::Tf32 => (true, DType::Tf32),
        Descriptor::Gemm(gemm) => (true, gemm.a),
        Descriptor::Convolution(convolution) if convolution.compute == DType::Tf32 => (true, DType::Tf32),
        Descriptor::Convolution(convolution) => (true, convolution.dtype),
        Descriptor::Attention(attention) => (true, attention.dtype),
        Descriptor::Rnn(rnn) => (true, rnn.dtype),
        Descriptor::NpuKernel(kernel) => (kernel.work.flops.0 > 0, kernel.dtype),
        _ => (false, DType::F32),
    };
    if matrix { device.matrix_peak(dtype).0 } else { device.vector_peak(dtype).0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kernels_near_the_peak_are_slowed() {
        let check = |utilisation: f64, expect: f64| {
            let clock = sustained(0.8, utilisation);
            assert!((clock - expect).abs() < 1e-12, "{utilisation}: {clock}");
        };
        check(0.0, 1.0);
        check(0.4, 1.0);
        check(0.5, 0.9);
        check(0.6, 0.8);
        check(0.95, 0.8);
    }
}

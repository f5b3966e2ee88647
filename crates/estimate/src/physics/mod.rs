//! Models bounded by physics, one file per group of families.
//!
//! All share one shape: a floor (the shortest kernel that a device generation runs) plus the larger of the time of
//! the arithmetic and the time of the memory traffic, each at a sustained rate. What is sustained is data
//! ([`constants`]).

mod attention;
mod compiled;
mod constants;
mod convolution;
mod gemm;
mod streaming;
mod transfer;
mod unknown;

use trompe_hardware::{Architecture, DeviceSheet};
use trompe_trace::descriptor::{Descriptor, Gemm};

use crate::{Estimate, KernelEstimator};
use constants::{Constants, Generations};
pub(crate) use gemm::{Plan, multiplied_as};

/// The physics-bounded estimator.
#[derive(Clone, Debug)]
pub struct Physics {
    generations: Generations,
}

/// One question: the device and the constants of its generation.
#[derive(Clone, Copy)]
struct Bench<'a> {
    device: &'a DeviceSheet,
    constants: &'a Constants,
}

impl Physics {
    /// The estimator with the constants that are part of this build.
    #[must_use]
    pub fn new() -> Self {
        Self { generations: Generations::builtin() }
    }

    /// Where the constants for devices of `architecture` come from: a name per table and its source, in order.
    #[must_use]
    pub fn sources(&self, architecture: Architecture) -> Vec<(String, &str)> {
        self.generations.of(architecture).sources()
    }
}

impl Physics {
    /// How a matrix product is taken to run on `device`.
    pub(crate) fn plan(&self, gemm: &Gemm, device: &DeviceSheet) -> Plan {
        gemm::plan_of(gemm, self.bench(device))
    }

    fn bench<'a>(&'a self, device: &'a DeviceSheet) -> Bench<'a> {
        Bench { device, constants: self.generations.of(device.architecture()) }
    }
}

impl Default for Physics {
    fn default() -> Self {
        Self::new()
    }
}

impl KernelEstimator for Physics {
    fn estimate(&self, operation: &Descriptor, device: &DeviceSheet) -> Estimate {
        let bench = self.bench(device);
        match operation {
            Descriptor::Gemm(gemm) => gemm::estimate(gemm, bench),
            Descriptor::Convolution(convolution) => convolution::estimate(convolution, bench),
            Descriptor::Attention(attention) => attention::estimate(attention, bench),
            Descriptor::Normalization(norm) => streaming::normalization(norm, bench),
            Descriptor::Softmax(rows) => streaming::softmax(rows, bench),
            Descriptor::CrossEntropy(rows) => streaming::cross_entropy(rows, bench),
            Descriptor::Elementwise(pass) => streaming::elementwise(pass, bench),
            Descriptor::Reduction(reduction) => streaming::reduction(reduction, bench),
            Descriptor::Embedding(embedding) => streaming::embedding(embedding, bench),
            Descriptor::Indexing(indexing) => streaming::indexing(indexing, bench),
            Descriptor::Optimizer(optimizer) => streaming::optimizer(optimizer, bench),
            Descriptor::Sort(sort) => streaming::sort(sort, bench),
            Descriptor::Stencil(work) => streaming::stencil(work, bench),
            Descriptor::Rnn(rnn) => gemm::recurrent(rnn, bench),
            Descriptor::Triton(triton) => unknown::triton(triton, bench),
            Descriptor::Compiled(kernel) => compiled::estimate(kernel, bench),
            Descriptor::Copy(copy) => transfer::copy(copy, bench),
            Descriptor::Set(set) => transfer::set(set, bench),
            Descriptor::Other(other) => unknown::other(other, bench),
            Descriptor::NpuKernel(kernel) => unknown::program(kernel, bench),
            Descriptor::Recorded(recorded) => unknown::recorded(recorded),
        }
    }
}

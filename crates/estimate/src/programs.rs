//! Kernels that come as programs: a simulator of the device's cores prices them, everything else another estimator.
//!
//! Which simulator, this crate does not know: [`ProgramEstimator`] is what it must answer.

use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::Descriptor;

use crate::{Estimate, KernelEstimator};

/// Prices kernel programs on one device.
pub trait ProgramEstimator: Send + Sync {
    /// How long the program with this text takes; `None` when it cannot be simulated. The same text, the same answer.
    fn estimate_program(&self, program: &str) -> Option<Estimate>;
}

/// The trivial one: simulates nothing.
impl ProgramEstimator for () {
    fn estimate_program(&self, _: &str) -> Option<Estimate> {
        None
    }
}

/// One that may be missing.
impl<P: ProgramEstimator> ProgramEstimator for Option<P> {
    fn estimate_program(&self, program: &str) -> Option<Estimate> {
        self.as_ref()?.estimate_program(program)
    }
}

/// An estimator that asks `programs` for kernels that come as programs, and `others` for everything else and for
/// programs that cannot be simulated.
#[derive(Clone, Debug)]
pub struct WithPrograms<P, O> {
    /// Simulates programs.
    pub programs: P,
    /// Prices everything else.
    pub others: O,
}

impl<P: ProgramEstimator, O: KernelEstimator> KernelEstimator for WithPrograms<P, O> {
    fn estimate(&self, operation: &Descriptor, device: &DeviceSheet) -> Estimate {
        let simulated = match operation {
            Descriptor::NpuKernel(kernel) => self.programs.estimate_program(&kernel.program),
            _ => None,
        };
        simulated.unwrap_or_else(|| self.others.estimate(operation, device))
    }
    fn prepare(&self, operations: &[&Descriptor], device: &DeviceSheet) {
        self.others.prepare(operations, device);
    }
}

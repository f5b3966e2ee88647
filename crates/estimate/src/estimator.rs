//! The question that a simulation asks.

use trompe_base::Duration;
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::Descriptor;

use crate::{Basis, Estimate};

/// Prices device operations. Total: it answers every question, and the same question always alike.
pub trait KernelEstimator: Send + Sync {
    /// How long `operation` takes on `device` when it has the device for itself.
    fn estimate(&self, operation: &Descriptor, device: &DeviceSheet) -> Estimate;

    /// Tells that these operations will be asked for, so that an estimator that answers many at once can do so.
    fn prepare(&self, operations: &[&Descriptor], device: &DeviceSheet) {
        let _ = (operations, device);
    }
}

impl<E: KernelEstimator + ?Sized> KernelEstimator for &E {
    fn estimate(&self, operation: &Descriptor, device: &DeviceSheet) -> Estimate {
        (**self).estimate(operation, device)
    }

    fn prepare(&self, operations: &[&Descriptor], device: &DeviceSheet) {
        (**self).prepare(operations, device);
    }
}

impl<E: KernelEstimator + ?Sized> KernelEstimator for std::sync::Arc<E> {
    fn estimate(&self, operation: &Descriptor, device: &DeviceSheet) -> Estimate {
        (**self).estimate(operation, device)
    }

    fn prepare(&self, operations: &[&Descriptor], device: &DeviceSheet) {
        (**self).prepare(operations, device);
    }
}

/// The trivial estimator: every operation takes the same time.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(pub Duration);

impl KernelEstimator for Fixed {
    fn estimate(&self, _: &Descriptor, _: &DeviceSheet) -> Estimate {
        Estimate::new(self.0.as_secs_f64(), [1.0, 1.0], "fixed", Basis::Assumed)
    }
}

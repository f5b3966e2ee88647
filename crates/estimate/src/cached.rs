//! An estimator that remembers its answers: a job asks the same few hundred questions again and again.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::Descriptor;

use crate::{Estimate, KernelEstimator};

/// Remembers what `E` answered for one device; another device empties the memory.
#[derive(Debug)]
pub struct Cached<E> {
    inner: E,
    memory: RwLock<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    device: Option<DeviceSheet>,
    answers: HashMap<Descriptor, Estimate>,
}

/// Answers that are kept; more than any job has, so that memory stays bounded whatever is asked.
const MOST: usize = 1 << 18;

impl<E> Cached<E> {
    /// Remembers what `inner` answers.
    pub fn new(inner: E) -> Self {
        Self { inner, memory: RwLock::default() }
    }

    /// The estimator behind.
    pub fn inner(&self) -> &E {
        &self.inner
    }
}

impl<E: KernelEstimator> KernelEstimator for Cached<E> {
    fn estimate(&self, operation: &Descriptor, device: &DeviceSheet) -> Estimate {
        {
            let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
            if memory.device.as_ref() == Some(device)
                && let Some(known) = memory.answers.get(operation)
            {
                return known.clone();
            }
        }
        let estimate = self.inner.estimate(operation, device);
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        if memory.device.as_ref() != Some(device) || memory.answers.len() >= MOST {
            memory.answers.clear();
            memory.device = Some(device.clone());
        }
        memory.answers.insert(operation.clone(), estimate.clone());
        estimate
    }

    fn prepare(&self, operations: &[&Descriptor], device: &DeviceSheet) {
        self.inner.prepare(operations, device);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use trompe_base::{Bytes, Duration};
    use trompe_hardware::Catalogue;
    use trompe_trace::descriptor::Set;

    use super::*;
    use crate::Basis;

    struct Counting(AtomicU32);

    impl KernelEstimator for Counting {
        fn estimate(&self, _: &Descriptor, _: &DeviceSheet) -> Estimate {
            let calls = self.0.fetch_add(1, Ordering::Relaxed) + 1;
            Estimate::new(f64::from(calls), [1.0, 1.0], "counting", Basis::Assumed)
        }
    }

    #[test]
    fn a_question_is_answered_once_per_device() {
        let catalogue = Catalogue::builtin();
        let (one, two) = (catalogue.device("h100-sxm").unwrap(), catalogue.device("a100-80").unwrap());
        let cached = Cached::new(Counting(AtomicU32::new(0)));
        let set = |bytes| Descriptor::Set(Set { bytes: Bytes(bytes) });
        let check = |operation: &Descriptor, device, expect: u64| {
            assert_eq!(cached.estimate(operation, device).time, Duration::from_secs_f64(expect as f64));
        };
        check(&set(1), &one, 1);
        check(&set(1), &one, 1);
        check(&set(2), &one, 2);
        check(&set(1), &two, 3);
        check(&set(1), &one, 4);
    }
}

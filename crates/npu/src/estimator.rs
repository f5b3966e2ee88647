//! How long a kernel takes, for whoever simulates a job made of kernels.
//!
//! Kernels are simulated timing-only, once: answers are kept by the hash of the program (shapes are part of it), the
//! device and the profile.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::{Mutex, PoisonError};

use siphasher::sip128::{Hasher128, SipHasher13};
use trompe_estimate::{Basis, Estimate, ProgramEstimator};

use crate::device::{Device, Profile};
use crate::error::RunError;
use crate::program::Program;
use crate::run::{Options, run};

/// Prices kernels on one device under one profile.
#[derive(Debug)]
pub struct KernelTimes {
    device: Device,
    profile: Profile,
    sheets: String,
    known: Mutex<BTreeMap<u128, Known>>,
}

/// What a timing-only run of a program said.
#[derive(Clone, Copy, Debug)]
struct Known {
    makespan: u64,
    macs: u64,
}

impl KernelTimes {
    /// An estimator with nothing in its memory.
    #[must_use]
    pub fn new(device: Device, profile: Profile) -> Self {
        let sheets = serde_json::to_string(&(&device, &profile)).expect("sheets have only text keys");
        Self { device, profile, sheets, known: Mutex::default() }
    }

    /// Makespan of `program` in cycles.
    ///
    /// # Errors
    /// When the program does not run timing-only on the device.
    pub fn cycles(&self, program: &Program) -> Result<u64, RunError> {
        self.simulated(program).map(|known| known.makespan)
    }

    fn simulated(&self, program: &Program) -> Result<Known, RunError> {
        let key = self.key(program);
        if let Some(known) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(*known);
        }
        let options = Options { timing_only: true, ..Options::default() };
        let outcome = run(program, &self.device, &self.profile, &BTreeMap::new(), &options)?;
        let known = Known { makespan: outcome.makespan, macs: outcome.macs.values().sum() };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, known);
        Ok(known)
    }

    /// How long `program` takes.
    ///
    /// No spread was published with any profile, so the interval is an assumption: 10 % on either side for a calibrated
    /// one, wider and mostly upwards for the reference profile, which is a formula without overheads.
    ///
    /// # Errors
    /// As [`Self::cycles`].
    pub fn estimate(&self, program: &Program) -> Result<Estimate, RunError> {
        let seconds = self.cycles(program)? as f64 / (self.device.clock_mhz * 1e6);
        let spread = if self.profile.name == "calibrated" { [0.9, 1.1] } else { [0.8, 2.0] };
        let note = format!(
            "simulated on {} with profile {}; its interval is assumed",
            self.device.name, self.profile.name
        );
        Ok(Estimate::new(seconds, spread, "npu.simulated", Basis::Simulated).noted(note))
    }

    /// Number of different kernels that have been simulated.
    #[must_use]
    pub fn count(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// What is known of `program` beyond its time: multiply-adds of its matrix units.
    ///
    /// # Errors
    /// As [`Self::cycles`].
    pub fn multiply_adds(&self, program: &Program) -> Result<u64, RunError> {
        self.simulated(program).map(|known| known.macs)
    }

    fn key(&self, program: &Program) -> u128 {
        let mut hasher = SipHasher13::new();
        hasher.write(self.sheets.as_bytes());
        hasher.write(serde_json::to_string(program).expect("a program has only text keys").as_bytes());
        hasher.finish128().as_u128()
    }
}

impl ProgramEstimator for KernelTimes {
    fn estimate_program(&self, program: &str) -> Option<Estimate> {
        self.estimate(&Program::from_json(program).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::vector_add;

    #[test]
    fn a_kernel_is_simulated_once_per_shape() {
        let device = Device::named("ascend-950").unwrap();
        let times = KernelTimes::new(device.clone(), Profile::named("calibrated", &device).unwrap());
        let small = times.estimate(&vector_add(1000, 64, 1)).unwrap();
        assert_eq!(times.estimate(&vector_add(1000, 64, 1)).unwrap(), small);
        assert_eq!(times.count(), 1);
        let large = times.estimate(&vector_add(2000, 64, 1)).unwrap();
        assert!(large.time > small.time && large.low <= large.time && large.time <= large.high);
        assert_eq!(times.count(), 2);
        let cycles = times.cycles(&vector_add(1000, 64, 1)).unwrap();
        assert!((small.time.as_secs_f64() - cycles as f64 / 1.65e9).abs() < 1e-11);
    }
}

//! Exact measurements: this very operation was measured on this device.
//!
//! Operations are compared in a canonical form: leading dimensions and batch strides, the split of traffic into reads
//! and writes and operation counts of memory-bound passes do not tell two of them apart.

use std::collections::BTreeMap;
use std::hash::Hasher;

use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;
use trompe_base::{Bytes, Flops};
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::{Descriptor, Embedding, Gemm, Work};

use crate::{Basis, Estimate};

/// Measured operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// What it is called in methods, after `measured.`.
    name: String,
    rows: BTreeMap<u64, Measured>,
}

/// All measurements of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Seconds, ascending.
    pub seconds: Vec<f64>,
}

impl Measured {
    /// The middle one, or the mean of the two in the middle.
    #[must_use]
    pub fn median(&self) -> f64 {
        let half = self.seconds.len() / 2;
        match self.seconds.len() {
            0 => 0.0,
            count if count % 2 == 1 => self.seconds[half],
            _ => (self.seconds[half - 1] + self.seconds[half]) / 2.0,
        }
    }

    /// The largest over the smallest.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        match (self.seconds.first(), self.seconds.last()) {
            (Some(first), Some(last)) if *first > 0.0 => last / first,
            _ => 1.0,
        }
    }
}

/// Repeats of a measurement differ by so much anyway; the interval of a single one.
const REPEAT: f64 = 0.05;

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), rows: BTreeMap::new() }
    }

    /// Adds a measurement; `seconds` must be positive and finite.
    pub fn add(&mut self, operation: &Descriptor, device: &DeviceSheet, seconds: f64) {
        debug_assert!(seconds.is_finite() && seconds > 0.0, "checked by the reader");
        let all = &mut self.rows.entry(key(operation, device)).or_default().seconds;
        let at = all.partition_point(|other| *other <= seconds);
        all.insert(at, seconds);
    }

    /// Operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The measurements of `operation` on `device`.
    #[must_use]
    pub fn get(&self, operation: &Descriptor, device: &DeviceSheet) -> Option<&Measured> {
        self.rows.get(&key(operation, device))
    }

    /// The estimate for `operation` where it was measured.
    #[must_use]
    pub fn estimate(&self, operation: &Descriptor, device: &DeviceSheet) -> Option<Estimate> {
        let measured = self.get(operation, device)?;
        let median = measured.median();
        let low = measured.seconds.first()? / median;
        let high = measured.seconds.last()? / median;
        let spread = [low.min(1.0 - REPEAT), high.max(1.0 + REPEAT)];
        Some(Estimate::new(median, spread, format!("measured.{}", self.name), Basis::Measured).at(Some(0.0)))
    }
}

/// The operation without what does not decide its time.
#[must_use]
pub fn canonical(operation: &Descriptor) -> Descriptor {
    let plain = |work: &Work| Work { read: work.bytes(), written: Bytes::ZERO, flops: Flops::ZERO };
    let mut operation = operation.clone();
    match &mut operation {
        Descriptor::Gemm(Gemm { leading, strides, .. }) => (*leading, *strides) = ([0; 3], [0; 3]),
        Descriptor::Embedding(Embedding { rows, work, .. }) => (*rows, *work) = (0, plain(work)),
        Descriptor::Normalization(o) => o.work = plain(&o.work),
        Descriptor::Softmax(o) | Descriptor::CrossEntropy(o) => o.work = plain(&o.work),
        Descriptor::Elementwise(o) => o.work = plain(&o.work),
        Descriptor::Reduction(o) => o.work = plain(&o.work),
        Descriptor::Indexing(o) => o.work = plain(&o.work),
        Descriptor::Optimizer(o) => o.work = plain(&o.work),
        Descriptor::Sort(o) => o.work = plain(&o.work),
        _ => {}
    }
    operation
}

/// A hash of operation and device that is the same in every run.
#[must_use]
pub fn key(operation: &Descriptor, device: &DeviceSheet) -> u64 {
    let bytes = postcard::to_stdvec(&canonical(operation)).expect("plain data serialises");
    let mut hasher = SipHasher13::new();
    hasher.write(device.name.as_bytes());
    hasher.write_u8(0);
    hasher.write(&bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use trompe_base::DType;
    use trompe_hardware::Catalogue;
    use trompe_trace::descriptor::Elementwise;

    use super::*;

    fn pass(read: u64, written: u64) -> Descriptor {
        let work = Work { read: Bytes(read), written: Bytes(written), flops: Flops(read) };
        Descriptor::Elementwise(Elementwise { elements: 100, dtype: DType::F32, vectorized: true, work })
    }

    #[test]
    fn repeats_give_their_median_and_range_and_other_devices_nothing() {
        let catalogue = Catalogue::builtin();
        let (one, two) = (catalogue.device("h100-sxm").unwrap(), catalogue.device("a100-80").unwrap());
        let mut table = Table::new("mine");
        for seconds in [3e-6, 1e-6, 2e-6] {
            table.add(&pass(400, 400), &one, seconds);
        }
        let estimate = table.estimate(&pass(800, 0), &one).unwrap();
        assert_eq!((estimate.basis, estimate.method.as_ref()), (Basis::Measured, "measured.mine"));
        let close =
            |time: trompe_base::Duration, expect: f64| (time.as_secs_f64() / expect - 1.0).abs() < 1e-6;
        assert!(close(estimate.time, 2e-6) && close(estimate.low, 1e-6) && close(estimate.high, 3e-6));
        assert!(table.estimate(&pass(400, 400), &two).is_none());
        assert!(table.estimate(&pass(400, 404), &one).is_none());
        assert!((table.get(&pass(0, 800), &one).unwrap().ratio() - 3.0).abs() < 1e-12);
    }
}

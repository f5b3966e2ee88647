//! Libraries of which little is known but the stream their calls run on: cuSOLVER, cuSPARSE, cuRAND, cuFFT.

use std::collections::BTreeMap;

use trompe_base::DType;

use crate::handle::{HandleTable, Kind, NotLive};

/// Library handles with a stream each.
#[derive(Debug)]
pub struct Streamed {
    table: HandleTable<u64>,
}

impl Streamed {
    /// No handles yet.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self { table: HandleTable::new(kind) }
    }

    /// Creates a handle on the default stream.
    pub fn create(&mut self) -> u64 {
        self.table.insert(0).0
    }

    /// Destroys a handle.
    ///
    /// # Errors
    /// When it is not live.
    pub fn destroy(&mut self, handle: u64) -> Result<(), NotLive> {
        self.table.remove(handle).map(drop)
    }

    /// The stream of a handle.
    ///
    /// # Errors
    /// When it is not live.
    pub fn stream(&self, handle: u64) -> Result<u64, NotLive> {
        self.table.get(handle).copied()
    }

    /// Sets the stream of a handle.
    ///
    /// # Errors
    /// When it is not live.
    pub fn set_stream(&mut self, handle: u64, stream: u64) -> Result<(), NotLive> {
        *self.table.get_mut(handle)? = stream;
        Ok(())
    }
}

/// Shape of a sparse matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SparseShape {
    /// Rows.
    pub rows: i64,
    /// Columns.
    pub columns: i64,
    /// Entries that are stored.
    pub entries: i64,
}

/// A Fourier transform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transform {
    /// Extents, outermost first.
    pub lengths: Vec<i64>,
    /// Independent transforms.
    pub batch: i64,
    /// Element type of the input.
    pub input: Option<DType>,
    /// Element type of the output.
    pub output: Option<DType>,
}

impl Transform {
    /// Bytes read and written. The complex side of a real transform holds half the innermost extent, plus one.
    #[must_use]
    pub fn bytes(&self) -> [u64; 2] {
        let is_complex = |dtype: Option<DType>| matches!(dtype, Some(DType::C64 | DType::C128));
        let real_transform = is_complex(self.input) != is_complex(self.output);
        let positive = |length: i64| u64::try_from(length).unwrap_or(0);
        let outer: u64 = self.lengths.iter().rev().skip(1).map(|&length| positive(length)).product();
        let inner = self.lengths.last().map_or(0, |&length| positive(length));
        [self.input, self.output].map(|dtype| {
            let width = if real_transform && is_complex(dtype) { inner / 2 + 1 } else { inner };
            positive(self.batch) * outer * width * dtype.map_or(8, DType::size)
        })
    }

    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let lengths: Vec<String> = self.lengths.iter().map(i64::to_string).collect();
        let name = |dtype: Option<DType>| dtype.map_or("?", DType::name);
        format!(
            "fft {} batch {} {} -> {}",
            lengths.join("x"),
            self.batch,
            name(self.input),
            name(self.output)
        )
    }
}

/// A plan of a Fourier transform.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FftPlan {
    /// Stream handle.
    pub stream: u64,
    /// What it computes, once it is made.
    pub transform: Option<Transform>,
}

/// Plans by number (cuFFT's handles are small integers).
#[derive(Debug, Default)]
pub struct FftPlans {
    plans: BTreeMap<i32, FftPlan>,
    next: i32,
}

impl FftPlans {
    /// No plans yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { plans: BTreeMap::new(), next: 1 }
    }

    /// Creates a plan.
    pub fn create(&mut self) -> i32 {
        let number = self.next;
        self.next += 1;
        self.plans.insert(number, FftPlan::default());
        number
    }

    /// A plan, to change it.
    ///
    /// # Errors
    /// When it is not live.
    pub fn get(&mut self, plan: i32) -> Result<&mut FftPlan, NotLive> {
        self.plans.get_mut(&plan).ok_or(NotLive(plan as u64))
    }

    /// Destroys a plan.
    ///
    /// # Errors
    /// When it is not live.
    pub fn destroy(&mut self, plan: i32) -> Result<(), NotLive> {
        self.plans.remove(&plan).map(drop).ok_or(NotLive(plan as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_real_transform_stores_half_of_the_spectrum() {
        let transform = |input, output| Transform {
            lengths: vec![4, 8],
            batch: 3,
            input: Some(input),
            output: Some(output),
        };
        assert_eq!(transform(DType::C64, DType::C64).bytes(), [3 * 32 * 8, 3 * 32 * 8]);
        assert_eq!(transform(DType::F32, DType::C64).bytes(), [3 * 32 * 4, 3 * 4 * 5 * 8]);
        assert_eq!(transform(DType::C128, DType::F64).bytes(), [3 * 4 * 5 * 16, 3 * 32 * 8]);
        assert_eq!(transform(DType::F32, DType::C64).text(), "fft 4x8 batch 3 fp32 -> complex64");
    }

    #[test]
    fn plans_and_handles_die() {
        let mut plans = FftPlans::new();
        let plan = plans.create();
        assert!(plans.get(plan).is_ok());
        assert!(plans.destroy(plan).is_ok());
        assert!(plans.destroy(plan).is_err());
        let mut solvers = Streamed::new(Kind::Solver);
        let solver = solvers.create();
        solvers.set_stream(solver, 9).unwrap();
        assert_eq!(solvers.stream(solver), Ok(9));
        solvers.destroy(solver).unwrap();
        assert!(solvers.stream(solver).is_err());
    }
}

//! The answer of an estimator.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use trompe_base::Duration;

/// How long an operation takes, and how that is known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The expected time: the median where a distribution is known.
    pub time: Duration,
    /// The time that about one operation in ten beats.
    pub low: Duration,
    /// The time that about one operation in ten exceeds.
    pub high: Duration,
    /// The model that answered, for example `physics.gemm.tensor`.
    pub method: Cow<'static, str>,
    /// What the answer rests on.
    pub basis: Basis,
    /// How far the operation is from the nearest measured shape, in doublings of its sizes; `None` where nothing of
    /// its kind was measured.
    pub distance: Option<f64>,
    /// What the model had to assume about this operation, for the report.
    pub note: Option<Cow<'static, str>>,
}

/// What an estimate rests on, from firm to weak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// This very operation was measured on this device.
    Measured,
    /// A regression over measurements, inside the range that it was trained on.
    Learned,
    /// Constants fitted on measurements of this family and device generation.
    Fitted,
    /// The operation is a program that was run cycle by cycle on a model of the device's cores.
    Simulated,
    /// Constants carried over from another generation or family, or assumed.
    Assumed,
    /// No model knows the operation; a stated rule charged it.
    Fallback,
}

impl Basis {
    /// The lower-case name used in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Learned => "learned",
            Self::Fitted => "fitted",
            Self::Simulated => "simulated",
            Self::Assumed => "assumed",
            Self::Fallback => "fallback",
        }
    }
}

impl Estimate {
    /// An estimate of `seconds` whose interval is `seconds` times `spread`.
    ///
    /// Keeps the crate's invariants whatever the numbers are: at least one picosecond, `low <= time <= high`.
    #[must_use]
    pub fn new(seconds: f64, spread: [f64; 2], method: impl Into<Cow<'static, str>>, basis: Basis) -> Self {
        let least = Duration::from_picos(1);
        let time = Duration::from_secs_f64(seconds).max(least);
        Self {
            time,
            low: time.scale(spread[0]).clamp(least, time),
            high: time.scale(spread[1]).max(time),
            method: method.into(),
            basis,
            distance: None,
            note: None,
        }
    }

    /// The same with a note.
    #[must_use]
    pub fn noted(mut self, note: impl Into<Cow<'static, str>>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// The same with its distance from the nearest measurement.
    #[must_use]
    pub fn at(mut self, distance: Option<f64>) -> Self {
        self.distance = distance;
        self
    }
}

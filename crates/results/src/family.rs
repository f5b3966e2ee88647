//! A family of runs: the same job with other choices in values that nobody computes (which expert a token goes to).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Repeats;

/// The runs and how their step times are spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Family {
    /// How choices were drawn: the policy of the first run, with its seed. Each further run has the next seed.
    pub routing: String,
    /// The distribution of the step time over the runs. Host times are recorded anew in each run, so they spread it too.
    pub steps: Repeats,
    /// The same with a host that takes no time: what the choices alone do.
    pub steps_without_host: Repeats,
    /// The runs, in order; the first is the one that the rest of the report is about.
    pub samples: Vec<Sample>,
}

/// One run of a family.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// How its choices were drawn.
    pub routing: String,
    /// Step seconds.
    pub seconds: f64,
    /// Step seconds with a host that takes no time.
    pub seconds_without_host: f64,
    /// Highest allocated bytes on a device.
    pub peak_allocated_bytes: u64,
    /// Its own report, relative to the folder of this one.
    pub report: String,
}

impl Family {
    /// The family of these runs.
    #[must_use]
    pub fn of(routing: String, samples: Vec<Sample>) -> Self {
        Self {
            routing,
            steps: Repeats::of(samples.iter().map(|sample| sample.seconds).collect()),
            steps_without_host: Repeats::of(
                samples.iter().map(|sample| sample.seconds_without_host).collect(),
            ),
            samples,
        }
    }
}

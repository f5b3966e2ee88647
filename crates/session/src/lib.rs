//! The one crate that wires the parts together.
//!
//! What it is: plain-data functions behind every command of `trompe`: run a job under emulation ([`run`]), collate
//! its worker traces, price and simulate them, fill the report and write its files; simulate a kept trace again
//! ([`simulate`]); look at traces, at the installation and at the hardware catalogue.
//!
//! What it is not: it never prints (the caller hands in a [`Progress`]), holds no model of its own beside the sums
//! of a report, and is not linked into the job's processes.
//!
//! Order of a run, each step one module: [`python`] looks at the job's interpreter, [`install`] finds our libraries,
//! [`output`] takes the output folder, [`kernels`] provides the kernel database, [`launch`] runs the command (for a
//! distributed job, [`world`] says which ranks), and
//! what follows is the same for a run and for a kept trace.

pub mod cache;
pub mod calibration;
pub mod catalogue;
pub mod clock;
mod collating;
mod descendants;
pub mod discovery;
pub mod disk;
pub mod doctor;
pub mod env;
mod error;
pub mod estimate;
pub mod estimators;
pub mod hook;
pub mod host_model;
pub mod install;
mod job_log;
pub mod kernels;
pub mod launch;
mod machine;
pub mod network;
pub mod npu;
pub mod output;
pub mod predict;
pub mod profile;
mod programs;
mod progress;
pub mod python;
pub mod reports;
mod routing;
pub mod run;
mod run_facts;
pub mod search;
pub mod simulate;
pub mod traces;
pub mod validate;
pub mod variation;
pub mod world;
pub mod zygote;

pub use collating::{BadStepChoice, StepChoice};
pub use error::SessionError;
pub use host_model::HostChoice;
pub use network::{BadNetworkSource, NetworkSource, Times};
pub use predict::{Choices, Prediction, predict, predict_with};
pub use progress::{Progress, Silent, Stage};
pub use routing::{BadRouting, Routing};
pub use run_facts::RunFacts;
pub use variation::{JitterChoice, StragglerChoice};
pub use world::{BadRankChoice, RankChoice};

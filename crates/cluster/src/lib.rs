//! Replays a job trace on the event engine.
//!
//! What it is: given a [`trompe_trace::job::JobTrace`], the price of each distinct device operation ([`Prices`]), a
//! [`CollectiveModel`] and [`Options`], [`simulate`] lets every rank's host launch its operations, its streams run
//! them in order, its events, default-stream rules, copy engines and launch queues hold them back, and its collectives
//! wait for each other and share links; and says how long a step takes and where the time goes ([`Outcome`]).
//!
//! What it is not: it prices nothing, reads no file, no clock and no environment, and knows no name of any vendor's
//! interface.
//!
//! Invariants: the same input gives the same output, bit by bit; each rank's order of launches is kept; at every moment
//! of a step the device does exactly one [kind](trompe_results::Kind) of thing, so the breakdown adds up to the step.

mod account;
mod collective;
mod contention;
mod error;
mod flows;
mod groups;
mod host;
mod kind;
mod log;
mod network;
mod options;
mod outcome;
mod path;
mod plan;
mod price;
mod queue;
mod recorder;
mod rendezvous;
mod replay;
mod segment;
mod state;
mod stream;
mod threads;
mod timeline;
mod variation;
mod wires;

pub use collective::{AlphaBeta, CollectiveCall, CollectiveModel, Instant, Neighbourhood, Others, Traffic};
pub use contention::Contention;
pub use error::{Seconds, SimulationError};
pub use groups::group_kinds;
pub use kind::kind_of;
pub use network::Network;
pub use options::{CallCosts, HostTime, Options};
pub use outcome::{GroupUse, OperationUse, Outcome, RankOutcome, StepOutcome};
pub use path::{CriticalPath, PathOwner, PathShare};
pub use price::{Bound, Price, Prices};
pub use replay::{Replay, simulate};
pub use variation::{Jitter, Straggler, Variation};

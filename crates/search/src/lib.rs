//! Which configuration? A space of knobs, points in it, and studies that find the best point in few trials.
//!
//! What it is: the model of a space file ([`space`]), its feasible points ([`feasible`]), strategies behind one
//! ask/tell interface ([`strategy`]), the rules that make trials needless ([`prune`]), studies that tie them together
//! and can be taken up again ([`Study`], [`journal`]), the memo of results on disk ([`memo`]), what the outcome says
//! ([`summary`]), and the table of trials as a file for other tools ([`parquet`]).
//!
//! What it is not: it runs no trial and knows no cluster, no trace and no clock. Who drives a study hands in the facts
//! about clusters and the outcome of each trial; `session` does that with emulated runs, `trompe.search` from Python.
//!
//! The same space, seed and outcomes give the same points in the same order.

pub mod encoding;
mod expression;
pub mod feasible;
pub mod journal;
pub mod machines;
pub mod memo;
pub mod outcome;
pub mod parquet;
pub mod point;
pub mod prune;
pub mod space;
pub mod spaces;
pub mod strategy;
pub mod study;
pub mod summary;
mod template;
mod value;

pub use expression::Expression;
pub use feasible::Feasible;
pub use machines::Machines;
pub use outcome::Outcome;
pub use point::Point;
pub use space::Space;
pub use study::Study;
pub use value::{Value, Values};

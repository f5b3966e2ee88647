//! Running a program: cores on engines, collectives between them.
//!
//! Each core has an engine of its own whose tick is a cycle; its control actors and pipes are the events. Cores are
//! independent until a collective: every core runs until nothing in it can go on, then the collectives that everybody
//! has reached are completed (at the latest participant's cycle) and the cores go on. So any number of threads gives
//! the same bytes, and when no core can go on although work is left, that is a deadlock.
//!
//! Times follow from the formulas of the profile alone; the order of the engine's events only decides what is looked at
//! first.

mod control;
pub(crate) mod core;
mod machine;
mod pipe;
mod races;
pub(crate) mod record;
mod sync;
mod views;

pub use machine::{Checks, Input, Options, Outcome, Output, run, validate};
pub use record::{CoreTimeline, PipeUse, Step};

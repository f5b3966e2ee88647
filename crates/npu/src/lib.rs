//! One kernel on the cores of an NPU, functional and cycle by cycle.
//!
//! What it is: [`Program`] (a kernel as data: tensors, and instructions for the cube lane and the two vector lanes of a
//! core), [`Device`] and [`Profile`] (sheets), and [`run()`], which checks the program, executes it on as many cores as
//! it asks for and says what came out, how many cycles it took and what each pipe waited for. [`builder`] writes
//! programs.
//!
//! What it is not: it knows no job, no cluster and no host; it reads no file and no clock (callers hand in text and
//! bytes).
//!
//! Invariants:
//!
//! * An unknown instruction, operand or name is refused before anything runs, with the instruction named.
//! * The same program, inputs, device and profile give the same bytes and cycles, on any machine and with any number of
//!   threads.
//! * Operands are resolved to storage when an instruction is dispatched: what a loop's next turn does to a view does not
//!   change a task that is under way.
//! * Cycles follow from the profile's formulas; nothing is measured.

mod auto_sync;
pub mod builder;
pub mod chrome;
mod compile;
mod cycles;
mod device;
mod element;
mod error;
pub mod estimator;
mod exec;
pub mod job;
pub mod kernels;
mod memory;
pub mod npy;
mod ops;
mod program;
mod run;
mod shadow;
pub mod summary;
mod task;
pub mod tune;

pub use device::{Device, Profile};
pub use element::ElementType;
pub use error::{BlockedActor, Fault, Hazard, LoadError, ProgramError, RunError, Site};
pub use ops::{markdown as instructions_page, python_table};
pub use program::{
    Argument, FORMAT, Instruction, LaneName, LaneProgram, Micro, Parameter, ParameterKind, Pipe, Program,
    Role, Space, Tensor, VERSION,
};
pub use run::{Checks, CoreTimeline, Input, Options, Outcome, Output, PipeUse, Step, run, validate};

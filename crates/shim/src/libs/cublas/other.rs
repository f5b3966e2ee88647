//! Routines that are recorded by name and sizes.

use super::library;
use crate::door::Call;
use crate::libs::solver::{Argument, text};
use crate::libs::{Outcome, record_library};

/// A routine whose first argument is the handle and that answers into device memory: its name and those of its first
/// arguments that are numbers.
#[expect(clippy::too_many_arguments, reason = "stands for many signatures")]
pub(crate) fn run<A: Argument, B: Argument, C: Argument, D: Argument, E: Argument, F: Argument>(
    call: &mut Call<'_>,
    handle: u64,
    a: A,
    b: B,
    c: C,
    d: D,
    e: E,
    f: F,
) -> Outcome {
    let numbers = [a.number(), b.number(), c.number(), d.number(), e.number(), f.number()];
    let text = text(call, &numbers);
    let stream = library(handle)?.stream;
    record_library(call, stream, [0, 0], &text)
}

/// A routine with fewer arguments: its name.
pub(crate) fn on_handle(call: &mut Call<'_>, handle: u64) -> Outcome {
    let text = text(call, &[]);
    let stream = library(handle)?.stream;
    record_library(call, stream, [0, 0], &text)
}

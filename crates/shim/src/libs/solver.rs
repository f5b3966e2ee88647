//! cuSOLVER: calls are recorded by name and sizes.

use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::tables;

use super::{LibraryFailure, Outcome, libraries, record_library};
use crate::door::Call;

/// cuSOLVER 12.2.0, of CUDA 13.2.
const VERSION: i32 = 12_200;

/// An argument, as far as it says something about the size of the work.
pub(crate) trait Argument {
    /// The number, or nothing for a pointer.
    fn number(self) -> Option<i64>;
}

macro_rules! arguments {
    ($($ty:ty => |$value:ident| $number:expr;)*) => {
        $(impl Argument for $ty {
            fn number(self) -> Option<i64> {
                let $value = self;
                $number
            }
        })*
    };
}

arguments! {
    i8 => |value| Some(i64::from(value));
    i32 => |value| Some(i64::from(value));
    u32 => |value| Some(i64::from(value));
    i64 => |value| Some(value);
    usize => |value| i64::try_from(value).ok();
    u64 => |_value| None;
}

/// A call's name with those of its arguments that are numbers.
pub(in crate::libs) fn text(call: &Call<'_>, numbers: &[Option<i64>]) -> String {
    let mut text = tables::row(call.api).1.symbol.to_owned();
    for number in numbers.iter().flatten() {
        text.push_str(&format!(" {number}"));
    }
    text
}

/// `cusolverDnCreate`.
pub(crate) fn create(call: &mut Call<'_>, handle: Out<u64>) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    let created = libraries().solvers.create();
    Ok(handle.write(created)?)
}

/// `cusolverDnDestroy`.
pub(crate) fn destroy(_: &mut Call<'_>, handle: u64) -> Outcome {
    Ok(libraries().solvers.destroy(handle)?)
}

/// `cusolverDnSetStream`.
pub(crate) fn set_stream(_: &mut Call<'_>, handle: u64, stream: u64) -> Outcome {
    Ok(libraries().solvers.set_stream(handle, stream)?)
}

/// `cusolverDnGetStream`.
pub(crate) fn stream(_: &mut Call<'_>, handle: u64, stream: Out<u64>) -> Outcome {
    let own = libraries().solvers.stream(handle)?;
    Ok(stream.write(own)?)
}

/// `cusolverGetVersion`.
pub(crate) fn version(_: &mut Call<'_>, version: Out<i32>) -> Outcome {
    Ok(version.write(VERSION)?)
}

fn on_stream(call: &mut Call<'_>, handle: u64, text: &str) -> Outcome {
    let stream = libraries().solvers.stream(handle).map_err(LibraryFailure::from)?;
    record_library(call, stream, [0, 0], text)
}

/// A computation: its name and its first arguments.
#[expect(clippy::too_many_arguments, reason = "stands for many signatures")]
pub(crate) fn run<A: Argument, B: Argument, C: Argument, D: Argument, E: Argument>(
    call: &mut Call<'_>,
    handle: u64,
    a: A,
    b: B,
    c: C,
    d: D,
    e: E,
) -> Outcome {
    let text = text(call, &[a.number(), b.number(), c.number(), d.number(), e.number()]);
    on_stream(call, handle, &text)
}

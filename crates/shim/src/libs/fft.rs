//! cuFFT. Plans need no work area here: cuFFT documents neither a rule nor a bound for its size.

use trompe_base::DType;
use trompe_cuda_abi::pointer::{In, Out};
use trompe_device::blas;
use trompe_device::numerics::Transform;

use super::{LibraryFailure, Outcome, libraries, record_library};
use crate::door::Call;

/// cuFFT 12.2.0, of CUDA 13.2.
const VERSION: i32 = 12_200;
/// Most dimensions of a transform.
const MAXIMUM_RANK: usize = 3;

/// `cufftCreate`.
pub(crate) fn create(_: &mut Call<'_>, plan: Out<i32>) -> Outcome {
    let created = libraries().transforms.create();
    Ok(plan.write(created)?)
}

/// `cufftDestroy`.
pub(crate) fn destroy(_: &mut Call<'_>, plan: i32) -> Outcome {
    Ok(libraries().transforms.destroy(plan)?)
}

/// `cufftSetAutoAllocation`.
pub(crate) fn check_with(_: &mut Call<'_>, plan: i32, _automatic: i32) -> Outcome {
    libraries().transforms.get(plan)?;
    Ok(())
}

/// `cufftSetWorkArea`.
pub(crate) fn set_work_area(_: &mut Call<'_>, plan: i32, _area: u64) -> Outcome {
    libraries().transforms.get(plan)?;
    Ok(())
}

/// `cufftSetStream`.
pub(crate) fn set_stream(_: &mut Call<'_>, plan: i32, stream: u64) -> Outcome {
    libraries().transforms.get(plan)?.stream = stream;
    Ok(())
}

/// `cufftGetSize`.
pub(crate) fn size(_: &mut Call<'_>, plan: i32, bytes: Out<u64>) -> Outcome {
    libraries().transforms.get(plan)?;
    Ok(bytes.write(0)?)
}

/// `cufftGetVersion`.
pub(crate) fn version(_: &mut Call<'_>, version: Out<i32>) -> Outcome {
    Ok(version.write(VERSION)?)
}

fn make(plan: i32, transform: Transform, bytes: Out<u64>) -> Outcome {
    libraries().transforms.get(plan)?.transform = Some(transform);
    bytes.write_if_given(0);
    Ok(())
}

/// `cufftXtMakePlanMany`.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn make_many(
    _: &mut Call<'_>,
    plan: i32,
    rank: i32,
    lengths: In<i64>,
    _in_embed: In<i64>,
    _in_stride: i64,
    _in_distance: i64,
    input: i32,
    _out_embed: In<i64>,
    _out_stride: i64,
    _out_distance: i64,
    output: i32,
    batch: i64,
    bytes: Out<u64>,
    _compute: i32,
) -> Outcome {
    let rank = usize::try_from(rank).ok().filter(|rank| (1..=MAXIMUM_RANK).contains(rank));
    let lengths = lengths.read_many(rank.ok_or(LibraryFailure::InvalidValue)?)?;
    make(plan, Transform { lengths, batch, input: blas::dtype(input), output: blas::dtype(output) }, bytes)
}

/// Input and output of a `cufftType`.
const fn types(kind: i32) -> Option<(DType, DType)> {
    Some(match kind {
        0x29 => (DType::C64, DType::C64),
        0x2a => (DType::F32, DType::C64),
        0x2c => (DType::C64, DType::F32),
        0x69 => (DType::C128, DType::C128),
        0x6a => (DType::F64, DType::C128),
        0x6c => (DType::C128, DType::F64),
        _ => return None,
    })
}

fn plain(kind: i32, lengths: &[i32], batch: i32) -> Result<Transform, LibraryFailure> {
    let (input, output) = types(kind).ok_or(LibraryFailure::InvalidValue)?;
    let lengths = lengths.iter().map(|&length| i64::from(length)).collect();
    Ok(Transform { lengths, batch: batch.into(), input: Some(input), output: Some(output) })
}

/// `cufftMakePlan1d`.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn make_1d(
    _: &mut Call<'_>,
    plan: i32,
    nx: i32,
    kind: i32,
    batch: i32,
    bytes: Out<u64>,
) -> Outcome {
    make(plan, plain(kind, &[nx], batch)?, bytes)
}

/// `cufftMakePlan2d`.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn make_2d(_: &mut Call<'_>, plan: i32, nx: i32, ny: i32, kind: i32, bytes: Out<u64>) -> Outcome {
    make(plan, plain(kind, &[nx, ny], 1)?, bytes)
}

fn create_made(plan: Out<i32>, transform: Transform) -> Outcome {
    let created = libraries().transforms.create();
    make(created, transform, Out::new(0))?;
    Ok(plan.write(created)?)
}

/// `cufftPlan1d`.
pub(crate) fn plan_1d(_: &mut Call<'_>, plan: Out<i32>, nx: i32, kind: i32, batch: i32) -> Outcome {
    create_made(plan, plain(kind, &[nx], batch)?)
}

/// `cufftPlan2d`.
pub(crate) fn plan_2d(_: &mut Call<'_>, plan: Out<i32>, nx: i32, ny: i32, kind: i32) -> Outcome {
    create_made(plan, plain(kind, &[nx, ny], 1)?)
}

/// `cufftXtExec`, `cufftExecC2C`, `cufftExecZ2Z`.
pub(crate) fn execute(call: &mut Call<'_>, plan: i32, _input: u64, _output: u64, _direction: i32) -> Outcome {
    let plan = libraries().transforms.get(plan)?.clone();
    let transform = plan.transform.ok_or(LibraryFailure::InvalidValue)?;
    record_library(call, plan.stream, transform.bytes(), &transform.text())
}

/// `cufftExecR2C` and its like.
pub(crate) fn execute_real(call: &mut Call<'_>, plan: i32, input: u64, output: u64) -> Outcome {
    execute(call, plan, input, output, 0)
}

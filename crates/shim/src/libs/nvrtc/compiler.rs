//! Programs: any source is taken, and nothing is compiled.

use trompe_cuda_abi::libraries::CompilerError;
use trompe_cuda_abi::pointer::{In, Out, Text};

use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome, libraries};
use crate::text::keep;

/// Architectures that NVRTC of CUDA 13 compiles for.
const ARCHITECTURES: &[i32] = &[75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];

/// Headers that a program may bring; real ones have tens.
const MOST_HEADERS: usize = 4096;

/// `nvrtcVersion`: that of the CUDA runtime.
pub(crate) fn version(call: &mut Call<'_>, major: Out<i32>, minor: Out<i32>) -> Outcome {
    let version = call.machine().node().map_or(0, |node| node.software.cuda_runtime) as i32;
    major.write(version / 1000)?;
    Ok(minor.write(version % 1000 / 10)?)
}

/// `nvrtcGetErrorString`.
pub(crate) fn error_text(_: &mut Call<'_>, code: i32) -> u64 {
    let name = if code == 0 { Some(c"NVRTC_SUCCESS") } else { CompilerError::name_of(code) };
    name.unwrap_or(c"NVRTC_ERROR unknown").as_ptr() as u64
}

/// `nvrtcGetNumSupportedArchs`.
pub(crate) fn architecture_count(_: &mut Call<'_>, count: Out<i32>) -> Outcome {
    Ok(count.write(ARCHITECTURES.len() as i32)?)
}

/// `nvrtcGetSupportedArchs`.
pub(crate) fn architectures(_: &mut Call<'_>, architectures: Out<i32>) -> Outcome {
    for (index, architecture) in ARCHITECTURES.iter().enumerate() {
        architectures.write_at(index, *architecture)?;
    }
    Ok(())
}

/// `nvrtcCreateProgram`.
#[expect(clippy::too_many_arguments, reason = "the library's own signature")]
pub(crate) fn create(
    _: &mut Call<'_>,
    program: Out<u64>,
    source: Text,
    name: Text,
    header_count: i32,
    headers: In<u64>,
    _include_names: u64,
) -> Outcome {
    let count = usize::try_from(header_count).ok().filter(|count| *count <= MOST_HEADERS);
    let count = count.ok_or(LibraryFailure::InvalidValue)?;
    let headers = headers.read_many(if headers.is_null() { 0 } else { count })?;
    let headers: Result<Vec<String>, _> =
        headers.into_iter().map(|address| Text::new(address as usize).read()).collect();
    let (source, name) = (source.read()?, name.read().unwrap_or_default());
    let created = libraries().compilers.create(source, headers?, name);
    Ok(program.write(created)?)
}

/// `nvrtcDestroyProgram`: the caller's handle becomes null.
pub(crate) fn destroy(_: &mut Call<'_>, program: Out<u64>) -> Outcome {
    let handle = program.read()?;
    libraries().compilers.destroy(handle)?;
    Ok(program.write(0)?)
}

/// `nvrtcCompileProgram`.
pub(crate) fn compile(_: &mut Call<'_>, program: u64, _option_count: i32, _options: u64) -> Outcome {
    let mut libraries = libraries();
    let program = libraries.compilers.get(program)?;
    program.compiled = Some(program.image());
    Ok(())
}

/// `nvrtcAddNameExpression`.
pub(crate) fn add_name(_: &mut Call<'_>, program: u64, expression: Text) -> Outcome {
    let expression = expression.read()?;
    libraries().compilers.get(program)?.add_name(&expression);
    Ok(())
}

/// `nvrtcGetLoweredName`.
pub(crate) fn lowered_name(_: &mut Call<'_>, program: u64, expression: Text, lowered: Out<u64>) -> Outcome {
    let expression = expression.read()?;
    let name = {
        let mut libraries = libraries();
        let program = libraries.compilers.get(program)?;
        program.lowered_name(&expression).map(keep)
    };
    Ok(lowered.write(name.ok_or(LibraryFailure::NotFound)?)?)
}

/// The image of a compiled program with its terminating zero.
fn compiled(program: u64) -> Result<Vec<u8>, LibraryFailure> {
    let image = libraries().compilers.get(program)?.compiled.clone();
    let mut image = image.ok_or(LibraryFailure::NotLive)?.into_bytes();
    image.push(0);
    Ok(image)
}

/// `nvrtcGetCUBINSize`, `nvrtcGetPTXSize`.
pub(crate) fn image_size(_: &mut Call<'_>, program: u64, bytes: Out<u64>) -> Outcome {
    Ok(bytes.write(compiled(program)?.len() as u64)?)
}

/// `nvrtcGetCUBIN`, `nvrtcGetPTX`.
pub(crate) fn image(_: &mut Call<'_>, program: u64, image: Out<u8>) -> Outcome {
    Ok(image.write_bytes(&compiled(program)?)?)
}

/// `nvrtcGetProgramLogSize`: the terminating zero alone.
pub(crate) fn log_size(_: &mut Call<'_>, program: u64, bytes: Out<u64>) -> Outcome {
    libraries().compilers.get(program)?;
    Ok(bytes.write(1)?)
}

/// `nvrtcGetProgramLog`.
pub(crate) fn log(_: &mut Call<'_>, program: u64, log: Out<u8>) -> Outcome {
    libraries().compilers.get(program)?;
    Ok(log.write(0)?)
}

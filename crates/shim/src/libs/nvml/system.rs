//! Versions and error texts.

use trompe_cuda_abi::libraries::ManagementError;
use trompe_cuda_abi::pointer::Out;

use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome};

/// `nvmlErrorString`.
pub(crate) fn error_text(_: &mut Call<'_>, code: i32) -> u64 {
    let text = if code == 0 { Some(c"Success") } else { ManagementError::text_of(code) };
    text.unwrap_or(c"Unknown Error").as_ptr() as u64
}

fn driver(call: &Call<'_>) -> Result<String, LibraryFailure> {
    let machine = call.machine();
    Ok(machine.node().ok_or(LibraryFailure::NotFound)?.software.driver.clone())
}

fn write(text: Out<u8>, capacity: u32, value: &str) -> Outcome {
    if value.len() >= capacity as usize {
        return Err(LibraryFailure::TooSmall);
    }
    Ok(text.write_text(value, capacity as usize)?)
}

/// `nvmlSystemGetDriverVersion`.
pub(crate) fn driver_version(call: &mut Call<'_>, text: Out<u8>, capacity: u32) -> Outcome {
    let version = driver(call)?;
    write(text, capacity, &version)
}

/// `nvmlSystemGetNVMLVersion`: CUDA's major version before the driver's.
pub(crate) fn library_version(call: &mut Call<'_>, text: Out<u8>, capacity: u32) -> Outcome {
    let major = call.machine().node().map_or(0, |node| node.software.cuda_driver / 1000);
    let version = format!("{major}.{}", driver(call)?);
    write(text, capacity, &version)
}

/// `nvmlSystemGetCudaDriverVersion`.
pub(crate) fn cuda_version(call: &mut Call<'_>, version: Out<i32>) -> Outcome {
    let number = call.machine().node().ok_or(LibraryFailure::NotFound)?.software.cuda_driver;
    Ok(version.write(number as i32)?)
}

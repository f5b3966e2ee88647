//! Error names and texts.

use trompe_cuda_abi::driver::DriverError;
use trompe_cuda_abi::pointer::Out;

use crate::door::Call;

type Result = std::result::Result<(), DriverError>;

/// `cuGetErrorName`.
pub(crate) fn name(_: &mut Call<'_>, code: i32, name: Out<u64>) -> Result {
    let found = if code == 0 { Some(c"CUDA_SUCCESS") } else { DriverError::name_of(code) };
    name.write(found.map_or(0, |found| found.as_ptr() as u64))?;
    found.map(drop).ok_or(DriverError::INVALID_VALUE)
}

/// `cuGetErrorString`.
pub(crate) fn text(_: &mut Call<'_>, code: i32, text: Out<u64>) -> Result {
    let found = if code == 0 { Some(c"no error") } else { DriverError::text_of(code) };
    text.write(found.map_or(0, |found| found.as_ptr() as u64))?;
    found.map(drop).ok_or(DriverError::INVALID_VALUE)
}

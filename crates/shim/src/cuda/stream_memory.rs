//! Stream memory operations: words that a stream writes or waits for.

use trompe_cuda_abi::runtime::Address;

use crate::common::Outcome;
use crate::common::fill::{Fill, fill};
use crate::door::Call;

/// `cuStreamWriteValue32`.
pub(crate) fn write_32(call: &mut Call<'_>, stream: Address, to: Address, value: u32, _: u32) -> Outcome {
    fill(call, Fill { to, pattern: value.to_le_bytes().to_vec(), count: 1, stream })
}

/// `cuStreamWriteValue64`.
pub(crate) fn write_64(call: &mut Call<'_>, stream: Address, to: Address, value: u64, _: u32) -> Outcome {
    fill(call, Fill { to, pattern: value.to_le_bytes().to_vec(), count: 1, stream })
}

/// `cuStreamWaitValue32`: the value counts as there, because the other side of it does not run.
pub(crate) fn wait_32(call: &mut Call<'_>, stream: Address, at: Address, value: u32, _: u32) -> Outcome {
    wait_64(call, stream, at, u64::from(value), 0)
}

/// `cuStreamWaitValue64`.
pub(crate) fn wait_64(call: &mut Call<'_>, stream: Address, at: Address, value: u64, _: u32) -> Outcome {
    let id = call.stream_id(stream)?;
    call.arguments = [u64::from(id.0), at, value, 0];
    Ok(())
}

//! The runtime's copy functions.

use trompe_cuda_abi::runtime::{Address, RuntimeError};

use crate::common::Outcome;
use crate::common::copy::{Transfer, Transfer2D, transfer, transfer_2d};
use crate::door::Call;

/// Host to host, host to device, device to host, device to device, by address.
fn check_kind(kind: i32) -> Outcome {
    if (0..=4).contains(&kind) { Ok(()) } else { Err(RuntimeError::INVALID_MEMCPY_DIRECTION.into()) }
}

/// `cudaMemcpy`.
pub(crate) fn memcpy(call: &mut Call<'_>, to: Address, from: Address, bytes: usize, kind: i32) -> Outcome {
    check_kind(kind)?;
    transfer(call, Transfer { to, from, bytes: bytes as u64, stream: 0, synchronous: true })
}

/// `cudaMemcpyAsync`.
pub(crate) fn memcpy_async(
    call: &mut Call<'_>,
    to: Address,
    from: Address,
    bytes: usize,
    kind: i32,
    stream: Address,
) -> Outcome {
    check_kind(kind)?;
    transfer(call, Transfer { to, from, bytes: bytes as u64, stream, synchronous: false })
}

/// `cudaMemcpyPeer`.
pub(crate) fn memcpy_peer(
    call: &mut Call<'_>,
    to: Address,
    to_device: i32,
    from: Address,
    from_device: i32,
    bytes: usize,
) -> Outcome {
    call.checked_device(to_device)?;
    call.checked_device(from_device)?;
    transfer(call, Transfer { to, from, bytes: bytes as u64, stream: 0, synchronous: true })
}

/// `cudaMemcpyPeerAsync`.
pub(crate) fn memcpy_peer_async(
    call: &mut Call<'_>,
    to: Address,
    to_device: i32,
    from: Address,
    from_device: i32,
    bytes: usize,
    stream: Address,
) -> Outcome {
    call.checked_device(to_device)?;
    call.checked_device(from_device)?;
    transfer(call, Transfer { to, from, bytes: bytes as u64, stream, synchronous: false })
}

/// `cudaMemcpy2D`.
pub(crate) fn memcpy_2d(
    call: &mut Call<'_>,
    to: Address,
    to_pitch: usize,
    from: Address,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: i32,
) -> Outcome {
    check_kind(kind)?;
    let [to_pitch, from_pitch, width, height] = [to_pitch, from_pitch, width, height].map(|n| n as u64);
    transfer_2d(
        call,
        Transfer2D { to, to_pitch, from, from_pitch, width, height, stream: 0, synchronous: true },
    )
}

/// `cudaMemcpy2DAsync`.
pub(crate) fn memcpy_2d_async(
    call: &mut Call<'_>,
    to: Address,
    to_pitch: usize,
    from: Address,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: i32,
    stream: Address,
) -> Outcome {
    check_kind(kind)?;
    let [to_pitch, from_pitch, width, height] = [to_pitch, from_pitch, width, height].map(|n| n as u64);
    transfer_2d(
        call,
        Transfer2D { to, to_pitch, from, from_pitch, width, height, stream, synchronous: false },
    )
}

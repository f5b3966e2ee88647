//! The driver's copy functions: the direction is in the name, the addresses say the same.

use trompe_cuda_abi::runtime::Address;

use crate::common::Outcome;
use crate::common::copy::{Transfer, transfer};
use crate::door::Call;

/// `cuMemcpy`, `cuMemcpyHtoD`, `cuMemcpyDtoH`, `cuMemcpyDtoD`.
pub(crate) fn copy(call: &mut Call<'_>, to: Address, from: Address, bytes: usize) -> Outcome {
    transfer(call, Transfer { to, from, bytes: bytes as u64, stream: 0, synchronous: true })
}

/// `cuMemcpyAsync`, `cuMemcpyHtoDAsync`, `cuMemcpyDtoHAsync`, `cuMemcpyDtoDAsync`.
pub(crate) fn copy_async(
    call: &mut Call<'_>,
    to: Address,
    from: Address,
    bytes: usize,
    stream: Address,
) -> Outcome {
    transfer(call, Transfer { to, from, bytes: bytes as u64, stream, synchronous: false })
}

/// `cuMemcpyPeer`.
pub(crate) fn peer(
    call: &mut Call<'_>,
    to: Address,
    _: Address,
    from: Address,
    _: Address,
    bytes: usize,
) -> Outcome {
    copy(call, to, from, bytes)
}

/// `cuMemcpyPeerAsync`.
pub(crate) fn peer_async(
    call: &mut Call<'_>,
    to: Address,
    _: Address,
    from: Address,
    _: Address,
    bytes: usize,
    stream: Address,
) -> Outcome {
    copy_async(call, to, from, bytes, stream)
}

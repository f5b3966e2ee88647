//! The driver's fills: elements of one, two or four bytes.

use trompe_cuda_abi::runtime::Address;

use crate::common::Outcome;
use crate::common::fill::{Fill, fill};
use crate::door::Call;

/// `cuMemsetD8`.
pub(crate) fn bytes(call: &mut Call<'_>, to: Address, value: u8, count: usize) -> Outcome {
    bytes_async(call, to, value, count, 0)
}

/// `cuMemsetD8Async`.
pub(crate) fn bytes_async(
    call: &mut Call<'_>,
    to: Address,
    value: u8,
    count: usize,
    stream: Address,
) -> Outcome {
    fill(call, Fill { to, pattern: vec![value], count: count as u64, stream })
}

/// `cuMemsetD16`.
pub(crate) fn halves(call: &mut Call<'_>, to: Address, value: u16, count: usize) -> Outcome {
    halves_async(call, to, value, count, 0)
}

/// `cuMemsetD16Async`.
pub(crate) fn halves_async(
    call: &mut Call<'_>,
    to: Address,
    value: u16,
    count: usize,
    stream: Address,
) -> Outcome {
    fill(call, Fill { to, pattern: value.to_le_bytes().to_vec(), count: count as u64, stream })
}

/// `cuMemsetD32`.
pub(crate) fn words(call: &mut Call<'_>, to: Address, value: u32, count: usize) -> Outcome {
    words_async(call, to, value, count, 0)
}

/// `cuMemsetD32Async`.
pub(crate) fn words_async(
    call: &mut Call<'_>,
    to: Address,
    value: u32,
    count: usize,
    stream: Address,
) -> Outcome {
    fill(call, Fill { to, pattern: value.to_le_bytes().to_vec(), count: count as u64, stream })
}

//! Tensor maps: opaque descriptions of tensors that kernels of compute capability 9 and later load by.

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::{Address, RuntimeError};

use crate::common::Outcome;
use crate::door::Call;
use crate::failure::Failure;

/// `cuTensorMapEncodeTiled`: the address, type, rank and extents, in a layout of our own.
pub(crate) fn encode_tiled(
    call: &mut Call<'_>,
    map: Out<[u8; 128]>,
    data_type: i32,
    rank: u32,
    address: Address,
    extents: In<u64>,
    _: In<u64>,
    tile: In<u32>,
    _: In<u32>,
    _: i32,
    _: i32,
    _: i32,
    _: i32,
) -> Outcome {
    let capability = call.machine().sheet().ok_or(Failure::NoDevice)?.compute.capability_major;
    if capability < 9 {
        return Err(RuntimeError::NOT_SUPPORTED.into());
    }
    if !(1..=5).contains(&rank) || !address.is_multiple_of(16) {
        return Err(Failure::InvalidValue);
    }
    let mut words = vec![address, u64::from(rank) << 32 | u64::from(data_type as u32)];
    words.extend(extents.read_many(rank as usize)?);
    words.extend(tile.read_many(rank as usize)?.into_iter().map(u64::from));
    let mut bytes = [0; 128];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    map.write(bytes)?;
    Ok(())
}

/// `cuTensorMapReplaceAddress`.
pub(crate) fn replace_address(_: &mut Call<'_>, map: Out<u64>, address: Address) -> Outcome {
    map.write(address)?;
    Ok(())
}

//! Registered variables as device memory, made when first asked for, one per device.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use trompe_base::DeviceIndex;
use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::Address;

use super::register::registry;
use crate::common::Outcome;
use crate::common::copy::{Transfer, transfer};
use crate::door::Call;
use crate::failure::Failure;

fn address_of(call: &Call<'_>, symbol: Address) -> Result<(u64, u64), Failure> {
    static PLACES: Mutex<BTreeMap<(u64, DeviceIndex), u64>> = Mutex::new(BTreeMap::new());
    let bytes = registry().variable(symbol)?.max(1);
    let key = (symbol, call.device());
    let mut places = PLACES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&place) = places.get(&key) {
        return Ok((place, bytes));
    }
    let place = call.machine().memory.allocate(key.1, bytes)?;
    places.insert(key, place);
    Ok((place, bytes))
}

/// `cudaGetSymbolAddress`.
pub(crate) fn address(call: &mut Call<'_>, out: Out<u64>, symbol: Address) -> Outcome {
    call.activate(call.device())?;
    out.write(address_of(call, symbol)?.0)?;
    Ok(())
}

/// `cudaGetSymbolSize`.
pub(crate) fn size(_: &mut Call<'_>, out: Out<u64>, symbol: Address) -> Outcome {
    let bytes = registry().variable(symbol)?;
    out.write(bytes)?;
    Ok(())
}

struct Part {
    symbol: Address,
    offset: usize,
    bytes: usize,
}

fn part(call: &mut Call<'_>, part: &Part) -> Result<u64, Failure> {
    call.activate(call.device())?;
    let (place, bytes) = address_of(call, part.symbol)?;
    let end = part.offset.checked_add(part.bytes).ok_or(Failure::InvalidValue)?;
    if end as u64 > bytes { Err(Failure::InvalidValue) } else { Ok(place + part.offset as u64) }
}

/// `cudaMemcpyToSymbol`.
pub(crate) fn write(
    call: &mut Call<'_>,
    symbol: Address,
    from: Address,
    bytes: usize,
    offset: usize,
    _: i32,
) -> Outcome {
    let to = part(call, &Part { symbol, offset, bytes })?;
    transfer(call, Transfer { to, from, bytes: bytes as u64, stream: 0, synchronous: true })
}

/// `cudaMemcpyToSymbolAsync`.
pub(crate) fn write_async(
    call: &mut Call<'_>,
    symbol: Address,
    from: Address,
    bytes: usize,
    offset: usize,
    _: i32,
    stream: Address,
) -> Outcome {
    let to = part(call, &Part { symbol, offset, bytes })?;
    transfer(call, Transfer { to, from, bytes: bytes as u64, stream, synchronous: false })
}

/// `cudaMemcpyFromSymbol`.
pub(crate) fn read(
    call: &mut Call<'_>,
    to: Address,
    symbol: Address,
    bytes: usize,
    offset: usize,
    _: i32,
) -> Outcome {
    let from = part(call, &Part { symbol, offset, bytes })?;
    transfer(call, Transfer { to, from, bytes: bytes as u64, stream: 0, synchronous: true })
}

/// `cudaMemcpyFromSymbolAsync`.
pub(crate) fn read_async(
    call: &mut Call<'_>,
    to: Address,
    symbol: Address,
    bytes: usize,
    offset: usize,
    _: i32,
    stream: Address,
) -> Outcome {
    let from = part(call, &Part { symbol, offset, bytes })?;
    transfer(call, Transfer { to, from, bytes: bytes as u64, stream, synchronous: false })
}

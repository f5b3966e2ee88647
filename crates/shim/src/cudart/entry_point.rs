//! Driver functions by name.

use trompe_cuda_abi::pointer::{Out, Text};

use crate::common::Outcome;
use crate::door::Call;
use crate::export;
use crate::log::{Level, say};

const FOUND: i32 = 0;
const NOT_FOUND: i32 = 1;

/// Address of the newest version of a driver function that is exported.
pub(crate) fn driver_function(symbol: &str) -> Option<usize> {
    ["_v4", "_v3", "_v2", ""].iter().find_map(|version| export::find(&format!("{symbol}{version}")))
}

/// `cudaGetDriverEntryPointByVersion`.
pub(crate) fn by_version(
    call: &mut Call<'_>,
    symbol: Text,
    function: Out<u64>,
    _: u32,
    flags: u64,
    status: Out<i32>,
) -> Outcome {
    find(call, symbol, function, flags, status)
}

/// `cudaGetDriverEntryPoint`.
pub(crate) fn find(_: &mut Call<'_>, symbol: Text, function: Out<u64>, _: u64, status: Out<i32>) -> Outcome {
    let symbol = symbol.read()?;
    let found = driver_function(&symbol);
    if found.is_none() {
        say(Level::Info, &format!("`{symbol}` was asked for by name and is not emulated"));
    }
    function.write(found.unwrap_or(0) as u64)?;
    status.write_if_given(if found.is_some() { FOUND } else { NOT_FOUND });
    Ok(())
}

//! Driver functions by name.

use trompe_cuda_abi::pointer::{Out, Text};
use trompe_cuda_abi::runtime::RuntimeError;

use crate::caller;
use crate::common::Outcome;
use crate::cudart::entry_point::driver_function;
use crate::door::Call;
use crate::export;
use crate::log::{Level, say};

/// `cuGetProcAddress_v2`.
pub(crate) fn find(
    call: &mut Call<'_>,
    symbol: Text,
    function: Out<u64>,
    version: i32,
    flags: u64,
    status: Out<i32>,
) -> Outcome {
    const NOT_FOUND: i32 = 1;
    let found = find_before_12(call, symbol, function, version, flags);
    status.write_if_given(if found.is_ok() { 0 } else { NOT_FOUND });
    found
}

/// `cuGetProcAddress` as it was before CUDA 12.
pub(crate) fn find_before_12(
    _: &mut Call<'_>,
    symbol: Text,
    function: Out<u64>,
    version: i32,
    _: u64,
) -> Outcome {
    let symbol = symbol.read()?;
    let old = symbol == "cuGetProcAddress" && version < 12_000;
    let found = if old { export::find(&symbol) } else { driver_function(&symbol) };
    if found.is_none() {
        say(Level::Info, &format!("`{symbol}` was asked for by name and is not emulated"));
    }
    function.write(found.unwrap_or(0) as u64)?;
    found.map(drop).ok_or(RuntimeError::SYMBOL_NOT_FOUND.into())
}

/// `cuGetExportTable`: undocumented tables that a statically linked runtime asks for.
pub(crate) fn export_table(_: &mut Call<'_>, table: Out<u64>, _: u64) -> Outcome {
    static SAID: std::sync::Once = std::sync::Once::new();
    SAID.call_once(|| {
        let library = caller::library().unwrap_or_else(|| "an extension".to_owned());
        say(
            Level::Warning,
            &format!(
                "`{library}` contains the CUDA runtime statically (it asked for `cuGetExportTable`), which cannot be \
                 emulated; build it with `-cudart shared`"
            ),
        );
    });
    table.write_if_given(0);
    Err(RuntimeError::NOT_SUPPORTED.into())
}

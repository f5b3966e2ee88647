//! Allocation of device memory.

use trompe_cuda_abi::pointer::Out;
use trompe_cuda_abi::runtime::Address;
use trompe_device::memory::BlockKind;
use trompe_trace::record::Record;

use crate::door::Call;
use crate::failure::Failure;

type Result = std::result::Result<(), Failure>;

/// `cudaMalloc`.
pub(crate) fn malloc(call: &mut Call<'_>, address: Out<u64>, bytes: usize) -> Result {
    let device = call.device();
    call.activate(device)?;
    if bytes == 0 {
        return Ok(address.write(0)?);
    }
    let bytes = bytes as u64;
    let got = call.machine().memory.allocate(device, bytes);
    let at = got.as_ref().map_or(0, |&at| at);
    call.record(&Record::Malloc { api: call.api.0, device, address: at, bytes });
    address.write(at)?;
    got.map(drop).map_err(Failure::from)
}

/// `cudaFree`.
pub(crate) fn free(call: &mut Call<'_>, address: Address) -> Result {
    let device = call.device();
    call.activate(device)?;
    if address == 0 {
        return Ok(());
    }
    let block = call.machine().memory.free(address, BlockKind::is_freed_as_device)?;
    let device = block.kind.device();
    call.record(&Record::Free { api: call.api.0, device, address, bytes: block.bytes });
    Ok(())
}

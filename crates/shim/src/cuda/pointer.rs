//! What an address is, with the driver's signatures.

use trompe_cuda_abi::pointer::{In, Out};
use trompe_cuda_abi::runtime::Address;
use trompe_device::memory::BlockKind;

use super::context;
use crate::common::Outcome;
use crate::door::Call;
use crate::failure::Failure;
use crate::process::HostMachine;

/// A known address.
struct Known {
    start: u64,
    bytes: u64,
    id: u64,
    device: trompe_base::DeviceIndex,
    on_device: bool,
    managed: bool,
}

fn known(machine: &HostMachine, address: Address) -> Option<Known> {
    if let Some(device) = machine.memory.device_of(address) {
        let (start, bytes, id) = machine.memory.device_range(address)?;
        return Some(Known { start, bytes, id, device, on_device: true, managed: false });
    }
    let (start, block) = machine.memory.block_at(address)?;
    let managed = matches!(block.kind, BlockKind::Managed { .. });
    let device = block.kind.device();
    Some(Known { start, bytes: block.bytes, id: block.id, device, on_device: managed, managed })
}

/// `cuPointerGetAttribute`.
pub(crate) fn get_attribute(call: &mut Call<'_>, data: Address, number: i32, address: Address) -> Outcome {
    let machine = call.machine();
    let known = known(&machine, address).ok_or(Failure::InvalidValue)?;
    write(&machine, data, number, address, &known)
}

/// `cuPointerGetAttributes`: unknown addresses read zero.
pub(crate) fn get_attributes(
    call: &mut Call<'_>,
    count: u32,
    numbers: In<i32>,
    data: In<u64>,
    address: Address,
) -> Outcome {
    /// There are fewer attributes than this.
    const MOST: u32 = 64;
    if count == 0 || count > MOST {
        return Err(Failure::InvalidValue);
    }
    let machine = call.machine();
    let known = known(&machine, address);
    for index in 0..count as usize {
        let (number, place) = (numbers.read_at(index)?, data.read_at(index)?);
        match &known {
            Some(known) => write(&machine, place, number, address, known)?,
            None => Out::<i32>::new(place as usize).write_if_given(0),
        }
    }
    Ok(())
}

fn write(machine: &HostMachine, data: Address, number: i32, address: Address, known: &Known) -> Outcome {
    const HOST: u32 = 1;
    const DEVICE: u32 = 2;
    let (wide, word) = (Out::<u64>::new(data as usize), Out::<u32>::new(data as usize));
    match number {
        1 => wide.write(context::handle(known.device))?,
        2 => word.write(if known.on_device { DEVICE } else { HOST })?,
        3 => wide.write(address)?,
        4 if known.on_device && !known.managed => return Err(Failure::InvalidValue),
        4 => wide.write(address)?,
        6 => word.write(0)?,
        7 | 20 => wide.write(known.id)?,
        8 => word.write(u32::from(known.managed))?,
        9 => word.write(known.device.0)?,
        10 => word.write(u32::from(
            known.on_device && machine.memory.virtual_memory.mapped_at(address).is_none(),
        ))?,
        11 | 19 => wide.write(known.start)?,
        12 | 18 => wide.write(known.bytes)?,
        13 => word.write(1)?,
        14 => {
            const POSIX_FILE: u64 = 1;
            let mapped = machine.memory.virtual_memory.mapped_at(address);
            wide.write(if mapped.is_some() { POSIX_FILE } else { 0 })?;
        }
        15 => word.write(0)?,
        16 => word.write(3)?,
        17 => wide.write(0)?,
        _ => return Err(Failure::InvalidValue),
    }
    Ok(())
}

/// `cuPointerSetAttribute`.
pub(crate) fn set_attribute(call: &mut Call<'_>, _: Address, _: i32, address: Address) -> Outcome {
    known(&call.machine(), address).map(drop).ok_or(Failure::InvalidValue)
}

/// `cuMemGetAddressRange`.
pub(crate) fn address_range(
    call: &mut Call<'_>,
    start: Out<u64>,
    bytes: Out<u64>,
    address: Address,
) -> Outcome {
    let found = known(&call.machine(), address).ok_or(Failure::InvalidValue)?;
    start.write_if_given(found.start);
    bytes.write_if_given(found.bytes);
    Ok(())
}

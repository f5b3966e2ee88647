//! Questions about devices, and waiting for one.

use trompe_base::DeviceIndex;
use trompe_cuda_abi::pointer::{Out, Text};
use trompe_cuda_abi::runtime::RuntimeError;
use trompe_device::attribute::attribute;
use trompe_trace::record::Record;

use super::Outcome;
use crate::door::Call;
use crate::failure::Failure;

/// Most urgent stream priority; the least urgent is 0. As current devices report it.
pub(crate) const GREATEST_PRIORITY: i32 = -5;

/// `cudaDeviceGetAttribute`, `cuDeviceGetAttribute`.
pub(crate) fn get_attribute(call: &mut Call<'_>, value: Out<i32>, number: i32, device: i32) -> Outcome {
    let index = call.checked_device(device)?;
    let machine = call.machine();
    let node = machine.node().ok_or(Failure::NoDevice)?;
    value.write(attribute(node, machine.physical(index), number).ok_or(Failure::InvalidValue)?)?;
    Ok(())
}

/// `cudaDeviceGetPCIBusId`, `cuDeviceGetPCIBusId`.
pub(crate) fn pci_bus_id(call: &mut Call<'_>, text: Out<u8>, length: i32, device: i32) -> Outcome {
    let index = call.checked_device(device)?;
    let machine = call.machine();
    let pci = machine.node().ok_or(Failure::NoDevice)?.pci(machine.physical(index));
    let written = format!("{:04X}:{:02X}:{:02X}.0", pci.domain, pci.bus, pci.device);
    text.write_text(&written, usize::try_from(length).map_err(|_| Failure::InvalidValue)?)?;
    Ok(())
}

/// `cudaDeviceGetByPCIBusId`, `cuDeviceGetByPCIBusId`.
pub(crate) fn by_pci_bus_id(call: &mut Call<'_>, device: Out<i32>, text: Text) -> Outcome {
    let text = text.read()?;
    let mut parts = text.rsplit([':', '.']).filter_map(|part| u32::from_str_radix(part, 16).ok());
    let (_, slot, bus, domain) = (parts.next(), parts.next(), parts.next(), parts.next().unwrap_or(0));
    let machine = call.machine();
    let node = machine.node().ok_or(Failure::NoDevice)?;
    let found = (0..machine.device_count()).find(|&index| {
        let pci = node.pci(machine.physical(DeviceIndex(index)));
        (Some(u32::from(pci.device)), Some(u32::from(pci.bus)), pci.domain) == (slot, bus, domain)
    });
    device.write(found.ok_or(Failure::Cuda(RuntimeError::INVALID_DEVICE))? as i32)?;
    Ok(())
}

/// `cudaDeviceCanAccessPeer`, `cuDeviceCanAccessPeer`.
pub(crate) fn can_access_peer(call: &mut Call<'_>, answer: Out<i32>, device: i32, peer: i32) -> Outcome {
    call.checked_device(device)?;
    call.checked_device(peer)?;
    let access = call.machine().node().is_some_and(|node| node.peer_access);
    answer.write(i32::from(access && device != peer))?;
    Ok(())
}

/// `cudaDeviceEnablePeerAccess`.
pub(crate) fn enable_peer_access(call: &mut Call<'_>, peer: i32, flags: u32) -> Outcome {
    let peer = call.checked_device(peer)?;
    if flags != 0 || peer == call.device() {
        return Err(if flags == 0 { Failure::InvalidDevice(peer.0 as i32) } else { Failure::InvalidValue });
    }
    let device = call.device();
    let mut machine = call.machine();
    if !machine.node().is_some_and(|node| node.peer_access) {
        return Err(RuntimeError::PEER_ACCESS_UNSUPPORTED.into());
    }
    if machine.peers.insert((device, peer)) {
        Ok(())
    } else {
        Err(RuntimeError::PEER_ACCESS_ALREADY_ENABLED.into())
    }
}

/// `cudaDeviceDisablePeerAccess`.
pub(crate) fn disable_peer_access(call: &mut Call<'_>, peer: i32) -> Outcome {
    let peer = call.checked_device(peer)?;
    let device = call.device();
    if call.machine().peers.remove(&(device, peer)) {
        Ok(())
    } else {
        Err(RuntimeError::PEER_ACCESS_NOT_ENABLED.into())
    }
}

/// `cudaDeviceGetP2PAttribute`, `cuDeviceGetP2PAttribute`: rank, access, native atomics, array access.
pub(crate) fn p2p_attribute(
    call: &mut Call<'_>,
    value: Out<i32>,
    number: i32,
    device: i32,
    peer: i32,
) -> Outcome {
    call.checked_device(device)?;
    call.checked_device(peer)?;
    let machine = call.machine();
    let node = machine.node().ok_or(Failure::NoDevice)?;
    let access = i32::from(node.peer_access && device != peer);
    let nvlink = i32::from(node.device.interconnect.nvlink_links > 0);
    value.write(match number {
        1 => 0,
        2 => access,
        3 => access * nvlink,
        4 => access,
        _ => return Err(Failure::InvalidValue),
    })?;
    Ok(())
}

/// `cudaDeviceGetStreamPriorityRange`, `cuCtxGetStreamPriorityRange`.
pub(crate) fn priority_range(_: &mut Call<'_>, least: Out<i32>, greatest: Out<i32>) -> Outcome {
    least.write_if_given(0);
    greatest.write_if_given(GREATEST_PRIORITY);
    Ok(())
}

/// `cudaDeviceSynchronize`, `cuCtxSynchronize`.
pub(crate) fn synchronize(call: &mut Call<'_>) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    // Forbidden while this thread's capture is a global one; other modes allow it on other streams.
    let forbidden =
        call.thread.capture_mode.get() == 0 && call.machine().graphs.captures_on_thread(call.thread_key());
    if forbidden {
        call.machine().graphs.invalidate_on_thread(call.thread_key());
        return Err(RuntimeError::STREAM_CAPTURE_UNSUPPORTED.into());
    }
    call.record(&Record::DeviceSynchronize { api: call.api.0, device });
    call.machine().progress.finish_device(device);
    Ok(())
}

/// `cudaRuntimeGetVersion`.
pub(crate) fn runtime_version(call: &mut Call<'_>, version: Out<i32>) -> Outcome {
    let number = call.machine().node().map_or(13_020, |node| node.software.cuda_runtime);
    version.write(number as i32)?;
    Ok(())
}

/// `cudaDriverGetVersion`, `cuDriverGetVersion`.
pub(crate) fn driver_version(call: &mut Call<'_>, version: Out<i32>) -> Outcome {
    let number = call.machine().node().map_or(13_020, |node| node.software.cuda_driver);
    version.write(number as i32)?;
    Ok(())
}

/// `cudaMemGetInfo`, `cuMemGetInfo`.
pub(crate) fn memory_info(call: &mut Call<'_>, free: Out<u64>, total: Out<u64>) -> Outcome {
    let device = call.device();
    call.activate(device)?;
    let (free_bytes, total_bytes) = call.machine().memory.info(device).ok_or(Failure::NoDevice)?;
    free.write(free_bytes)?;
    total.write(total_bytes)?;
    Ok(())
}

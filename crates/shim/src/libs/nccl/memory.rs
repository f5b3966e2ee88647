//! The device memory that communicators take.

use trompe_base::DeviceIndex;
use trompe_device::communicator::footprint::{self, DEFAULT_BUFFER, Shape, Surroundings};
use trompe_device::communicator::{Communicator, Connections};
use trompe_trace::record::{CollectiveKind, Record};

use crate::door::Call;
use crate::environment;
use crate::libs::{LibraryFailure, Outcome, libraries};

/// Who the memory is charged to.
const OWNER: &str = "nccl_buffers";

/// The machine, and how many devices a node has.
fn surroundings(call: &Call<'_>) -> Option<(Surroundings, u32)> {
    let machine = call.machine();
    let node = machine.node()?;
    let compute = &node.device.compute;
    let nvlink = node.device.interconnect.nvlink_links > 0;
    let (buffer, nvls) = environment::nccl();
    let around = Surroundings {
        version: node.software.nccl,
        capability: compute.capability_major * 10 + compute.capability_minor,
        nvlink,
        nvswitch: nvlink && node.peer_access && node.device_count > 2,
        buffer: buffer.unwrap_or(DEFAULT_BUFFER),
        nvls,
    };
    Some((around, node.device_count.max(1)))
}

/// Whether the member at a place is on this node. Where the members are not known, neighbours share one.
fn is_local(communicator: &Communicator, place: u32, devices: u32) -> bool {
    let node = |place: u32| communicator.members.get(place as usize).copied().unwrap_or(place) / devices;
    node(place) == node(communicator.rank)
}

fn local_members(communicator: &Communicator, devices: u32) -> u32 {
    let most = communicator.size.min(devices);
    if communicator.members.is_empty() {
        return most;
    }
    let count = (0..communicator.size).filter(|place| is_local(communicator, *place, devices)).count();
    (count as u32).clamp(1, most)
}

fn take(call: &mut Call<'_>, device: DeviceIndex, bytes: i64) -> Outcome {
    if bytes != 0 {
        call.machine().memory.charge(device, OWNER, bytes).map_err(|_| LibraryFailure::OutOfMemory)?;
        call.announce(&Record::Charge { device, owner: OWNER, bytes });
    }
    Ok(())
}

/// Charges what a new communicator takes at once.
pub(super) fn charge_creation(call: &mut Call<'_>, handle: u64) -> Outcome {
    let Some((around, devices)) = surroundings(call) else { return Ok(()) };
    let communicator = libraries().communicators.get(handle)?.clone();
    let shape = Shape { size: communicator.size, local: local_members(&communicator, devices) };
    let bytes = footprint::at_creation(&around, shape);
    take(call, communicator.device, bytes as i64)?;
    Ok(libraries().communicators.hold(handle, bytes)?)
}

/// Charges the connections that a call is the first to need.
pub(super) fn charge_call(call: &mut Call<'_>, handle: u64, kind: CollectiveKind, peer: u32) -> Outcome {
    let Some((around, devices)) = surroundings(call) else { return Ok(()) };
    let communicator = libraries().communicators.get(handle)?.clone();
    let with = |place: u32| (place, is_local(&communicator, place, devices));
    let peers: Option<Vec<(u32, bool)>> = match kind {
        CollectiveKind::Send | CollectiveKind::Recv => Some(vec![with(peer)]),
        CollectiveKind::AllToAll => Some((0..communicator.size).map(with).collect()),
        CollectiveKind::Gather | CollectiveKind::Scatter if peer == communicator.rank => {
            Some((0..communicator.size).map(with).collect())
        }
        CollectiveKind::Gather | CollectiveKind::Scatter => Some(vec![with(peer)]),
        _ => None,
    };
    let local = local_members(&communicator, devices);
    let wanted = match &peers {
        Some(peers) => Connections::Peers(peers),
        None if kind == CollectiveKind::AllReduce => Connections::Trees,
        None => Connections::Rings,
    };
    let bytes = libraries().communicators.connect(handle, &around, local, wanted)?;
    take(call, communicator.device, bytes as i64)
}

/// Gives back what a communicator held.
pub(super) fn give_back(call: &mut Call<'_>, device: DeviceIndex, bytes: u64) -> Outcome {
    take(call, device, -(bytes as i64))
}

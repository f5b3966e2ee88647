//! NVLink, peers and affinity.

use trompe_cuda_abi::pointer::Out;
use trompe_hardware::Architecture;

use super::ask;
use crate::door::Call;
use crate::libs::{LibraryFailure, Outcome};

/// `NVML_NVLINK_DEVICE_TYPE_GPU` and `…_SWITCH`.
const REMOTE_GPU: u32 = 0;
const REMOTE_SWITCH: u32 = 2;
/// `NVML_P2P_STATUS_OK` and `…_NOT_SUPPORTED`.
const PEER_OK: u32 = 0;
const PEER_NOT_SUPPORTED: u32 = 6;
/// `NVML_TOPOLOGY_NODE`: paths between devices cross host bridges of one NUMA node.
const TOPOLOGY_NODE: u32 = 40;
/// Sets of processors and of NUMA nodes are shorter than this many words.
const MOST_WORDS: u32 = 256;

/// Answers a question about a link that exists.
fn link<T>(
    call: &Call<'_>,
    device: u64,
    link: u32,
    answer: impl FnOnce(&trompe_hardware::EmulatedNode) -> T,
) -> Result<T, LibraryFailure> {
    let found = ask(call, device, |node, _| {
        let connected = node.device_count > 1 && link < node.device.interconnect.nvlink_links;
        connected.then(|| answer(node))
    })?;
    found.ok_or(LibraryFailure::NotSupported)
}

/// `nvmlDeviceGetNvLinkState`.
pub(crate) fn state(call: &mut Call<'_>, device: u64, index: u32, state: Out<u32>) -> Outcome {
    Ok(state.write(link(call, device, index, |_| 1)?)?)
}

/// `nvmlDeviceGetNvLinkCapability`: peers can be read, written and reached by atomics.
pub(crate) fn capability(
    call: &mut Call<'_>,
    device: u64,
    index: u32,
    _capability: u32,
    answer: Out<u32>,
) -> Outcome {
    Ok(answer.write(link(call, device, index, |_| 1)?)?)
}

/// `nvmlDeviceGetNvLinkRemoteDeviceType`: nodes since Ampere have switches, Volta's and two-way bridges connect directly.
pub(crate) fn remote_kind(call: &mut Call<'_>, device: u64, index: u32, kind: Out<u32>) -> Outcome {
    let remote = link(call, device, index, |node| {
        if node.device.architecture() >= Architecture::Ampere && node.device_count > 2 {
            REMOTE_SWITCH
        } else {
            REMOTE_GPU
        }
    })?;
    Ok(kind.write(remote)?)
}

/// `nvmlDeviceGetNvLinkVersion`.
pub(crate) fn version(call: &mut Call<'_>, device: u64, index: u32, version: Out<u32>) -> Outcome {
    let generation = link(call, device, index, |node| match node.device.architecture() {
        Architecture::Volta | Architecture::Turing => 2,
        Architecture::Ampere | Architecture::AmpereGraphics | Architecture::Ada => 3,
        Architecture::Hopper => 4,
        Architecture::Blackwell | Architecture::BlackwellGraphics => 5,
    })?;
    Ok(version.write(generation)?)
}

/// `nvmlDeviceGetP2PStatus`.
pub(crate) fn peer_status(
    call: &mut Call<'_>,
    device: u64,
    peer: u64,
    _index: u32,
    status: Out<u32>,
) -> Outcome {
    ask(call, peer, |_, _| ())?;
    let access = ask(call, device, |node, _| node.peer_access)?;
    Ok(status.write(if access { PEER_OK } else { PEER_NOT_SUPPORTED })?)
}

/// `nvmlDeviceGetTopologyCommonAncestor`.
pub(crate) fn common_ancestor(call: &mut Call<'_>, device: u64, peer: u64, level: Out<u32>) -> Outcome {
    ask(call, device, |_, _| ())?;
    ask(call, peer, |_, _| ())?;
    Ok(level.write(TOPOLOGY_NODE)?)
}

fn everything(call: &Call<'_>, device: u64, words: u32, set: Out<u64>) -> Outcome {
    ask(call, device, |_, _| ())?;
    for index in 0..words.min(MOST_WORDS) as usize {
        set.write_at(index, u64::MAX)?;
    }
    Ok(())
}

/// `nvmlDeviceGetCpuAffinity`: any processor is as near as any other.
pub(crate) fn cpu_affinity(call: &mut Call<'_>, device: u64, words: u32, set: Out<u64>) -> Outcome {
    everything(call, device, words, set)
}

/// `nvmlDeviceGetCpuAffinityWithinScope`.
pub(crate) fn cpu_affinity_within(
    call: &mut Call<'_>,
    device: u64,
    words: u32,
    set: Out<u64>,
    _scope: u32,
) -> Outcome {
    everything(call, device, words, set)
}

/// `nvmlDeviceGetMemoryAffinity`: the first NUMA node.
pub(crate) fn memory_affinity(
    call: &mut Call<'_>,
    device: u64,
    words: u32,
    set: Out<u64>,
    _scope: u32,
) -> Outcome {
    ask(call, device, |_, _| ())?;
    for index in 0..words.min(MOST_WORDS) as usize {
        set.write_at(index, u64::from(index == 0))?;
    }
    Ok(())
}

/// `nvmlDeviceGetGpuFabricInfo`: the devices of one node are a fabric of their own, so its cluster is number zero. The
/// words are the cluster's 16 bytes, a status, the clique and the state.
pub(crate) fn fabric(call: &mut Call<'_>, device: u64, information: Out<u32>) -> Outcome {
    fabric_at(call, device, information, 0)
}

/// `nvmlDeviceGetGpuFabricInfoV`: after a word with the structure's version (which has its size in the lower bits)
/// come the words of [`fabric`], and from version 2 on a mask of what is unhealthy.
pub(crate) fn fabric_versioned(call: &mut Call<'_>, device: u64, information: Out<u32>) -> Outcome {
    fabric_at(call, device, information, 1)?;
    if information.read()? >> 24 >= 2 {
        information.write_at(8, 0)?;
    }
    Ok(())
}

fn fabric_at(call: &Call<'_>, device: u64, information: Out<u32>, first: usize) -> Outcome {
    /// `NVML_GPU_FABRIC_STATE_COMPLETED`, `…_NOT_SUPPORTED`.
    const COMPLETED: u32 = 3;
    const NOT_SUPPORTED: u32 = 0;
    let state = ask(call, device, |node, _| {
        let switched = node.device.interconnect.nvlink_links > 0 && node.device_count > 2;
        let fabric = switched && node.device.architecture() >= Architecture::Hopper;
        if fabric { COMPLETED } else { NOT_SUPPORTED }
    })?;
    for word in 0..6 {
        information.write_at(first + word, 0)?;
    }
    Ok(information.write_at(first + 6, state)?)
}

//! How much device memory NCCL takes for a communicator.
//!
//! Sources: NCCL's public code (2.18 to 2.30). A connection between two devices of a node has a receive buffer that
//! holds a first-in-first-out queue for each protocol (`src/transport/p2p.cc`, `p2pRecvSetup`) and a small send buffer,
//! both in steps of 2 MiB (`CUDA_IPC_MIN`); queue sizes are `DEFAULT_*_BUFFSIZE` in `src/init.cc`. A ring has one
//! connection in and one out per channel. The tree of a node is the ring's chain walked both ways, so that it needs the
//! ring's connections in the other direction too, but for the two ends. NVLink SHARP takes two queues of eight steps per
//! channel and member of the node (`src/transport/nvls.cc`). Through the network, queues of collectives lie on the device
//! at both ends (`src/transport/net.cc`, GPUDirect RDMA); sends and receives share one pool for each direction instead
//! (`sharedNetBuffersInit`: channels × 16 steps × the chunk size of `computeBuffSizes`). From 2.22 on connections are
//! made when an algorithm is first used, before that rings, trees and the pool of sends all at once, whatever the size.
//! How many channels a pair of ranks uses is `ncclTopoComputeP2pChannels`: those of the slowest pair for all of them.
//!
//! The numbers of channels are those that NCCL prints on the usual machines (its log line "24 coll channels, 16 nvls
//! channels, 32 p2p channels": eight H100 on NVSwitch), because they come from a search over the machine's topology that
//! is not repeated here. Checked against measurements in the project's issues:
//!
//! * 964 (4 × A100 with NVLink, 2023): 544 MB for a group of two, which is this model's number, and 688 MB on rank 0 for
//!   groups of three and four, where it says 736 and 760: the mean over the members, of which the first has least.
//! * 1685 (8 × H100: buffers of 10,485,760 and 2,097,152 bytes; 1.06 GB of context, ring and NVLink SHARP before the first
//!   all-to-all and 4.34 GB after it): 2.82 of the 3.28 GB. The rest is no buffer of these two sizes that NCCL's log
//!   names, so it is not made up here.
//! * 2366 (one device, connections at once): a pool of 512 MiB with 64 channels; half of that with the 32 of the versions
//!   that always do so.

/// First version that connects when needed.
const LAZY: u32 = 22_200;
/// First version that gives a pair of ranks as many channels as its network adapters carry.
const WIDE: u32 = 22_900;
/// First version with NVLink SHARP.
const NVLS: u32 = 21_700;
const MIB: u64 = 1 << 20;
/// Steps in which buffers between devices are allocated.
const STEP: u64 = 2 * MIB;
/// Queues of the protocols LL (8 lines × 512 threads × 8 steps × 16 bytes) and LL128 (120 × 640 × 8 × 8 bytes).
const LL: u64 = 8 * 512 * 8 * 16;
const LL128: u64 = 120 * 640 * 8 * 8;
/// Queue of the protocol Simple, `NCCL_BUFFSIZE`.
pub const DEFAULT_BUFFER: u64 = 4 * MIB;
/// One step of NVLink SHARP, `NCCL_NVLS_CHUNKSIZE`, and the steps of a queue.
const NVLS_STEP: u64 = 128 << 10;
const STEPS: u64 = 8;
/// Steps of a channel's part of a pool, and one step of it: through the network or PCI Express, and within one NVLink
/// domain (`NCCL_P2P_NET_CHUNKSIZE`, `NCCL_P2P_NVL_CHUNKSIZE`).
const POOL_STEPS: u64 = 16;
const POOL_STEP: u64 = 128 << 10;
const POOL_STEP_NVLINK: u64 = 512 << 10;

/// The machine, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// `ncclGetVersion`.
    pub version: u32,
    /// Compute capability, 10 × major + minor.
    pub capability: u32,
    /// Devices of a node are connected by NVLink.
    pub nvlink: bool,
    /// And all by switches.
    pub nvswitch: bool,
    /// Bytes of the queue of the protocol Simple.
    pub buffer: u64,
    /// NVLink SHARP may be used (`NCCL_NVLS_ENABLE`).
    pub nvls: bool,
}

/// The members of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// All members.
    pub size: u32,
    /// Members on this node.
    pub local: u32,
}

/// What a call needs of a communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Rings or NVLink SHARP, as all collectives use.
    Ring,
    /// Trees between nodes, which only all-reduces use.
    Tree,
    /// A connection to and from a peer on this node.
    Peer,
    /// Messages to and from ranks of other nodes, whichever.
    Network,
}

/// Bytes that a communicator takes when it is made.
#[must_use]
pub fn at_creation(around: &Surroundings, shape: Shape) -> u64 {
    if around.version >= LAZY {
        return 0;
    }
    let whole = shape.local == shape.size;
    // Without a peer every device is in one NVLink domain.
    let step = if whole && (around.nvlink || shape.size == 1) { POOL_STEP_NVLINK } else { POOL_STEP };
    let channels = if shape.size == 1 { 32 } else { pool_channels(around, !whole) };
    let connections = of(around, shape, Need::Ring) + of(around, shape, Need::Tree);
    connections + tree_of_node(around, shape) + channels * POOL_STEPS * step
}

/// Bytes that a communicator takes for the first call with a need.
#[must_use]
pub fn at_first(around: &Surroundings, shape: Shape, need: Need) -> u64 {
    match need {
        Need::Ring | Need::Tree if around.version < LAZY => 0,
        // The pool of sends is there already.
        Need::Network if around.version < LAZY => of(around, shape, need) / 2,
        _ => of(around, shape, need),
    }
}

fn of(around: &Surroundings, shape: Shape, need: Need) -> u64 {
    if shape.size < 2 {
        return 0;
    }
    let near = (LL + LL128 + around.buffer).next_multiple_of(STEP) + STEP;
    // Each end of a connection through the network has its own queues.
    let far = 2 * (LL + LL128 + around.buffer).next_multiple_of(STEP);
    let crosses = shape.local < shape.size;
    match need {
        Need::Peer => peer_channels(around, shape) * near,
        Need::Network => 2 * pool_channels(around, crosses) * POOL_STEPS * POOL_STEP,
        // On average one connection of this kind more in each direction.
        Need::Tree if crosses => channels(around, crosses) * far.min(near * 2),
        Need::Tree => 0,
        Need::Ring => {
            let channels = channels(around, crosses);
            let ring = if shape.local > 1 { near } else { far };
            let shares = around.nvls
                && around.nvswitch
                && around.version >= NVLS
                && around.capability >= 90
                && shape.local > 2;
            let sharp = if shares {
                nvls_channels(around, crosses) * 2 * NVLS_STEP * STEPS * u64::from(shape.local)
            } else {
                0
            };
            channels * ring + sharp
        }
    }
}

const fn channels(around: &Surroundings, crosses: bool) -> u64 {
    match (around.nvlink, crosses) {
        (true, false) => 24,
        (true, true) => 16,
        (false, _) => 2,
    }
}

const fn nvls_channels(around: &Surroundings, crosses: bool) -> u64 {
    if around.capability >= 100 && !crosses { 32 } else { 16 }
}

/// What a tree adds to a ring within a node, on the mean of its members.
fn tree_of_node(around: &Surroundings, shape: Shape) -> u64 {
    if shape.local < 3 || shape.local < shape.size {
        return 0;
    }
    let near = (LL + LL128 + around.buffer).next_multiple_of(STEP) + STEP;
    channels(around, false) * near * u64::from(shape.local - 1) / u64::from(shape.local)
}

/// Channels that sends and receives may use, `p2pnChannels`.
const fn pool_channels(around: &Surroundings, crosses: bool) -> u64 {
    channels(around, crosses).next_power_of_two()
}

/// Channels of a pair, `p2pnChannelsPerPeer`: fewer where the network is the narrow place, and fewer for many ranks.
const fn peer_channels(around: &Surroundings, shape: Shape) -> u64 {
    let all = pool_channels(around, shape.local < shape.size);
    if shape.local == shape.size {
        return all;
    }
    let wide = around.version >= WIDE;
    // An adapter of 400 Gb/s at 14 GB/s a channel; two channels before that was looked at.
    let mut own = if wide && around.nvlink { 4 } else { 2 };
    let size = shape.size as u64;
    while own > 1 && if wide { own * size.div_ceil(8) > all } else { own * size > all * 4 } {
        own /= 2;
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Surroundings = Surroundings {
        version: 23_007,
        capability: 90,
        nvlink: true,
        nvswitch: true,
        buffer: DEFAULT_BUFFER,
        nvls: true,
    };

    #[track_caller]
    fn check(around: Surroundings, shape: (u32, u32), need: Need, mib: u64) {
        let (size, local) = shape;
        assert_eq!(at_first(&around, Shape { size, local }, need) / MIB, mib);
    }

    #[test]
    fn eight_h100_are_as_measured() {
        // Rings of 24 channels × 12 MiB and NVLink SHARP of 16 channels × 2 × 1 MiB × 8 members.
        check(H100, (8, 8), Need::Ring, 24 * 12 + 256);
        // 32 channels × 12 MiB to each of seven peers: 2688 of the 3128 MiB that issue 1685 measures.
        check(H100, (8, 8), Need::Peer, 384);
    }

    #[test]
    fn pairs_across_nodes_use_fewer_channels() {
        check(H100, (16, 8), Need::Peer, 4 * 12);
        check(H100, (64, 8), Need::Peer, 2 * 12);
        check(H100, (1024, 8), Need::Peer, 12);
        let older = Surroundings { version: 22_703, ..H100 };
        check(older, (16, 8), Need::Peer, 2 * 12);
        check(older, (128, 8), Need::Peer, 12);
        check(H100, (16, 8), Need::Ring, 16 * 12 + 256);
        check(H100, (16, 8), Need::Tree, 16 * 20);
        check(H100, (8, 8), Need::Tree, 0);
        // Two pools of 16 channels × 16 steps × 128 KiB, however many peers.
        check(H100, (1024, 8), Need::Network, 64);
    }

    #[test]
    fn smaller_and_older_ones_take_less() {
        check(H100, (1, 1), Need::Ring, 0);
        check(H100, (2, 2), Need::Ring, 24 * 12);
        check(Surroundings { nvls: false, ..H100 }, (8, 8), Need::Ring, 24 * 12);
        check(Surroundings { capability: 80, ..H100 }, (8, 8), Need::Ring, 24 * 12);
        check(Surroundings { nvlink: false, nvswitch: false, ..H100 }, (4, 4), Need::Ring, 24);
        check(Surroundings { nvlink: false, nvswitch: false, ..H100 }, (4, 4), Need::Peer, 24);
        check(Surroundings { buffer: MIB, ..H100 }, (2, 2), Need::Ring, 24 * 10);
    }

    #[test]
    fn older_versions_connect_at_once() {
        let old = Surroundings { version: 21_800, capability: 80, ..H100 };
        let all = |size: u32, local: u32| at_creation(&old, Shape { size, local }) / MIB;
        // Issue 964 of NCCL measures 544 MB for two A100, and 688 for the first of three and of four.
        assert_eq!([all(2, 2), all(3, 3), all(4, 4)], [544, 736, 760]);
        // A pool of sends even where there is nobody to send to.
        assert_eq!(all(1, 1), 256);
        let shape = Shape { size: 16, local: 8 };
        assert_eq!(at_first(&old, shape, Need::Ring), 0);
        assert_eq!(at_first(&old, shape, Need::Network) / MIB, 32);
        assert_eq!(at_creation(&H100, shape), 0);
    }
}

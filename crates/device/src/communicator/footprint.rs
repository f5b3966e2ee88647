//! How much device memory NCCL takes for a communicator.
//!
//! Sources: NCCL's public code (2.30). A connection between two devices of a node has a receive buffer that holds a
//! first-in-first-out queue for each protocol (`src/transport/p2p.cc`, `p2pRecvSetup`) and a small send buffer, both in
//! steps of 2 MiB (`CUDA_IPC_MIN`); queue sizes are `DEFAULT_*_BUFFSIZE` in `src/init.cc`. A ring has one connection in
//! and one out per channel, a tree up to three of each. NVLink SHARP takes two queues of eight steps per channel and
//! member of the node (`src/transport/nvls.cc`). Through the network, queues lie on the device at both ends
//! (`src/transport/net.cc`, GPUDirect RDMA). From 2.22 on connections are made when an algorithm is first used, before
//! that all at once.
//!
//! The numbers of channels are those that NCCL prints on the usual machines (its log line "24 coll channels, 16 nvls
//! channels, 32 p2p channels": eight H100 on NVSwitch), because they come from a search over the machine's topology that
//! is not repeated here. Checked against a measurement in the project's issue 1685 (8 × H100: buffers of 10,485,760 and
//! 2,097,152 bytes; 1.06 GB of context, ring and NVLink SHARP before the first all-to-all and 4.34 GB after it).

/// First version that connects when needed.
const LAZY: u32 = 22_200;
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
    /// Rings, and trees or NVLink SHARP, as all-reduce and its relatives use.
    Collective,
    /// A connection to and from a peer.
    Peer {
        /// It is on this node.
        local: bool,
    },
}

/// Bytes that a communicator takes when it is made.
#[must_use]
pub fn at_creation(around: &Surroundings, shape: Shape) -> u64 {
    if around.version < LAZY { of(around, shape, Need::Collective) } else { 0 }
}

/// Bytes that a communicator takes for the first call with a need.
#[must_use]
pub fn at_first(around: &Surroundings, shape: Shape, need: Need) -> u64 {
    match need {
        Need::Collective if around.version < LAZY => 0,
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
        Need::Peer { local: true } => peer_channels(around) * near,
        // Send and receive through the network share queues of 128 KiB a step.
        Need::Peer { local: false } => 2 * 2 * STEPS * (128 << 10),
        Need::Collective => {
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
            // Trees between nodes: on average one connection of this kind more in each direction.
            let tree = if crosses { channels * far.min(near * 2) } else { 0 };
            channels * ring + tree + sharp
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

const fn peer_channels(around: &Surroundings) -> u64 {
    if around.nvlink { 32 } else { 2 }
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
        check(H100, (8, 8), Need::Collective, 24 * 12 + 256);
        // 32 channels × 12 MiB to each of seven peers: 2688 of the 3128 MiB that issue 1685 measures.
        check(H100, (8, 8), Need::Peer { local: true }, 384);
    }

    #[test]
    fn smaller_and_older_ones_take_less() {
        check(H100, (1, 1), Need::Collective, 0);
        check(H100, (2, 2), Need::Collective, 24 * 12);
        check(Surroundings { nvls: false, ..H100 }, (8, 8), Need::Collective, 24 * 12);
        check(Surroundings { capability: 80, ..H100 }, (8, 8), Need::Collective, 24 * 12);
        check(Surroundings { nvlink: false, nvswitch: false, ..H100 }, (4, 4), Need::Collective, 24);
        check(Surroundings { buffer: MIB, ..H100 }, (2, 2), Need::Collective, 24 * 10);
    }

    #[test]
    fn older_versions_connect_at_once() {
        let old = Surroundings { version: 21_800, ..H100 };
        let shape = Shape { size: 8, local: 8 };
        assert_eq!(at_creation(&old, shape), at_first(&H100, shape, Need::Collective));
        assert_eq!(at_first(&old, shape, Need::Collective), 0);
        assert_eq!(at_creation(&H100, shape), 0);
    }
}

//! Which algorithm and protocol NCCL takes.
//!
//! NCCL's tuner gives every candidate a latency and a bandwidth from fixed tables and the speed of the channels that
//! it found, and takes the candidate with the least `latency + bytes / bandwidth` (NVIDIA NCCL, `src/graph/tuning.cc`).
//! The same is done here, so that switch-overs fall where they fall on real machines; they are not always the fastest
//! choice. CollNet stands for SHARP: switches of the network that reduce; NVLS can use them, too. Not modelled: user
//! overrides, direct network offload.

mod tables;

use serde::{Deserialize, Serialize};
use trompe_base::Bytes;

use crate::operation::Operation;
use tables::Carrier;

/// How the bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Every rank passes to the next one.
    Ring,
    /// A chain inside each node, two complementary binary trees across nodes.
    Tree,
    /// Each device reduces its part of the node's data and hands it to the network's switches, which reduce (SHARP).
    CollnetDirect,
    /// A chain inside each node to the device that hands the data to the network's switches.
    CollnetChain,
    /// The NVLink switches reduce and multicast; across nodes the network's switches do so as well.
    Nvls,
    /// NVLS inside each node, a tree across nodes.
    NvlsTree,
    /// Parallel aggregated trees; one rank per node.
    Pat,
    /// Point-to-point transfers.
    Direct,
}

impl Algorithm {
    /// Its name in NCCL's words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::Tree => "tree",
            Self::CollnetDirect => "collnet_direct",
            Self::CollnetChain => "collnet_chain",
            Self::Nvls => "nvls",
            Self::NvlsTree => "nvls_tree",
            Self::Pat => "pat",
            Self::Direct => "direct",
        }
    }
}

/// How a message is cut and flagged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// LL: a flag with every 4 bytes.
    #[serde(rename = "ll")]
    LowLatency,
    /// LL128: a flag with every 120 bytes.
    #[serde(rename = "ll128")]
    LowLatency128,
    /// Whole chunks, then a synchronisation.
    Simple,
}

impl Protocol {
    /// Its name in NCCL's words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LowLatency => "ll",
            Self::LowLatency128 => "ll128",
            Self::Simple => "simple",
        }
    }
}

/// The generations that NCCL tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Generation {
    /// Compute capability 7.
    Volta,
    /// Compute capability 8.
    Ampere,
    /// Compute capability 9.
    Hopper,
    /// Compute capability 10 and above.
    Blackwell,
}

/// What the tuner must know of a communicator. Bandwidths in GB/s.
#[derive(Clone, Debug, PartialEq)]
pub struct Communicator {
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Generation of the devices.
    pub generation: Generation,
    /// Whether every neighbour inside a node is reached over NVLink.
    pub nvlink: bool,
    /// Whether the NVLink switches can reduce for these ranks.
    pub nvls: bool,
    /// Channels of the ring.
    pub channels: u32,
    /// What all channels of a ring carry inside a node.
    pub inside: f64,
    /// What all channels carry between nodes.
    pub network: f64,
    /// Whether the network's switches can reduce between the nodes.
    pub collnet: bool,
    /// Network adapters that the devices of a node use.
    pub adapters: u32,
    /// Latency of the network itself in microseconds.
    pub network_latency: f64,
}

/// A candidate with NCCL's estimate of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// Protocol.
    pub protocol: Protocol,
    /// NCCL's latency in microseconds.
    pub latency: f64,
    /// NCCL's algorithm bandwidth in GB/s.
    pub bandwidth: f64,
}

impl Choice {
    /// NCCL's estimate in microseconds.
    #[must_use]
    pub fn micros(&self, bytes: Bytes) -> f64 {
        self.latency + bytes.as_f64() / (1e3 * self.bandwidth)
    }
}

/// Above this many bytes to one peer, point-to-point transfers leave the LL protocol (NCCL's default of
/// `NCCL_P2P_LL_THRESHOLD`).
pub const POINT_TO_POINT_LIMIT: u64 = 16_384;

/// NCCL's choice for `bytes` (counted as [`Operation`] says).
#[must_use]
pub fn choose(operation: Operation, bytes: Bytes, communicator: &Communicator) -> Choice {
    if !operation.is_tuned() {
        return direct(operation, bytes, communicator);
    }
    const ALGORITHMS: [Algorithm; 7] = [
        Algorithm::Tree,
        Algorithm::Ring,
        Algorithm::CollnetDirect,
        Algorithm::CollnetChain,
        Algorithm::Nvls,
        Algorithm::NvlsTree,
        Algorithm::Pat,
    ];
    const PROTOCOLS: [Protocol; 3] = [Protocol::LowLatency, Protocol::LowLatency128, Protocol::Simple];
    let mut best: Option<(f64, Choice)> = None;
    for algorithm in ALGORITHMS {
        for protocol in PROTOCOLS {
            let Some(choice) = candidate(operation, bytes, communicator, (algorithm, protocol)) else {
                continue;
            };
            let time = choice.micros(bytes);
            if best.is_none_or(|(least, _)| time < least) {
                best = Some((time, choice));
            }
        }
    }
    best.expect("a ring with the simple protocol is always possible").1
}

/// Channels that NCCL gives to one peer that it reaches over the network (NCCL, `src/graph/paths.cc`,
/// `ncclTopoGetNchannels`: two for each adapter that the pair uses).
const CHANNELS_PER_NETWORK_PEER: u32 = 2;
/// Most channels of point-to-point transfers together.
const MOST_POINT_TO_POINT: u32 = 32;

/// How many channels NCCL uses: fewer for small messages, so that each thread has enough to do (NCCL,
/// `src/enqueue.cc`: threads per block 512 or 640, bytes per thread 8 or 64).
///
/// Point-to-point transfers have those of their peers: a communicator that leaves its node has as many for each peer as the
/// slowest way allows.
#[must_use]
pub fn channels(operation: Operation, choice: &Choice, bytes: Bytes, communicator: &Communicator) -> u32 {
    let peers = if operation == Operation::AllToAll { communicator.ranks.max(2) - 1 } else { 1 };
    let most = match choice.algorithm {
        Algorithm::Direct if communicator.nodes > 1 => {
            (CHANNELS_PER_NETWORK_PEER * peers).min(MOST_POINT_TO_POINT)
        }
        _ => communicator.channels.max(1),
    };
    let (threads, bytes_per_thread) = match choice.protocol {
        Protocol::LowLatency if choice.algorithm == Algorithm::Ring => {
            (512, 8 * u64::from(communicator.ranks))
        }
        Protocol::LowLatency => (512, 8),
        Protocol::LowLatency128 => (640, 8),
        Protocol::Simple => (512, 64),
    };
    let wanted = bytes.0 / (threads * bytes_per_thread);
    u32::try_from(wanted).unwrap_or(u32::MAX).clamp(1, most)
}

/// Most devices of a node that CollNet joins directly (NCCL's arity of 7 peers, and itself).
const MOST_DIRECT: u32 = 8;

fn candidate(
    operation: Operation,
    bytes: Bytes,
    c: &Communicator,
    (algorithm, protocol): (Algorithm, Protocol),
) -> Option<Choice> {
    let gathers = matches!(operation, Operation::AllGather | Operation::ReduceScatter);
    let reduces = operation == Operation::AllReduce;
    // What is gathered or scattered over the network's switches needs an adapter for each device.
    let adapter_each = c.adapters * c.nodes >= c.ranks;
    let possible = match algorithm {
        Algorithm::Ring => true,
        Algorithm::Tree => reduces,
        Algorithm::CollnetDirect => {
            let most = MOST_DIRECT * c.nodes;
            let fits = reduces || gathers && adapter_each;
            c.collnet && protocol == Protocol::Simple && c.ranks <= most && fits
        }
        Algorithm::CollnetChain => c.collnet && protocol == Protocol::Simple && reduces,
        Algorithm::Nvls => {
            let across = c.nodes == 1 || c.collnet && (reduces || adapter_each);
            c.nvls && across && protocol == Protocol::Simple && (reduces || gathers)
        }
        Algorithm::NvlsTree => c.nvls && c.nodes > 1 && protocol == Protocol::Simple && reduces,
        Algorithm::Pat => c.nodes > 1 && c.nodes == c.ranks && protocol == Protocol::Simple && gathers,
        Algorithm::Direct => false,
    };
    // LL128 needs stores of 128 bytes that arrive whole: NVLink inside the node.
    if !possible || protocol == Protocol::LowLatency128 && !c.nvlink {
        return None;
    }
    let latency = latency(operation, bytes, c, (algorithm, protocol));
    let bandwidth = bandwidth(operation, bytes, c, (algorithm, protocol));
    (bandwidth > 0.0).then_some(Choice { algorithm, protocol, latency, bandwidth })
}

/// Steps of the ring, as NCCL counts them.
fn ring_steps(operation: Operation, ranks: u32) -> f64 {
    let n = f64::from(ranks);
    match operation {
        Operation::AllReduce => 2.0 * (n - 1.0),
        Operation::AllGather | Operation::ReduceScatter => n - 1.0,
        _ => n,
    }
}

fn bandwidth(
    operation: Operation,
    bytes: Bytes,
    c: &Communicator,
    (algorithm, protocol): (Algorithm, Protocol),
) -> f64 {
    let by_nodes = match c.nodes {
        ..=1 => 0,
        2 => 1,
        _ => 2,
    };
    let channels = f64::from(c.channels);
    let per_node = f64::from(c.ranks) / f64::from(c.nodes);
    // A ring or tree that leaves the node is as fast as the network; across two nodes a tree sends half as much.
    let bus = match (algorithm, c.nodes) {
        (_, ..=1) => c.inside,
        (Algorithm::Tree | Algorithm::NvlsTree, 2) => c.inside.min(2.0 * c.network),
        // The switches take each byte once and give it back once, where a ring passes it on twice.
        (Algorithm::CollnetDirect | Algorithm::CollnetChain, _) => c.inside.min(2.0 * c.network),
        _ => c.inside.min(c.network),
    };
    let low_latency = tables::low_latency_cap(c.generation)[by_nodes];
    let bus = match (algorithm, protocol) {
        (Algorithm::Ring, Protocol::LowLatency) => low_latency.min(bus * 0.5),
        (Algorithm::Ring, Protocol::LowLatency128) => {
            (bus * 0.92).min(channels * tables::ring_128_cap(c.generation))
        }
        (Algorithm::Ring, Protocol::Simple) => bus,
        (Algorithm::Tree, _) => {
            let tree = (bus * 0.92).min(channels * tables::tree_cap(c.generation)[by_nodes]);
            let tree = match protocol {
                Protocol::LowLatency => (tree / 3.8).min(low_latency),
                Protocol::LowLatency128 => {
                    let share = if c.nodes == 1 { 7.0 / 9.0 } else { 120.0 / 128.0 };
                    (tree * share).min(channels * tables::tree_128_cap(c.generation)[by_nodes])
                }
                Protocol::Simple => tree,
            };
            tree * tables::tree_correction(protocol, bytes.0)
        }
        (Algorithm::Nvls | Algorithm::NvlsTree, _) => {
            let inside =
                c.inside * tables::nvls_efficiency(c.generation) * (channels - 1.0).max(0.0) / channels;
            let inside = match operation {
                Operation::AllReduce => inside * 2.0,
                _ => inside * (per_node - 1.0) / per_node,
            };
            match algorithm {
                Algorithm::Nvls if c.nodes == 1 => inside,
                // NCCL counts on nine tenths of the adapters.
                Algorithm::Nvls if operation == Operation::AllReduce => inside.min(2.0 * c.network),
                Algorithm::Nvls => inside.min(0.9 * c.network),
                _ => {
                    let across = c.network * if c.nodes == 2 { 2.0 } else { 1.0 };
                    inside.min(across).min(channels * tables::nvls_tree_cap(c.generation)[by_nodes])
                }
            }
        }
        (Algorithm::CollnetDirect, _) if operation == Operation::AllReduce => {
            let crowding = per_node / f64::from(c.adapters.max(1));
            let share =
                if matches!(c.generation, Generation::Hopper | Generation::Blackwell) { 0.85 } else { 1.0 };
            bus / (crowding - (crowding - 1.0) / 2.0) * share
        }
        (Algorithm::CollnetDirect, _) => c.inside.min(0.9 * c.network),
        (Algorithm::CollnetChain, _) => bus,
        (Algorithm::Pat, _) => bus * 0.75,
        (Algorithm::Direct, _) => bus,
    };
    let ring = f64::from(c.ranks) / ring_steps(operation, c.ranks);
    let ratio = match (algorithm, operation) {
        (Algorithm::Ring, _) | (Algorithm::Nvls | Algorithm::NvlsTree, Operation::AllReduce) => ring,
        (_, Operation::AllGather | Operation::ReduceScatter) => 1.0,
        _ => 0.5,
    };
    bus * ratio
}

fn latency(
    operation: Operation,
    bytes: Bytes,
    c: &Communicator,
    (algorithm, protocol): (Algorithm, Protocol),
) -> f64 {
    let inside = if c.nvlink { Carrier::NvLink } else { Carrier::Pcie };
    let base = tables::base_latency(algorithm, protocol);
    let step = tables::step_latency(inside, algorithm, protocol);
    // With one rank per node latencies are fully exposed, for which NCCL takes the tree's.
    let network_algorithm = match algorithm {
        Algorithm::Ring | Algorithm::CollnetDirect | Algorithm::CollnetChain if c.ranks == c.nodes => {
            Algorithm::Tree
        }
        _ => algorithm,
    };
    let flush = if protocol == Protocol::Simple { 2.0 } else { 1.0 };
    let across =
        tables::step_latency(Carrier::Network, network_algorithm, protocol) + flush * c.network_latency;
    let nodes = f64::from(c.nodes);
    let log_nodes = f64::from(c.nodes.max(1).ilog2());
    let steps = ring_steps(operation, c.ranks);
    match algorithm {
        Algorithm::Ring => {
            if matches!(operation, Operation::Broadcast | Operation::Reduce) {
                let carrier = if c.nodes > 1 { Carrier::Network } else { inside };
                return base + tables::step_latency(carrier, algorithm, protocol);
            }
            let overhead = match (c.nodes, protocol) {
                (..=1, _) => 0.0,
                (_, Protocol::Simple) => 3.0,
                _ => 1.0,
            };
            let rounds = if operation == Operation::AllReduce { 2.0 } else { 1.0 };
            let between = if c.nodes > 1 { rounds * (nodes - 1.0) } else { 0.0 };
            let latency = base + (steps - between) * step.max(overhead) + between * across;
            let plateau = operation == Operation::AllReduce
                && protocol == Protocol::Simple
                && c.nodes > 1
                && bytes.0 / u64::from(c.channels.max(1) * c.ranks) >= 64;
            match (plateau, c.generation) {
                (false, _) => latency,
                (true, Generation::Volta) => latency * 1.9,
                (true, _) => latency * 1.4,
            }
        }
        Algorithm::Tree => {
            let per_node = f64::from(c.ranks / c.nodes.max(1));
            base + 2.0 * ((per_node - 1.0) * step + log_nodes * across)
        }
        // Each of a node's devices sends to all others, 0.4 µs one after the other.
        Algorithm::CollnetDirect => {
            let others = f64::from(c.ranks / c.nodes.max(1)) - 1.0;
            base + 2.0 * (others.min(1.0) * step + 0.4 * others) + across
        }
        Algorithm::CollnetChain => base + 2.0 * (f64::from(c.ranks / c.nodes.max(1)) - 1.0) * step + across,
        Algorithm::Nvls if c.nodes > 1 => step + across,
        Algorithm::Nvls => step,
        Algorithm::NvlsTree => base + step + 2.0 * log_nodes * across,
        Algorithm::Pat => base + log_nodes * across / 3.5 + f64::from(c.ranks) * 2.8,
        Algorithm::Direct => base + step,
    }
}

fn direct(operation: Operation, bytes: Bytes, c: &Communicator) -> Choice {
    let peers = match operation {
        Operation::AllToAll => u64::from(c.ranks.max(1)),
        _ => 1,
    };
    let protocol =
        if bytes.0 / peers <= POINT_TO_POINT_LIMIT { Protocol::LowLatency } else { Protocol::Simple };
    let key = (Algorithm::Direct, protocol);
    let bus = if c.nodes > 1 { c.inside.min(c.network) } else { c.inside };
    let share = if protocol == Protocol::Simple { 1.0 } else { 0.5 };
    let factor = operation.bus_factor(c.ranks).max(f64::MIN_POSITIVE);
    let carrier = match (c.nodes, c.nvlink) {
        (2.., _) => Carrier::Network,
        (_, true) => Carrier::NvLink,
        _ => Carrier::Pcie,
    };
    // The launch costs what a ring's launch costs.
    let latency = tables::base_latency(Algorithm::Ring, protocol)
        + tables::step_latency(carrier, Algorithm::Direct, protocol);
    Choice { algorithm: key.0, protocol: key.1, latency, bandwidth: bus * share / factor }
}

/// The start-up part of a choice's latency in microseconds.
#[must_use]
pub(crate) const fn start(choice: &Choice) -> f64 {
    tables::base_latency(choice.algorithm, choice.protocol)
}

/// Latency of one step between nodes in microseconds, on a network that adds `latency`.
#[must_use]
pub(crate) const fn network_step(choice: &Choice, latency: f64) -> f64 {
    tables::step_latency(Carrier::Network, choice.algorithm, choice.protocol) + latency
}

/// Latency of one step inside a node in microseconds.
#[must_use]
pub(crate) const fn inside_step(choice: &Choice, nvlink: bool) -> f64 {
    let carrier = if nvlink { Carrier::NvLink } else { Carrier::Pcie };
    tables::step_latency(carrier, choice.algorithm, choice.protocol)
}

/// Share of its rate that a tree reaches for `bytes`.
#[must_use]
pub(crate) fn tree_share(protocol: Protocol, bytes: Bytes) -> f64 {
    tables::tree_correction(protocol, bytes.0)
}

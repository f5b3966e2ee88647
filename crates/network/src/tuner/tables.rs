//! The numbers by which NCCL's tuner ranks its algorithms.
//!
//! Facts restated from NVIDIA's NCCL, `src/graph/tuning.cc` and `src/graph/topo.h` (state of June 2026; the same
//! latencies and bandwidth caps stand there since 2.27). Latencies in microseconds, bandwidths in GB/s (1e9). They
//! are NCCL's belief about the machine, used here only to make NCCL's choice; what the choice costs is fitted.

use super::{Algorithm, Generation, Protocol};

/// What carries the steps of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    NvLink,
    Pcie,
    Network,
}

/// Start-up latency.
pub(super) const fn base_latency(algorithm: Algorithm, protocol: Protocol) -> f64 {
    match (algorithm, protocol) {
        (Algorithm::Tree, Protocol::LowLatency) => 6.8,
        (Algorithm::Ring, Protocol::LowLatency) => 6.6,
        (Algorithm::Tree | Algorithm::Ring, Protocol::LowLatency128) => 14.0,
        (Algorithm::Tree | Algorithm::Ring, Protocol::Simple) => 8.4,
        (Algorithm::Pat, _) => 8.0,
        (
            Algorithm::CollnetDirect
            | Algorithm::CollnetChain
            | Algorithm::Nvls
            | Algorithm::NvlsTree
            | Algorithm::Direct,
            _,
        ) => 0.0,
    }
}

/// Latency of one step.
pub(super) const fn step_latency(carrier: Carrier, algorithm: Algorithm, protocol: Protocol) -> f64 {
    let [ll, ll128, simple] = match (carrier, algorithm) {
        (Carrier::NvLink, Algorithm::Tree) => [0.6, 1.25, 4.0],
        (Carrier::NvLink, Algorithm::Ring) => [0.6, 1.9, 3.4],
        (Carrier::NvLink, Algorithm::Nvls | Algorithm::NvlsTree) => [0.0, 0.0, 25.0],
        (Carrier::Pcie, Algorithm::Tree) => [1.0, 1.9, 4.0],
        (Carrier::Pcie, Algorithm::Ring) => [1.0, 2.5, 5.7],
        (Carrier::Pcie, Algorithm::Nvls | Algorithm::NvlsTree) => [0.0, 0.0, 0.0],
        (Carrier::Network, Algorithm::Tree) => [5.0, 8.5, 14.0],
        (Carrier::Network, Algorithm::Ring) => [2.7, 4.0, 14.0],
        (Carrier::Network, Algorithm::Nvls) => [0.0, 0.0, 18.0],
        (Carrier::Network, Algorithm::NvlsTree) => [0.0, 0.0, 20.9],
        (Carrier::Network, Algorithm::Pat) => [0.0, 0.0, 14.0],
        (_, Algorithm::Pat) => [0.0, 0.0, 4.0],
        (Carrier::Network, Algorithm::CollnetDirect) => [0.0, 0.0, 31.0],
        (Carrier::Network, Algorithm::CollnetChain) => [0.0, 0.0, 30.0],
        (_, Algorithm::CollnetDirect) => [0.0, 0.0, 3.7],
        (_, Algorithm::CollnetChain) => [0.0, 0.0, 2.8],
        // Point-to-point transfers are not tuned; they behave as one step of a ring.
        (Carrier::NvLink, Algorithm::Direct) => [0.6, 1.9, 3.4],
        (Carrier::Pcie, Algorithm::Direct) => [1.0, 2.5, 5.7],
        (Carrier::Network, Algorithm::Direct) => [2.7, 4.0, 14.0],
    };
    match protocol {
        Protocol::LowLatency => ll,
        Protocol::LowLatency128 => ll128,
        Protocol::Simple => simple,
    }
}

/// Caps for one node, two nodes, more nodes.
pub(super) type ByNodes = [f64; 3];

/// Cap of the LL protocol over all channels; across nodes it depends on the processor's vendor, for which Intel's row
/// (the first) stands.
pub(super) const fn low_latency_cap(generation: Generation) -> ByNodes {
    match generation {
        Generation::Volta => [39.0, 39.0, 20.4],
        Generation::Ampere => [87.7, 39.0, 20.4],
        Generation::Hopper => [141.0, 39.0, 20.4],
        Generation::Blackwell => [282.0, 39.0, 20.4],
    }
}

/// Cap of the ring with LL128, per channel.
pub(super) const fn ring_128_cap(generation: Generation) -> f64 {
    match generation {
        Generation::Volta | Generation::Ampere => 20.0,
        Generation::Hopper => 36.7,
        Generation::Blackwell => 40.0,
    }
}

/// Cap of the tree with LL128, per channel.
pub(super) const fn tree_128_cap(generation: Generation) -> ByNodes {
    match generation {
        Generation::Volta | Generation::Ampere => [20.0, 20.0, 20.0],
        Generation::Hopper => [36.7, 36.7, 29.0],
        Generation::Blackwell => [55.6, 31.67, 20.0],
    }
}

/// Cap of the tree, per channel.
pub(super) const fn tree_cap(generation: Generation) -> ByNodes {
    match generation {
        Generation::Volta => [26.5, 18.5, 10.0],
        Generation::Ampere => [24.0, 23.6, 17.8],
        Generation::Hopper => [38.7, 41.4, 36.0],
        Generation::Blackwell => [70.0, 42.8, 24.0],
    }
}

/// Cap of the NVLS tree, per channel.
pub(super) const fn nvls_tree_cap(generation: Generation) -> ByNodes {
    match generation {
        Generation::Volta | Generation::Ampere => [0.0, 0.0, 0.0],
        Generation::Hopper => [0.0, 57.7, 45.5],
        Generation::Blackwell => [0.0, 96.0, 80.0],
    }
}

/// Share of the link rate that NVLS reaches; zero where the switches cannot reduce.
pub(super) const fn nvls_efficiency(generation: Generation) -> f64 {
    match generation {
        Generation::Volta | Generation::Ampere => 0.0,
        Generation::Hopper => 0.85,
        Generation::Blackwell => 0.74,
    }
}

/// Trees do not follow latency and bandwidth at medium sizes; a factor per power of two from 64 B.
pub(super) fn tree_correction(protocol: Protocol, bytes: u64) -> f64 {
    const LL: [f64; 24] = [
        1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
        1.0, 1.0, 1.0, 1.0,
    ];
    const LL128: [f64; 24] = [
        1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9,
        0.9, 1.0, 1.0, 1.0,
    ];
    const SIMPLE: [f64; 24] = [
        0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7,
        0.8, 0.9, 0.9, 0.9,
    ];
    let table = match protocol {
        Protocol::LowLatency => &LL,
        Protocol::LowLatency128 => &LL128,
        Protocol::Simple => &SIMPLE,
    };
    let Some(power) = (bytes >> 6).checked_ilog2() else { return 1.0 };
    // NCCL leaves the last entry unused.
    if power < 23 { table[power as usize] } else { 1.0 }
}

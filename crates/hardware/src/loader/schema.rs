//! The numbers that each kind of sheet may hold, and how each is measured.

/// What a number measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    /// A whole number without unit.
    Count,
    /// A real number without unit.
    Ratio,
    /// True or false.
    Flag,
    Bytes,
    BytesPerSecond,
    FlopsPerSecond,
    Hertz,
    Watts,
    Duration,
}

impl Dimension {
    /// The units that a sheet may use, each with its factor to the base unit (bytes, per second, hertz, picoseconds).
    pub(crate) const fn units(self) -> &'static [(&'static str, f64)] {
        const KIB: f64 = 1024.0;
        match self {
            Self::Count | Self::Ratio | Self::Flag => &[("", 1.0)],
            Self::Bytes => &[
                ("B", 1.0),
                ("kB", 1e3),
                ("MB", 1e6),
                ("GB", 1e9),
                ("TB", 1e12),
                ("KiB", KIB),
                ("MiB", KIB * KIB),
                ("GiB", KIB * KIB * KIB),
                ("TiB", KIB * KIB * KIB * KIB),
            ],
            Self::BytesPerSecond => {
                &[("B/s", 1.0), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12), ("Gbit/s", 0.125e9)]
            }
            Self::FlopsPerSecond => {
                &[("FLOP/s", 1.0), ("GFLOP/s", 1e9), ("TFLOP/s", 1e12), ("PFLOP/s", 1e15), ("TOP/s", 1e12)]
            }
            Self::Hertz => &[("Hz", 1.0), ("MHz", 1e6), ("GHz", 1e9)],
            Self::Watts => &[("W", 1.0)],
            Self::Duration => &[("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)],
        }
    }
}

/// The kinds of sheets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Device,
    Host,
    Node,
    Cluster,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Host => "host",
            Self::Node => "node",
            Self::Cluster => "cluster",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Device, Self::Host, Self::Node, Self::Cluster].into_iter().find(|kind| kind.name() == text)
    }

    /// The numbers of such a sheet by dotted path.
    pub(crate) const fn fields(self) -> &'static [(&'static str, Dimension)] {
        match self {
            Self::Device => DEVICE,
            Self::Host => HOST,
            Self::Node => NODE,
            Self::Cluster => CLUSTER,
        }
    }

    /// The texts that such a sheet may hold.
    pub(crate) const fn texts(self) -> &'static [&'static str] {
        match self {
            Self::Device => &["name", "marketing_name", "home", "npu"],
            Self::Host => &["name", "processor"],
            Self::Node => {
                &["name", "device", "host", "peer.kind", "host_link.kind", "nic.kind", "topology.links"]
            }
            Self::Cluster => &["name", "node", "network"],
        }
    }
}

use Dimension as D;

const DEVICE: &[(&str, Dimension)] = &[
    ("compute.capability_major", D::Count),
    ("compute.capability_minor", D::Count),
    ("compute.sm_count", D::Count),
    ("compute.fp32_lanes_per_sm", D::Count),
    ("compute.warp_size", D::Count),
    ("compute.max_threads_per_block", D::Count),
    ("compute.max_threads_per_sm", D::Count),
    ("compute.max_blocks_per_sm", D::Count),
    ("compute.registers_per_block", D::Count),
    ("compute.registers_per_sm", D::Count),
    ("compute.shared_per_block", D::Bytes),
    ("compute.shared_per_block_optin", D::Bytes),
    ("compute.shared_per_sm", D::Bytes),
    ("compute.shared_reserved_per_block", D::Bytes),
    ("compute.copy_engines", D::Count),
    ("compute.base_clock", D::Hertz),
    ("compute.boost_clock", D::Hertz),
    ("compute.tensor_clock", D::Hertz),
    ("compute.sustained_clock", D::Ratio),
    ("memory.marketing_capacity", D::Bytes),
    ("memory.total", D::Bytes),
    ("memory.nvml_total", D::Bytes),
    ("memory.bandwidth", D::BytesPerSecond),
    ("memory.concurrent_share", D::Ratio),
    ("memory.collective_priority", D::Ratio),
    ("memory.bus_width", D::Count),
    ("memory.clock", D::Hertz),
    ("memory.l2", D::Bytes),
    ("memory.ecc", D::Flag),
    ("peaks.vector.fp64", D::FlopsPerSecond),
    ("peaks.vector.fp32", D::FlopsPerSecond),
    ("peaks.vector.tf32", D::FlopsPerSecond),
    ("peaks.vector.fp16", D::FlopsPerSecond),
    ("peaks.vector.bf16", D::FlopsPerSecond),
    ("peaks.vector.fp8", D::FlopsPerSecond),
    ("peaks.vector.int8", D::FlopsPerSecond),
    ("peaks.tensor.fp64", D::FlopsPerSecond),
    ("peaks.tensor.fp32", D::FlopsPerSecond),
    ("peaks.tensor.tf32", D::FlopsPerSecond),
    ("peaks.tensor.fp16", D::FlopsPerSecond),
    ("peaks.tensor.bf16", D::FlopsPerSecond),
    ("peaks.tensor.fp8", D::FlopsPerSecond),
    ("peaks.tensor.int8", D::FlopsPerSecond),
    ("interconnect.nvlink_links", D::Count),
    ("interconnect.nvlink_bandwidth", D::BytesPerSecond),
    ("interconnect.pcie_generation", D::Count),
    ("interconnect.pcie_lanes", D::Count),
    ("interconnect.pcie_bandwidth", D::BytesPerSecond),
    ("power.board", D::Watts),
    ("runtime.context", D::Bytes),
];

const HOST: &[(&str, Dimension)] = &[
    ("sockets", D::Count),
    ("cores_per_socket", D::Count),
    ("boost_clock", D::Hertz),
    ("single_thread", D::Ratio),
    ("memory", D::Bytes),
    ("memory_bandwidth", D::BytesPerSecond),
    ("pageable_copy_bandwidth", D::BytesPerSecond),
    ("api.launch_kernel", D::Duration),
    ("api.memcpy_async", D::Duration),
    ("api.memset_async", D::Duration),
    ("api.event_record", D::Duration),
    ("api.event_query", D::Duration),
    ("api.stream_wait_event", D::Duration),
    ("api.synchronize", D::Duration),
    ("api.graph_launch", D::Duration),
    ("api.other", D::Duration),
];

const NODE: &[(&str, Dimension)] = &[
    ("device_count", D::Count),
    ("nic_count", D::Count),
    ("peer.bandwidth", D::BytesPerSecond),
    ("peer.latency", D::Duration),
    ("host_link.bandwidth", D::BytesPerSecond),
    ("host_link.latency", D::Duration),
    ("nic.bandwidth", D::BytesPerSecond),
    ("nic.latency", D::Duration),
    ("topology.island", D::Count),
];

const CLUSTER: &[(&str, Dimension)] = &[
    ("node_count", D::Count),
    ("oversubscription", D::Ratio),
    ("nodes_per_leaf", D::Count),
    ("sharp", D::Flag),
];

//! The measured systems, as far as their publishers describe them.

use std::sync::OnceLock;

use trompe_hardware::{BytesPerSecond, NetworkKind, resolve};
use trompe_network::{Fabric, Inside, Placement};

/// What is known of the network between a system's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Across {
    /// Nothing: rows across nodes are left out.
    Unknown,
    /// Adapters per node and Gbit/s of each.
    InfiniBand(u32, u32),
    /// The same over Ethernet.
    Ethernet(u32, u32),
}

/// One measured system.
#[derive(Debug)]
pub(crate) struct System {
    /// Name in tables.
    pub(crate) name: &'static str,
    /// What the columns `source`, `gpu` and `system` contain.
    columns: [&'static str; 3],
    /// The sheet that describes its nodes.
    sheet: &'static str,
    /// Its network.
    pub(crate) across: Across,
    /// Whether its times are those of the device alone; other systems add a start-up cost.
    pub(crate) device_time: bool,
    fabric: OnceLock<Fabric>,
}

const fn inside(name: &'static str, columns: [&'static str; 3], sheet: &'static str) -> System {
    System { name, columns, sheet, across: Across::Unknown, device_time: false, fabric: OnceLock::new() }
}

const fn device_time(name: &'static str, columns: [&'static str; 3], sheet: &'static str) -> System {
    System { name, columns, sheet, across: Across::Unknown, device_time: true, fabric: OnceLock::new() }
}

const fn cluster(
    name: &'static str,
    columns: [&'static str; 3],
    sheet: &'static str,
    across: Across,
) -> System {
    System { name, columns, sheet, across, device_time: false, fabric: OnceLock::new() }
}

/// All systems. NCCL versions of one system count as one.
pub(crate) static SYSTEMS: [System; 17] = [
    device_time("aiconfigurator A100 SXM", ["aiconfigurator", "A100-SXM4", ""], "dgx-a100"),
    device_time("aiconfigurator H100 SXM", ["aiconfigurator", "H100-SXM5", ""], "dgx-h100"),
    device_time("aiconfigurator H200", ["aiconfigurator", "H200", ""], "dgx-h200"),
    device_time("aiconfigurator B200", ["aiconfigurator", "B200", ""], "dgx-b200"),
    device_time("aiconfigurator L40S", ["aiconfigurator", "L40S", ""], "pcie-server"),
    inside("superbenchmark A100 40 GB", ["superbenchmark", "", ""], "dgx-a100"),
    inside("vTrain A100", ["vtrain", "A100", ""], "dgx-a100"),
    inside("vTrain V100", ["vtrain", "V100", ""], "dgx-v100"),
    inside("Aceso V100", ["aceso", "V100", ""], "dgx-v100"),
    inside("Vidur A100 SXM", ["vidur", "", "a100_dgx"], "dgx-a100"),
    inside("Vidur H100 SXM", ["vidur", "", "h100_dgx"], "dgx-h100"),
    inside("Vidur A100 PCIe pairs", ["vidur", "", "a100_pairwise"], "a100-pcie-pairs"),
    inside("4 of 8 H100 (waynehacking8)", ["waynehacking8", "", ""], "dgx-h100"),
    cluster("xxrjun 10 x 8 H100", ["xxrjun", "", ""], "dgx-h100", Across::InfiniBand(8, 400)),
    inside("DGX H100 log", ["dgxc-benchmarking", "", ""], "dgx-h100"),
    cluster("AWS 2 x p4de", ["aws-samples", "", ""], "aws-p4de", Across::Ethernet(4, 100)),
    cluster("CSCS GH200", ["eth-cscs", "", ""], "", Across::Ethernet(4, 200)),
];

/// The system of a row.
pub(crate) fn find(source: &str, gpu: &str, system: &str) -> Option<&'static System> {
    SYSTEMS.iter().find(|known| {
        let [a, b, c] = known.columns;
        source.contains(a) && gpu.contains(b) && system.contains(c)
    })
}

impl System {
    /// Its fabric.
    pub(crate) fn fabric(&self) -> &Fabric {
        self.fabric.get_or_init(|| self.describe())
    }

    fn describe(&self) -> Fabric {
        let mut fabric = match self.sheet {
            // Four GH200 to a node, each joined to each by six NVLink links of 25 GB/s.
            "" => {
                let mut fabric = Fabric::from_cluster(&resolve("dgx-h100").expect("a built-in sheet"));
                fabric.devices_per_node = 4;
                let between = |a, b| if a == b { 0 } else { 6 };
                let links = (0..4).map(|a| (0..4).map(|b| between(a, b)).collect()).collect();
                fabric.inside = Inside::Links { links, per_link: BytesPerSecond(25e9) };
                fabric
            }
            sheet => Fabric::from_cluster(&resolve(sheet).expect("a built-in sheet")),
        };
        let (adapters, gigabits, ethernet) = match self.across {
            Across::Unknown => return fabric,
            Across::InfiniBand(adapters, gigabits) => (adapters, gigabits, false),
            Across::Ethernet(adapters, gigabits) => (adapters, gigabits, true),
        };
        fabric.adapters = adapters;
        fabric.adapter = BytesPerSecond(f64::from(gigabits) * 0.125e9);
        fabric.ethernet = ethernet;
        fabric.network = NetworkKind::FatTree;
        fabric
    }

    /// Where its ranks sit.
    pub(crate) fn placement(&self, nodes: u32, local: u32) -> Placement {
        // Two neighbours on that system share two links, which on the sheet's matrix are devices 0 and 3.
        if self.name == "Aceso V100" && (nodes, local) == (1, 2) {
            return Placement { ranks: 2, nodes: 1, local: vec![0, 3], fewest: vec![0, 3] };
        }
        Placement::regular(nodes, local)
    }
}

//! What other tools print becomes links.

use trompe_hardware::{BytesPerSecond, resolve};
use trompe_network::readers::{
    AstraError, MatrixError, NcclTopologyError, NodeLinks, read_astra_network, read_matrix,
    read_nccl_topology,
};
use trompe_network::{Fabric, Placement};

const CUBE_MESH: &str = "
\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\tmlx5_0\tmlx5_1\tCPU Affinity
GPU0\t X \tNV1\tNV1\tNV2\tNV2\tSYS\tSYS\tSYS\tPIX\tSYS\t0-19,40-59
GPU1\tNV1\t X \tNV2\tNV1\tSYS\tNV2\tSYS\tSYS\tPIX\tSYS\t0-19,40-59
GPU2\tNV1\tNV2\t X \tNV2\tSYS\tSYS\tNV1\tSYS\tPHB\tSYS\t0-19,40-59
GPU3\tNV2\tNV1\tNV2\t X \tSYS\tSYS\tSYS\tNV1\tPHB\tSYS\t0-19,40-59
GPU4\tNV2\tSYS\tSYS\tSYS\t X \tNV1\tNV1\tNV2\tSYS\tPIX\t20-39,60-79
GPU5\tSYS\tNV2\tSYS\tSYS\tNV1\t X \tNV2\tNV1\tSYS\tPIX\t20-39,60-79
GPU6\tSYS\tSYS\tNV1\tSYS\tNV1\tNV2\t X \tNV2\tSYS\tPHB\t20-39,60-79
GPU7\tSYS\tSYS\tSYS\tNV1\tNV2\tNV1\tNV2\t X \tSYS\tPHB\t20-39,60-79
mlx5_0\tPIX\tPIX\tPHB\tPHB\tSYS\tSYS\tSYS\tSYS\t X \tSYS\t
";

#[test]
fn a_cube_mesh() {
    let node = read_matrix(CUBE_MESH).unwrap();
    assert_eq!((node.devices, node.adapters, node.switched), (8, 2, false));
    // The same as the sheet says.
    let sheet = Fabric::from_cluster(&resolve("dgx-v100").unwrap());
    let read = node.apply(&sheet, BytesPerSecond(25e9));
    assert_eq!(read.inside, sheet.inside);
    let underlined = format!("\u{1b}[4m{}\u{1b}[0m", CUBE_MESH.trim_start_matches('\n'));
    assert_eq!(read_matrix(&underlined).unwrap(), node);
}

#[test]
fn switches_and_pairs() {
    let matrix = |size: usize, entry: &dyn Fn(usize, usize) -> String| {
        let header: Vec<String> = (0..size).map(|i| format!("GPU{i}")).collect();
        let row = |a: usize| {
            let entries: Vec<String> =
                (0..size).map(|b| if a == b { "X".to_owned() } else { entry(a, b) }).collect();
            format!("GPU{a} {}", entries.join(" "))
        };
        let rows: Vec<String> = (0..size).map(row).collect();
        format!("{} NIC0 NIC1 CPU Affinity\n{}\n\nLegend:\n", header.join(" "), rows.join("\n"))
    };
    let base = Fabric::from_cluster(&resolve("dgx-h100").unwrap());
    let check = |text: &str, local: &[u32], gigabytes: f64| {
        let fabric = read_matrix(text).unwrap().apply(&base, BytesPerSecond(25e9));
        assert_eq!(fabric.layout(local).ring.0, gigabytes * 1e9, "{local:?}");
    };
    let hgx = matrix(8, &|_, _| "NV18".to_owned());
    check(&hgx, &[0, 1, 2, 3, 4, 5, 6, 7], 450.0);
    let pairs = matrix(4, &|a, b| if a / 2 == b / 2 { "NV4".to_owned() } else { "NODE".to_owned() });
    check(&pairs, &[0, 1], 100.0);
    check(&pairs, &[0, 1, 2, 3], 63.0);
    let pcie = matrix(2, &|_, _| "PHB".to_owned());
    check(&pcie, &[0, 1], 63.0);
}

#[test]
fn what_is_no_matrix_is_refused() {
    let refused = |text: &str, error: &MatrixError| assert_eq!(read_matrix(text).as_ref(), Err(error));
    refused("no devices were found", &MatrixError::NoHeader);
    let row = MatrixError::Row { row: "GPU0".to_owned(), found: 1, expected: 2 };
    refused("GPU0 GPU1\nGPU0 X\n", &row);
    refused("GPU0 GPU1\nGPU0 X NV2\n", &MatrixError::Rows { found: 1, expected: 2 });
    let entry = MatrixError::Entry { row: "GPU0".to_owned(), entry: "NVx".to_owned() };
    refused("GPU0 GPU1\nGPU0 X NVx\nGPU1 NVx X\n", &entry);
}

/// Two devices and an adapter under one switch each, as NCCL writes them.
fn nccl(nvlinks: [&str; 2]) -> String {
    let part = |bus: &str, rank: u32, nvlink: &str| {
        format!(
            r#"    <pci busid="0000:0{bus}:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:1{bus}:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="{rank}" sm="80" rank="{rank}" gdr="1">{nvlink}</gpu>
      </pci>
      <pci busid="0000:2{bus}:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16"/>
      <nic><net name="mlx5_{rank}" dev="{rank}" speed="200000" port="1" guid="0x1" maxconn="131072" gdr="1"/></nic>
    </pci>
"#
        )
    };
    format!(
        "<system version=\"1\">\n  <!-- a > comment -->\n  <cpu numaid=\"0\" arch=\"x86_64\">\n{}{}  </cpu>\n</system>\n",
        part("a", 0, nvlinks[0]),
        part("b", 1, nvlinks[1])
    )
}

#[test]
fn nccl_topology_files() {
    let check = |nvlinks: [&str; 2], links: u32, switched: bool| {
        let expect = NodeLinks {
            devices: 2,
            links: vec![vec![0, links], vec![links, 0]],
            switched,
            adapters: 2,
            adapter_gigabits: Some(200.0),
        };
        assert_eq!(read_nccl_topology(&nccl(nvlinks)).unwrap(), expect);
    };
    check(
        [
            r#"<nvlink target="0000:1b:00.0" count="4" tclass="0x030200"/>"#,
            r#"<nvlink target="0000:1A:00.0" count="4" tclass="0x030200"/>"#,
        ],
        4,
        false,
    );
    let switch = r#"<nvlink target="0000:c4:00.0" count="6" tclass="0x068000"/><nvlink target="0000:c5:00.0" count="6" tclass="0x068000"/>"#;
    check([switch, switch], 12, true);
    check(["", ""], 0, false);
    let refused = |text: &str, error: NcclTopologyError| {
        assert_eq!(read_nccl_topology(text).unwrap_err(), error, "{text}");
    };
    refused("<system></system>", NcclTopologyError::NoDevice);
    refused("<system", NcclTopologyError::Open { at: 0 });
    let value = "many".to_owned();
    refused(
        r#"<gpu/><nvlink count="many"/>"#,
        NcclTopologyError::Number { at: 6, attribute: "count", value },
    );
}

#[test]
fn a_read_node_is_priced() {
    use trompe_base::Bytes;
    use trompe_network::{NetworkModel, Operation};
    let base = Fabric::from_cluster(&resolve("dgx-v100").unwrap());
    let fabric = read_matrix(CUBE_MESH).unwrap().apply(&base, BytesPerSecond(25e9));
    let price = |fabric: &Fabric| {
        NetworkModel::new(fabric.clone())
            .price(Operation::AllReduce, Bytes(1 << 26), &Placement::regular(1, 4))
            .time
    };
    assert_eq!(price(&fabric), price(&base));
}

#[test]
fn astra_networks() {
    let base = Fabric::from_cluster(&resolve("dgx-h100").unwrap());
    let check = |topology: &str, counts: &str, ring: f64, nodes: u32| {
        let dimensions = topology.split(',').count();
        let numbers = |all: [&str; 3]| all[..dimensions].join(", ");
        let text = format!(
            "# a network\ntopology: [ {topology} ]\nnpus_count: [ {counts} ]  # devices\nbandwidth: [ {} ]\nlatency: [ {} ]\n",
            numbers(["200.0", "100", "50"]),
            numbers(["50", "500", "2000"]),
        );
        let (fabric, found) = base.with_astra(&read_astra_network(&text).unwrap());
        let local: Vec<u32> = (0..fabric.devices_per_node).collect();
        assert_eq!((fabric.layout(&local).ring.0, found), (ring * 1e9, nodes), "{text}");
        fabric
    };
    check("Switch", "8", 200.0, 1);
    check("Ring", "8", 400.0, 1);
    check("FullyConnected", "4", 400.0, 1);
    let fabric = check("Switch, Ring, Switch", "8, 4, 2", 200.0, 8);
    assert_eq!((fabric.adapters, fabric.adapter.0), (8, 50e9));
    assert_eq!(fabric.adapter_latency, trompe_base::Duration::from_nanos(2500));
    // The same in other clothes.
    let plain = read_astra_network(
        "topology: [ FullyConnected, Switch ]\nnpus_count: [ 4, 2 ]\nbandwidth: [ 200, 50 ]\nlatency: [ 50, 500 ]",
    );
    let dashes = "topology:\n  - FullyConnected\n  - Switch # two\nnpus_count:\n- 4\n- 2\n\nbandwidth: [200.0, 50.0]\nlatency: [50, 500]\n";
    assert_eq!(read_astra_network(dashes), plain);
    let json = r#"{"topology": ["FullyConnected", "Switch"], "npus_count": [4, 2], "bandwidth": [200, 50], "latency": [50, 500]}"#;
    assert_eq!(read_astra_network(json), plain);
    let first = r#"{"topology-name": "Hierarchical", "dimensions-count": 2, "topologies-per-dim": ["FullyConnected", "Switch"],
        "units-count": [4, 2], "links-count": [6, 1], "link-latency": [50, 500], "link-bandwidth": [100, 50], "hbm-latency": [500]}"#;
    assert_eq!(read_astra_network(first), plain);
    let refused = |text: &str, error: AstraError| assert_eq!(read_astra_network(text), Err(error), "{text}");
    refused("topology: Ring", AstraError::Missing { key: "topology" });
    refused(
        "topology: [Ring]\nnpus_count: [2, 2]",
        AstraError::Length { key: "npus_count", found: 2, expected: 1 },
    );
    let text = |kind: &str, count: &str| {
        format!("topology: [{kind}]\nnpus_count: [{count}]\nbandwidth: [1]\nlatency: [0]")
    };
    let entry = |key, entry: &str| AstraError::Entry { key, entry: entry.to_owned() };
    refused(&text("Torus", "2"), entry("topology", "Torus"));
    refused(&text("Ring", "0"), entry("npus_count", "0"));
}

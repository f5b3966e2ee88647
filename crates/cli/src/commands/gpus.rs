//! `trompe gpus`.

use std::process::ExitCode;

use trompe_session::catalogue::{self, ClusterRow, DeviceRow, NodeRow, NpuRow};

use crate::arguments::GpusArguments;
use crate::commands;

pub(crate) fn run(arguments: &GpusArguments) -> anyhow::Result<ExitCode> {
    let (devices, nodes) = catalogue::list()?;
    let npus = catalogue::npus()?;
    let clusters = catalogue::clusters()?;
    let text = if arguments.json {
        let all = serde_json::json!({
            "devices": devices, "npus": npus, "nodes": nodes, "clusters": clusters,
        });
        format!("{}\n", serde_json::to_string_pretty(&all)?)
    } else {
        table((&devices, &npus), &nodes, &clusters)
    };
    commands::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn table((devices, npus): (&[DeviceRow], &[NpuRow]), nodes: &[NodeRow], clusters: &[ClusterRow]) -> String {
    let mut text = format!(
        "{:<18} {:>10} {:>10} {:>14} {:>5} {:>5} {:>10}  other names\n",
        "device", "memory", "bandwidth", "bf16 tensor", "sm", "SMs", "NVLink"
    );
    for row in devices {
        let nvlink =
            if row.nvlink > 0.0 { format!("{:.0} GB/s", row.nvlink / 1e9) } else { "–".to_owned() };
        text.push_str(&format!(
            "{:<18} {:>6.1} GiB {:>5.2} TB/s {:>7.0} TFLOP/s {:>5} {:>5} {nvlink:>10}  {}\n",
            row.name,
            row.memory_bytes as f64 / f64::from(1 << 30),
            row.bandwidth / 1e12,
            row.tensor_peak / 1e12,
            row.capability,
            row.multiprocessors,
            row.aliases.join(", ")
        ));
    }
    text.push_str(&npu_table(npus));
    text.push_str(&format!("\n{:<18} {:<28} processor\n", "node", "devices"));
    for row in nodes {
        let devices = format!("{} × {}", row.devices, row.device);
        text.push_str(&format!("{:<18} {devices:<28} {}\n", row.name, row.processor));
    }
    text.push_str(&format!("\n{:<18} {:<28} network\n", "cluster", "nodes"));
    for row in clusters {
        let nodes = format!("{} × {}", row.nodes, row.node);
        text.push_str(&format!("{:<18} {nodes:<28} {}\n", row.name, row.network));
    }
    text.push_str(
        "\nUse a name with --cluster: `h100-sxm` is one device, `h100-sxm:8` a node with eight, `dgx-h100:4` four \
         nodes,\n`h100-sxm:8x4` four nodes of eight, `superpod-h100:64` a cluster with another number of nodes, `my.toml` \
         a sheet of your own.\nNVLink and HCCS are one direction. `trompe npu` runs kernels on every NPU; jobs of such \
         kernels run on those with\nnumbers of their board (docs/npu).\n",
    );
    text
}

fn npu_table(npus: &[NpuRow]) -> String {
    let known = |number: Option<String>| number.unwrap_or_else(|| "–".to_owned());
    let mut text = format!(
        "\n{:<18} {:>10} {:>10} {:>14} {:>5} {:>14} {:>10} {:>10}  other names\n",
        "NPU", "memory", "bandwidth", "fp16 matrix", "cores", "vector lanes", "clock", "HCCS"
    );
    for row in npus {
        text.push_str(&format!(
            "{:<18} {:>10} {:>10} {:>14} {:>5} {:>14} {:>6.0} MHz {:>10}  {}\n",
            row.name,
            known(row.memory_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)))),
            known(row.bandwidth.map(|rate| format!("{:.2} TB/s", rate / 1e12))),
            known(row.matrix_peak.map(|rate| format!("{:.0} TFLOP/s", rate / 1e12))),
            row.cores,
            row.cores * row.vector_lanes,
            row.clock_mhz,
            known(row.links.map(|rate| format!("{:.0} GB/s", rate / 1e9))),
            row.aliases.join(", ")
        ));
    }
    text
}

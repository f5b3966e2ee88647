//! Every CUDA symbol that a PyTorch wheel leaves undefined has a row, in the library with the right version node.
//!
//! The lists of the tested wheels are kept beside this file. Where the project's virtual environment holds PyTorch, what
//! `nm` says of it is checked as well, so a new wheel that needs more fails here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use trompe_cuda_abi::tables::{LIBRARIES, OF_CUDA_12};

/// The wheels that are tested: their lists and how many symbols each has.
const KEPT: [(&str, usize); 4] = [
    (include_str!("symbols/torch-2.15.0-cu132.txt"), 769),
    (include_str!("symbols/torch-2.9.1-cu128.txt"), 727),
    (include_str!("symbols/torch-2.6.0-cu124.txt"), 700),
    (include_str!("symbols/torch-2.4.1-cu121.txt"), 696),
];

/// Beginnings of names that belong to CUDA's libraries.
const PREFIXES: [&str; 16] = [
    "__cuda", "cuda", "cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "cupti", "nccl", "nvrtc",
    "nvshmem", "nvml", "nvtx", "cufile", "nvJit",
];

fn is_cuda(symbol: &str) -> bool {
    let driver =
        symbol.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    driver || PREFIXES.iter().any(|prefix| symbol.starts_with(prefix))
}

/// Lines `symbol` or `symbol@node` that no row answers.
fn missing<'a>(wanted: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let rows: BTreeMap<&str, [Option<&str>; 2]> = LIBRARIES
        .iter()
        .flat_map(|library| {
            let name = format!("{}_12", library.name);
            let older = OF_CUDA_12.iter().find(|older| older.name == name);
            let nodes = [library.version_node, older.and_then(|older| older.version_node)];
            library.rows.iter().map(move |row| (row.symbol, nodes))
        })
        .collect();
    wanted
        .filter(|line| {
            let (symbol, node) =
                line.split_once('@').map_or((*line, None), |(symbol, node)| (symbol, Some(node)));
            // A symbol without a node is found in any library.
            !rows.get(symbol).is_some_and(|nodes| node.is_none() || nodes.contains(&node))
        })
        .collect()
}

#[test]
fn the_tested_wheels_are_covered() {
    for (kept, count) in KEPT {
        let wanted: Vec<&str> = kept.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(wanted.len(), count);
        assert_eq!(missing(wanted.into_iter()), [""; 0]);
    }
}

#[test]
fn the_installed_wheel_is_covered() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    let Some(libraries) = torch_libraries(&root.join(".venv")) else {
        eprintln!("no PyTorch in .venv: `make venv` installs it");
        return;
    };
    let mut wanted = BTreeSet::new();
    for library in libraries {
        let output = Command::new("nm")
            .args(["-D", "--undefined-only", "--with-symbol-versions"])
            .arg(&library)
            .output()
            .expect("nm, of binutils, can be run");
        let text = String::from_utf8(output.stdout).expect("symbol names are text");
        wanted.extend(text.lines().filter_map(|line| line.split_whitespace().nth(1).map(str::to_owned)));
    }
    wanted.retain(|symbol| is_cuda(symbol));
    assert!(wanted.len() > 500, "only {} CUDA symbols were found in the wheel", wanted.len());
    assert_eq!(missing(wanted.iter().map(String::as_str)), [""; 0]);
}

fn torch_libraries(environment: &Path) -> Option<Vec<std::path::PathBuf>> {
    let python = std::fs::read_dir(environment.join("lib")).ok()?.flatten().next()?;
    let folder = python.path().join("site-packages/torch/lib");
    let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    Some(files.filter(|path| path.extension().is_some_and(|extension| extension == "so")).collect())
}

#[test]
fn no_symbol_stands_in_two_libraries() {
    let mut seen = BTreeMap::new();
    for library in LIBRARIES {
        for row in library.rows {
            if let Some(other) = seen.insert(row.symbol, library.name) {
                panic!("`{}` is in `{other}` and in `{}`", row.symbol, library.name);
            }
        }
    }
}

#[test]
fn ids_lead_back_to_their_rows() {
    let mut next = 0;
    for library in LIBRARIES {
        assert_eq!(usize::from(library.base), next, "{}", library.name);
        next += library.rows.len();
    }
    assert_eq!(next, trompe_cuda_abi::tables::COUNT);
    let id = trompe_cuda_abi::tables::cuda::Symbol::cuInit.id();
    assert_eq!(trompe_cuda_abi::tables::row(id).1.symbol, "cuInit");
}

#[test]
fn structures_have_the_layout_of_cuda_13_2() {
    use std::mem::{offset_of, size_of};

    use trompe_cuda_abi::driver::{AllocationProperties, DriverLaunchConfig};
    use trompe_cuda_abi::runtime::{
        DeviceProperties, DeviceProperties12, FunctionAttributes, LaunchConfig, PointerAttributes,
    };

    let check = |name: &str, found: usize, expect: usize| assert_eq!(found, expect, "{name}");
    check("properties", size_of::<DeviceProperties>(), 1008);
    check("total_global_mem", offset_of!(DeviceProperties, total_global_mem), 288);
    check("major", offset_of!(DeviceProperties, major), 360);
    check("multi_processor_count", offset_of!(DeviceProperties, multi_processor_count), 384);
    check("surface_alignment", offset_of!(DeviceProperties, surface_alignment), 552);
    check("pci_bus_id", offset_of!(DeviceProperties, pci_bus_id), 568);
    check("l2_cache_size", offset_of!(DeviceProperties, l2_cache_size), 596);
    check("shared_mem_per_multiprocessor", offset_of!(DeviceProperties, shared_mem_per_multiprocessor), 624);
    check("cooperative_launch", offset_of!(DeviceProperties, cooperative_launch), 668);
    check("reserved_shared_mem_per_block", offset_of!(DeviceProperties, reserved_shared_mem_per_block), 696);
    check("cluster_launch", offset_of!(DeviceProperties, cluster_launch), 748);
    check("host_numa_multinode_ipc", offset_of!(DeviceProperties, host_numa_multinode_ipc_supported), 780);
    check("properties of 12", size_of::<DeviceProperties12>(), 1032);
    check("major of 12", offset_of!(DeviceProperties12, major), 360);
    check("multi_processor_count of 12", offset_of!(DeviceProperties12, multi_processor_count), 388);
    check("memory_clock_rate of 12", offset_of!(DeviceProperties12, memory_clock_rate), 608);
    check("l2_cache_size of 12", offset_of!(DeviceProperties12, l2_cache_size), 616);
    check("pointer attributes", size_of::<PointerAttributes>(), 88);
    check("function attributes", size_of::<FunctionAttributes>(), 144);
    check("max_threads_per_block", offset_of!(FunctionAttributes, max_threads_per_block), 24);
    check("non_portable", offset_of!(FunctionAttributes, non_portable_cluster_size_allowed), 72);
    check("launch config", size_of::<LaunchConfig>(), 56);
    check("driver launch config", size_of::<DriverLaunchConfig>(), 56);
    check("driver stream", offset_of!(DriverLaunchConfig, stream), 32);
    check("allocation properties", size_of::<AllocationProperties>(), 32);
}

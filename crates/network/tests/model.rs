//! Prices: every operation on every sheet, NCCL's switch-overs, and what must never happen.

use std::sync::LazyLock;

use proptest::prelude::*;
use trompe_base::Bytes;
use trompe_hardware::{BytesPerSecond, Catalogue, NetworkKind, resolve};
use trompe_network::tuner::{Algorithm, Protocol};
use trompe_network::{Constants, ConstantsError, Fabric, Inside, Method, NetworkModel, Operation, Placement};

/// Every built-in node with its model on 64 of them.
static NODES: LazyLock<Vec<(String, u32, NetworkModel)>> = LazyLock::new(|| {
    let of = |node: &str| {
        let cluster = resolve(&format!("{node}:64")).unwrap();
        (node.to_owned(), cluster.node.device_count, NetworkModel::of_cluster(&cluster))
    };
    Catalogue::builtin().nodes().into_iter().map(of).collect()
});

fn model(spec: &str) -> NetworkModel {
    NetworkModel::of_cluster(&resolve(spec).unwrap())
}

#[test]
fn every_operation_on_every_node_has_a_price() {
    for (node, devices, model) in NODES.iter() {
        let devices = *devices;
        for operation in Operation::ALL {
            for (nodes, local) in [(1, 1), (1, 2), (1, devices), (2, 1), (2, devices), (64, 1), (64, devices)]
            {
                for bytes in [0, 1, 4096, 1 << 20, 1 << 30] {
                    let placement = Placement::regular(nodes, local);
                    let estimate = model.price(operation, Bytes(bytes), &placement);
                    let what =
                        format!("{operation:?} of {bytes} on {nodes} x {local} of {node}: {estimate:?}");
                    assert!(estimate.time.as_micros_f64() > 0.0, "{what}");
                    assert!(estimate.time.as_secs_f64() < 100.0, "{what}");
                    assert!(estimate.low <= estimate.time && estimate.time <= estimate.high, "{what}");
                    assert!(estimate.channels >= 1, "{what}");
                }
            }
        }
    }
}

#[test]
fn switch_overs_are_where_public_measurements_jump() {
    use Algorithm::{Nvls, Ring};
    use Protocol::{LowLatency, LowLatency128, Simple};
    #[track_caller]
    fn check(spec: &str, operation: Operation, ranks: u32, bytes: u64, expect: (Algorithm, Protocol)) {
        let choice = model(spec).price(operation, Bytes(bytes), &Placement::regular(1, ranks)).choice;
        assert_eq!(
            (choice.algorithm, choice.protocol),
            expect,
            "{operation:?} of {bytes} on {ranks} of {spec}"
        );
    }
    // A100, all-gather: the time jumps between 1 and 2 MiB on 2 and 4 ranks, between 8 and 16 MiB on 8.
    for ranks in [2, 4] {
        check("dgx-a100", Operation::AllGather, ranks, 1 << 20, (Ring, LowLatency));
        check("dgx-a100", Operation::AllGather, ranks, 2 << 20, (Ring, Simple));
    }
    check("dgx-a100", Operation::AllGather, 8, 1 << 20, (Ring, LowLatency));
    check("dgx-a100", Operation::AllGather, 8, 8 << 20, (Ring, LowLatency128));
    check("dgx-a100", Operation::AllGather, 8, 16 << 20, (Ring, Simple));
    // H100, all-reduce on 8: beyond the ring's rate from a few MiB on, which only the switches can do; never on 2.
    check("dgx-h100", Operation::AllReduce, 8, 256 << 20, (Nvls, Simple));
    check("dgx-h100", Operation::AllReduce, 2, 256 << 20, (Ring, Simple));
    check("dgx-h100", Operation::AllReduce, 8, 8 << 10, (Ring, LowLatency));
    // No LL128 over PCIe.
    for power in 10..30 {
        let estimate =
            model("pcie-server").price(Operation::AllReduce, Bytes(1 << power), &Placement::regular(1, 4));
        assert_ne!(estimate.choice.protocol, LowLatency128);
    }
}

#[test]
fn rates_of_large_messages_are_those_of_public_logs() {
    // Bus bandwidth in GB/s: superbenchmark and vTrain (A100), NVIDIA's DGX H100 log, aiconfigurator (B200), vTrain (V100),
    // xxrjun (10 nodes of 8 H100 with 8 x 400 Gbit/s).
    #[track_caller]
    fn check(spec: &str, operation: Operation, (nodes, local): (u32, u32), gigabytes: f64, measured: f64) {
        let bytes = gigabytes * 1e9;
        let placement = Placement::regular(nodes, local);
        let time = model(spec).price(operation, Bytes(bytes as u64), &placement).time.as_secs_f64();
        let rate = bytes * operation.bus_factor(placement.ranks) / time / 1e9;
        assert!((rate / measured - 1.0).abs() < 0.1, "{rate} for {measured}");
    }
    check("dgx-a100", Operation::AllReduce, (1, 8), 1.07, 230.0);
    check("dgx-a100", Operation::AllToAll, (1, 8), 2.15, 224.0);
    check("dgx-h100", Operation::AllReduce, (1, 8), 8.59, 480.0);
    check("dgx-b200", Operation::AllGather, (1, 8), 0.537, 617.0);
    check("dgx-v100", Operation::AllReduce, (1, 8), 1.07, 134.0);
    check("dgx-v100", Operation::AllReduce, (1, 2), 1.07, 22.6);
    check("dgx-h100:10", Operation::AllReduce, (10, 1), 17.2, 48.9);
    check("dgx-h100:10", Operation::ReduceScatter, (10, 8), 17.2, 323.0);
}

#[test]
fn methods_say_what_a_price_rests_on() {
    let check = |spec: &str, operation, nodes, local, method| {
        let estimate = model(spec).price(operation, Bytes(64 << 20), &Placement::regular(nodes, local));
        assert_eq!(estimate.method, method, "{spec} {operation:?}");
    };
    check("dgx-h100", Operation::AllReduce, 1, 8, Method::Fitted);
    check("dgx-h100", Operation::Broadcast, 1, 8, Method::Scaled);
    check("rtx-3090:2", Operation::AllReduce, 1, 2, Method::Scaled);
    check("dgx-h100:2", Operation::AllGather, 2, 8, Method::Scaled);
    check("aws-p4de:2", Operation::AllReduce, 2, 8, Method::Tuner);
}

#[test]
fn oversubscription_slows_what_crosses_it() {
    let fabric = Fabric::from_cluster(&resolve("dgx-h100:16").unwrap());
    let time = |network, oversubscription, nodes_per_leaf, operation, count: u32| {
        let fabric = Fabric { network, oversubscription, nodes_per_leaf, ..fabric.clone() };
        let devices: Vec<u32> = (0..count).collect();
        NetworkModel::new(fabric).estimate(operation, Bytes(1 << 30), &devices).time
    };
    use NetworkKind::{FatTree, RailOptimised};
    use Operation::{AllReduce, AllToAll};
    let full = |operation| time(FatTree, 1.0, None, operation, 128);
    // Without leaves every byte between nodes crosses the core of a fat tree, and none that of rails.
    assert!(time(FatTree, 4.0, None, AllReduce, 128) > full(AllReduce).scale(2.0));
    assert_eq!(time(RailOptimised, 4.0, None, AllReduce, 128), full(AllReduce));
    // With eight nodes on a leaf a ring crosses once where all to all crosses with half of its bytes.
    assert_eq!(time(FatTree, 4.0, Some(8), AllReduce, 128), full(AllReduce));
    assert!(time(FatTree, 4.0, Some(8), AllToAll, 128) > full(AllToAll).scale(1.5));
    assert_eq!(time(FatTree, 4.0, Some(8), AllToAll, 64), time(FatTree, 1.0, None, AllToAll, 64));
}

#[test]
fn switches_that_reduce_are_used_as_nccl_would() {
    use Algorithm::{CollnetChain, CollnetDirect, Nvls, NvlsTree, Ring, Tree};
    let plain = Fabric::from_cluster(&resolve("dgx-a100:16").unwrap());
    let chosen = |fabric: &Fabric, operation, (nodes, local): (u32, u32), bytes: u64| {
        let model = NetworkModel::new(fabric.clone());
        model.price(operation, Bytes(bytes), &Placement::regular(nodes, local))
    };
    let sharp = Fabric { reduces: true, ..plain.clone() };
    let all = |fabric: &Fabric, operation, shape| -> std::collections::BTreeSet<Algorithm> {
        (10..34).map(|power| chosen(fabric, operation, shape, 1 << power).choice.algorithm).collect()
    };
    let check = |fabric: &Fabric, operation, shape, wanted: &[Algorithm], never: &[Algorithm]| {
        let found = all(fabric, operation, shape);
        assert!(wanted.iter().all(|one| found.contains(one)), "{operation:?} {shape:?}: {found:?}");
        assert!(never.iter().all(|one| !found.contains(one)), "{operation:?} {shape:?}: {found:?}");
    };
    // Without such switches, and inside one node, nothing changes.
    check(&plain, Operation::AllReduce, (16, 8), &[Tree, Ring], &[CollnetDirect, CollnetChain]);
    check(&sharp, Operation::AllReduce, (1, 8), &[Ring], &[CollnetDirect, CollnetChain]);
    check(&sharp, Operation::AllReduce, (16, 8), &[CollnetDirect], &[Nvls]);
    check(&sharp, Operation::AllReduce, (16, 1), &[CollnetDirect], &[]);
    check(&sharp, Operation::AllGather, (16, 8), &[CollnetDirect], &[CollnetChain]);
    check(&sharp, Operation::Broadcast, (16, 8), &[Ring], &[CollnetDirect, CollnetChain]);
    // One adapter for two devices: gathering needs one for each; the chain has fewer hands at once.
    let shared = Fabric { adapters: 4, ..sharp.clone() };
    check(&shared, Operation::AllGather, (16, 8), &[Ring], &[CollnetDirect]);
    // Hopper's NVLink switches hand on to the network's.
    let h100 = Fabric { reduces: true, ..Fabric::from_cluster(&resolve("dgx-h100:16").unwrap()) };
    check(&h100, Operation::AllReduce, (16, 8), &[Nvls], &[]);
    // With many nodes a large all-reduce crosses the network once instead of twice.
    let large = |fabric: &Fabric| chosen(fabric, Operation::AllReduce, (16, 8), 4 << 30).time;
    assert!(large(&sharp) < large(&plain), "{} {}", large(&sharp), large(&plain));
    let h100_plain = Fabric { reduces: false, ..h100.clone() };
    assert!(large(&h100).scale(1.2) < large(&h100_plain), "{} {}", large(&h100), large(&h100_plain));
    check(&h100_plain, Operation::AllReduce, (16, 8), &[NvlsTree], &[Nvls]);
    assert_ne!(chosen(&sharp, Operation::AllReduce, (16, 8), 4 << 30).method, Method::Fitted);
}

#[test]
fn constants_survive_their_file_and_refuse_nonsense() {
    let constants = Constants::builtin();
    assert_eq!(Constants::parse(&constants.to_toml()).unwrap(), constants);
    assert!(constants.fabrics.iter().all(|fabric| fabric.source.len() > 20 && !fabric.terms.is_empty()));
    let refused = |from: &str, to: &str| {
        let text = constants.to_toml();
        assert!(text.contains(from), "{from}");
        Constants::parse(&text.replacen(from, to, 1)).unwrap_err()
    };
    assert!(matches!(refused("base = ", "base = -1"), ConstantsError::Value { name: "base", .. }));
    assert!(matches!(refused("own = ", "own = nan # "), ConstantsError::Value { name: "own", .. }));
    assert!(matches!(refused("base = ", "bias = "), ConstantsError::Syntax(_)));
}

proptest! {
    #[test]
    fn more_bytes_by_the_same_choice_are_never_faster(
        place in 0..NODES.len(), operation in 0..Operation::ALL.len(),
        nodes in 1..40_u32, local in 1..9_u32, bytes in 0..1_u64 << 32, more in 0..1_u64 << 32,
    ) {
        let (_, devices, model) = &NODES[place];
        let placement = Placement::regular(nodes, local.min(*devices));
        let less = model.price(Operation::ALL[operation], Bytes(bytes), &placement);
        let more = model.price(Operation::ALL[operation], Bytes(bytes + more), &placement);
        let same = (less.choice.algorithm, less.choice.protocol) == (more.choice.algorithm, more.choice.protocol);
        // Across nodes a tree's share of its rate goes up and down with the size, as NCCL's table does.
        let table = matches!(less.choice.algorithm, Algorithm::Tree | Algorithm::NvlsTree);
        prop_assert!(!same || table || less.time <= more.time, "{less:?} {more:?}");
    }

    #[test]
    fn slower_links_by_the_same_choice_are_never_faster(
        operation in 0..Operation::ALL.len(), nodes in 1..20_u32, local in 1..9_u32, power in 0..33_u32,
        inside in 0.1..1.0_f64, outside in 0.1..1.0_f64,
    ) {
        let (_, _, model) = NODES.iter().find(|(name, ..)| name == "dgx-h100").unwrap();
        let fabric = model.fabric().clone();
        let Inside::Switch(rate) = fabric.inside else { unreachable!("a DGX has switches") };
        let slow = Fabric {
            inside: Inside::Switch(BytesPerSecond(rate.0 * inside)),
            adapter: BytesPerSecond(fabric.adapter.0 * outside),
            ..fabric.clone()
        };
        let placement = Placement::regular(nodes, local);
        let price = |fabric: &Fabric| {
            NetworkModel::new(fabric.clone()).price(Operation::ALL[operation], Bytes(1 << power), &placement)
        };
        let (fast, slow) = (price(&fabric), price(&slow));
        let same = (fast.choice.algorithm, fast.choice.protocol) == (slow.choice.algorithm, slow.choice.protocol);
        prop_assert!(!same || fast.time <= slow.time, "{fast:?} {slow:?}");
    }
}

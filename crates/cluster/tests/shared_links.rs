//! Collectives of different groups that overlap on links, in whole replays.

mod common;

use std::collections::BTreeMap;

use common::{Script, job};
use proptest::prelude::*;
use trompe_base::{Bytes, DType, Rank};
use trompe_cluster::{CollectiveCall, CollectiveModel, Network, Options, Outcome, Price, simulate};
use trompe_network::NetworkModel;
use trompe_trace::job::{Communicator, JobTrace};
use trompe_trace::record::CollectiveKind::{self, AllReduce, Recv, Send};

fn network(spec: &str) -> Network {
    Network::of_cluster(&trompe_hardware::resolve(spec).unwrap())
}

/// A job in which rank `r` follows `scripts[r]`, and slot 0 of each is its group in `groups` (alone when in none).
fn grouped(groups: &[&[u32]], scripts: &[Script]) -> (JobTrace, trompe_cluster::Prices) {
    let (mut trace, prices) = job(scripts);
    for group in groups {
        let row = trace.communicators.len();
        let members = group.iter().copied().map(Rank).collect();
        trace.communicators.push(Communicator { members, purpose: None });
        for &rank in *group {
            trace.ranks[rank as usize].communicators[0] = row;
        }
    }
    (trace, prices)
}

/// When each rank's device is done, in microseconds.
fn ends(outcome: &Outcome) -> Vec<f64> {
    outcome.ranks.iter().map(|rank| rank.device_end.as_picos() as f64 / 1e6).collect()
}

fn price(network: &Network, kind: CollectiveKind, megabytes: u64, members: &[u32]) -> Price {
    let members: Vec<Rank> = members.iter().copied().map(Rank).collect();
    let bytes = Bytes(megabytes * 1_000_000);
    network.price(&CollectiveCall {
        kind,
        bytes,
        dtype: DType::F32,
        members: &members,
        ends: (0, 1),
        together: 1,
    })
}

#[track_caller]
fn close(found: f64, expect: f64) {
    assert!((found / expect - 1.0).abs() < 1e-4, "{found} for {expect}");
}

#[test]
fn groups_that_share_an_adapter_share_its_rate() {
    // Two nodes of eight devices and four adapters: devices 0 and 1 share one, 2 has another.
    let network = network("aws-p4de:2");
    let pairs: [&[u32]; 3] = [&[0, 8], &[1, 9], &[2, 10]];
    let run = |starts: [Option<u64>; 3]| {
        let mut scripts = vec![Script::new(); 16];
        for (pair, start) in pairs.iter().zip(starts) {
            let Some(start) = start else { continue };
            for &rank in *pair {
                scripts[rank as usize] = Script::new().host(start).all_reduce(1, 0, 500);
            }
        }
        let (trace, prices) = grouped(&pairs, &scripts);
        ends(&simulate(&trace, &prices, &network, &Options::default()).unwrap())
    };
    let alone = price(&network, AllReduce, 500, &[0, 8]).time.as_micros_f64();
    close(run([Some(0), None, None])[0], alone);
    close(run([Some(0), None, Some(0)])[2], alone);
    // Together both are done when the adapter has carried the bytes of both.
    let carried = 500e6 / 12.5e9 * 1e6;
    let both = run([Some(0), Some(0), Some(0)]);
    close(both[0], 2.0 * carried);
    close(both[9], 2.0 * carried);
    close(both[2], alone);
    // One begins in the middle of the other: what is left of the first and the second share until the first ends.
    let half = (alone / 2.0) as u64;
    let late = run([Some(0), Some(half), None]);
    close(late[0], half as f64 + (alone - half as f64) * 2.0 * carried / alone);
    close(
        late[1],
        late[0] + (half as f64 + alone) - (late[0] - half as f64) * alone / (2.0 * carried) - half as f64,
    );
}

#[test]
fn exchanges_of_unequal_parts_wait_for_the_slowest_pair() {
    use trompe_network::Pairs;
    for (spec, ranks) in [("dgx-h100", 8_usize), ("dgx-h100:2", 16)] {
        let network = network(spec);
        let run = |parts: &[Vec<u64>]| {
            let script = |own: usize| {
                let from: Vec<u64> = parts.iter().map(|row| row[own]).collect();
                Script::new().exchange(1, own as u32, (&parts[own], &from), 9)
            };
            let scripts: Vec<Script> = (0..ranks).map(script).collect();
            let (trace, prices) = job(&scripts);
            let outcome = simulate(&trace, &prices, &network, &Options::default()).unwrap();
            ends(&outcome)
        };
        let check = |kilobytes: u64, change: &dyn Fn(&mut Vec<Vec<u64>>), most: f64| {
            let mut parts = vec![vec![kilobytes; ranks]; ranks];
            change(&mut parts);
            let found = run(&parts);
            let last = found.iter().copied().fold(0.0, f64::max);
            let bytes = parts.iter().map(|row| row.iter().map(|part| part * 1_000).collect()).collect();
            let devices: Vec<u32> = (0..ranks as u32).collect();
            let model = NetworkModel::of_cluster(&trompe_hardware::resolve(spec).unwrap());
            let expect = model.estimate_pairs(&devices, &Pairs::new(bytes).unwrap()).0.time.as_micros_f64();
            let ratio = last / expect;
            assert!((1.0 / most..most).contains(&ratio), "{spec} {kilobytes}: {last} for {expect}");
            found
        };
        for kilobytes in [16, 256, 4_000, 64_000] {
            check(kilobytes, &|_| {}, 1.5);
            // One receiver gets four times as much from everybody, and is done last.
            // (The two ways to price small ones differ by what a larger equal exchange costs in latency.)
            let most = if kilobytes < 1_000 { 2.0 } else { 1.5 };
            let found = check(kilobytes, &|parts| parts.iter_mut().for_each(|row| row[3] *= 4), most);
            assert!(found.iter().all(|end| *end <= found[3]), "{found:?}");
        }
    }
}

#[test]
fn many_senders_to_one_receiver_share_its_adapter() {
    let network = network("dgx-h100:4");
    let mut scripts = vec![Script::new(); 32];
    for (stream, sender) in [(1, 8), (2, 16), (3, 24)] {
        scripts[sender as usize] = Script::new().transfer(1, Send, 0, 0);
        scripts[0] = scripts[0].clone().transfer(stream, Recv, sender, 0);
    }
    let (trace, prices) = job(&scripts);
    let done = ends(&simulate(&trace, &prices, &network, &Options::default()).unwrap());
    let alone = price(&network, Send, 1, &[8, 0]).time.as_micros_f64();
    let share = 1e6 / 50e9 * 1e6 / alone;
    close(done[0], alone * (3.0 * share).max(1.0));
    close(done[8], done[0]);
}

#[test]
fn folded_and_unfolded_replays_agree() {
    let network = network("aws-p4de:4");
    let node = |first: u32| (first..first + 8).collect::<Vec<u32>>();
    let rail = |first: u32| (0..4).map(|node| first + 8 * node).collect::<Vec<u32>>();
    let script = Script::new()
        .kernel(1, 30)
        .collective(1, AllReduce, 1, 40)
        .collective(2, AllReduce, 0, 25)
        .kernel(2, 500)
        .collective(2, AllReduce, 0, 300)
        .collective(1, AllReduce, 1, 1)
        .kernel(1, 50);
    let (mut trace, prices) = job(std::slice::from_ref(&script));
    trace.communicators.clear();
    trace.ranks.clear();
    let mut rows: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    for rank in 0..32 {
        let row = |members: Vec<u32>, trace: &mut JobTrace, rows: &mut BTreeMap<Vec<u32>, usize>| {
            *rows.entry(members.clone()).or_insert_with(|| {
                let members = members.into_iter().map(Rank).collect();
                trace.communicators.push(Communicator { members, purpose: None });
                trace.communicators.len() - 1
            })
        };
        let across = row(rail(rank % 8), &mut trace, &mut rows);
        let inside = row(node(rank / 8 * 8), &mut trace, &mut rows);
        let communicators = vec![across, inside];
        trace.ranks.push(trompe_trace::job::RankInstance { template: 0, communicators, emulated: true });
    }
    let whole = simulate(&trace, &prices, &network, &Options::default()).unwrap();
    trace.ranks.iter_mut().skip(1).for_each(|rank| rank.emulated = false);
    let folded = simulate(&trace, &prices, &network, &Options::default()).unwrap();
    assert!(whole.ranks.iter().all(|rank| rank.device_end == folded.ranks[0].device_end));
    // And the adapters are shared: alone the large one takes little more than half.
    let alone = price(&network, AllReduce, 300, &rail(0)).time.as_micros_f64();
    assert!(ends(&folded)[0] > 1.5 * alone, "{} and {alone}", ends(&folded)[0]);
}

/// Prices of a model without the links behind them.
struct Undisturbed(Network);

impl CollectiveModel for Undisturbed {
    fn price(&self, call: &CollectiveCall<'_>) -> Price {
        self.0.price(call)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn sharing_never_makes_a_job_faster_nor_loses_a_byte(
        calls in proptest::collection::vec((0_u32..3, 0_usize..4, 1_u64..200, 0_u64..2_000), 1..12),
    ) {
        // Four pairs of devices on two adapters, calls in one order on all ranks of a pair.
        let pairs: [&[u32]; 4] = [&[0, 8], &[1, 9], &[2, 10], &[3, 11]];
        let mut scripts = vec![Script::new(); 16];
        let mut carried = [0.0; 2];
        for &(stream, pair, megabytes, gap) in &calls {
            for &rank in pairs[pair] {
                let script = scripts[rank as usize].clone();
                scripts[rank as usize] = script.host(gap).all_reduce(1 + stream, 0, megabytes);
            }
            carried[pair / 2] += megabytes as f64 * 1e6;
        }
        let (trace, prices) = grouped(&pairs, &scripts);
        let shared = network("aws-p4de:2");
        let with = ends(&simulate(&trace, &prices, &shared, &Options::default()).unwrap());
        let without = Undisturbed(network("aws-p4de:2"));
        let without = ends(&simulate(&trace, &prices, &without, &Options::default()).unwrap());
        for (with, without) in with.iter().zip(&without) {
            prop_assert!(with >= &(without - 1e-5), "{with} and {without}");
        }
        // An adapter needs its time for the bytes of the two pairs on it, which is when the later of them is done.
        for adapter in 0..2 {
            let done = with[2 * adapter].max(with[2 * adapter + 1]);
            prop_assert!(done * 1e-6 >= carried[adapter] / 12.5e9 * (1.0 - 1e-6), "{done} on {adapter}");
        }
    }

    #[test]
    fn more_bandwidth_is_never_slower_when_nothing_is_shared(
        calls in proptest::collection::vec((0_u32..3, 1_u64..200, 0_u64..2_000, 0_u64..500), 1..10), factor in 1.0..8.0_f64,
    ) {
        let mut scripts = vec![Script::new(); 2];
        for &(stream, megabytes, gap, kernel) in &calls {
            for script in &mut scripts {
                *script = script.clone().host(gap).kernel(1 + stream, kernel).all_reduce(1 + stream, 0, megabytes);
            }
        }
        let (trace, prices) = job(&scripts);
        let time = |bytes_per_second| {
            let model = trompe_cluster::AlphaBeta { bytes_per_second, ..common::WIRE };
            ends(&simulate(&trace, &prices, &model, &Options::default()).unwrap())
        };
        let (slow, fast) = (time(1e9), time(factor * 1e9));
        prop_assert!(fast.iter().zip(&slow).all(|(fast, slow)| fast <= slow), "{fast:?} {slow:?}");
    }
}

#[test]
fn an_oversubscribed_core_is_shared_by_all_rails() {
    let mut cluster = trompe_hardware::resolve("dgx-h100:8").unwrap();
    cluster.oversubscription = 4.0;
    let network = Network::new(NetworkModel::of_cluster(&cluster));
    // Eight rings, one per place, over all nodes: alone each has its adapters, together they fill the core.
    let rails: Vec<Vec<u32>> = (0..8).map(|place| (0..8).map(|node| node * 8 + place).collect()).collect();
    let groups: Vec<&[u32]> = rails.iter().map(Vec::as_slice).collect();
    let run = |busy: usize| {
        let mut scripts = vec![Script::new(); 64];
        for &rank in rails.iter().take(busy).flatten() {
            scripts[rank as usize] = Script::new().all_reduce(1, 0, 400);
        }
        let (trace, prices) = grouped(&groups, &scripts);
        ends(&simulate(&trace, &prices, &network, &Options::default()).unwrap())[0]
    };
    let alone = price(&network, AllReduce, 400, &rails[0]).time.as_micros_f64();
    close(run(1), alone);
    close(run(2), alone);
    // A node's way into the core carries a quarter of its eight adapters.
    let carried = 400e6 * 2.0 * 7.0 / 8.0 / (8.0 * 50e9 / 4.0) * 1e6;
    close(run(8), 8.0 * carried);
}

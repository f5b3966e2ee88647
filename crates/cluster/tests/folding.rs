//! Equal ranks replayed once: the same times as when every rank is replayed, to the picosecond.

mod common;

use std::collections::BTreeMap;

use common::{Script, WIRE, job, micros};
use proptest::collection::vec;
use proptest::prelude::*;
use trompe_base::Rank;
use trompe_cluster::{
    CollectiveModel, Contention, Jitter, Network, Options, Outcome, Prices, Straggler, Variation, simulate,
};
use trompe_trace::job::{Communicator, JobTrace, RankInstance};
use trompe_trace::record::CollectiveKind::{AllGather, AllReduce, Recv, Send};

/// A job of `data × stages × tensor` ranks, tensor-parallel neighbours next to each other.
#[derive(Clone, Copy, Debug)]
struct Shape {
    data: u32,
    stages: u32,
    tensor: u32,
}

/// Something that every stage does.
#[derive(Clone, Debug)]
enum Phase {
    /// Kernels per stage: stream and microseconds.
    Kernels(Vec<(u32, u64)>),
    Host(Vec<u64>),
    World(u32),
    Tensor(u32),
    Data(u32),
    /// Every stage but the last sends to the next one.
    Down,
    Synchronize,
}

/// Slots of a rank's communicators; slot 1 is the rank alone.
const WORLD: u32 = 0;
const TENSOR: u32 = 2;
const DATA: u32 = 3;
const PIPELINE: u32 = 4;

fn phase(stages: usize) -> impl Strategy<Value = Phase> {
    prop_oneof![
        4 => vec((1u32..4, 1u64..40), stages).prop_map(Phase::Kernels),
        2 => vec(0u64..30, stages).prop_map(Phase::Host),
        1 => (1u32..4).prop_map(Phase::World),
        2 => (1u32..4).prop_map(Phase::Tensor),
        2 => (1u32..4).prop_map(Phase::Data),
        2 => Just(Phase::Down),
        1 => Just(Phase::Synchronize),
    ]
}

fn script(stage: u32, stages: u32, phases: &[Phase]) -> Script {
    let mut events = 0;
    phases.iter().fold(Script::new(), |script, phase| match phase {
        Phase::Kernels(kernels) => {
            let (stream, us) = kernels[stage as usize];
            events += 1;
            script.kernel(stream, us).record(stream, events, 1).wait(stream % 3 + 1, events, 1)
        }
        Phase::Host(us) => script.host(us[stage as usize]).nothing(),
        Phase::World(stream) => script.collective(*stream, AllReduce, WORLD, 1),
        Phase::Tensor(stream) => script.collective(*stream, AllReduce, TENSOR, 2),
        Phase::Data(stream) => script.collective(*stream, AllGather, DATA, 4),
        Phase::Down => {
            // On streams of their own, so that stages do not wait for each other in a circle.
            let script = if stage > 0 { script.pass(4, Recv, PIPELINE, stage - 1) } else { script };
            if stage + 1 < stages { script.pass(5, Send, PIPELINE, stage + 1) } else { script }
        }
        Phase::Synchronize => script.sync(),
    })
}

fn build(shape: Shape, phases: &[Phase]) -> (JobTrace, Prices) {
    let Shape { data, stages, tensor } = shape;
    let scripts: Vec<Script> = (0..stages).map(|stage| script(stage, stages, phases)).collect();
    let (mut trace, prices) = job(&scripts);
    let rank = |d: u32, s: u32, t: u32| Rank((d * stages + s) * tensor + t);
    let mut rows = BTreeMap::new();
    let mut communicators = Vec::new();
    let mut row = |(slot, members): (usize, Vec<Rank>)| {
        *rows.entry((slot, members.clone())).or_insert_with(|| {
            communicators.push(Communicator { members, purpose: None });
            communicators.len() - 1
        })
    };
    trace.ranks.clear();
    for d in 0..data {
        for s in 0..stages {
            for t in 0..tensor {
                let members = [
                    (0..data * stages * tensor).map(Rank).collect(),
                    vec![rank(d, s, t)],
                    (0..tensor).map(|t| rank(d, s, t)).collect(),
                    (0..data).map(|d| rank(d, s, t)).collect(),
                    (0..stages).map(|s| rank(d, s, t)).collect(),
                ];
                // One communicator each, as the frameworks make them, even where members are equal.
                let communicators = members.into_iter().enumerate().map(&mut row).collect();
                trace.ranks.push(RankInstance { template: s as usize, communicators, emulated: true });
            }
        }
    }
    trace.communicators = communicators;
    (trace, prices)
}

fn replay(trace: &JobTrace, prices: &Prices, model: &dyn CollectiveModel, options: &Options) -> Outcome {
    simulate(trace, prices, model, options).unwrap_or_else(|error| panic!("{error}"))
}

fn contention() -> Contention {
    Contention::of(trompe_hardware::resolve("h100-sxm").unwrap().device())
}

fn check(
    shape: Shape,
    phases: &[Phase],
    model: &dyn CollectiveModel,
    options: &Options,
) -> Result<usize, TestCaseError> {
    let (trace, prices) = build(shape, phases);
    let folded = replay(&trace, &prices, model, options);
    let whole = replay(&trace, &prices, model, &Options { fold: false, ..options.clone() });
    prop_assert_eq!(whole.ranks.len(), trace.ranks.len());
    prop_assert_eq!(
        folded.ranks.iter().map(|rank| rank.stands_for as usize).sum::<usize>(),
        trace.ranks.len()
    );
    prop_assert_eq!((folded.step, folded.end), (whole.step, whole.end));
    for rank in &folded.ranks {
        let mut expect = whole.ranks[rank.rank.index()].clone();
        expect.stands_for = rank.stands_for;
        prop_assert_eq!(rank, &expect);
    }
    // Every rank is like one of those that were replayed.
    for rank in &whole.ranks {
        let alike = |other: &&trompe_cluster::RankOutcome| {
            other.steps == rank.steps && other.device_end == rank.device_end
        };
        prop_assert!(folded.ranks.iter().any(|other| alike(&other)), "rank {} is like none", rank.rank);
    }
    Ok(folded.ranks.len())
}

fn shape() -> impl Strategy<Value = Shape> {
    (1u32..4, 1u32..4, 1u32..5).prop_map(|(data, stages, tensor)| Shape { data, stages, tensor })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn folded_is_unfolded(shape in shape(), phases in vec(phase(3), 0..25)) {
        check(shape, &phases, &WIRE, &Options::default())?;
        let latencies = Options { launch_latency: micros(2), wake_latency: micros(3), queue_depth: 5, ..Options::default() };
        check(shape, &phases, &WIRE, &latencies)?;
        check(shape, &phases, &WIRE, &Options { contention: Some(contention()), ..latencies })?;
    }

    #[test]
    fn folded_is_unfolded_where_places_have_prices(
        shape in shape(),
        phases in vec(phase(3), 0..25),
        cluster in prop::sample::select(vec!["dgx-h100:6", "aws-p4de:6", "pcie-server:6"]),
    ) {
        // Nodes of eight: groups of three or four ranks lie across some of them.
        let network = Network::of_cluster(&trompe_hardware::resolve(cluster).unwrap());
        check(shape, &phases, &network, &Options { contention: Some(contention()), ..Options::default() })?;
    }
}

fn everything(stages: usize) -> Vec<Phase> {
    vec![
        Phase::Kernels(vec![(1, 30); stages]),
        Phase::Tensor(1),
        Phase::Down,
        Phase::Data(2),
        Phase::World(1),
        Phase::Synchronize,
    ]
}

#[test]
fn one_rank_of_each_kind_is_replayed() {
    let count = |data, stages, tensor, model: &dyn CollectiveModel| {
        check(Shape { data, stages, tensor }, &everything(stages as usize), model, &Options::default())
            .unwrap()
    };
    assert_eq!(count(4, 1, 8, &WIRE), 1);
    assert_eq!(count(4, 3, 2, &WIRE), 3);
    let network =
        |nodes| Network::of_cluster(&trompe_hardware::resolve(&format!("dgx-h100:{nodes}")).unwrap());
    assert_eq!(count(8, 2, 8, &network(16)), 2);
    // Groups of three on nodes of eight: some lie across nodes, so their ranks are not equal.
    assert!(count(8, 1, 3, &network(3)) > 1);
}

#[test]
fn asymmetry_unfolds() {
    let shape = Shape { data: 4, stages: 2, tensor: 2 };
    let (trace, prices) = build(shape, &everything(2));
    let run =
        |variation: Variation| replay(&trace, &prices, &WIRE, &Options { variation, ..Options::default() });
    let plain = run(Variation::default());
    assert_eq!(plain.ranks.len(), 2);
    let slow = Straggler { rank: Rank(5), gpu: 0.5, host: 1.0, nic: 1.0 };
    let straggling = run(Variation { stragglers: vec![slow], ..Variation::default() });
    assert_eq!(straggling.ranks.len(), 16);
    // Rank 5's kernel of 30 us takes 60, and everybody waits for it.
    assert_eq!(straggling.end.as_picos() - plain.end.as_picos(), 30_000_000);
    let jitter = Jitter { kernel: 0.1, host: 0.0, link: 0.05 };
    let varied = |seed| run(Variation { seed, jitter, stragglers: Vec::new() });
    assert_eq!(varied(1), varied(1));
    assert_ne!(varied(1).end, varied(2).end);
    // The slowest of many decides, so chance makes a job slower.
    let mean = (0..20).map(|seed| varied(seed).end.as_picos()).sum::<u64>() / 20;
    assert!(mean > plain.end.as_picos());
}

#[test]
fn ranks_that_did_not_run_find_their_peers() {
    let check = |script: Script| {
        let (mut trace, prices) = job(&vec![script; 4]);
        for (rank, instance) in trace.ranks.iter_mut().enumerate() {
            (instance.template, instance.emulated) = (0, rank == 0);
        }
        let options = Options { fold: false, ..Options::default() };
        let outcome = replay(&trace, &prices, &WIRE, &options);
        assert!(outcome.ranks.iter().all(|rank| rank.device_end == outcome.ranks[0].device_end));
        assert_eq!(outcome.ranks.len(), 4);
    };
    let start = || Script::new().kernel(1, 5);
    check(start().transfer(1, Send, 1, 9).transfer(1, Recv, 3, 9));
    check(start().transfer(1, Send, 1, 9).transfer(1, Recv, 1, 9));
    check(start().transfer(1, Send, 2, 9).transfer(1, Recv, 2, 9));
}

//! Training schedules against their closed forms: pipelines, gradient buckets, sharded parameters.

mod common;

use common::{Script, job, micros};
use trompe_base::{Duration, SimTime};
use trompe_cluster::{AlphaBeta, Instant, Options, Outcome, simulate};
use trompe_results::Kind;
use trompe_trace::job::Communicator;
use trompe_trace::record::CollectiveKind::{AllGather, Recv, ReduceScatter, Send};

/// One piece of work of a pipeline stage: chunk of the model and micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Forward(u32, u32),
    /// The gradient of the input (of everything, where weights are not apart).
    Backward(u32, u32),
    Weights(u32, u32),
}

use Work::{Backward, Forward, Weights};

/// Times of the three kinds of work in microseconds.
#[derive(Clone, Copy)]
struct Costs {
    forward: u64,
    backward: u64,
    weights: u64,
}

const COMPUTE: u32 = 1;
/// Streams and communicator slots of activations and of gradients.
const ACTIVATIONS: (u32, u32, u32) = (2, 3, 0);
const GRADIENTS: (u32, u32, u32) = (4, 5, 2);

/// The program of stage `stage` of `stages`, with `chunks` chunks of the model on each.
fn stage(order: &[Work], (stage, stages, chunks): (u32, u32, u32), costs: Costs) -> Script {
    let last = stages * chunks - 1;
    let (next, before) = ((stage + 1) % stages, (stage + stages - 1) % stages);
    let mut script = Script::new();
    let mut event = 0;
    let mut receive = |script: Script, (_, stream, slot): (u32, u32, u32), peer| {
        event += 1;
        script.pass(stream, Recv, slot, peer).record(stream, event, 1).wait(COMPUTE, event, 1)
    };
    let mut sent = 100_000;
    let mut send = |script: Script, (stream, _, slot): (u32, u32, u32), peer| {
        sent += 1;
        script.record(COMPUTE, sent, 1).wait(stream, sent, 1).pass(stream, Send, slot, peer)
    };
    for &work in order {
        script = match work {
            Forward(chunk, _) => {
                let place = chunk * stages + stage;
                if place > 0 {
                    script = receive(script, ACTIVATIONS, before);
                }
                script = script.kernel(COMPUTE, costs.forward);
                if place < last { send(script, ACTIVATIONS, next) } else { script }
            }
            Backward(chunk, _) => {
                let place = chunk * stages + stage;
                if place < last {
                    script = receive(script, GRADIENTS, next);
                }
                script = script.kernel(COMPUTE, costs.backward);
                if place > 0 { send(script, GRADIENTS, before) } else { script }
            }
            Weights(..) => script.kernel(COMPUTE, costs.weights),
        };
    }
    script
}

fn pipeline(orders: &[Vec<Work>], chunks: u32, costs: Costs) -> Outcome {
    let stages = orders.len() as u32;
    let scripts: Vec<Script> =
        (0..stages).map(|s| stage(&orders[s as usize], (s, stages, chunks), costs)).collect();
    let (mut trace, prices) = job(&scripts);
    let world: Communicator = trace.communicators[0].clone();
    trace.communicators.push(world);
    let row = trace.communicators.len() - 1;
    trace.ranks.iter_mut().for_each(|rank| rank.communicators.push(row));
    simulate(&trace, &prices, &Instant, &Options::default()).expect("a schedule ends")
}

/// One forward, one backward (Narayanan et al., "Efficient large-scale language model training on GPU clusters using
/// Megatron-LM", SC 2021, figure 4).
fn one_forward_one_backward(stage: u32, stages: u32, batches: u32) -> Vec<Work> {
    let warmup = (stages - stage - 1).min(batches);
    let mut order: Vec<Work> = (0..warmup).map(|batch| Forward(0, batch)).collect();
    for batch in 0..batches {
        if batch + warmup < batches {
            order.push(Forward(0, batch + warmup));
        }
        order.push(Backward(0, batch));
    }
    order
}

/// The interleaved schedule of the same paper: chunks take turns in rounds of as many micro-batches as stages.
fn interleaved(stage: u32, stages: u32, (batches, chunks): (u32, u32)) -> Vec<Work> {
    let total = batches * chunks;
    let place = |k: u32, backward: bool| {
        let chunk = k % (stages * chunks) / stages;
        let batch = k / (stages * chunks) * stages + k % stages;
        (if backward { chunks - 1 - chunk } else { chunk }, batch)
    };
    let forward = |k| Forward(place(k, false).0, place(k, false).1);
    let backward = |k| Backward(place(k, true).0, place(k, true).1);
    let warmup = ((stages - stage - 1) * 2 + (chunks - 1) * stages).min(total);
    let mut order: Vec<Work> = (0..warmup).map(forward).collect();
    for k in 0..total {
        if k + warmup < total {
            order.push(forward(k + warmup));
        }
        order.push(backward(k));
    }
    order
}

/// ZB-H1 (Qi et al., "Zero bubble pipeline parallelism", ICLR 2024): weight gradients lag behind by as many
/// micro-batches as the stage's number, and fill the end.
fn zero_bubble(stage: u32, stages: u32, batches: u32) -> Vec<Work> {
    let warmup = (stages - stage - 1).min(batches);
    let mut order: Vec<Work> = (0..warmup).map(|batch| Forward(0, batch)).collect();
    for batch in 0..batches {
        if batch + warmup < batches {
            order.push(Forward(0, batch + warmup));
        }
        order.push(Backward(0, batch));
        if batch >= stage {
            order.push(Weights(0, batch - stage));
        }
    }
    let left = batches - stage.min(batches);
    order.extend((left..batches).map(|batch| Weights(0, batch)));
    order
}

#[test]
fn pipelines_take_what_their_closed_forms_say() {
    let end = |outcome: &Outcome| outcome.end.as_picos() / 1_000_000;
    for (stages, batches) in [(1, 1), (2, 2), (2, 8), (4, 4), (4, 16), (8, 16)] {
        let costs = Costs { forward: 10, backward: 20, weights: 0 };
        let orders: Vec<_> = (0..stages).map(|s| one_forward_one_backward(s, stages, batches)).collect();
        let outcome = pipeline(&orders, 1, costs);
        let (p, m) = (u64::from(stages), u64::from(batches));
        // The bubble is (p - 1)(F + B).
        assert_eq!(end(&outcome), (m + p - 1) * 30, "1F1B of {p} stages, {m} micro-batches");
        for rank in &outcome.ranks {
            assert_eq!(rank.steps[0].operation_time[Kind::Other as usize], micros(m * 30));
        }
        for chunks in [2, 3] {
            if batches % stages != 0 || stages == 1 {
                continue;
            }
            let orders: Vec<_> = (0..stages).map(|s| interleaved(s, stages, (batches, chunks))).collect();
            let outcome = pipeline(&orders, chunks, costs);
            // F and B are those of one chunk: the bubble shrinks by the number of chunks.
            let expect = (m * u64::from(chunks) + p - 1) * 30;
            assert_eq!(end(&outcome), expect, "{chunks} chunks on {p} stages, {m} micro-batches");
        }
    }
    for (stages, batches) in [(2, 4), (4, 8), (4, 16), (8, 16)] {
        for (forward, backward, weights) in [(10, 10, 10), (10, 12, 8)] {
            let costs = Costs { forward, backward, weights };
            let orders: Vec<_> = (0..stages).map(|s| zero_bubble(s, stages, batches)).collect();
            let outcome = pipeline(&orders, 1, costs);
            let (p, m) = (u64::from(stages), u64::from(batches));
            let expect = m * (forward + backward + weights) + (p - 1) * (forward + backward - weights);
            assert_eq!(
                end(&outcome),
                expect,
                "ZB-H1 of {p} stages, {m} micro-batches, {forward} {backward} {weights}"
            );
        }
    }
}

/// Two ranks; collectives of one megabyte take the given time.
fn wire(millis: u64) -> AlphaBeta {
    AlphaBeta { alpha: Duration::ZERO, bytes_per_second: 1e9 / millis as f64 }
}

fn two(script: &Script, wire: &AlphaBeta) -> Outcome {
    let (trace, prices) = job(&[script.clone(), script.clone()]);
    simulate(&trace, &prices, wire, &Options::default()).expect("the job ends")
}

/// Data parallel: each bucket of `per_bucket` layers is all-reduced on its own stream as soon as its gradients are there.
fn data_parallel(layers: u32, per_bucket: u32, (forward, backward): (u64, u64)) -> Script {
    let mut script = Script::new().kernel(1, forward);
    for layer in 0..layers {
        script = script.kernel(1, backward);
        if (layer + 1) % per_bucket == 0 {
            script = script.record(1, layer, 1).wait(2, layer, 1).all_reduce(2, 0, 1);
        }
    }
    script.record(2, 1_000, 1).wait(1, 1_000, 1).kernel(1, 100)
}

#[test]
fn gradient_buckets_overlap_with_the_backward_pass() {
    let check = |(layers, per_bucket): (u32, u32), backward: u64, transfer: u64| {
        let outcome = two(&data_parallel(layers, per_bucket, (5_000, backward * 1_000)), &wire(transfer));
        let (bucket, buckets) = (backward * u64::from(per_bucket), u64::from(layers / per_bucket));
        // The wire is the bottleneck from the first bucket on, or only the last bucket is exposed.
        let end =
            5 + if transfer > bucket { bucket + buckets * transfer } else { buckets * bucket + transfer };
        assert_eq!(outcome.end, SimTime::ZERO + micros(end * 1_000 + 100));
        let exposed = end - 5 - buckets * bucket;
        assert_eq!(outcome.ranks[0].steps[0].exposed_communication(), micros(exposed * 1_000));
    };
    check((12, 3), 4, 6);
    check((12, 3), 4, 30);
    check((12, 1), 4, 4);
    check((8, 8), 2, 50);
}

/// Fully sharded: the parameters of layer `k + 1` are gathered while layer `k` computes; gradients are scattered while
/// the layer below computes.
fn sharded(layers: u32, (forward, backward): (u64, u64)) -> Script {
    let mut script = Script::new();
    let gather = |script: Script, event| script.collective(2, AllGather, 0, 2).record(2, event, 1);
    script = gather(script, 0);
    for layer in 0..layers {
        if layer + 1 < layers {
            script = gather(script, layer + 1);
        }
        script = script.wait(1, layer, 1).kernel(1, forward);
    }
    for layer in (0..layers).rev() {
        script = script.kernel(1, backward).record(1, 500 + layer, 1).wait(3, 500 + layer, 1);
        script = script.collective(3, ReduceScatter, 0, 2);
    }
    script
}

#[test]
fn gathering_ahead_hides_all_but_the_first_layer() {
    let check = |layers: u32, forward: u64, backward: u64, transfer: u64| {
        let outcome = two(&sharded(layers, (forward * 1_000, backward * 1_000)), &wire(transfer));
        let n = u64::from(layers);
        let gathered = transfer + (n - 1) * forward.max(transfer) + forward;
        let scattered = if transfer > backward { backward + n * transfer } else { n * backward + transfer };
        assert_eq!(outcome.end, SimTime::ZERO + micros((gathered + scattered) * 1_000));
    };
    check(4, 10, 20, 6);
    check(4, 3, 5, 6);
    check(1, 3, 5, 6);
}

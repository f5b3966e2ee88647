//! Critical paths: they add up to the step, and name what carries it.

mod common;

use common::{Script, WIRE, job, micros};
use trompe_base::{Duration, Rank};
use trompe_cluster::{CriticalPath, Options, PathOwner, Replay, simulate};

fn options() -> Options {
    Options { launch_latency: micros(2), wake_latency: micros(3), path: Some(0), ..Options::default() }
}

fn path(scripts: &[Script]) -> CriticalPath {
    let (trace, prices) = job(scripts);
    let outcome = simulate(&trace, &prices, &WIRE, &options()).expect("the job ends");
    outcome.path.expect("a path was asked for")
}

/// The time of all owners that `wanted` names, in microseconds.
fn share(path: &CriticalPath, wanted: impl Fn(PathOwner) -> bool) -> f64 {
    let shares = path.shares.iter().filter(|share| wanted(share.owner));
    shares.map(|share| share.time).sum::<Duration>().as_micros_f64()
}

/// Parts of a path by owner, in microseconds.
type Parts = [(fn(PathOwner) -> bool, f64); 5];

const HOST: fn(PathOwner) -> bool = |owner| matches!(owner, PathOwner::Host { .. });
const KERNELS: fn(PathOwner) -> bool = |owner| matches!(owner, PathOwner::Operation { .. });
const WIRES: fn(PathOwner) -> bool = |owner| matches!(owner, PathOwner::Collective { .. });

#[track_caller]
fn check(scripts: &[Script], expect: Parts) {
    let path = path(scripts);
    for (i, (owner, micros)) in expect.into_iter().enumerate() {
        assert_eq!(share(&path, owner), micros, "part {i}: {path:?}");
    }
    assert_eq!(path.shares.iter().map(|share| share.time).sum::<Duration>(), path.time);
}

fn parts(host: f64, launch: f64, kernels: f64, wires: f64, wake: f64) -> Parts {
    [
        (HOST, host),
        (|owner| owner == PathOwner::Launch, launch),
        (KERNELS, kernels),
        (WIRES, wires),
        (|owner| owner == PathOwner::Wake, wake),
    ]
}

#[test]
fn paths_on_paper() {
    let s = Script::new;
    check(&[s().host(5).kernel(1, 10).kernel(1, 20)], parts(5.0, 2.0, 30.0, 0.0, 0.0));
    // The second launch comes when the first kernel is over.
    check(&[s().host(5).kernel(1, 10).host(40).kernel(1, 20)], parts(45.0, 2.0, 20.0, 0.0, 0.0));
    // Over an event to another stream, whose own kernel is short.
    let events = s().host(1).kernel(2, 3).kernel(1, 50).record(1, 0, 1).wait(2, 0, 1).kernel(2, 7);
    check(&[events], parts(1.0, 2.0, 57.0, 0.0, 0.0));
    // Over a synchronisation: kernel, wake, host, launch, kernel.
    check(&[s().host(1).kernel(1, 50).sync().host(9).kernel(1, 7)], parts(10.0, 4.0, 57.0, 0.0, 3.0));
    // Over another rank, which is late with its host.
    let late = s().host(100).all_reduce(1, 0, 1).kernel(1, 5);
    let early = s().host(1).all_reduce(1, 0, 1).kernel(1, 6);
    check(&[early.clone(), late.clone()], parts(100.0, 2.0, 6.0, 1_000.0, 0.0));
    let found = path(&[early, late]);
    assert_eq!(found.rank, Rank(0));
    assert_eq!(found.ranks, [(Rank(0), micros(1_006)), (Rank(1), micros(102))]);
    // Over a copy engine.
    check(&[s().upload(1, 30).upload(2, 10)], parts(0.0, 2.0, 40.0, 0.0, 0.0));
    check(&[s().host(25).nothing()], parts(25.0, 0.0, 0.0, 0.0, 0.0));
}

#[test]
fn what_if_something_were_faster() {
    let script = Script::new().host(1).gemm(1, 100).kernel(1, 50).kernel(2, 10);
    let (trace, prices) = job(&[script]);
    let options = options();
    let replay = Replay::new(&trace, &prices, &WIRE, &options).unwrap();
    let base = replay.run().unwrap().step;
    let gain =
        |faster: &dyn Fn(PathOwner) -> bool| (base - replay.what_if(0.9, faster).unwrap()).as_micros_f64();
    let operation = |wanted: u32| move |owner| matches!(owner, PathOwner::Operation { operation, .. } if operation == wanted);
    assert_eq!(gain(&operation(0)), 10.0);
    assert_eq!(gain(&operation(1)), 5.0);
    assert_eq!(gain(&operation(2)), 0.0);
    assert!((gain(&HOST) - 0.1).abs() < 1e-9);
    assert_eq!(gain(&WIRES), 0.0);
    assert_eq!(replay.what_if(1.0, &|_| true).unwrap(), base);
}

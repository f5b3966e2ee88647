//! Steps of made-up runs whose steady part is not what the optimizer's ranges show: CUDA graphs, compiled optimizers.

use trompe_base::{DType, StreamId};
use trompe_collate::{Options, collate};
use trompe_testkit::values::tensor;
use trompe_testkit::{Launch, TraceBuilder};
use trompe_trace::job::{StepSource, Steps};
use trompe_trace::record::Record;

const ADD: &str = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EELb0EEEviT0_T1_";

fn launch(t: &mut TraceBuilder, name: &str) {
    t.launch(Launch { name, ..Launch::default() });
}

/// Six events: a forward pass of 8 × 128 tokens and a backward pass.
fn pass(t: &mut TraceBuilder) {
    let indices = tensor(DType::I64, &[8, 128], 4096);
    let table = tensor(DType::F32, &[1000, 16], 1 << 20);
    t.operator("aten::embedding", &[table, indices], |t| {
        launch(t, "look_up");
        vec![]
    });
    t.operator("aten::add", &[], |t| {
        launch(t, ADD);
        launch(t, "more");
        vec![]
    });
    t.on_thread(2).node("AddBackward0", |t| {
        for name in ["a", "b", "c"] {
            launch(t, name);
        }
    });
    t.on_thread(1);
}

/// One event.
fn optimizer(t: &mut TraceBuilder) {
    t.range("Optimizer.step#AdamW.step", |t| launch(t, "update"));
}

fn step(t: &mut TraceBuilder) {
    pass(t);
    optimizer(t);
}

/// Captures what `body` does; three events more.
fn capture(t: &mut TraceBuilder, graph: u32, body: impl FnOnce(&mut TraceBuilder)) {
    t.record(&Record::CaptureBegin { stream: StreamId(0), graph });
    body(t);
    t.record(&Record::CaptureEnd { stream: StreamId(0), graph });
    t.record(&Record::GraphInstantiate { graph, executable: 10 * graph });
}

fn replay(t: &mut TraceBuilder, graph: u32) {
    let api = t.api("cudart/cudaGraphLaunch/emulated");
    t.record(&Record::GraphLaunch { api, executable: 10 * graph, stream: StreamId(0) });
}

fn copy_in(t: &mut TraceBuilder) {
    let api = t.api("cudart/cudaMemsetAsync/emulated");
    t.record(&Record::Set { api, stream: StreamId(0), bytes: 64, value: 0 });
}

fn check(run: impl FnOnce(&mut TraceBuilder), source: StepSource, boundaries: &[usize]) -> Steps {
    let mut t = TraceBuilder::default();
    run(&mut t);
    let mut job = collate(&[t.finish()], &Options::default()).unwrap();
    let steps = std::mem::take(&mut job.templates[0].steps);
    assert_eq!((steps.source, steps.boundaries.as_slice()), (source, boundaries));
    steps
}

#[test]
fn replays_of_a_whole_step_are_the_steps() {
    let run = |t: &mut TraceBuilder| {
        (0..11).for_each(|_| step(t));
        capture(t, 1, step);
        for _ in 0..4 {
            copy_in(t);
            replay(t, 1);
        }
        launch(t, "evaluate");
    };
    // Warm-up of 77 events and a capture of 10, though the warm-up has more steps.
    let steps = check(run, StepSource::Replay, &[77, 89, 91, 93, 95]);
    assert_eq!((steps.warmup, steps.samples, steps.tokens), (1, Some(8), Some(1024)));
    assert_eq!(steps.samples_from.as_deref(), Some("embedding indices [8, 128]"));
}

#[test]
fn a_step_of_several_graphs_ends_with_the_optimizers() {
    let run = |t: &mut TraceBuilder| {
        (0..3).for_each(|_| step(t));
        capture(t, 1, pass);
        capture(t, 2, optimizer);
        for _ in 0..4 {
            replay(t, 1);
            replay(t, 1);
            replay(t, 2);
        }
    };
    let steps = check(run, StepSource::Replay, &[21, 37, 40, 43, 46]);
    assert_eq!((steps.warmup, steps.samples), (1, Some(16)));
    assert_eq!(steps.samples_from.as_deref(), Some("embedding indices [8, 128], 2 micro-batches"));
}

#[test]
fn an_optimizer_beside_the_graphs_ends_steps_as_ever() {
    let run = |t: &mut TraceBuilder| {
        capture(t, 1, pass);
        for _ in 0..4 {
            replay(t, 1);
            optimizer(t);
        }
    };
    let steps = check(run, StepSource::Optimizer, &[0, 11, 13, 15, 17]);
    assert_eq!((steps.warmup, steps.tokens), (1, Some(1024)));
}

#[test]
fn graphs_without_an_optimizer_range_repeat_with_their_launches() {
    let run = |t: &mut TraceBuilder| {
        (0..3).for_each(|_| pass(t));
        capture(t, 1, pass);
        for _ in 0..5 {
            replay(t, 1);
            launch(t, "hand-written update");
        }
    };
    check(run, StepSource::Replay, &[27, 29, 31, 33, 35, 37]);
}

#[test]
fn training_that_goes_on_behind_the_last_optimizer_range_counts() {
    let run = |t: &mut TraceBuilder| {
        (0..2).for_each(|_| step(t));
        for _ in 0..5 {
            pass(t);
            launch(t, "compiled_update");
        }
    };
    check(run, StepSource::Period, &[14, 21, 28, 35, 42, 49]);
}

#[test]
fn something_rare_does_not_join_the_steps_behind_the_last_range() {
    let run = |t: &mut TraceBuilder| {
        (0..2).for_each(|_| step(t));
        for index in 0..10 {
            pass(t);
            launch(t, "compiled_update");
            if index % 5 == 4 {
                launch(t, "log");
            }
        }
    };
    check(run, StepSource::Period, &[14, 21, 28, 35, 42, 50, 57, 64, 71, 78, 85]);
}

#[test]
fn what_follows_training_is_no_step() {
    let trained = [0, 7, 14, 21];
    let check = |rest: &dyn Fn(&mut TraceBuilder)| {
        let run = |t: &mut TraceBuilder| {
            (0..3).for_each(|_| step(t));
            rest(t);
        };
        check(run, StepSource::Optimizer, &trained);
    };
    // Evaluation has no backward pass, as a graph or without.
    check(&|t| {
        for _ in 0..20 {
            launch(t, "evaluate");
            launch(t, ADD);
        }
    });
    check(&|t| {
        capture(t, 1, |t| launch(t, ADD));
        (0..20).for_each(|_| replay(t, 1));
    });
    // Micro-batches that the end of the data leaves without an update.
    check(&|t| pass(t));
    check(&|t| {
        pass(t);
        pass(t);
    });
}

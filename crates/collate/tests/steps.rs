//! Steps, warm-up, phases and host times of made-up training runs.

use trompe_base::DType;
use trompe_collate::{Options, StepBoundary, StepsOverride, collate};
use trompe_testkit::values::tensor;
use trompe_testkit::{Launch, TraceBuilder};
use trompe_trace::job::{JobTrace, Phase, StepSource};
use trompe_trace::reader::WorkerTrace;

const ADD: &str = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EELb0EEEviT0_T1_";
const ADAM: &str = "fused_adam";

fn launch(t: &mut TraceBuilder, name: &str) {
    t.launch(Launch { name, ..Launch::default() });
}

/// Forward of one micro-batch of 8 × 128 tokens, then backward on the engine's thread.
fn micro_batch(t: &mut TraceBuilder) {
    let indices = tensor(DType::I64, &[8, 128], 4096);
    let table = tensor(DType::F32, &[1000, 16], 1 << 20);
    t.operator("aten::embedding", &[table, indices], |t| {
        launch(t, "look_up");
        vec![]
    });
    t.operator("aten::add", &[], |t| {
        launch(t, ADD);
        vec![]
    });
    t.on_thread(2).node("AddBackward0", |t| launch(t, "add_backward"));
    t.on_thread(1);
}

fn optimizer(t: &mut TraceBuilder) {
    t.range("Optimizer.step#AdamW.step", |t| launch(t, ADAM));
}

/// `steps` steps, the first with one more kernel.
fn training(steps: usize, step: impl Fn(&mut TraceBuilder)) -> WorkerTrace {
    let mut t = TraceBuilder::default();
    for index in 0..steps {
        if index == 0 {
            launch(&mut t, "initialise");
        }
        step(&mut t);
    }
    t.finish()
}

fn job(trace: WorkerTrace, boundary: StepBoundary) -> JobTrace {
    let steps = StepsOverride { boundary, warmup: None };
    collate(&[trace], &Options { steps }).unwrap()
}

fn check(job: &JobTrace, source: StepSource, boundaries: &[usize], warmup: usize) {
    let steps = &job.templates[0].steps;
    assert_eq!((steps.source, steps.boundaries.as_slice(), steps.warmup), (source, boundaries, warmup));
}

#[test]
fn steps_end_with_the_optimizer_and_the_first_is_warm_up() {
    let trace = training(4, |t| {
        micro_batch(t);
        optimizer(t);
    });
    let job = job(trace, StepBoundary::Automatic);
    check(&job, StepSource::Optimizer, &[0, 5, 9, 13, 17], 1);
    let steps = &job.templates[0].steps;
    assert_eq!((steps.samples, steps.tokens), (Some(8), Some(1024)));
    assert_eq!(steps.samples_from.as_deref(), Some("embedding indices [8, 128]"));
}

#[test]
fn micro_batches_add_up() {
    let trace = training(4, |t| {
        micro_batch(t);
        micro_batch(t);
        optimizer(t);
    });
    let steps = &job(trace, StepBoundary::Automatic).templates[0].steps;
    assert_eq!((steps.samples, steps.tokens), (Some(16), Some(2048)));
    assert_eq!(steps.samples_from.as_deref(), Some("embedding indices [8, 128], 2 micro-batches"));
}

#[test]
fn optimizers_that_take_turns_make_one_step() {
    let trace = training(5, |t| {
        let update = |t: &mut TraceBuilder, blocks: u32| {
            let grid = [blocks, 1, 1];
            let launch = Launch { name: ADAM, grid, ..Launch::default() };
            t.range("Optimizer.step#AdamW.step", |t| _ = t.launch(launch));
        };
        launch(t, "generator");
        update(t, 7);
        launch(t, "discriminator");
        launch(t, "discriminator");
        update(t, 9);
    });
    check(&job(trace, StepBoundary::Automatic), StepSource::Optimizer, &[0, 6, 11, 16, 21, 26], 1);
}

#[test]
fn what_happens_every_other_step_does_not_make_two_steps_one() {
    let turn = std::cell::Cell::new(0);
    let trace = training(6, |t| {
        launch(t, "work");
        optimizer(t);
        if turn.replace(turn.get() + 1) % 2 == 1 {
            launch(t, "log");
        }
    });
    check(&job(trace, StepBoundary::Automatic), StepSource::Optimizer, &[0, 3, 5, 8, 10, 13, 15], 1);
}

#[test]
fn marks_serve_when_there_is_no_optimizer() {
    let mut t = TraceBuilder::default();
    launch(&mut t, "initialise");
    for step in 0..4 {
        t.mark(Some(&format!("train step {step}")));
        launch(&mut t, ADD);
        launch(&mut t, "more");
        t.mark(None);
    }
    launch(&mut t, "evaluate");
    check(&job(t.finish(), StepBoundary::Automatic), StepSource::Marker, &[1, 3, 5, 7, 9], 1);
}

#[test]
fn repetition_serves_when_nothing_is_named() {
    let mut t = TraceBuilder::default();
    launch(&mut t, "initialise");
    for _ in 0..6 {
        launch(&mut t, "first");
        for _ in 0..3 {
            launch(&mut t, "layer");
            launch(&mut t, ADD);
        }
        launch(&mut t, "loss");
    }
    let job = job(t.finish(), StepBoundary::Automatic);
    check(&job, StepSource::Period, &[1, 9, 17, 25, 33, 41, 49], 1);
}

#[test]
fn copying_a_model_to_the_device_is_no_training() {
    let mut t = TraceBuilder::default();
    let api = t.api("cudart/cudaMemsetAsync/emulated");
    for _ in 0..20 {
        let stream = trompe_base::StreamId(0);
        t.record(&trompe_trace::record::Record::Set { api, stream, bytes: 64, value: 0 });
    }
    launch(&mut t, "fails");
    check(&job(t.finish(), StepBoundary::Automatic), StepSource::WholeRun, &[0, 21], 0);
}

#[test]
fn the_user_has_the_last_word() {
    let trace = || {
        training(6, |t| {
            t.mark(Some("epoch part"));
            micro_batch(t);
            optimizer(t);
            t.mark(None);
        })
    };
    check(&job(trace(), StepBoundary::WholeRun), StepSource::WholeRun, &[0, 25], 0);
    check(
        &job(trace(), StepBoundary::Marker("epoch".into())),
        StepSource::User,
        &[1, 5, 9, 13, 17, 21, 25],
        1,
    );
    let skip = StepsOverride { boundary: StepBoundary::Automatic, warmup: Some(3) };
    check(
        &collate(&[trace()], &Options { steps: skip }).unwrap(),
        StepSource::Optimizer,
        &[0, 5, 9, 13, 17, 21, 25],
        3,
    );
    let missing = job(trace(), StepBoundary::Marker("nowhere".into()));
    assert!(missing.notes.iter().any(|n| n.text.contains("no mark with `nowhere`")), "{:?}", missing.notes);
}

#[test]
fn one_step_is_reported_with_a_warning() {
    let job = job(training(1, optimizer), StepBoundary::Automatic);
    check(&job, StepSource::Optimizer, &[0, 2], 0);
    assert!(job.notes.iter().any(|n| n.text.contains("the run has one step")), "{:?}", job.notes);
}

#[test]
fn events_know_their_place_in_the_step() {
    let trace = training(3, |t| {
        micro_batch(t);
        t.on_thread(2).node("CheckpointFunctionBackward", |t| {
            t.operator("aten::add", &[], |t| {
                launch(t, ADD);
                vec![]
            });
        });
        t.on_thread(1);
        t.operator("aten::_foreach_norm", &[], |t| {
            launch(t, "clip");
            vec![]
        });
        optimizer(t);
    });
    let job = job(trace, StepBoundary::Automatic);
    let template = &job.templates[0];
    let places: Vec<_> = template.events[7..13]
        .iter()
        .map(|event| {
            let site = &template.sites[event.site as usize];
            (site.operator.as_str(), site.scope.as_str(), site.phase)
        })
        .collect();
    assert_eq!(
        places,
        [
            ("aten::embedding", "", Phase::Forward),
            ("aten::add", "", Phase::Forward),
            ("", "AddBackward0", Phase::Backward),
            ("aten::add", "CheckpointFunctionBackward", Phase::Recompute),
            ("aten::_foreach_norm", "", Phase::Optimizer),
            ("", "Optimizer.step#AdamW.step", Phase::Optimizer),
        ]
    );
}

#[test]
fn host_time_is_what_no_record_covers() {
    let mut t = TraceBuilder::default();
    for step in 0..5u64 {
        launch(&mut t, "first");
        // Interrupted once: the median forgets it.
        t.pass(if step == 2 { 1_000_000 } else { 500 });
        t.operator("aten::add", &[], |t| {
            launch(t, ADD);
            vec![]
        });
        optimizer(&mut t);
    }
    let job = job(t.finish(), StepBoundary::Automatic);
    let gaps: Vec<_> = job.templates[0].events[6..9].iter().map(|e| e.gap.as_picos() / 1000).collect();
    // `first`: the optimizer's end and the pause before each of the two; `add`: the operator's begin likewise.
    assert_eq!(gaps, [2 * TraceBuilder::PAUSE, 2 * TraceBuilder::PAUSE + 500, 3 * TraceBuilder::PAUSE]);
}

#[test]
fn other_threads_do_not_disturb_the_timeline() {
    let run = |watchdog: bool| {
        let mut t = TraceBuilder::default();
        for _ in 0..4 {
            launch(&mut t, ADD);
            if watchdog {
                // Takes no host time from the working thread.
                let event = trompe_base::EventId(0);
                t.on_thread(9);
                t.record(&trompe_trace::record::Record::EventQuery { api: 0, event, version: 0 });
                t.on_thread(1);
            } else {
                t.pass(TraceBuilder::PAUSE + TraceBuilder::CALL);
            }
            optimizer(&mut t);
        }
        job(t.finish(), StepBoundary::Automatic)
    };
    assert_eq!(run(true).templates[0].events, run(false).templates[0].events);
}

#[test]
fn equal_traces_give_equal_bytes() {
    let trace = || {
        training(4, |t| {
            micro_batch(t);
            optimizer(t);
        })
    };
    let bytes = |trace| trompe_trace::job_file::to_bytes(&job(trace, StepBoundary::Automatic)).unwrap();
    assert_eq!(bytes(trace()), bytes(trace()));
}

#[test]
fn threads_and_kernel_names_tell_the_phases_when_there_are_no_operators() {
    let mut t = TraceBuilder::default();
    for _ in 0..4 {
        launch(&mut t, "forward");
        t.on_thread(2);
        launch(&mut t, "backward");
        t.on_thread(1);
        launch(&mut t, "_Z20FusedAdamMathFunctorv");
    }
    let job = job(t.finish(), StepBoundary::Automatic);
    let template = &job.templates[0];
    let phases: Vec<_> = template.events[..3].iter().map(|e| template.sites[e.site as usize].phase).collect();
    assert_eq!(phases, [Phase::Forward, Phase::Backward, Phase::Optimizer]);
}

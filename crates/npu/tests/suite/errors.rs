//! Programs and inputs that make no sense, and what the reference gets wrong.

use trompe_npu::builder::{Kernel, Lane};
use trompe_npu::kernels::vector_add;
use trompe_npu::{Argument, Device, ElementType, LaneName, Options, Pipe, Profile, Program, Role};

use crate::support::*;

use ElementType::{F16, F32, I32};

fn lane(write: impl Fn(&mut Lane)) -> Program {
    let mut kernel = Kernel::new("wrong", 1);
    kernel.local("a", "ub", F32, &[1, 64]);
    kernel.lane(LaneName::Vec0, |lane| write(lane));
    kernel.build()
}

#[track_caller]
fn check(program: &Program, parts: &[&str]) {
    let options = Options { budget: 10_000, ..Options::default() };
    let error = simulate(program, &[], &options).map_or_else(|error| error.to_string(), |_| String::new());
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn programs_are_refused_with_the_instruction_and_the_operand() {
    let op = |op: &'static str, args: &'static [(&'static str, i64)]| {
        lane(move |lane| {
            let args: Vec<(&str, Argument)> =
                args.iter().map(|(name, value)| (*name, (*value).into())).collect();
            lane.emit(op, &args);
        })
    };
    check(&op("fly", &[]), &["vec0[0] `fly`: no such instruction"]);
    check(&op("vexp", &[]), &["`vexp`: a micro instruction belongs into a micro program"]);
    check(&op("GetCubeIdx", &[]), &["operand `out`: is missing"]);
    check(&op("noop", &[("speed", 3)]), &["operand `speed`: is not known"]);
    check(&op("mmad", &[]), &["`mmad`: runs on M, which vec0 does not have"]);
    check(&op("end_loop", &[]), &["`end_loop`: ends no loop"]);
    check(&op("break_loop", &[]), &["is not in a loop"]);
    check(&op("movemaskspr", &[]), &["micro instruction"]);
    let with = |args: &'static [(&'static str, &'static str)], op: &'static str| {
        lane(move |lane| {
            let args: Vec<(&str, Argument)> =
                args.iter().map(|(name, value)| (*name, (*value).into())).collect();
            lane.emit(op, &args);
        })
    };
    check(&with(&[("dst", "b"), ("src", "a")], "exp"), &["operand `dst`: there is no tensor or view `b`"]);
    check(&with(&[("cond", "x + 1 < 2")], "start_if"), &["operand `cond`: `+`", "no arithmetic"]);
    check(&with(&[("cond", "x < 2")], "start_if"), &["operand `cond`: there is no variable `x`"]);
    check(&with(&[("cond", "1 < 2")], "start_if"), &["`start_if`: is never ended"]);
    check(&with(&[("event", "e")], "event_set"), &["operand `event`: there is no event `e`"]);
    check(
        &with(&[("var_name", "x"), ("value", "y")], "create_var"),
        &["operand `value`: there is no variable `y`"],
    );
    check(&with(&[("pipe", "Q")], "barrier"), &["operand `pipe`: is `Q`"]);
    check(
        &with(&[("dst", "a"), ("src", "a"), ("repeat", "a")], "exp"),
        &["operand `repeat`: there is no variable `a`"],
    );
}

#[test]
fn runs_end_with_one_clear_error() {
    let endless = lane(|lane| {
        let x = lane.var("x", 0);
        lane.range(0, 1_000_000_000, 1, |lane, _| {
            lane.emit("var_add", &[("out", "x".into()), ("a", (&x).into()), ("b", 1.into())]);
        });
    });
    check(&endless, &["more than 10000 instructions ran"]);
    check(&lane(|lane| lane.range(0, 3, 0, |_, _| {})), &["`start_loop`: a loop's step is zero"]);
    let divide = lane(|lane| {
        lane.calc("var_div", 1, 0);
    });
    check(&divide, &["`var_div`: division by zero"]);
    let index = lane(|lane| {
        lane.emit("create_varlist", &[("name", "l".into()), ("length", 3.into())]);
        let at = lane.var("at", 3);
        lane.calc("var_add", format!("l[{}]", at.name()).as_str(), 1);
    });
    check(&index, &["index 3 is outside `l` of 3"]);
}

#[test]
fn files_are_refused() {
    let good = vector_add(64, 64, 1).to_json();
    let check = |text: &str, part: &str| {
        let error = Program::from_json(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    check(&good[..good.len() / 2], "is not valid");
    check(&good.replace("\"version\": 1", "\"version\": 7"), "version 7, this build reads version 1");
    check(&good.replace("trompe-npu-program", "other"), "`format` is `other`");
    check(&good.replace("\"lanes\"", "\"lane\""), "unknown field `lane`");
    // What is wrong inside is named by its place.
    check(&good.replacen("\"f32\"", "\"f33\"", 1), "tensors[0].dtype: unknown variant `f33`");
    check(&good.replacen("\"op\":", "\"opp\":", 1), "lanes[0].instructions[0]");
    check("[]", "`format` is `none`");
    assert!(Device::named("h100").unwrap_err().to_string().contains("`h100`"));
}

#[test]
fn inputs_are_checked() {
    let program = vector_add(64, 64, 1);
    let x = f32s(&[64], &[0.0; 64]);
    let check = |inputs: &[(&str, trompe_npu::Input)], part: &str| {
        let error = simulate(&program, inputs, &Options::default()).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    check(&[("x", x.clone())], "input `y`: is missing");
    check(
        &[("x", f16s(&[64], &[0.0; 64]).0), ("y", x.clone())],
        "input `x`: has f16 elements, the program wants f32",
    );
    check(
        &[("x", f32s(&[32], &[0.0; 32])), ("y", x.clone())],
        "input `x`: has shape [32], the program wants [64]",
    );
    check(
        &[("x", x.clone()), ("y", x.clone()), ("w", x.clone())],
        "input `w`: the program has no such input; it has x, y",
    );
    let mut large = vector_add(64, 64, 1);
    large.tensors[0].shape = vec![1 << 16, 1 << 19];
    let error = simulate(&large, &[("x", x.clone()), ("y", x)], &Options::default()).unwrap_err().to_string();
    assert!(error.contains("the program's global memory is 137438953984 bytes"), "{error}");
}

#[test]
fn a_timing_only_run_refuses_control_flow_that_reads_memory() {
    let mut kernel = Kernel::new("reads", 1);
    kernel.global("n", I32, &[1], Role::Input);
    kernel.lane(LaneName::Vec0, |lane| {
        lane.emit("GetValueFrom", &[("var", "count".into()), ("tensor", "n".into())]);
        lane.range(0, "count", 1, |lane, _| {
            lane.emit("noop", &[]);
        });
    });
    let program = kernel.build();
    let error = simulate(&program, &[], &timing()).unwrap_err().to_string();
    assert!(error.contains("control flow reads memory"), "{error}");
    let outcome = simulate(&program, &[("n", ints(I32, &[1], &[7]))], &Options::default()).unwrap();
    assert_eq!(outcome.makespan, 7);
}

/// An operand is resolved when its task is dispatched: the loop's next turn gives the view to another slot, but a task
/// that still waits keeps its own.
#[test]
fn slices_are_not_resolved_late() {
    let mut kernel = Kernel::new("late", 1);
    let y = kernel.global("y", F32, &[4, 64], Role::Output);
    let buffer = kernel.buffer("b", ("ub", 4), F32, &[1, 64]);
    kernel.lane(LaneName::Vec0, |lane| {
        lane.event("create_sevent", "all", ("V", "MTE3"), false);
        lane.range(0, 4, 1, |lane, turn| {
            let slot = lane.slot(&buffer, &turn);
            lane.emit("dup", &[("dst", (&slot).into()), ("src", (&turn).into()), ("repeat", 1.into())]);
        });
        lane.emit("event_set", &[("event", "all".into())]);
        lane.emit("event_wait", &[("event", "all".into())]);
        // All four stores are dispatched, with one view name, before the first of them runs.
        lane.range(0, 4, 1, |lane, turn| {
            let slot = lane.slot(&buffer, &turn);
            let to = lane.rows(&y, &turn, 1, [4, 64]);
            lane.emit(
                "ub_to_gm_pad",
                &[
                    ("dst", (&to).into()),
                    ("src", (&slot).into()),
                    ("n_burst", 1.into()),
                    ("burst_len_byte", 256.into()),
                ],
            );
        });
    });
    let outcome = simulate(&kernel.build(), &[], &Options::default()).unwrap();
    let expect: Vec<f32> = (0..256).map(|at| (at / 64) as f32).collect();
    close(&output(&outcome, "y"), &expect, 0.0);
}

/// Buffers, slices and events outside any scope belong to the lane whose list they are in.
#[test]
fn a_kernel_of_vector_lanes_only_rotates_its_slots() {
    let outcome = simulate(&trompe_npu::kernels::rotation(2, 2), &[], &timing()).unwrap();
    // Two loads back to back: the second one went to another slot.
    assert_eq!(outcome.spans(0, "vec0.MTE2"), [(0, 512), (512, 1024)]);
    assert_eq!(outcome.spans(0, "vec0.V"), [(512, 640), (1024, 1152)]);
}

#[test]
fn counter_mode_is_not_ignored() {
    let mut kernel = Kernel::new("counter", 1);
    let y = kernel.global("y", F32, &[128], Role::Output);
    kernel.local("a", "ub", F32, &[1, 128]);
    kernel.lane(LaneName::Vec0, |lane| {
        let dup = |lane: &mut Lane, value: f64| {
            lane.emit("dup", &[("dst", "a".into()), ("src", value.into()), ("repeat", 2.into())]);
        };
        dup(lane, 1.0);
        lane.emit("set_mask_by_count", &[("count", 70.into())]);
        dup(lane, 2.0);
        lane.emit("set_mask_normal", &[]);
        lane.emit(
            "ub_to_gm_pad",
            &[
                ("dst", (&y).into()),
                ("src", "a".into()),
                ("n_burst", 1.into()),
                ("burst_len_byte", 512.into()),
            ],
        );
    });
    let outcome = simulate(&kernel.build(), &[], &Options::default()).unwrap();
    let expect: Vec<f32> = (0..128).map(|at| if at < 70 { 2.0 } else { 1.0 }).collect();
    close(&output(&outcome, "y"), &expect, 0.0);
}

/// Rounding, masks and serialised operands follow the reference only when asked to.
#[test]
fn compatibility() {
    let mut kernel = Kernel::new("cast", 1);
    let (x, y) = (kernel.global("x", F32, &[64], Role::Input), kernel.global("y", I32, &[64], Role::Output));
    let (a, b) = (kernel.local("a", "ub", F32, &[1, 64]), kernel.local("b", "ub", I32, &[1, 64]));
    kernel.lane(LaneName::Vec0, |lane| {
        let one = [("n_burst", Argument::Int(1)), ("burst_len_byte", 256.into())];
        lane.emit("gm_to_ub_pad", &[&[("dst", (&a).into()), ("src", (&x).into())], &one[..]].concat());
        lane.emit(
            "cast",
            &[
                ("dst", (&b).into()),
                ("src", (&a).into()),
                ("mode", "CAST_ROUND".into()),
                ("repeat", 1.into()),
            ],
        );
        lane.emit("ub_to_gm_pad", &[&[("dst", (&y).into()), ("src", (&b).into())], &one[..]].concat());
    });
    let program = kernel.build();
    let values: Vec<f32> = (0..64).map(|at| at as f32 * 0.3 - 9.6).collect();
    for (compat, round) in [(false, f32::round as fn(f32) -> f32), (true, |x| x.abs().ceil().copysign(x))] {
        let options = Options { compat, ..Options::default() };
        let outcome = simulate(&program, &[("x", f32s(&[64], &values))], &options).unwrap();
        let found: Vec<i32> = outcome.outputs[0]
            .content
            .bytes
            .chunks_exact(4)
            .map(|raw| i32::from_le_bytes(raw.try_into().unwrap()))
            .collect();
        let expect: Vec<i32> = values.iter().map(|&x| round(x) as i32).collect();
        assert_eq!(found, expect, "{compat}");
    }
    // Two pipes read one tensor: the reference lets them follow each other.
    let mut kernel = Kernel::new("readers", 1);
    kernel.local("a", "ub", F32, &[1, 64]);
    let out = kernel.global("y", F32, &[2, 64], Role::Workspace);
    kernel.lane(LaneName::Vec0, |lane| {
        lane.event("create_sevent", "unused", ("V", "MTE3"), false);
        lane.emit(
            "ub_to_gm_pad",
            &[
                ("dst", (&out).into()),
                ("src", "a".into()),
                ("n_burst", 1.into()),
                ("burst_len_byte", 256.into()),
            ],
        );
        lane.emit_on(
            Some(Pipe::V),
            "muls",
            &[("dst", "a".into()), ("src", "a".into()), ("val", 1.0.into()), ("repeat", 1.into())],
        );
    });
    let program = kernel.build();
    assert_eq!(simulate(&program, &[], &timing()).unwrap().makespan, 8);
    assert_eq!(simulate(&program, &[], &Options { compat: true, ..timing() }).unwrap().makespan, 10);
}

#[test]
fn one_byte_more_than_the_memory_is_too_much_on_each_device() {
    for device in Device::all() {
        let profile = Profile::named("reference", &device).unwrap();
        let make = |bytes: u64| {
            let mut kernel = Kernel::new("full", 1);
            kernel.local("all", "ub", F16, &[1, bytes / 2]);
            kernel.lane(LaneName::Vec0, |lane| {
                lane.emit("noop", &[]);
            });
            kernel.build()
        };
        let bytes = device.capacity_kib.ub * 1024;
        let run = |bytes| {
            trompe_npu::run(&make(bytes), &device, &profile, &std::collections::BTreeMap::new(), &timing())
        };
        assert!(run(bytes).is_ok());
        assert!(run(bytes + 2).is_err());
    }
}

/// A control actor far ahead of a blocked pipe goes on until it has dispatched what the pipe waits for.
#[test]
fn a_long_queue_is_no_deadlock() {
    let program = lane(|lane| {
        lane.event("create_sevent", "late", ("MTE3", "V"), false);
        lane.emit("event_wait", &[("event", "late".into())]);
        lane.range(0, 2000, 1, |lane, _| {
            lane.emit_on(Some(Pipe::V), "noop", &[]);
        });
        lane.emit_on(Some(Pipe::Mte3), "noop", &[]);
        lane.emit("event_set", &[("event", "late".into())]);
    });
    assert_eq!(simulate(&program, &[], &timing()).unwrap().makespan, 2001);
}

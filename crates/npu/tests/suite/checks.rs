//! Each check with a kernel that trips it and a twin that does not.

use trompe_npu::builder::{Kernel, Lane};
use trompe_npu::{Argument, Checks, ElementType, LaneName, Options, Pipe, Program, Role};

use crate::support::*;

use ElementType::{F16, F32, U8};

/// Runs and gives the message, or nothing when the run ends well.
fn message(program: &Program) -> String {
    let inputs: Vec<(&str, trompe_npu::Input)> = program
        .tensors
        .iter()
        .filter(|tensor| tensor.role == Role::Input)
        .map(|tensor| {
            let bytes = vec![0; tensor.shape.iter().product::<u64>() as usize * tensor.dtype.size()];
            (
                tensor.name.as_str(),
                trompe_npu::Input { dtype: tensor.dtype, shape: tensor.shape.clone(), bytes },
            )
        })
        .collect();
    let options = Options { budget: 10_000, ..Options::default() };
    simulate(program, &inputs, &options).map_or_else(|error| error.to_string(), |_| String::new())
}

/// `make(true)` trips a check whose message has all of `parts`; `make(false)` ends well.
#[track_caller]
fn check(make: impl Fn(bool) -> Program, parts: &[&str]) {
    let error = message(&make(true));
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
    assert_eq!(message(&make(false)), "", "the twin");
}

fn vector(write: impl Fn(&mut Kernel) -> Box<dyn Fn(&mut Lane)>) -> Program {
    let mut kernel = Kernel::new("checked", 1);
    let body = write(&mut kernel);
    kernel.lane(LaneName::Vec0, |lane| body(lane));
    kernel.build()
}

fn args<'a>(names: &[(&'a str, &str)], numbers: &[(&'a str, i64)]) -> Vec<(&'a str, Argument)> {
    let names = names.iter().map(|(name, value)| (*name, Argument::from(*value)));
    names.chain(numbers.iter().map(|(name, value)| (*name, Argument::Int(*value)))).collect()
}

fn dup(lane: &mut Lane, dst: &str, repeat: i64) {
    lane.emit("dup", &[("dst", dst.into()), ("src", 1.0.into()), ("repeat", repeat.into())]);
}

#[test]
fn capacity() {
    let make = |trips| {
        vector(|kernel| {
            kernel.local("a", "ub", F32, &[128, 256]);
            kernel.local("b", "ub", F32, &[if trips { 129 } else { 128 }, 256]);
            Box::new(|lane| dup(lane, "a", 1))
        })
    };
    check(make, &["`b`", "ub", "132096 bytes at 131072 of 262144"]);
}

#[test]
fn alignment() {
    let make = |trips| {
        vector(move |kernel| {
            kernel.local("a", "ub", F32, &[1, 128]);
            kernel.last_tensor().offset = Some(if trips { 40 } else { 64 });
            Box::new(|lane| dup(lane, "a", 1))
        })
    };
    check(make, &["`a`", "offset 40 is not a multiple of 32"]);
    let make = |trips| {
        vector(move |kernel| {
            let a = kernel.local("a", "ub", F32, &[1, 128]);
            Box::new(move |lane| {
                let part =
                    lane.part(&a, [0.into(), (if trips { 4 } else { 8 }).into()], [1.into(), 64.into()]);
                lane.emit("dup", &[("dst", (&part).into()), ("src", 1.0.into()), ("repeat", 1.into())]);
            })
        })
    };
    check(make, &["`dup`", "operand `dst` begins at byte 16", "multiple of 32"]);
}

#[test]
fn ranges() {
    let make = |trips: bool| {
        vector(move |kernel| {
            kernel.local("a", "ub", F32, &[1, 128]);
            Box::new(move |lane| dup(lane, "a", if trips { 3 } else { 2 }))
        })
    };
    check(make, &["operand `dst` needs bytes 0..768 of `a`, which ends at 512"]);
    let make = |trips: bool| {
        vector(move |kernel| {
            let x = kernel.global("x", F32, &[8, 64], Role::Workspace);
            Box::new(move |lane| {
                let row = lane.var("row", if trips { 7 } else { 6 });
                lane.rows(&x, &row, 2, [8, 64]);
            })
        })
    };
    check(make, &["`slice_gm_tensor`", "operand `span`", "2 from 7 on, axis 0 has 8"]);
    let make = |trips: bool| {
        vector(move |kernel| {
            kernel.local("a", "ub", F32, &[1, 64]);
            kernel.global("x", F32, &[8192], Role::Workspace);
            Box::new(move |lane| {
                let bursts = if trips { 4096 } else { 2 };
                lane.emit(
                    "gm_to_ub_pad",
                    &args(&[("dst", "a"), ("src", "x")], &[("n_burst", bursts), ("burst_len_byte", 32)]),
                );
            })
        })
    };
    check(make, &["n_burst is 4096; the device takes at most 4095"]);
}

#[test]
fn poison() {
    let make = |trips: bool| {
        vector(move |kernel| {
            kernel.local("a", "ub", F32, &[1, 64]);
            kernel.local("b", "ub", F32, &[1, 64]);
            Box::new(move |lane| {
                lane.emit("set_mask", &args(&[], &[("low", if trips { 0xffff } else { -1 }), ("high", -1)]));
                dup(lane, "a", 1);
                lane.emit("reset_mask", &[]);
                lane.emit("exp", &args(&[("dst", "b"), ("src", "a")], &[("repeat", 1)]));
            })
        })
    };
    check(make, &["`exp`", "reads 32 bytes of `a` at byte 64 of ub of vec0", "nothing has written"]);
}

#[test]
fn overlapping_tensors_that_live_together() {
    let make = |trips: bool| {
        vector(move |kernel| {
            for name in ["a", "b"] {
                kernel.local(name, "ub", F32, &[1, 64]);
                kernel.last_tensor().offset = Some(0);
            }
            Box::new(move |lane| {
                dup(lane, "a", 1);
                dup(lane, "b", 1);
                if trips {
                    dup(lane, "a", 1);
                }
            })
        })
    };
    check(make, &["`b`", "lies over `a` in ub", "while both are in use"]);
}

#[test]
fn hazards_between_pipes() {
    let make = |trips: bool| {
        vector(move |kernel| {
            kernel.local("a", "ub", F32, &[1, 64]);
            kernel.global("x", F32, &[64], Role::Workspace);
            Box::new(move |lane| {
                lane.event("create_sevent", "loaded", ("MTE2", "V"), false);
                lane.emit(
                    "gm_to_ub_pad",
                    &args(&[("dst", "a"), ("src", "x")], &[("n_burst", 1), ("burst_len_byte", 256)]),
                );
                if !trips {
                    lane.emit("event_set", &[("event", "loaded".into())]);
                    lane.emit("event_wait", &[("event", "loaded".into())]);
                }
                lane.emit("exp", &args(&[("dst", "a"), ("src", "a")], &[("repeat", 1)]));
            })
        })
    };
    check(
        make,
        &[
            "read of byte 0 of ub of vec0 (`a`) on vec0.V",
            "the write by vec0[1] `gm_to_ub_pad` on vec0.MTE2",
            "add an event from vec0.MTE2 to vec0.V",
        ],
    );
}

/// A write after a read that is still under way.
#[test]
fn hazards_backwards() {
    let make = |trips: bool| {
        vector(move |kernel| {
            kernel.local("a", "ub", F32, &[1, 64]);
            kernel.global("x", F32, &[64], Role::Output);
            Box::new(move |lane| {
                lane.event("create_sevent", "done", ("V", "MTE3"), false);
                lane.event("create_sevent", "stored", ("MTE3", "V"), false);
                dup(lane, "a", 1);
                lane.emit("event_set", &[("event", "done".into())]);
                lane.emit("event_wait", &[("event", "done".into())]);
                lane.emit(
                    "ub_to_gm_pad",
                    &args(&[("dst", "x"), ("src", "a")], &[("n_burst", 1), ("burst_len_byte", 256)]),
                );
                lane.emit("event_set", &[("event", "stored".into())]);
                if trips {
                    lane.emit_on(Some(Pipe::V), "noop", &[]);
                    for _ in 0..10 {
                        lane.emit_on(Some(Pipe::V), "noop", &[]);
                    }
                } else {
                    lane.emit("event_wait", &[("event", "stored".into())]);
                }
                dup(lane, "a", 1);
                if trips {
                    lane.emit("event_wait", &[("event", "stored".into())]);
                }
            })
        })
    };
    check(make, &["write of byte 0", "the read by vec0[5] `ub_to_gm_pad` on vec0.MTE3"]);
}

#[test]
fn setting_twice() {
    let make = |trips: bool| {
        vector(move |_| {
            Box::new(move |lane| {
                lane.event("create_sevent", "e", ("V", "MTE3"), false);
                lane.emit("event_set", &[("event", "e".into())]);
                if !trips {
                    lane.emit("event_wait", &[("event", "e".into())]);
                    lane.emit("barrier", &[("pipe", "ALL".into())]);
                }
                lane.emit("event_set", &[("event", "e".into())]);
                lane.emit("event_wait", &[("event", "e".into())]);
            })
        })
    };
    check(make, &["`event_set`", "sets event `e`, which is already set"]);
    let make = |trips: bool| {
        vector(move |_| {
            Box::new(move |lane| {
                let to = [("dst_pipe", Argument::from("MTE3")), ("event_id", 1.into())];
                let from = [("src_pipe", Argument::from("V")), ("event_id", 1.into())];
                if trips {
                    // The destination comes to its waits late.
                    for _ in 0..9 {
                        lane.emit_on(Some(Pipe::Mte3), "noop", &[]);
                    }
                }
                lane.emit_on(Some(Pipe::V), "setflag", &to);
                if !trips {
                    lane.emit_on(Some(Pipe::Mte3), "waitflag", &from);
                    lane.emit("barrier", &[("pipe", "ALL".into())]);
                }
                lane.emit_on(Some(Pipe::V), "setflag", &to);
                lane.emit_on(Some(Pipe::Mte3), "waitflag", &from);
            })
        })
    };
    check(make, &["flag 1 from V to MTE3, which is already set"]);
}

#[test]
fn what_is_never_taken() {
    let make = |trips: bool| {
        vector(move |_| {
            Box::new(move |lane| {
                lane.event("create_sevent", "e", ("V", "MTE3"), false);
                lane.emit("event_set", &[("event", "e".into())]);
                if !trips {
                    lane.emit("event_wait", &[("event", "e".into())]);
                }
            })
        })
    };
    check(make, &["event `e` (V to MTE3) has 1 flags set"]);
    let make = |trips: bool| {
        let mut kernel = Kernel::new("phases", 1);
        kernel.cube(|lane| {
            lane.emit("cube_ready", &[("flag", 2.into())]);
        });
        kernel.vector(|lane| {
            if !trips {
                lane.emit("wait_cube", &[("flag", 2.into())]);
            }
            lane.emit("noop", &[]);
        });
        kernel.build()
    };
    check(make, &["flag 2 (cube to vector, vec0) has 1 phases left"]);
}

#[test]
fn event_ids() {
    let make = |trips: bool| {
        vector(move |_| {
            Box::new(move |lane| {
                for at in 0..if trips { 3 } else { 2 } {
                    lane.event("create_qevent", &format!("e{at}"), ("V", "MTE3"), false);
                }
            })
        })
    };
    check(make, &["V to MTE3 would use 12 event ids, the device has 8"]);
}

#[test]
fn flag_tokens() {
    let make = |trips: bool| {
        let mut kernel = Kernel::new("tokens", 1);
        let count = if trips { 16 } else { 15 };
        kernel.cube(|lane| {
            for _ in 0..count {
                lane.emit("cube_ready", &[("flag", 0.into())]);
            }
        });
        kernel.vector(|lane| {
            for _ in 0..100 {
                lane.emit_on(Some(Pipe::V), "noop", &[]);
            }
            for _ in 0..count {
                lane.emit("wait_cube", &[("flag", 0.into())]);
            }
        });
        kernel.build()
    };
    check(make, &["flag 0 from the cube to vec0 has 16 tokens outstanding; the device holds 15"]);
}

#[test]
fn deadlock_names_who_waits_for_whom() {
    let make = |trips: bool| {
        let mut kernel = Kernel::new("deadlock", 1);
        kernel.cube(|lane| {
            if !trips {
                lane.emit("cube_ready", &[("flag", 1.into())]);
            }
            lane.emit("wait_vec", &[("flag", 0.into())]);
            if trips {
                lane.emit("cube_ready", &[("flag", 1.into())]);
            }
        });
        kernel.vector(|lane| {
            lane.emit_on(Some(Pipe::Mte3), "wait_cube", &[("flag", 1.into())]);
            lane.emit("vec_ready", &[("flag", 0.into())]);
        });
        kernel.build()
    };
    check(
        make,
        &[
            "deadlock: nothing can run",
            "core0.cube.FIX at cube[0] `wait_vec` waits for flag 0 from vec0 and vec1; it could be set by vec0[1] `vec_ready`, vec1[1] `vec_ready`",
            "core0.vec0.MTE3 at vec0[0] `wait_cube` waits for flag 1 from the cube to vec0; it could be set by cube[1] `cube_ready`",
        ],
    );
    let make = |trips: bool| {
        vector(move |_| {
            Box::new(move |lane| {
                lane.event("create_devent", "e", ("V", "MTE3"), false);
                lane.emit("event_set", &[("event", "e".into())]);
                lane.emit("event_wait", &[("event", "e".into())]);
                if trips {
                    lane.emit("event_wait", &[("event", "e".into())]);
                }
            })
        })
    };
    check(
        make,
        &[
            "core0.vec0.MTE3 at vec0[3] `event_wait` waits for event `e` (V to MTE3; 1 sets, 1 waits); it could be set by vec0[1] `event_set`",
        ],
    );
}

#[test]
fn types() {
    let make = |trips: bool| {
        vector(move |kernel| {
            kernel.local("a", "ub", F32, &[1, 64]);
            kernel.local("b", "ub", if trips { F16 } else { F32 }, &[1, 64]);
            Box::new(|lane| {
                lane.emit("dup", &[("dst", "a".into()), ("src", 1.0.into())]);
                lane.emit("dup", &[("dst", "b".into()), ("src", 1.0.into())]);
                lane.emit("add", &args(&[("dst", "a"), ("src1", "a"), ("src2", "b")], &[]));
            })
        })
    };
    check(make, &["`add`", "f32 and f16 must be of one type"]);
}

/// A bit mask selects; the twin of a shape that does not fit.
#[test]
fn shapes_of_whole_views() {
    let make = |trips: bool| {
        vector(move |kernel| {
            kernel.local("a", "ub", F32, &[1, 64]);
            kernel.local("b", "ub", F32, &[1, if trips { 72 } else { 64 }]);
            kernel.local("bits", "ub", U8, &[1, 32]);
            Box::new(|lane| {
                for name in ["a", "b"] {
                    lane.emit("dup", &[("dst", name.into()), ("src", 1.0.into())]);
                }
                lane.emit(
                    "compare",
                    &args(&[("dst", "bits"), ("src1", "a"), ("src2", "b"), ("mode", "LT")], &[]),
                );
            })
        })
    };
    check(make, &["without repeats all operands have one size; one has 64 elements, one 72"]);
}

#[test]
fn checks_can_be_left_out() {
    let program = vector(|kernel| {
        kernel.local("a", "ub", F32, &[1, 64]);
        Box::new(|lane| {
            lane.emit("exp", &args(&[("dst", "a"), ("src", "a")], &[("repeat", 1)]));
        })
    });
    let checks = Checks { poison: false, ..Checks::default() };
    assert!(simulate(&program, &[], &Options { checks, ..Options::default() }).is_ok());
}

#[test]
fn races_between_cores() {
    let make = |trips: bool| {
        let mut kernel = Kernel::new("race", 2);
        let y = kernel.global("y", F32, &[2, 64], Role::Output);
        kernel.local("a", "ub", F32, &[1, 64]);
        kernel.lane(LaneName::Vec0, |lane| {
            dup(lane, "a", 1);
            let core = lane.ask("GetCubeIdx");
            let row = lane.calc("var_mul", &core, i64::from(!trips));
            let to = lane.rows(&y, &row, 1, [2, 64]);
            let moved = args(&[("src", "a")], &[("n_burst", 1), ("burst_len_byte", 256)]);
            lane.emit("ub_to_gm_pad", &[vec![("dst", (&to).into())], moved].concat());
        });
        kernel.build()
    };
    check(make, &["cores 0 and 1 both touch byte 0 of `y`", "vec0[4] `ub_to_gm_pad`", "nothing orders them"]);
}

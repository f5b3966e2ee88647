//! Control flow and scalars, and the instructions that the kernels do not use.

use half::f16;
use trompe_npu::builder::{Kernel, Lane};
use trompe_npu::{Argument, ElementType, LaneName, Options, Pipe, Role};

use crate::support::*;

use ElementType::{F16, F32, I32, U32};

/// What a lane prints.
fn printed(write: impl Fn(&mut Lane)) -> Vec<String> {
    let mut kernel = Kernel::new("control", 1);
    kernel.lane(LaneName::Vec0, |lane| write(lane));
    let outcome = simulate(&kernel.build(), &[], &Options::default()).unwrap();
    outcome.prints.iter().map(|line| line.trim_start_matches("core0.vec0: ").to_owned()).collect()
}

fn print(lane: &mut Lane, parts: &[&str]) {
    lane.emit("sim_print", &[("payload", parts.to_vec().into())]);
}

#[test]
fn scalars() {
    let check = |op: &str, a: Argument, b: Option<Argument>, expect: &str| {
        let found = printed(|lane| {
            let mut args = vec![("out", "x".into()), ("a", a.clone())];
            args.extend(b.clone().map(|b| ("b", b)));
            lane.emit(op, &args);
            print(lane, &["x"]);
        });
        assert_eq!(found, [expect], "{op}");
    };
    check("var_add", 3.into(), Some(0.5.into()), "3.5");
    check("var_sub", 3.into(), Some(5.into()), "-2");
    check("var_mul", (-3).into(), Some(5.into()), "-15");
    check("var_div", (-7).into(), Some(2.into()), "-4"); // rounds down
    check("var_div", 7.0.into(), Some(2.into()), "3.5");
    check("var_mod", (-7).into(), Some(3.into()), "2");
    check("CeilDiv", 7.into(), Some(2.into()), "4");
    check("CeilDiv", (-7).into(), Some(2.into()), "-3");
    check("Min", 7.into(), Some(2.into()), "2");
    check("Max", 7.into(), Some(2.into()), "7");
    check("scalar_sqrt", 6.25.into(), None, "2.5");
    for to in [8, 16, 32, 64, 128, 256] {
        check(&format!("Align{to}"), (to + 1).into(), None, &(2 * to).to_string());
        check(&format!("Align{to}"), to.into(), None, &to.to_string());
    }
    for (op, expect) in [
        ("GetCubeNum", "1"),
        ("GetCubeIdx", "0"),
        ("GetVecNum", "1"),
        ("GetVecIdx", "0"),
        ("GetSubBlockIdx", "0"),
    ] {
        let found = printed(|lane| {
            lane.emit(op, &[("out", "x".into())]);
            print(lane, &["x"]);
        });
        assert_eq!(found, [expect], "{op}");
    }
}

#[test]
fn loops_branches_and_lists() {
    let found = printed(|lane| {
        lane.range(10, 0, -3, |lane, i| print(lane, &[i.name()]));
        lane.range(5, 5, 1, |lane, _| print(lane, &["never"]));
    });
    assert_eq!(found, ["10", "7", "4", "1"]);
    let found = printed(|lane| {
        lane.range(0, 10, 1, |lane, i| {
            lane.emit("start_if", &[("cond", format!("{0} == 1 || {0} == 3", i.name()).as_str().into())]);
            lane.emit("continue_loop", &[]);
            lane.emit("start_elif", &[("cond", format!("!({} < 5) && true", i.name()).as_str().into())]);
            lane.emit("break_loop", &[]);
            lane.emit("start_elif", &[("cond", format!("{} == 2", i.name()).as_str().into())]);
            print(lane, &["two"]);
            lane.emit("start_else", &[]);
            print(lane, &[i.name()]);
            lane.emit("end_if", &[]);
        });
        print(lane, &["end"]);
    });
    assert_eq!(found, ["0", "two", "4", "end"]);
    let found = printed(|lane| {
        lane.emit("create_varlist", &[("name", "l".into()), ("length", 3.into())]);
        lane.range(0, 3, 1, |lane, i| {
            let square = lane.calc("var_mul", &i, &i);
            let item = format!("l[{}]", i.name());
            lane.emit("var_assign", &[("out_name", item.as_str().into()), ("src", (&square).into())]);
        });
        print(lane, &["l[0]", "l[1]", "l[2]"]);
    });
    assert_eq!(found, ["0 1 4"]);
}

#[test]
fn scalars_go_to_memory_and_come_back() {
    let mut kernel = Kernel::new("scalars", 1);
    let y = kernel.global("y", I32, &[2], Role::Output);
    kernel.local("a", "ub", F32, &[1, 8]);
    kernel.lane(LaneName::Vec0, |lane| {
        lane.emit("SetValueTo", &[("var", 2.75.into()), ("tensor", "a".into())]);
        lane.emit("create_var", &[("var_name", "x".into()), ("dtype", "i32".into())]);
        lane.emit("GetValueFrom", &[("var", "x".into()), ("tensor", "a".into())]);
        lane.emit("SetValueTo", &[("var", "x".into()), ("tensor", (&y).into())]);
    });
    let outcome = simulate(&kernel.build(), &[], &Options::default()).unwrap();
    assert_eq!(outcome.outputs[0].content.bytes, [2, 0, 0, 0, 0, 0, 0, 0]);
}

/// A product that goes on: accumulator to L1 as halves, then through the matrix unit again with the identity.
#[test]
fn from_the_accumulator_to_l1_and_back() {
    let mut kernel = Kernel::new("chain", 1);
    let x = kernel.global("x", F16, &[32, 32], Role::Input);
    let one = kernel.global("one", F16, &[32, 32], Role::Input);
    let y = kernel.global("y", F32, &[32, 32], Role::Output);
    for name in ["lx", "lo", "lz"] {
        kernel.local(name, "l1", F16, &[32, 32]);
    }
    kernel.local("a", "l0a", F16, &[32, 32]);
    kernel.local("b", "l0b", F16, &[32, 32]);
    for name in ["c", "d", "e"] {
        kernel.local(name, "l0c", F32, &[32, 32]);
    }
    kernel.cube(|lane| {
        let size = [("M", Argument::Int(32)), ("N", 32.into())];
        let with = |names: &[(&'static str, &str)],
                    more: &[(&'static str, Argument)]|
         -> Vec<(&'static str, Argument)> {
            let names = names.iter().map(|(name, value)| (*name, Argument::from(*value)));
            names.chain(more.iter().cloned()).collect()
        };
        let square: Vec<(&str, Argument)> =
            ["m_dst", "n_dst", "m_src", "n_src"].map(|name| (name, 32.into())).into();
        for (dst, src) in [("lx", &x), ("lo", &one)] {
            lane.emit(
                "gm_to_l1_nd2nz",
                &[with(&[("dst", dst)], &size), vec![("src", src.into()), ("N_src", 32.into())]].concat(),
            );
        }
        let product = |lane: &mut Lane, left: &str, dst: &str| {
            lane.emit("l1_to_l0", &with(&[("dst", "a"), ("src", left)], &square));
            lane.emit("l1_to_l0", &with(&[("dst", "b"), ("src", "lo")], &square));
            lane.emit(
                "mmad",
                &[with(&[("dst", dst), ("src_a", "a"), ("src_b", "b")], &size), vec![("K", 32.into())]]
                    .concat(),
            );
        };
        product(lane, "lx", "c");
        lane.emit("cube_m_scale", &[("dst", "d".into()), ("src", "c".into()), ("alpha", 2.0.into())]);
        lane.emit("cube_m_copy", &[("dst", "e".into()), ("src", "d".into())]);
        lane.emit(
            "set_constant_to_l1",
            &[("tensor", "lz".into()), ("n_blocks", 64.into()), ("val", 9.0.into())],
        );
        lane.emit(
            "l0c_to_l1",
            &[with(&[("dst", "lz"), ("src", "e")], &size), vec![("relu", true.into())]].concat(),
        );
        product(lane, "lz", "c");
        lane.emit(
            "l0c_to_gm_nz2nd",
            &[with(&[("src", "c")], &size), vec![("dst", (&y).into()), ("N_dst", 32.into())]].concat(),
        );
    });
    let (input, values) = f16s(&[32, 32], &noise(1, 1024));
    let identity: Vec<f32> = (0..1024).map(|at| f32::from(u8::from(at % 33 == 0))).collect();
    let inputs = [("x", input), ("one", f16s(&[32, 32], &identity).0)];
    let outcome = simulate(&kernel.build(), &inputs, &Options::default()).unwrap();
    let expect: Vec<f32> = values.iter().map(|x| f16::from_f32((2.0 * x).max(0.0)).to_f32()).collect();
    close(&output(&outcome, "y"), &expect, 0.0);
}

/// Vector lanes hand halves of a matrix to the cube through L1, row-major and already in blocks.
#[test]
fn from_the_unified_buffer_to_the_cube() {
    for blocks in [false, true] {
        let mut kernel = Kernel::new("handover", 1);
        let x = kernel.global("x", F16, &[32, 32], Role::Input);
        let y = kernel.global("y", F32, &[32, 32], Role::Output);
        kernel.local("part", "ub", F16, &[16, 32]);
        kernel.local("packed", "ub", F16, &[1, 512]);
        let l1 = kernel.local("l1", "l1", F16, &[32, 32]);
        kernel.local("identity", "l1", F16, &[32, 32]);
        let one = kernel.global("one", F16, &[32, 32], Role::Input);
        kernel.local("a", "l0a", F16, &[32, 32]);
        kernel.local("b", "l0b", F16, &[32, 32]);
        kernel.local("c", "l0c", F32, &[32, 32]);
        kernel.vector(|lane| {
            let half = lane.ask("GetSubBlockIdx");
            let row = lane.calc("var_mul", &half, 16);
            let from = lane.rows(&x, &row, 16, [32, 32]);
            lane.emit(
                "gm_to_ub_pad",
                &[
                    ("dst", "part".into()),
                    ("src", (&from).into()),
                    ("n_burst", 1.into()),
                    ("burst_len_byte", 1024.into()),
                ],
            );
            let to = lane.part(&l1, [(&row).into(), 0.into()], [16.into(), 32.into()]);
            let src = if blocks {
                // Rows of two blocks become two columns of blocks.
                for column in 0..2 {
                    let part = lane.part_of("part", [0, column * 16], [16, 16]);
                    let packed = lane.part_of("packed", [0, column * 256], [1, 256]);
                    lane.emit(
                        "ub_to_ub",
                        &[
                            ("dst", (&packed).into()),
                            ("src", (&part).into()),
                            ("n_burst", 16.into()),
                            ("burst_len", 1.into()),
                            ("src_stride", 1.into()),
                        ],
                    );
                }
                "packed"
            } else {
                "part"
            };
            let op = if blocks { "ub_to_l1_nz" } else { "ub_to_l1_nd2nz" };
            lane.emit(
                op,
                &[
                    ("dst", (&to).into()),
                    ("src", src.into()),
                    ("m_dst", 32.into()),
                    ("n_dst", 32.into()),
                    ("m_src", 16.into()),
                    ("n_src", 32.into()),
                ],
            );
            lane.emit("vec_ready", &[("flag", 5.into())]);
        });
        kernel.cube(|lane| {
            lane.emit(
                "gm_to_l1_nd2nz",
                &[
                    ("dst", "identity".into()),
                    ("src", (&one).into()),
                    ("M", 32.into()),
                    ("N", 32.into()),
                    ("N_src", 32.into()),
                ],
            );
            lane.emit_on(Some(Pipe::Mte1), "wait_vec", &[("flag", 5.into())]);
            for (dst, src) in [("a", "l1"), ("b", "identity")] {
                lane.emit(
                    "l1_to_l0",
                    &[
                        ("dst", dst.into()),
                        ("src", src.into()),
                        ("m_dst", 32.into()),
                        ("n_dst", 32.into()),
                        ("m_src", 32.into()),
                        ("n_src", 32.into()),
                    ],
                );
            }
            lane.emit(
                "mmad",
                &[
                    ("dst", "c".into()),
                    ("src_a", "a".into()),
                    ("src_b", "b".into()),
                    ("M", 32.into()),
                    ("N", 32.into()),
                    ("K", 32.into()),
                ],
            );
            lane.emit(
                "l0c_to_gm_nz2nd",
                &[
                    ("dst", (&y).into()),
                    ("src", "c".into()),
                    ("M", 32.into()),
                    ("N", 32.into()),
                    ("N_dst", 32.into()),
                ],
            );
        });
        let (input, values) = f16s(&[32, 32], &noise(2, 1024));
        let identity: Vec<f32> = (0..1024).map(|at| f32::from(u8::from(at % 33 == 0))).collect();
        let inputs = [("x", input), ("one", f16s(&[32, 32], &identity).0)];
        let outcome = simulate(&kernel.build(), &inputs, &Options::default()).unwrap();
        close(&output(&outcome, "y"), &values, 0.0);
    }
}

#[test]
fn merging_two_runs_and_refusing_an_unsorted_one() {
    let merge = |values: [f32; 4]| {
        let mut kernel = Kernel::new("merge", 1);
        let x = kernel.global("x", U32, &[8], Role::Input);
        let y = kernel.global("y", U32, &[8], Role::Output);
        let (a, b) = (kernel.local("a", "ub", F32, &[1, 32]), kernel.local("b", "ub", F32, &[1, 32]));
        for (name, of) in [("aw", "a"), ("bw", "b")] {
            kernel.local(name, "ub", U32, &[1, 32]);
            kernel.last_tensor().view_of = Some(of.to_owned());
        }
        kernel.lane(LaneName::Vec0, |lane| {
            let moved = [("n_burst", Argument::Int(1)), ("burst_len_byte", 32.into())];
            lane.emit("gm_to_ub_pad", &[&[("dst", "aw".into()), ("src", (&x).into())], &moved[..]].concat());
            let second = lane.part(&a, [0.into(), 4.into()], [1.into(), 4.into()]);
            lane.emit(
                "mergesort_2seq",
                &[
                    ("dst", (&b).into()),
                    ("src1", (&a).into()),
                    ("src2", (&second).into()),
                    ("size1", 2.into()),
                    ("size2", 2.into()),
                ],
            );
            lane.emit("ub_to_gm_pad", &[&[("dst", (&y).into()), ("src", "bw".into())], &moved[..]].concat());
        });
        let words: Vec<i64> =
            values.iter().enumerate().flat_map(|(at, x)| [i64::from(x.to_bits()), at as i64]).collect();
        simulate(&kernel.build(), &[("x", ints(U32, &[8], &words))], &Options::default())
    };
    let outcome = merge([3.0, 1.0, 2.0, 0.5]).unwrap();
    let order: Vec<u8> = outcome.outputs[0].content.bytes.chunks(8).map(|pair| pair[4]).collect();
    assert_eq!(order, [0, 2, 1, 3]);
    let error = merge([1.0, 3.0, 2.0, 0.5]).unwrap_err().to_string();
    assert!(error.contains("not in descending order"), "{error}");
}

/// Three and four flags in rotation, and what is left of them.
#[test]
fn events_of_three_and_four_flags() {
    for (create, flags) in
        [("create_sevent", 1), ("create_devent", 2), ("create_tevent", 3), ("create_qevent", 4)]
    {
        let mut kernel = Kernel::new("events", 1);
        kernel.lane(LaneName::Vec0, |lane| {
            lane.event(create, "e", ("V", "MTE3"), false);
            lane.emit("event_setall", &[("event", "e".into())]);
            for _ in 0..flags - flags % 2 {
                lane.emit("event_wait", &[("event", "e".into())]);
            }
            if flags % 2 == 1 {
                lane.emit("event_release", &[("event", "e".into())]);
            }
        });
        assert!(simulate(&kernel.build(), &[], &timing()).is_ok(), "{create}");
    }
}

//! Cycles under the reference profile, worked out by hand from its formulas.

use trompe_npu::builder::{Kernel, Lane};
use trompe_npu::kernels::{Matmul, all_reduce, matmul, mix, rotation};
use trompe_npu::{Argument, ElementType, LaneName, Options, Pipe, Program, Role, Space};

use crate::support::*;

/// A kernel of one instruction on a lane, whose only task's cycles are the makespan.
fn single(
    lane: LaneName,
    op: &str,
    tensors: &[(&str, Space, ElementType, &[u64])],
    args: &[(&str, Argument)],
) -> u64 {
    let mut kernel = Kernel::new("single", 1);
    for (name, space, dtype, shape) in tensors {
        if *space == Space::Gm {
            kernel.global(name, *dtype, shape, Role::Workspace);
        } else {
            kernel.local(name, space.name(), *dtype, shape);
        }
    }
    let bound: Vec<(&str, Argument)> = tensors.iter().map(|(name, ..)| (*name, (*name).into())).collect();
    let all = [bound, args.to_vec()].concat();
    kernel.lane(lane, |lane| {
        lane.emit(op, &all);
    });
    simulate(&kernel.build(), &[], &timing()).unwrap().makespan
}

fn n(args: &[(&'static str, i64)]) -> Vec<(&'static str, Argument)> {
    args.iter().map(|(name, value)| (*name, Argument::Int(*value))).collect()
}

use ElementType::{F16, F32, I8};
use Space::{Gm, L0a, L0b, L0c, L1, Ub};

#[test]
fn moves_of_the_cube() {
    let check = |op, tensors: &[(&str, Space, ElementType, &[u64])], args: &[(&'static str, i64)], cycles| {
        assert_eq!(single(LaneName::Cube, op, tensors, &n(args)), cycles, "{op} {args:?}");
    };
    // ((M - 1) N_src + N) x 2 bytes at 32 bytes per cycle: (127 x 128 + 128) x 2 / 32.
    let half = |name: &'static str, space| (name, space, F16, &[128u64, 128][..]);
    let load = [half("dst", L1), half("src", Gm)];
    check("gm_to_l1_nd2nz", &load, &[("M", 128), ("N", 128), ("N_src", 128)], 1024);
    // (15 x 128 + 32) x 2 = 3904 bytes: 122 cycles.
    check("gm_to_l1_nd2nz", &load, &[("M", 16), ("N", 32), ("N_src", 128)], 122);
    let operand = [half("dst", L0a), half("src", L1)];
    let window = |m, k| [("m_dst", m), ("n_dst", k), ("m_src", 128), ("n_src", 128)];
    check("l1_to_l0", &operand, &window(128, 128), 256); // 32768 / 128
    check("l1_to_l0", &operand, &window(20, 30), 16); // 2 blocks x 32 rows x 16 x 2 bytes / 128
    let beyond = [window(20, 30).as_slice(), &[("src_row0", 40), ("src_col0", 50)]].concat();
    check("l1_to_l0", &operand, &beyond, 80); // source extent 60 x 80: 5 blocks x 64 rows x 16 x 2 bytes
    let to_b = [half("dst", L0b), half("src", L1)];
    let turned = [window(20, 30).as_slice(), &[("src_is_transpose", 1)]].concat();
    check("l1_to_l0", &to_b, &turned, 16); // ZN: 32 x 32 x 2 bytes; source 2 x 32 x 16 x 2
    check("set_constant_to_l1", &[("tensor", L1, F16, &[64, 64])], &[("n_blocks", 100), ("val", 0)], 100);
}

#[test]
fn products_and_their_results() {
    let check = |op, tensors: &[(&str, Space, ElementType, &[u64])], args: &[(&'static str, i64)], cycles| {
        assert_eq!(single(LaneName::Cube, op, tensors, &n(args)), cycles, "{op} {args:?}");
    };
    let mmad = |dtype| {
        [
            ("dst", L0c, if dtype == I8 { ElementType::I32 } else { F32 }, &[128u64, 128][..]),
            ("src_a", L0a, dtype, &[128, 128]),
            ("src_b", L0b, dtype, &[128, 128]),
        ]
    };
    for dtype in [F16, I8] {
        check("mmad", &mmad(dtype), &[("M", 128), ("N", 128), ("K", 128)], 512); // 2^21 / 4096
        check("mmad", &mmad(dtype), &[("M", 17), ("N", 33), ("K", 65)], 9); // 36465 / 4096, no padding
    }
    let acc = ("src", L0c, F32, &[128u64, 128][..]);
    let out = ("dst", Gm, F16, &[128u64, 128][..]);
    // Accumulator: 8 blocks x 128 rows x 16 x 4 bytes is more than 128 x 128 x 2.
    check("l0c_to_gm_nz2nd", &[out, acc], &[("M", 128), ("N", 128), ("N_dst", 128)], 512);
    // Rows: (15 x 1024 + 16) x 4 bytes is more than 16 x 16 x 4.
    let wide = ("dst", Gm, F32, &[16u64, 1024][..]);
    check("l0c_to_gm_nz2nd", &[wide, acc], &[("M", 16), ("N", 16), ("N_dst", 1024)], 481);
    check("l0c_to_l1", &[("dst", L1, F16, &[128, 128]), acc], &[("M", 128), ("N", 128)], 512);
    let mut kernel = Kernel::new("split", 1);
    let (dst, src) =
        (kernel.local("dst", "ub", F32, &[64, 128]), kernel.local("src", "l0c", F32, &[128, 128]));
    kernel.cube(|lane| {
        lane.emit(
            "l0c_to_ub",
            &[
                ("dst", (&dst).into()),
                ("src", (&src).into()),
                ("M", 128.into()),
                ("N", 128.into()),
                ("dual_mode", "SPLITM".into()),
            ],
        );
    });
    assert_eq!(simulate(&kernel.build(), &[], &timing()).unwrap().makespan, 256); // 65536 / 256
}

#[test]
fn vector_instructions() {
    let check = |op, tensors: &[(&str, Space, ElementType, &[u64])], args: &[(&'static str, i64)], cycles| {
        assert_eq!(single(LaneName::Vec0, op, tensors, &n(args)), cycles, "{op} {args:?}");
    };
    let ub = |name: &'static str| (name, Ub, F32, &[64u64, 64][..]);
    check("exp", &[ub("dst"), ub("src")], &[("repeat", 64)], 128); // 2 per repeat
    check("exp", &[ub("dst"), ub("src")], &[], 128); // 16384 bytes / 256 x 2
    check("add", &[ub("dst"), ub("src1"), ub("src2")], &[("repeat", 3)], 6);
    let small = |name: &'static str| (name, Ub, F32, &[1u64, 8][..]);
    check("add", &[small("dst"), small("src1"), small("src2")], &[], 2); // at least one
    check("brcb", &[ub("dst"), ub("src")], &[("repeat", 8)], 16);
    let burst = [("n_burst", 4), ("burst_len_byte", 100)];
    check("gm_to_ub_pad", &[ub("dst"), ("src", Gm, F32, &[64, 64])], &burst, 13); // 400 / 32
    check("ub_to_gm_pad", &[("dst", Gm, F32, &[64, 64]), ub("src")], &burst, 13);
    let nz = [("m_dst", 64), ("n_dst", 64), ("m_src", 16), ("n_src", 64)];
    // Written: (3 blocks x 64 rows x 16 + 16 x 16) x 2 bytes = 6656; read 2048.
    check("ub_to_l1_nd2nz", &[("dst", L1, F16, &[64, 64]), ("src", Ub, F16, &[16, 64])], &nz, 26);
    check("noop", &[], &[], 1);
}

#[test]
fn micro_programs_count_all_but_moves_and_scalars() {
    let mut kernel = Kernel::new("micro", 1);
    let x = kernel.local("x", "ub", F32, &[64, 64]);
    kernel.micro("work", &["x", "$rows"], |lane| {
        lane.emit("create_reg", &[("name", "a".into()), ("dtype", "f32".into())]);
        lane.emit("create_maskreg", &[("name", "m".into()), ("init", "ALL".into())]);
        lane.range(0, "rows", 1, |lane, row| {
            let offset = lane.calc("var_mul", &row, 64);
            lane.emit(
                "micro_slice_tensor",
                &[("view_name", "row".into()), ("source_name", "x".into()), ("offset", (&offset).into())],
            );
            lane.emit("ub2reg", &[("dst", "a".into()), ("src", "row".into())]);
            lane.emit("vexp", &[("dst", "a".into()), ("src", "a".into()), ("mask", "m".into())]);
            lane.emit("vmuls", &[("dst", "a".into()), ("src", "a".into()), ("val", 2.0.into())]);
            lane.emit("reg2ub", &[("dst", "row".into()), ("src", "a".into())]);
        });
    });
    kernel.lane(LaneName::Vec0, |lane| {
        let bound: Vec<Argument> = vec![(&x).into(), 10.into()];
        lane.emit("call_micro", &[("name", "work".into()), ("call_bindings", bound.into())]);
    });
    // Per row: the slice, vexp and vmuls; two cycles each.
    assert_eq!(simulate(&kernel.build(), &[], &timing()).unwrap().makespan, 10 * 3 * 2);
}

/// The tile of 128 x 64 x 128 and its pipes, cycle by cycle.
#[test]
fn the_worked_example() {
    let outcome = simulate(&mix(4096, 4), &[], &timing()).unwrap();
    assert_eq!(outcome.makespan, 14_083);
    let spans = |pipe: &str| -> Vec<(u64, u64)> { outcome.spans(0, pipe) };
    assert_eq!(spans("cube.MTE2")[..3], [(0, 1024), (1024, 1536), (1536, 2560)]);
    assert_eq!(spans("cube.MTE1")[..2], [(1536, 1792), (1792, 1920)]);
    assert_eq!(spans("cube.M")[0], (1920, 2176));
    assert_eq!(spans("cube.FIX")[0], (2176, 2304));
    for lane in ["vec0", "vec1"] {
        assert_eq!(spans(&format!("{lane}.V"))[0], (2305, 2817));
        assert_eq!(spans(&format!("{lane}.MTE3"))[0], (2818, 3330));
    }
    let starts: Vec<u64> = spans("cube.MTE2").iter().step_by(2).map(|span| span.0).collect();
    assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == 1536), "{starts:?}");
    // The critical path is the loads, then the last tile's way out.
    let path: Vec<String> = outcome.critical_path.iter().map(trompe_npu::Step::pipe).collect();
    assert_eq!(path.iter().filter(|pipe| **pipe == "cube.MTE2").count(), 16);
    assert!(path.last().is_some_and(|pipe| pipe.ends_with("MTE3")), "{path:?}");
}

#[test]
fn the_half_matmul_of_the_worked_example() {
    let shape =
        Matmul { m: 4096, n: 64, k: 128, tile: [128, 64, 128], split_k: 1, cores: 4, dtype: F16, slots: 2 };
    assert_eq!(simulate(&matmul(&shape), &[], &timing()).unwrap().makespan, 13_185);
    // Without double buffering the load of a tile waits until the one before has gone to the matrix unit's memories:
    // 1536 + 384 per tile; the last tile ends 256 + 256 later, and its last event takes one cycle.
    let single = Matmul { slots: 1, ..shape };
    assert_eq!(simulate(&matmul(&single), &[], &timing()).unwrap().makespan, 8 * 1920 + 512 + 1);
}

/// Load 512, work 128, store 512 per turn.
#[test]
fn event_rotation() {
    let makespan = |slots| simulate(&rotation(6, slots), &[], &timing()).unwrap().makespan;
    // One slot: the load waits for the work before it, which waits for the store before that.
    // Turn t: load ends L_t = max(L_(t-1), W_(t-1)) + 512, W_t = max(L_t, S_(t-1)) + 128, S_t = W_t + 512.
    let (mut l, mut w, mut s) = (0, 0, 0);
    for _ in 0..6 {
        l = l.max(w) + 512;
        w = l.max(s) + 128;
        s = w.max(s) + 512;
    }
    assert_eq!(makespan(1), s + 1);
    // Two slots: bound by the loads; then 128 and 512 more.
    assert_eq!(makespan(2), 6 * 512 + 128 + 512 + 1);
}

/// A phase is ready when the last participant is, whoever that is.
#[test]
fn collectives_end_at_the_latest_participant() {
    // Lane 0: load 8, noops 100, store 8, ready 1; the others 100 less. Then wait, load 8, store 8.
    // A wait lasts at least one cycle, and lane 0 waits right after it counted in.
    for (delay, cores) in [(0, 2), (100, 2), (100, 4)] {
        let outcome = simulate(&all_reduce(cores, delay), &[], &timing()).unwrap();
        let ready = 8 + delay as u64 + 8 + 1;
        assert_eq!(outcome.makespan, ready + 1 + 8 + 8, "{delay}");
        for core in 0..cores {
            let loads = outcome.spans(core, "vec1.MTE2");
            assert!(loads[1].0 >= ready, "{loads:?}");
        }
    }
}

/// `setflag` takes a cycle; `waitflag` ends at the later of a cycle and the flag.
#[test]
fn flags_between_pipes() {
    let mut kernel = Kernel::new("flags", 1);
    kernel.lane(LaneName::Vec0, |lane| {
        let on = |lane: &mut Lane, pipe, op: &str, args: &[(&str, Argument)]| {
            lane.emit_on(Some(pipe), op, args);
        };
        for _ in 0..5 {
            on(lane, Pipe::Mte2, "noop", &[]);
        }
        on(lane, Pipe::Mte2, "setflag", &[("dst_pipe", "V".into()), ("event_id", 0.into())]);
        on(lane, Pipe::V, "waitflag", &[("src_pipe", "MTE2".into()), ("event_id", 0.into())]);
        on(lane, Pipe::V, "noop", &[]);
        on(lane, Pipe::V, "setflag", &[("dst_pipe", "MTE3".into()), ("event_id", 3.into())]);
        on(lane, Pipe::Mte3, "waitflag", &[("src_pipe", "V".into()), ("event_id", 3.into())]);
        on(lane, Pipe::Mte3, "noop", &[]);
    });
    let outcome = simulate(&kernel.build(), &[], &timing()).unwrap();
    assert_eq!(outcome.spans(0, "vec0.V"), [(6, 7)]);
    assert_eq!(outcome.spans(0, "vec0.MTE3"), [(8, 9)]);
    assert_eq!(outcome.makespan, 9);
}

#[test]
fn a_lane_without_events_is_serial_and_a_barrier_drains() {
    let noops = |barrier: bool, event: bool| -> u64 {
        let mut kernel = Kernel::new("lane", 1);
        kernel.lane(LaneName::Vec0, |lane| {
            if event {
                lane.event("create_sevent", "unused", ("V", "MTE3"), false);
            }
            for pipe in [Pipe::Mte2, Pipe::V, Pipe::Mte3] {
                lane.emit_on(Some(pipe), "noop", &[]);
                if barrier {
                    lane.emit("barrier", &[("pipe", "ALL".into())]);
                }
            }
        });
        simulate(&kernel.build(), &[], &timing()).unwrap().makespan
    };
    assert_eq!(noops(false, false), 3);
    assert_eq!(noops(false, true), 1);
    assert_eq!(noops(true, true), 3);
}

#[test]
fn calibrated_cycles() {
    let one = |device: &str,
               op: &str,
               lane,
               tensors: &[(&str, Space, ElementType, &[u64])],
               args: &[(&'static str, i64)]| {
        let mut kernel = Kernel::new("single", 1);
        for (name, space, dtype, shape) in tensors {
            if *space == Gm {
                kernel.global(name, *dtype, shape, Role::Workspace)
            } else {
                kernel.local(name, space.name(), *dtype, shape)
            };
        }
        let bound: Vec<(&str, Argument)> = tensors.iter().map(|(name, ..)| (*name, (*name).into())).collect();
        kernel.lane(lane, |lane| {
            lane.emit(op, &[bound, n(args)].concat());
        });
        simulate_on(device, "calibrated", &kernel.build(), &[], &timing()).unwrap().makespan
    };
    let burst = [("n_burst", 1), ("burst_len_byte", 3200)];
    let load = [("dst", Ub, F32, &[64u64, 64][..]), ("src", Gm, F32, &[64, 64])];
    assert_eq!(one("ascend-950", "gm_to_ub_pad", LaneName::Vec0, &load, &burst), 300 + 100);
    assert_eq!(one("ascend-910b", "gm_to_ub_pad", LaneName::Vec0, &load, &burst), 360 + 178);
    let mmad =
        [("dst", L0c, F32, &[64u64, 64][..]), ("src_a", L0a, F16, &[64, 64]), ("src_b", L0b, F16, &[64, 64])];
    let shape = [("M", 60), ("N", 50), ("K", 40)];
    // Padded to 64 x 64 x 48.
    assert_eq!(one("ascend-950", "mmad", LaneName::Cube, &mmad, &shape), 67 + 48);
    assert_eq!(one("ascend-910b", "mmad", LaneName::Cube, &mmad, &shape), 21 + 96);
    let add =
        [("dst", Ub, F32, &[64u64, 64][..]), ("src1", Ub, F32, &[64, 64]), ("src2", Ub, F32, &[64, 64])];
    assert_eq!(one("ascend-910b", "add", LaneName::Vec0, &add, &[("repeat", 10)]), 21 + 10);
}

#[test]
fn data_and_timing_give_the_same_cycles() {
    let program: Program = rotation(6, 2);
    let x = noise(1, 384 * 64);
    let with = simulate(&program, &[("x", f32s(&[384, 64], &x))], &Options::default()).unwrap();
    assert_eq!(with.makespan, simulate(&program, &[], &timing()).unwrap().makespan);
}

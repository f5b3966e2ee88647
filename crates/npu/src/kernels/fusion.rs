//! Cube and vector lanes together, and events by hand.

use crate::builder::Kernel;
use crate::element::ElementType::{F16, F32};
use crate::program::{Pipe, Program, Role};

/// `y = 3 (a b^T) + 1` in tiles of 128 x 64 x 128: the cube multiplies, both vector lanes finish a half each.
///
/// `a` is `rows` x 128, `b` 64 x 128; the tiles go round robin to `cores` cores.
///
/// # Panics
/// When `rows` is no multiple of 128.
#[must_use]
pub fn mix(rows: u64, cores: u32) -> Program {
    assert!(rows.is_multiple_of(128), "tiles have 128 rows");
    let mut kernel = Kernel::new("mix", cores);
    let a = kernel.global("a", F16, &[rows, 128], Role::Input);
    let b = kernel.global("b", F16, &[64, 128], Role::Input);
    let y = kernel.global("y", F32, &[rows, 64], Role::Output);
    let (l1a, l1b) =
        (kernel.buffer("l1a", ("l1", 2), F16, &[128, 128]), kernel.buffer("l1b", ("l1", 2), F16, &[64, 128]));
    let (l0a, l0b) = (
        kernel.buffer("l0a", ("l0a", 2), F16, &[128, 128]),
        kernel.buffer("l0b", ("l0b", 2), F16, &[64, 128]),
    );
    let l0c = kernel.buffer("l0c", ("l0c", 2), F32, &[128, 64]);
    let product = kernel.buffer("product", ("ub", 2), F32, &[64, 64]);
    let result = kernel.buffer("result", ("ub", 2), F32, &[64, 64]);
    // Four counted instructions per row of 64 floats: 256 for the 64 rows of a half.
    kernel.micro("finish", &["from", "to"], |lane| {
        lane.emit("create_reg", &[("name", "x".into()), ("dtype", "f32".into())]);
        lane.range(0, 64, 1, |lane, row| {
            let offset = lane.calc("var_mul", &row, 64);
            lane.emit("ub2reg", &[("dst", "x".into()), ("src", "from".into()), ("offset", (&offset).into())]);
            for (op, val) in [("vmuls", 2.0), ("vadds", 1.0), ("vmuls", 1.5), ("vadds", -0.5)] {
                lane.emit(op, &[("dst", "x".into()), ("src", "x".into()), ("val", val.into())]);
            }
            lane.emit("reg2ub", &[("dst", "to".into()), ("src", "x".into()), ("offset", (&offset).into())]);
        });
    });
    let (tiles, rows) = ((rows / 128) as i64, rows as i64);
    kernel.cube(|lane| {
        let (core, cores) = (lane.ask("GetCubeIdx"), lane.ask("GetCubeNum"));
        let turn = lane.var("turn", 0);
        lane.auto_sync(|lane| {
            lane.range(&core, tiles, &cores, |lane, tile| {
                let row = lane.calc("var_mul", &tile, 128);
                let [sa, sb, oa, ob, acc] =
                    [&l1a, &l1b, &l0a, &l0b, &l0c].map(|buffer| lane.slot(buffer, &turn));
                let half = lane.slot(&product, &turn);
                let from = lane.rows(&a, &row, 128, [rows, 128]);
                for (dst, src, count) in [(&sa, &from, 128), (&sb, &b, 64)] {
                    lane.emit(
                        "gm_to_l1_nd2nz",
                        &[
                            ("dst", dst.into()),
                            ("src", src.into()),
                            ("M", count.into()),
                            ("N", 128.into()),
                            ("N_src", 128.into()),
                        ],
                    );
                }
                for (dst, src, count) in [(&oa, &sa, 128), (&ob, &sb, 64)] {
                    lane.emit(
                        "l1_to_l0",
                        &[
                            ("dst", dst.into()),
                            ("src", src.into()),
                            ("m_dst", count.into()),
                            ("n_dst", 128.into()),
                            ("m_src", count.into()),
                            ("n_src", 128.into()),
                        ],
                    );
                }
                lane.emit(
                    "mmad",
                    &[
                        ("dst", (&acc).into()),
                        ("src_a", (&oa).into()),
                        ("src_b", (&ob).into()),
                        ("M", 128.into()),
                        ("N", 64.into()),
                        ("K", 128.into()),
                    ],
                );
                lane.emit("wait_vec", &[("flag", 0.into())]);
                lane.emit(
                    "l0c_to_ub",
                    &[
                        ("dst", (&half).into()),
                        ("src", (&acc).into()),
                        ("M", 128.into()),
                        ("N", 64.into()),
                        ("dual_mode", "SPLITM".into()),
                    ],
                );
                lane.emit("cube_ready", &[("flag", 0.into())]);
                lane.emit("var_add", &[("out", "turn".into()), ("a", "turn".into()), ("b", 1.into())]);
            });
        });
        for _ in 0..2 {
            lane.emit("wait_vec", &[("flag", 0.into())]);
        }
    });
    kernel.vector(|lane| {
        let (core, cores, half) =
            (lane.ask("GetCubeIdx"), lane.ask("GetCubeNum"), lane.ask("GetSubBlockIdx"));
        let turn = lane.var("turn", 0);
        let skip = lane.calc("var_mul", &half, 64);
        for _ in 0..2 {
            lane.emit_on(Some(Pipe::V), "vec_ready", &[("flag", 0.into())]);
        }
        // By hand: the result is handed on after the product's buffer has been given back.
        lane.event("create_devent", "finished", ("V", "MTE3"), false);
        lane.event("create_devent", "stored", ("MTE3", "V"), true);
        lane.range(&core, tiles, &cores, |lane, tile| {
            let row = lane.calc("var_mul", &tile, 128);
            let row = lane.calc("var_add", &row, &skip);
            let [from, to] = [&product, &result].map(|buffer| lane.slot(buffer, &turn));
            lane.emit("wait_cube", &[("flag", 0.into())]);
            lane.emit("event_wait", &[("event", "stored".into())]);
            let bound: Vec<crate::program::Argument> = vec![(&from).into(), (&to).into()];
            lane.emit("call_micro", &[("name", "finish".into()), ("call_bindings", bound.into())]);
            lane.emit_on(Some(Pipe::V), "vec_ready", &[("flag", 0.into())]);
            lane.emit("event_set", &[("event", "finished".into())]);
            let out = lane.rows(&y, &row, 64, [rows, 64]);
            lane.emit("event_wait", &[("event", "finished".into())]);
            lane.emit(
                "ub_to_gm_pad",
                &[
                    ("dst", (&out).into()),
                    ("src", (&to).into()),
                    ("n_burst", 1.into()),
                    ("burst_len_byte", 16384.into()),
                ],
            );
            lane.emit("event_set", &[("event", "stored".into())]);
            lane.emit("var_add", &[("out", "turn".into()), ("a", "turn".into()), ("b", 1.into())]);
        });
    });
    kernel.build()
}

/// `y = 2 x` over `turns` tiles of 64 x 64 floats on one vector lane, with events of `slots` flags by hand.
#[must_use]
pub fn rotation(turns: u64, slots: usize) -> Program {
    let mut kernel = Kernel::new("rotation", 1);
    let x = kernel.global("x", F32, &[turns * 64, 64], Role::Input);
    let y = kernel.global("y", F32, &[turns * 64, 64], Role::Output);
    let (input, output) = (
        kernel.buffer("in", ("ub", slots), F32, &[64, 64]),
        kernel.buffer("out", ("ub", slots), F32, &[64, 64]),
    );
    let create = ["create_sevent", "create_devent", "create_tevent", "create_qevent"][slots - 1];
    let rows = turns as i64 * 64;
    kernel.lane(crate::program::LaneName::Vec0, |lane| {
        for (name, source, target, preset) in [
            ("loaded", "MTE2", "V", false),
            ("taken", "V", "MTE2", true),
            ("done", "V", "MTE3", false),
            ("stored", "MTE3", "V", true),
        ] {
            lane.event(create, name, (source, target), preset);
        }
        let event = |lane: &mut crate::builder::Lane, op: &str, name: &str| {
            lane.emit(op, &[("event", name.into())]);
        };
        lane.range(0, rows, 64, |lane, row| {
            let turn = lane.calc("var_div", &row, 64);
            let [a, b] = [&input, &output].map(|buffer| lane.slot(buffer, &turn));
            let (from, to) = (lane.rows(&x, &row, 64, [rows, 64]), lane.rows(&y, &row, 64, [rows, 64]));
            event(lane, "event_wait", "taken");
            lane.emit(
                "gm_to_ub_pad",
                &[
                    ("dst", (&a).into()),
                    ("src", (&from).into()),
                    ("n_burst", 1.into()),
                    ("burst_len_byte", 16384.into()),
                ],
            );
            event(lane, "event_set", "loaded");
            event(lane, "event_wait", "loaded");
            event(lane, "event_wait", "stored");
            lane.emit(
                "muls",
                &[("dst", (&b).into()), ("src", (&a).into()), ("val", 2.0.into()), ("repeat", 64.into())],
            );
            event(lane, "event_set", "taken");
            event(lane, "event_set", "done");
            event(lane, "event_wait", "done");
            lane.emit(
                "ub_to_gm_pad",
                &[
                    ("dst", (&to).into()),
                    ("src", (&b).into()),
                    ("n_burst", 1.into()),
                    ("burst_len_byte", 16384.into()),
                ],
            );
            event(lane, "event_set", "stored");
        });
    });
    kernel.build()
}

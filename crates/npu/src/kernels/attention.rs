//! Fused attention (online softmax), forward.
//!
//! The cube computes scores `Q K^T` of 128 x 128 and products `P V`; the vector lanes hold 64 rows each, keep the running
//! maximum and sum of every row, and rescale what they have. The cube is one tile ahead with the scores.

use crate::builder::{Buffer, Kernel, Lane, View};
use crate::element::ElementType::{F16, F32};
use crate::program::{Argument, Pipe, Program, Role};

use super::rows::{apply, fold};

/// Sizes: one batch, one head; rows of Q and of K and V are multiples of 128, the head has 128 columns.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names are the field's terms")]
pub struct Attention {
    pub queries: u64,
    pub keys: u64,
    pub cores: u32,
}

const TILE: i64 = 128;
const HALF: i64 = 64;

struct VectorBuffers {
    scores: Buffer,
    probabilities: Buffer,
    product: View,
    sum: View,
    work: View,
    spread: View,
    /// Maximum, new maximum, sum, factor.
    numbers: [View; 4],
    part: View,
}

/// The kernel: `out = softmax(q k^T / sqrt(128)) v` with f16 inputs and f32 output.
///
/// # Panics
/// When a size is no multiple of 128.
#[must_use]
pub fn attention(shape: &Attention) -> Program {
    let Attention { queries, keys, cores } = *shape;
    assert!(queries.is_multiple_of(128) && keys.is_multiple_of(128), "tiles have 128 rows");
    let mut kernel = Kernel::new("attention", cores);
    let q = kernel.global("q", F16, &[queries, 128], Role::Input);
    let [k, v] = ["k", "v"].map(|name| kernel.global(name, F16, &[keys, 128], Role::Input));
    let out = kernel.global("out", F32, &[queries, 128], Role::Output);
    let square = [128, 128];
    let l1q = kernel.buffer("l1q", ("l1", 1), F16, &square);
    let (l1k, l1v) =
        (kernel.buffer("l1k", ("l1", 2), F16, &square), kernel.buffer("l1v", ("l1", 2), F16, &square));
    let l1p = kernel.buffer("l1p", ("l1", 2), F16, &square);
    let [l0q, l0p] = ["l0q", "l0p"].map(|name| kernel.local(name, "l0a", F16, &square));
    let [l0k, l0v] = ["l0k", "l0v"].map(|name| kernel.local(name, "l0b", F16, &square));
    let [acc_s, acc_o] = ["acc_s", "acc_o"].map(|name| kernel.local(name, "l0c", F32, &square));
    let half = [64, 128];
    let buffers = VectorBuffers {
        scores: kernel.buffer("scores", ("ub", 2), F32, &half),
        probabilities: kernel.buffer("probabilities", ("ub", 1), F16, &half),
        product: kernel.local("product", "ub", F32, &half),
        sum: kernel.local("sum", "ub", F32, &half),
        work: kernel.local("work", "ub", F32, &[64, 64]),
        spread: kernel.local("spread", "ub", F32, &[64, 8]),
        numbers: ["maximum", "new_maximum", "total", "factor"]
            .map(|name| kernel.local(name, "ub", F32, &[1, 64])),
        part: kernel.local("part", "ub", F32, &[1, 64]),
    };
    let (rows, keys) = (queries as i64, keys as i64);
    let (blocks, steps) = (rows / TILE, keys / TILE);
    kernel.cube(|lane| {
        let (core, cores) = (lane.ask("GetCubeIdx"), lane.ask("GetCubeNum"));
        let (ahead, behind) = (lane.var("ahead", 0), lane.var("behind", 0));
        let zero = lane.var("zero", 0);
        for _ in 0..2 {
            lane.emit_on(Some(Pipe::Mte1), "cube_ready", &[("flag", 1.into())]);
        }
        lane.auto_sync(|lane| {
            lane.range(&core, blocks, &cores, |lane, block| {
                let row = lane.calc("var_mul", &block, TILE);
                let (slot_q, from_q) = (lane.slot(&l1q, &zero), lane.rows(&q, &row, TILE, [rows, TILE]));
                load(lane, &slot_q, &from_q);
                lane.range(0, steps + 1, 1, |lane, step| {
                    lane.when(&format!("{} < {steps}", step.name()), |lane| {
                        let row = lane.calc("var_mul", &step, TILE);
                        let (slot, from) = (lane.slot(&l1k, &ahead), lane.rows(&k, &row, TILE, [keys, TILE]));
                        load(lane, &slot, &from);
                        operand(lane, (&l0q, &slot_q), false);
                        operand(lane, (&l0k, &slot), false);
                        multiply(lane, &acc_s, (&l0q, &l0k), "auto");
                        let to = lane.slot(&buffers.scores, &ahead);
                        lane.emit("wait_vec", &[("flag", 0.into())]);
                        store(lane, &to, &acc_s);
                        lane.emit("cube_ready", &[("flag", 0.into())]);
                        count(lane, "ahead");
                    });
                    lane.when(&format!("{} > 0", step.name()), |lane| {
                        let before = lane.calc("var_sub", &step, 1);
                        let row = lane.calc("var_mul", &before, TILE);
                        let (slot, from) =
                            (lane.slot(&l1v, &behind), lane.rows(&v, &row, TILE, [keys, TILE]));
                        load(lane, &slot, &from);
                        let probabilities = lane.slot(&l1p, &behind);
                        lane.emit_on(Some(Pipe::Mte1), "wait_vec", &[("flag", 1.into())]);
                        operand(lane, (&l0p, &probabilities), false);
                        lane.emit_on(Some(Pipe::Mte1), "cube_ready", &[("flag", 1.into())]);
                        operand(lane, (&l0v, &slot), true);
                        multiply(lane, &acc_o, (&l0p, &l0v), "ZN");
                        lane.emit("wait_vec", &[("flag", 2.into())]);
                        store(lane, &buffers.product, &acc_o);
                        lane.emit("cube_ready", &[("flag", 2.into())]);
                        count(lane, "behind");
                    });
                });
            });
        });
        for flag in [0, 0, 2] {
            lane.emit("wait_vec", &[("flag", flag.into())]);
        }
    });
    kernel.vector(|lane| {
        let (core, cores, sub) = (lane.ask("GetCubeIdx"), lane.ask("GetCubeNum"), lane.ask("GetSubBlockIdx"));
        let skip = lane.calc("var_mul", &sub, HALF);
        let turn = lane.var("turn", 0);
        for flag in [0, 0, 2] {
            lane.emit_on(Some(Pipe::V), "vec_ready", &[("flag", flag.into())]);
        }
        lane.auto_sync(|lane| {
            lane.range(&core, blocks, &cores, |lane, block| {
                let row = lane.calc("var_mul", &block, TILE);
                let row = lane.calc("var_add", &row, &skip);
                for (view, value, repeat) in [
                    (&buffers.numbers[0], -3.0e38, 1),
                    (&buffers.numbers[2], 0.0, 1),
                    (&buffers.sum, 0.0, 2 * HALF),
                ] {
                    lane.emit(
                        "dup",
                        &[("dst", view.into()), ("src", value.into()), ("repeat", repeat.into())],
                    );
                }
                lane.range(0, steps, 1, |lane, _| online_softmax(lane, &buffers, &l1p, (&turn, &skip)));
                let [_, _, total, _] = &buffers.numbers;
                apply(lane, "div", (&buffers.sum, &buffers.sum), total, &buffers.spread);
                let to = lane.rows(&out, &row, HALF, [rows, TILE]);
                lane.emit(
                    "ub_to_gm_pad",
                    &[
                        ("dst", (&to).into()),
                        ("src", (&buffers.sum).into()),
                        ("n_burst", 1.into()),
                        ("burst_len_byte", (HALF * TILE * 4).into()),
                    ],
                );
            });
        });
        for _ in 0..2 {
            lane.emit_on(Some(Pipe::Mte3), "wait_cube", &[("flag", 1.into())]);
        }
    });
    kernel.build()
}

/// One tile of keys, on a vector lane.
fn online_softmax(
    lane: &mut Lane,
    buffers: &VectorBuffers,
    l1p: &Buffer,
    (turn, skip): (&crate::builder::Var, &crate::builder::Var),
) {
    let [maximum, new_maximum, total, factor] = &buffers.numbers;
    let (work, spread, sum, part) = (&buffers.work, &buffers.spread, &buffers.sum, &buffers.part);
    let all = 2 * HALF;
    let scores = lane.slot(&buffers.scores, turn);
    let zero_turn = lane.slot(&buffers.probabilities, turn);
    lane.emit("wait_cube", &[("flag", 0.into())]);
    let scale = 1.0 / (TILE as f64).sqrt();
    one(lane, "muls", (&scores, &scores), all, Some(scale));
    fold(lane, "vmax", "cmax", (&scores, work), part);
    two(lane, "vmax", new_maximum, (maximum, part), 1);
    two(lane, "sub", factor, (maximum, new_maximum), 1);
    one(lane, "exp", (factor, factor), 1, None);
    one(lane, "adds", (maximum, new_maximum), 1, Some(0.0));
    apply(lane, "sub", (&scores, &scores), maximum, spread);
    one(lane, "exp", (&scores, &scores), all, None);
    lane.emit(
        "cast",
        &[
            ("dst", (&zero_turn).into()),
            ("src", (&scores).into()),
            ("repeat", all.into()),
            ("dst_rep_stride", 4.into()),
        ],
    );
    let to = {
        let slot = lane.slot(l1p, turn);
        lane.part(&slot, [skip.into(), 0.into()], [HALF.into(), TILE.into()])
    };
    lane.emit_on(Some(Pipe::Mte3), "wait_cube", &[("flag", 1.into())]);
    lane.emit(
        "ub_to_l1_nd2nz",
        &[
            ("dst", (&to).into()),
            ("src", (&zero_turn).into()),
            ("m_dst", TILE.into()),
            ("n_dst", TILE.into()),
            ("m_src", HALF.into()),
            ("n_src", TILE.into()),
        ],
    );
    lane.emit("vec_ready", &[("flag", 1.into())]);
    fold(lane, "add", "cadd", (&scores, work), part);
    lane.emit_on(Some(Pipe::V), "vec_ready", &[("flag", 0.into())]);
    two(lane, "mul", total, (total, factor), 1);
    two(lane, "add", total, (total, part), 1);
    apply(lane, "mul", (sum, sum), factor, spread);
    lane.emit("wait_cube", &[("flag", 2.into())]);
    two(lane, "add", sum, (sum, &buffers.product), all);
    lane.emit_on(Some(Pipe::V), "vec_ready", &[("flag", 2.into())]);
    count(lane, "turn");
}

fn one(lane: &mut Lane, op: &str, (dst, src): (&View, &View), repeat: i64, val: Option<f64>) {
    let mut args: Vec<(&str, Argument)> =
        vec![("dst", dst.into()), ("src", src.into()), ("repeat", repeat.into())];
    args.extend(val.map(|val| ("val", val.into())));
    lane.emit(op, &args);
}

fn two(lane: &mut Lane, op: &str, dst: &View, (a, b): (&View, &View), repeat: i64) {
    lane.emit(op, &[("dst", dst.into()), ("src1", a.into()), ("src2", b.into()), ("repeat", repeat.into())]);
}

fn count(lane: &mut Lane, name: &str) {
    lane.emit("var_add", &[("out", name.into()), ("a", name.into()), ("b", 1.into())]);
}

fn load(lane: &mut Lane, dst: &View, src: &View) {
    lane.emit(
        "gm_to_l1_nd2nz",
        &[
            ("dst", dst.into()),
            ("src", src.into()),
            ("M", TILE.into()),
            ("N", TILE.into()),
            ("N_src", TILE.into()),
        ],
    );
}

fn operand(lane: &mut Lane, (dst, src): (&View, &View), transpose: bool) {
    lane.emit(
        "l1_to_l0",
        &[
            ("dst", dst.into()),
            ("src", src.into()),
            ("m_dst", TILE.into()),
            ("n_dst", TILE.into()),
            ("m_src", TILE.into()),
            ("n_src", TILE.into()),
            ("src_is_transpose", transpose.into()),
        ],
    );
}

fn multiply(lane: &mut Lane, dst: &View, (a, b): (&View, &View), b_layout: &str) {
    lane.emit(
        "mmad",
        &[
            ("dst", dst.into()),
            ("src_a", a.into()),
            ("src_b", b.into()),
            ("M", TILE.into()),
            ("N", TILE.into()),
            ("K", TILE.into()),
            ("b_layout", b_layout.into()),
        ],
    );
}

fn store(lane: &mut Lane, dst: &View, src: &View) {
    lane.emit(
        "l0c_to_ub",
        &[
            ("dst", dst.into()),
            ("src", src.into()),
            ("M", TILE.into()),
            ("N", TILE.into()),
            ("dual_mode", "SPLITM".into()),
        ],
    );
}

//! Kernels over rows of 128 floats: softmax, layer norm, RMS norm.
//!
//! A row is two repeats; a number per row is spread with `brcb` to one block and read with block stride 0.

use crate::builder::{Kernel, Lane, View};
use crate::element::ElementType::F32;
use crate::program::{Argument, Program, Role};

/// Which kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKernel {
    /// `e^(x - max) / sum`.
    Softmax,
    /// `(x - mean) / sqrt(variance + 1e-5)`.
    LayerNorm,
    /// `x / sqrt(mean of squares + 1e-5)`.
    RmsNorm,
}

const COLUMNS: i64 = 128;
const ROWS: i64 = 64;

/// The kernel over `rows` rows, a multiple of 64, on every vector lane of `cores` cores.
///
/// # Panics
/// When `rows` is no multiple of 64.
#[must_use]
pub fn row_kernel(which: RowKernel, rows: u64, cores: u32) -> Program {
    assert!(rows.is_multiple_of(64), "tiles have 64 rows");
    let name = match which {
        RowKernel::Softmax => "softmax",
        RowKernel::LayerNorm => "layer_norm",
        RowKernel::RmsNorm => "rms_norm",
    };
    let mut kernel = Kernel::new(name, cores);
    let x = kernel.global("x", F32, &[rows, 128], Role::Input);
    let y = kernel.global("y", F32, &[rows, 128], Role::Output);
    let input = kernel.buffer("input", ("ub", 2), F32, &[64, 128]);
    let output = kernel.buffer("output", ("ub", 1), F32, &[64, 128]);
    let work = kernel.local("work", "ub", F32, &[64, 64]);
    let number = kernel.local("number", "ub", F32, &[1, 64]);
    let spread = kernel.local("spread", "ub", F32, &[64, 8]);
    let rows = rows as i64;
    kernel.vector(|lane| {
        let (index, lanes) = (lane.ask("GetVecIdx"), lane.ask("GetVecNum"));
        let (first, step) = (lane.calc("var_mul", &index, ROWS), lane.calc("var_mul", &lanes, ROWS));
        let turn = lane.var("turn", 0);
        lane.auto_sync(|lane| {
            lane.range(&first, rows, &step, |lane, row| {
                let (a, b) = (lane.slot(&input, &turn), lane.slot(&output, &turn));
                let from = lane.rows(&x, &row, ROWS, [rows, COLUMNS]);
                let to = lane.rows(&y, &row, ROWS, [rows, COLUMNS]);
                let moved = [("n_burst", Argument::Int(1)), ("burst_len_byte", (ROWS * COLUMNS * 4).into())];
                let with = |dst: &View, src: &View| {
                    [&[("dst", dst.into()), ("src", src.into())], &moved[..]].concat()
                };
                lane.emit("gm_to_ub_pad", &with(&a, &from));
                let scratch = Scratch { work: &work, number: &number, spread: &spread };
                body(which, lane, &a, &b, &scratch);
                lane.emit("ub_to_gm_pad", &with(&to, &b));
                lane.emit("var_add", &[("out", "turn".into()), ("a", "turn".into()), ("b", 1.into())]);
            });
        });
    });
    kernel.build()
}

struct Scratch<'a> {
    work: &'a View,
    number: &'a View,
    spread: &'a View,
}

fn body(which: RowKernel, lane: &mut Lane, a: &View, b: &View, scratch: &Scratch<'_>) {
    let Scratch { work, number, spread } = scratch;
    let all = ROWS * 2;
    let whole = |lane: &mut Lane, op: &str, val: Option<f64>, dst: &View, src: &View, repeat: i64| {
        let mut args: Vec<(&str, Argument)> =
            vec![("dst", dst.into()), ("src", src.into()), ("repeat", repeat.into())];
        args.extend(val.map(|val| ("val", val.into())));
        lane.emit(op, &args);
    };
    match which {
        RowKernel::Softmax => {
            fold(lane, "vmax", "cmax", (a, work), number);
            apply(lane, "sub", (b, a), number, spread);
            whole(lane, "exp", None, b, b, all);
            fold(lane, "add", "cadd", (b, work), number);
            apply(lane, "div", (b, b), number, spread);
        }
        RowKernel::LayerNorm => {
            fold(lane, "add", "cadd", (a, work), number);
            whole(lane, "muls", Some(1.0 / COLUMNS as f64), number, number, 1);
            apply(lane, "sub", (a, a), number, spread);
            normalise(lane, (a, b), scratch);
        }
        RowKernel::RmsNorm => normalise(lane, (a, b), scratch),
    }
}

/// Divides rows by the root of their mean square.
fn normalise(lane: &mut Lane, (a, b): (&View, &View), scratch: &Scratch<'_>) {
    let Scratch { work, number, spread } = scratch;
    lane.emit(
        "mul",
        &[("dst", b.into()), ("src1", a.into()), ("src2", a.into()), ("repeat", (ROWS * 2).into())],
    );
    fold(lane, "add", "cadd", (b, work), number);
    for (op, val) in [("muls", Some(1.0 / COLUMNS as f64)), ("adds", Some(1e-5)), ("sqrt", None)] {
        let number: &View = number;
        let mut args: Vec<(&str, Argument)> =
            vec![("dst", number.into()), ("src", number.into()), ("repeat", 1.into())];
        args.extend(val.map(|val| ("val", val.into())));
        lane.emit(op, &args);
    }
    apply(lane, "div", (b, a), number, spread);
}

/// The two halves of each row joined by `pair`, then reduced by `reduce` to one number per row.
pub(super) fn fold(lane: &mut Lane, pair: &str, reduce: &str, (rows, work): (&View, &View), number: &View) {
    let right = lane.part(rows, [0.into(), 64.into()], [ROWS.into(), 64.into()]);
    lane.emit(
        pair,
        &[
            ("dst", work.into()),
            ("src1", rows.into()),
            ("src2", (&right).into()),
            ("repeat", ROWS.into()),
            ("src1_rep_stride", 16.into()),
            ("src2_rep_stride", 16.into()),
        ],
    );
    lane.emit(reduce, &[("dst", number.into()), ("src", work.into()), ("repeat", ROWS.into())]);
}

/// `dst = src op number of its row`.
pub(super) fn apply(lane: &mut Lane, op: &str, (dst, src): (&View, &View), number: &View, spread: &View) {
    lane.emit("brcb", &[("dst", spread.into()), ("src", number.into()), ("repeat", (ROWS / 8).into())]);
    for half in [0, 64] {
        let [to, from] =
            [dst, src].map(|view| lane.part(view, [0.into(), half.into()], [ROWS.into(), 64.into()]));
        lane.emit(
            op,
            &[
                ("dst", (&to).into()),
                ("src1", (&from).into()),
                ("src2", spread.into()),
                ("repeat", ROWS.into()),
                ("src2_blk_stride", 0.into()),
                ("dst_rep_stride", 16.into()),
                ("src1_rep_stride", 16.into()),
                ("src2_rep_stride", 1.into()),
            ],
        );
    }
}

//! Every vector and micro instruction against a line of plain Rust.

use half::f16;
use trompe_npu::builder::{Kernel, Lane};
use trompe_npu::{Argument, ElementType, Input, LaneName, Options, Role};

use crate::support::*;

use ElementType::{F16, F32, I16, I32, U8, U32};

/// Loads tensors into the unified buffer, runs `body`, stores `y`; gives `y`'s bytes.
fn through(
    inputs: &[(&str, Input)],
    y: (ElementType, u64),
    body: impl Fn(&mut Kernel, &mut Lane),
) -> Vec<u8> {
    let mut kernel = Kernel::new("op", 1);
    let move_all = |lane: &mut Lane, op: &str, dst: &str, src: &str, bytes: usize| {
        lane.emit(
            op,
            &[
                ("dst", dst.into()),
                ("src", src.into()),
                ("n_burst", 1.into()),
                ("burst_len_byte", (bytes as i64).into()),
            ],
        );
    };
    for (name, input) in inputs {
        kernel.global(&format!("gm_{name}"), input.dtype, &input.shape, Role::Input);
        kernel.local(name, "ub", input.dtype, &[1, input.shape.iter().product()]);
    }
    kernel.global("gm_y", y.0, &[y.1], Role::Output);
    kernel.local("y", "ub", y.0, &[1, y.1.next_multiple_of(32)]);
    let mut lane = Lane::default();
    for (name, input) in inputs {
        move_all(&mut lane, "gm_to_ub_pad", name, &format!("gm_{name}"), input.bytes.len());
    }
    // What an instruction leaves alone reads as 7.
    lane.emit("dup", &[("dst", "y".into()), ("src", 7.into())]);
    body(&mut kernel, &mut lane);
    move_all(&mut lane, "ub_to_gm_pad", "gm_y", "y", y.1 as usize * y.0.size());
    kernel.lane(LaneName::Vec0, |to| *to = lane);
    let named: Vec<(String, Input)> =
        inputs.iter().map(|(name, input)| (format!("gm_{name}"), input.clone())).collect();
    let named: Vec<(&str, Input)> =
        named.iter().map(|(name, input)| (name.as_str(), input.clone())).collect();
    simulate(&kernel.build(), &named, &Options::default()).unwrap().outputs[0].content.bytes.clone()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|raw| f32::from_le_bytes(raw.try_into().unwrap())).collect()
}

fn names<'a>(names: &[(&'a str, &str)], numbers: &[(&'a str, f64)]) -> Vec<(&'a str, Argument)> {
    let number =
        |value: f64| if value.fract() == 0.0 { Argument::Int(value as i64) } else { Argument::Float(value) };
    let names = names.iter().map(|(name, value)| (*name, Argument::from(*value)));
    names.chain(numbers.iter().map(|(name, value)| (*name, number(*value)))).collect()
}

fn positive(values: &[f32]) -> Vec<f32> {
    values.iter().map(|x| x.abs() + 0.1).collect()
}

#[test]
fn arithmetic_in_repeats_and_over_whole_views() {
    let (a, b) = (positive(&noise(1, 256)), noise(2, 256));
    let check = |op: &str, operands: &[(&str, &str)], val: Option<f64>, f: &dyn Fn(f32, f32) -> f32| {
        for repeat in [4.0, 0.0] {
            let mut numbers = vec![("repeat", repeat)];
            numbers.extend(val.map(|val| ("val", val)));
            let found =
                through(&[("a", f32s(&[256], &a)), ("b", f32s(&[256], &b))], (F32, 256), |_, lane| {
                    lane.emit(op, &names(operands, &numbers));
                });
            let expect: Vec<f32> = a.iter().zip(&b).map(|(&a, &b)| f(a, b)).collect();
            close(&floats(&found), &expect, 3e-7);
        }
    };
    let two = [("dst", "y"), ("src1", "a"), ("src2", "b")];
    check("add", &two, None, &|a, b| a + b);
    check("sub", &two, None, &|a, b| a - b);
    check("mul", &two, None, &|a, b| a * b);
    check("div", &two, None, &|a, b| a / b);
    check("vmax", &two, None, &f32::max);
    check("vmin", &two, None, &f32::min);
    check("muladddst", &two, None, &|a, b| 7.0 + a * b);
    let one = [("dst", "y"), ("src", "a")];
    check("exp", &one, None, &|a, _| a.exp());
    check("ln", &one, None, &|a, _| a.ln());
    check("rec", &one, None, &|a, _| 1.0 / a);
    check("sqrt", &one, None, &|a, _| a.sqrt());
    check("rsqrt", &one, None, &|a, _| 1.0 / a.sqrt());
    let other = [("dst", "y"), ("src", "b")];
    check("abs", &other, None, &|_, b| b.abs());
    check("relu", &other, None, &|_, b| b.max(0.0));
    check("adds", &other, Some(2.5), &|_, b| b + 2.5);
    check("muls", &other, Some(2.5), &|_, b| b * 2.5);
    check("vmaxs", &other, Some(0.25), &|_, b| b.max(0.25));
    check("vmins", &other, Some(0.25), &|_, b| b.min(0.25));
    check("lrelu", &other, Some(0.25), &|_, b| if b > 0.0 { b } else { 0.25 * b });
    check("axpy", &other, Some(2.5), &|_, b| 7.0 + 2.5 * b);
}

#[test]
fn halves_and_integers() {
    let values = noise(3, 256);
    let (input, halves) = f16s(&[256], &values);
    let found = through(&[("a", input)], (F16, 256), |_, lane| {
        lane.emit("muls", &names(&[("dst", "y"), ("src", "a")], &[("val", 1.7), ("repeat", 2.0)]));
    });
    for (raw, half) in found.chunks_exact(2).zip(halves) {
        assert_eq!(f16::from_le_bytes([raw[0], raw[1]]), f16::from_f32(half * 1.7));
    }
    let (a, b): (Vec<i64>, Vec<i64>) =
        ((0..128).map(|x| x * 517 - 30000).collect(), (0..128).map(|x| x * 91).collect());
    let check = |op: &str, f: &dyn Fn(i16, i16) -> i16| {
        let inputs = [("a", ints(I16, &[128], &a)), ("b", ints(I16, &[128], &b))];
        let found = through(&inputs, (I16, 128), |_, lane| {
            let operands: &[(&str, &str)] = if op == "vnot" {
                &[("dst", "y"), ("src", "a")]
            } else {
                &[("dst", "y"), ("src1", "a"), ("src2", "b")]
            };
            lane.emit(op, &names(operands, &[("repeat", 1.0)]));
        });
        for (at, raw) in found.chunks_exact(2).enumerate() {
            assert_eq!(i16::from_le_bytes([raw[0], raw[1]]), f(a[at] as i16, b[at] as i16), "{op} {at}");
        }
    };
    check("add", &i16::wrapping_add);
    check("mul", &i16::wrapping_mul);
    check("vand", &|a, b| a & b);
    check("vor", &|a, b| a | b);
    check("vnot", &|a, _| !a);
    check("vmax", &i16::max);
}

#[test]
fn masks_and_strides() {
    let a = noise(4, 256);
    // Every third lane of the first 48.
    let mask: u64 = (0..48).step_by(3).map(|lane| 1u64 << lane).sum();
    let found = through(&[("a", f32s(&[256], &a))], (F32, 256), |_, lane| {
        lane.emit("set_mask", &[("low", (mask as i64).into()), ("high", 0.into())]);
        lane.emit("exp", &names(&[("dst", "y"), ("src", "a")], &[("repeat", 4.0)]));
        lane.emit("reset_mask", &[]);
    });
    let expect: Vec<f32> =
        a.iter().enumerate().map(|(at, a)| if mask >> (at % 64) & 1 == 1 { a.exp() } else { 7.0 }).collect();
    close(&floats(&found), &expect, 3e-7);
    // Every other block of the source, two repeats that overlap in the source.
    let found = through(&[("a", f32s(&[256], &a))], (F32, 128), |_, lane| {
        let strides = [("repeat", 2.0), ("src_blk_stride", 2.0), ("src_rep_stride", 8.0), ("val", 0.0)];
        lane.emit("adds", &names(&[("dst", "y"), ("src", "a")], &strides));
    });
    let expect: Vec<f32> = (0..128).map(|at| a[at / 64 * 64 + at % 64 / 8 * 16 + at % 8]).collect();
    close(&floats(&found), &expect, 0.0);
    // Repeats add up in one destination.
    let found = through(&[("a", f32s(&[256], &a))], (F32, 64), |_, lane| {
        let strides = [("repeat", 4.0), ("dst_rep_stride", 0.0), ("src1_rep_stride", 0.0)];
        lane.emit("add", &names(&[("dst", "y"), ("src1", "y"), ("src2", "a")], &strides));
    });
    let expect: Vec<f32> = (0..64).map(|at| (0..4).fold(7.0, |sum, r| sum + a[r * 64 + at])).collect();
    close(&floats(&found), &expect, 1e-6);
}

#[test]
fn reductions() {
    let a = noise(5, 256);
    let check = |op: &str, group: usize, f: &dyn Fn(&[f32]) -> f32| {
        let found = through(&[("a", f32s(&[256], &a))], (F32, 256 / group as u64), |_, lane| {
            lane.emit(op, &names(&[("dst", "y"), ("src", "a")], &[("repeat", 4.0)]));
        });
        let expect: Vec<f32> = a.chunks(group).map(f).collect();
        close(&floats(&found), &expect, 1e-6);
    };
    let max = |x: &[f32]| x.iter().copied().fold(f32::MIN, f32::max);
    let min = |x: &[f32]| x.iter().copied().fold(f32::MAX, f32::min);
    let sum = |x: &[f32]| x.iter().sum();
    check("cmax", 64, &max);
    check("cmin", 64, &min);
    check("cadd", 64, &sum);
    check("cgmax", 8, &max);
    check("cgmin", 8, &min);
    check("cgadd", 8, &sum);
    check("cpadd", 2, &sum);
}

#[test]
fn comparisons_and_choices() {
    let (a, b) = (noise(6, 128), noise(7, 128));
    for (mode, f) in [
        ("LT", (|a, b| a < b) as fn(&f32, &f32) -> bool),
        ("LE", |a, b| a <= b),
        ("GT", |a, b| a > b),
        ("GE", |a, b| a >= b),
        ("EQ", |a, b| a == b),
        ("NE", |a, b| a != b),
    ] {
        let inputs = [("a", f32s(&[128], &a)), ("b", f32s(&[128], &b))];
        let bits = through(&inputs, (U8, 16), |_, lane| {
            lane.emit(
                "compare",
                &names(&[("dst", "y"), ("src1", "a"), ("src2", "b"), ("mode", mode)], &[("repeat", 2.0)]),
            );
        });
        let scalar = through(&inputs, (U8, 16), |_, lane| {
            lane.emit(
                "compare_scalar",
                &names(&[("dst", "y"), ("src", "a"), ("mode", mode)], &[("repeat", 2.0), ("val", 0.125)]),
            );
        });
        for at in 0..128 {
            assert_eq!(bits[at / 8] >> (at % 8) & 1 == 1, f(&a[at], &b[at]), "{mode} {at}");
            assert_eq!(scalar[at / 8] >> (at % 8) & 1 == 1, f(&a[at], &0.125), "{mode} {at}");
        }
        for scalar in [false, true] {
            let found = through(&inputs, (F32, 128), |kernel, lane| {
                kernel.local("bits", "ub", U8, &[1, 32]);
                lane.emit(
                    "compare",
                    &names(
                        &[("dst", "bits"), ("src1", "a"), ("src2", "b"), ("mode", mode)],
                        &[("repeat", 2.0)],
                    ),
                );
                let operands: &[(&str, &str)] = if scalar {
                    &[("dst", "y"), ("selmask", "bits"), ("src1", "a"), ("mode", "TENSOR_SCALAR")]
                } else {
                    &[("dst", "y"), ("selmask", "bits"), ("src1", "a"), ("src2", "b")]
                };
                lane.emit("select", &names(operands, &[("repeat", 2.0), ("val", 3.5)]));
            });
            let other = |at: usize| if scalar { 3.5 } else { b[at] };
            let expect: Vec<f32> =
                (0..128).map(|at| if f(&a[at], &b[at]) { a[at] } else { other(at) }).collect();
            close(&floats(&found), &expect, 0.0);
        }
    }
}

#[test]
fn casts() {
    let a: Vec<f32> =
        noise(8, 128).iter().map(|x| x * 20.0).chain([0.5, 1.5, 2.5, -0.5, -1.5, -2.5]).take(128).collect();
    for (mode, f) in [
        ("CAST_NONE", f32::trunc as fn(f32) -> f32),
        ("CAST_TRUNC", f32::trunc),
        ("CAST_FLOOR", f32::floor),
        ("CAST_CEIL", f32::ceil),
        ("CAST_RINT", f32::round_ties_even),
        ("CAST_ROUND", f32::round),
    ] {
        let found = through(&[("a", f32s(&[128], &a))], (I32, 128), |_, lane| {
            lane.emit("cast", &names(&[("dst", "y"), ("src", "a"), ("mode", mode)], &[("repeat", 2.0)]));
        });
        for (raw, a) in found.chunks_exact(4).zip(&a) {
            assert_eq!(i32::from_le_bytes(raw.try_into().unwrap()), f(*a) as i32, "{mode} {a}");
        }
    }
    // To a narrower type: 64 elements per repeat, four blocks of the destination.
    let found = through(&[("a", f32s(&[128], &a))], (F16, 128), |_, lane| {
        lane.emit("cast", &names(&[("dst", "y"), ("src", "a")], &[("repeat", 2.0), ("dst_rep_stride", 4.0)]));
    });
    for (raw, a) in found.chunks_exact(2).zip(&a) {
        assert_eq!(f16::from_le_bytes([raw[0], raw[1]]), f16::from_f32(*a));
    }
}

#[test]
fn moves_within_the_buffer() {
    let a = noise(9, 128);
    let found = through(&[("a", f32s(&[128], &a))], (F32, 128), |_, lane| {
        lane.emit("brcb", &names(&[("dst", "y"), ("src", "a")], &[("repeat", 2.0)]));
    });
    close(&floats(&found), &(0..128).map(|at| a[at / 8]).collect::<Vec<_>>(), 0.0);
    let found = through(&[("a", f32s(&[128], &a))], (F32, 64), |_, lane| {
        let numbers = [("n_burst", 4.0), ("burst_len", 1.0), ("src_stride", 2.0), ("dst_stride", 1.0)];
        lane.emit("ub_to_ub", &names(&[("dst", "y"), ("src", "a")], &numbers));
    });
    let expect: Vec<f32> =
        (0..64).map(|at| if at / 8 % 2 == 0 { a[at / 16 * 24 + at % 8] } else { 7.0 }).collect();
    close(&floats(&found), &expect, 0.0);
    let order: Vec<i64> = (0..64).map(|at| (at * 37 % 64) * 4).collect();
    let inputs = [("a", f32s(&[128], &a)), ("o", ints(U32, &[64], &order))];
    let found = through(&inputs, (F32, 64), |_, lane| {
        lane.emit("gather", &names(&[("dst", "y"), ("src", "a"), ("offset", "o")], &[("start_idx", 8.0)]));
    });
    close(&floats(&found), &order.iter().map(|o| a[*o as usize / 4 + 2]).collect::<Vec<_>>(), 0.0);
    let found = through(&inputs, (F32, 64), |_, lane| {
        lane.emit("scatter", &names(&[("dst", "y"), ("src", "a"), ("offset", "o")], &[]));
    });
    let mut expect = vec![7.0; 64];
    order.iter().enumerate().for_each(|(at, o)| expect[*o as usize / 4] = a[at]);
    close(&floats(&found), &expect, 0.0);
}

/// Runs a micro program over one register of `a` and one of `b`; the result is in `r`.
fn micro(a: &[f32], b: &[f32], body: impl Fn(&mut Lane)) -> Vec<f32> {
    let inputs = [("a", f32s(&[64], a)), ("b", f32s(&[64], b))];
    let found = through(&inputs, (F32, 64), |kernel, lane| {
        kernel.micro("m", &["a", "b", "y"], |lane| {
            for name in ["ra", "rb", "r", "s"] {
                lane.emit("create_reg", &names(&[("name", name), ("dtype", "f32")], &[]));
            }
            lane.emit("create_reg", &names(&[("name", "i"), ("dtype", "i32")], &[]));
            for (name, mode) in [("all", "ALL"), ("half", "H"), ("third", "M3")] {
                lane.emit("create_maskreg", &names(&[("name", name), ("init", mode), ("dtype", "f32")], &[]));
            }
            lane.emit("ub2reg", &names(&[("dst", "ra"), ("src", "a")], &[]));
            lane.emit("ub2regcont", &names(&[("dst", "rb"), ("src", "b")], &[]));
            body(lane);
            lane.emit("reg2ub", &names(&[("dst", "y"), ("src", "r"), ("mask", "all")], &[]));
        });
        let bound: Vec<Argument> = vec!["a".into(), "b".into(), "y".into()];
        lane.emit("call_micro", &[("name", "m".into()), ("call_bindings", bound.into())]);
    });
    floats(&found)
}

#[test]
fn micro_arithmetic() {
    let (a, b) = (positive(&noise(10, 64)), noise(11, 64));
    let check = |op: &str, operands: &[(&str, &str)], val: Option<f64>, f: &dyn Fn(f32, f32) -> f32| {
        for mask in ["all", "half", "third"] {
            let operands: Vec<(&str, &str)> = operands.iter().copied().chain([("mask", mask)]).collect();
            let numbers: Vec<(&str, f64)> = val.map(|val| ("val", val)).into_iter().collect();
            let found = micro(&a, &b, |lane| {
                lane.emit("vdup", &names(&[("dst", "r")], &[("val", 5.0)]));
                lane.emit(op, &names(&operands, &numbers));
            });
            let active = |at: usize| match mask {
                "all" => true,
                "half" => at < 32,
                _ => at.is_multiple_of(3),
            };
            let expect: Vec<f32> = (0..64).map(|at| if active(at) { f(a[at], b[at]) } else { 0.0 }).collect();
            close(&found, &expect, 5e-7);
        }
    };
    let two = [("dst", "r"), ("src1", "ra"), ("src2", "rb")];
    check("vadd", &two, None, &|a, b| a + b);
    check("vsub", &two, None, &|a, b| a - b);
    check("vmul", &two, None, &|a, b| a * b);
    check("vdiv", &two, None, &|a, b| a / b);
    check("vmax", &two, None, &f32::max);
    check("vmin", &two, None, &f32::min);
    check("vprelu", &[("dst", "r"), ("src1", "rb"), ("src2", "ra")], None, &|a, b| {
        if b > 0.0 { b } else { a * b }
    });
    check("vand", &two, None, &|a, b| f32::from_bits(a.to_bits() & b.to_bits()));
    check("vor", &[("dst", "r"), ("src1", "ra"), ("src2", "ra")], None, &|a, _| a);
    check("vxor", &[("dst", "r"), ("src1", "ra"), ("src2", "ra")], None, &|_, _| 0.0);
    let one = [("dst", "r"), ("src", "ra")];
    check("vexp", &one, None, &|a, _| a.exp());
    check("vsqrt", &one, None, &|a, _| a.sqrt());
    check("vln", &one, None, &|a, _| a.ln());
    check("vlog", &one, None, &|a, _| a.ln());
    check("vlog2", &one, None, &|a, _| a.log2());
    check("vlog10", &one, None, &|a, _| a.log10());
    check("vcopy", &one, None, &|a, _| a);
    check("vneg", &one, None, &|a, _| -a);
    let other = [("dst", "r"), ("src", "rb")];
    check("vabs", &other, None, &|_, b| b.abs());
    check("vrelu", &other, None, &|_, b| b.max(0.0));
    check("vadds", &other, Some(1.5), &|_, b| b + 1.5);
    check("vmuls", &other, Some(1.5), &|_, b| b * 1.5);
    check("vmaxs", &other, Some(0.25), &|_, b| b.max(0.25));
    check("vmins", &other, Some(0.25), &|_, b| b.min(0.25));
    check("vlrelu", &other, Some(0.25), &|_, b| if b > 0.0 { b } else { b * 0.25 });
    check("vaxpy", &other, Some(1.5), &|_, b| 5.0 + 1.5 * b);
    check("vdup", &[("dst", "r")], Some(2.5), &|_, _| 2.5);
}

#[test]
fn micro_reductions_and_rearrangements() {
    let (a, b) = (noise(12, 64), noise(13, 64));
    let check = |expect: &dyn Fn(usize) -> f32, body: &dyn Fn(&mut Lane)| {
        close(&micro(&a, &b, body), &(0..64).map(expect).collect::<Vec<_>>(), 1e-6);
    };
    let on = |op: &'static str, operands: &'static [(&'static str, &'static str)]| {
        move |lane: &mut Lane| {
            lane.emit(op, &names(operands, &[]));
        }
    };
    const ONE: &[(&str, &str)] = &[("dst", "r"), ("src", "ra")];
    let first = |value: f32| move |at: usize| if at == 0 { value } else { 0.0 };
    check(&first(a.iter().sum()), &on("vcadd", ONE));
    check(&first(a.iter().copied().fold(f32::MIN, f32::max)), &on("vcmax", ONE));
    check(&first(a.iter().copied().fold(f32::MAX, f32::min)), &on("vcmin", ONE));
    check(&first(a[..32].iter().sum()), &on("vcadd", &[("dst", "r"), ("src", "ra"), ("mask", "half")]));
    let block = |at: usize| a.chunks(8).nth(at).unwrap_or(&[]);
    check(&|at| block(at).iter().sum(), &on("vcgadd", ONE));
    check(
        &|at| if at < 8 { block(at).iter().copied().fold(f32::MIN, f32::max) } else { 0.0 },
        &on("vcgmax", ONE),
    );
    check(
        &|at| if at < 8 { block(at).iter().copied().fold(f32::MAX, f32::min) } else { 0.0 },
        &on("vcgmin", ONE),
    );
    check(&|at| if at < 32 { a[2 * at] + a[2 * at + 1] } else { 0.0 }, &on("vcpadd", ONE));
    check(&|_| a[0], &on("vduplane", ONE));
    check(
        &|at| if at < 22 { a[at * 3] } else { 0.0 },
        &on("gathermask", &[("dst", "r"), ("src", "ra"), ("mask", "third")]),
    );
    const FOUR: &[(&str, &str)] = &[("dst1", "r"), ("dst2", "s"), ("src1", "ra"), ("src2", "rb")];
    check(&|at| if at % 2 == 0 { a[at / 2] } else { b[at / 2] }, &on("interleave", FOUR));
    check(&|at| if at < 32 { a[2 * at] } else { b[2 * at - 64] }, &on("dinterleave", FOUR));
    const SWAPPED: &[(&str, &str)] = &[("dst1", "s"), ("dst2", "r"), ("src1", "ra"), ("src2", "rb")];
    check(&|at| if at % 2 == 0 { a[32 + at / 2] } else { b[32 + at / 2] }, &on("interleave", SWAPPED));
    check(&|at| if at < 32 { a[2 * at + 1] } else { b[2 * at - 63] }, &on("dinterleave", SWAPPED));
    check(&|at| a[63 - at], &|lane| {
        lane.emit("arange", &names(&[("dst", "i"), ("mode", "DECREASE")], &[("start", 63.0)]));
        lane.emit("gather", &names(&[("dst", "r"), ("src", "ra"), ("index", "i")], &[]));
    });
    check(&|at| a[at], &|lane| {
        lane.emit("arange", &names(&[("dst", "i")], &[("start", 0.0)]));
        lane.emit("datacopygather", &names(&[("dst", "r"), ("src", "a"), ("index", "i")], &[]));
    });
    check(&|at| at as f32 - 5.0, &|lane| {
        lane.emit("arange", &names(&[("dst", "r")], &[("start", -5.0)]));
    });
}

#[test]
fn micro_masks() {
    let (a, b) = (noise(14, 64), noise(15, 64));
    // `m` picks `ra` or `rb`.
    let check = |active: &dyn Fn(usize) -> bool, body: &dyn Fn(&mut Lane)| {
        let found = micro(&a, &b, |lane| {
            body(lane);
            lane.emit("select", &names(&[("dst", "r"), ("src1", "ra"), ("src2", "rb"), ("mask", "m")], &[]));
        });
        close(&found, &(0..64).map(|at| if active(at) { a[at] } else { b[at] }).collect::<Vec<_>>(), 0.0);
    };
    let on = |op: &'static str, operands: &'static [(&'static str, &'static str)]| {
        move |lane: &mut Lane| {
            lane.emit(op, &names(operands, &[]));
        }
    };
    const TWO: &[(&str, &str)] = &[("dst", "m"), ("src1", "half"), ("src2", "third")];
    check(&|at| at < 32 && at % 3 == 0, &on("maskand", TWO));
    check(&|at| at < 32 || at % 3 == 0, &on("maskor", TWO));
    check(&|at| (at < 32) != (at % 3 == 0), &on("maskxor", TWO));
    check(&|at| at >= 32, &on("masknot", &[("dst", "m"), ("src", "half")]));
    check(&|at| at % 3 == 0, &on("maskmov", &[("dst", "m"), ("src", "third")]));
    check(
        &|at| if at < 32 { at % 3 == 0 } else { true },
        &on("masksel", &[("dst", "m"), ("src1", "third"), ("src2", "all"), ("mask", "half")]),
    );
    check(&|at| at < 16, &on("maskpack", &[("dst", "m"), ("src", "half")]));
    check(&|at| at % 2 == 0, &on("maskunpack", &[("dst", "m"), ("src", "half")]));
    check(
        &|at| if at % 2 == 0 { at / 2 < 32 } else { at / 2 % 3 == 0 },
        &on("maskinterl", &[("dst1", "m"), ("dst2", "n"), ("src1", "half"), ("src2", "third")]),
    );
    check(
        &|at| at < 16,
        &on("maskdeinterl", &[("dst1", "m"), ("dst2", "n"), ("src1", "half"), ("src2", "third")]),
    );
    check(
        &|at| a[at] < b[at],
        &on("compare", &[("dst", "m"), ("src1", "ra"), ("src2", "rb"), ("mode", "LT")]),
    );
    check(&|at| a[at] >= 0.25, &|lane| {
        lane.emit("compares", &names(&[("dst", "m"), ("src", "ra"), ("mode", "GE")], &[("val", 0.25)]));
    });
    check(&|at| at < 36, &|lane| {
        lane.var("left", 100);
        lane.emit("updatemask", &names(&[("dst", "m"), ("cnt", "left")], &[]));
        lane.emit("updatemask", &names(&[("dst", "m"), ("cnt", "left")], &[]));
    });
    check(&|_| true, &on("movemaskspr", &[("dst", "m")]));
}

#[test]
fn micro_moves_and_casts() {
    let (a, b) = (noise(16, 64), noise(17, 64));
    let load = |mode: &'static str| {
        micro(&a, &b, move |lane| {
            lane.emit(
                "ub2regcont",
                &names(&[("dst", "r"), ("src", "a"), ("mode", mode)], &[("offset", 8.0)]),
            );
        })
    };
    close(&load("DIST_BRC_B32"), &[a[8]; 64], 0.0);
    close(&load("DIST_E2B_B32"), &(0..64).map(|at| a[8 + at / 8]).collect::<Vec<_>>(), 0.0);
    // f32 to f16 in the odd lanes and back.
    let found = micro(&a, &b, |lane| {
        lane.emit("create_reg", &names(&[("name", "h"), ("dtype", "f16")], &[]));
        lane.emit("cast", &names(&[("dst", "h"), ("src", "ra"), ("reg_layout", "ONE")], &[]));
        lane.emit("cast", &names(&[("dst", "r"), ("src", "h"), ("reg_layout", "ONE")], &[]));
    });
    close(&found, &a.iter().map(|a| f16::from_f32(*a).to_f32()).collect::<Vec<_>>(), 0.0);
    // Halves packed into memory, unpacked by a load, shifted into place.
    let found = micro(&a, &b, |lane| {
        for (name, dtype) in [("h", "f16"), ("w", "u32")] {
            lane.emit("create_reg", &names(&[("name", name), ("dtype", dtype)], &[]));
        }
        lane.emit("cast", &names(&[("dst", "h"), ("src", "ra")], &[]));
        lane.emit("reg2ubcont", &names(&[("dst", "y"), ("src", "h"), ("mode", "DIST_PACK_B32")], &[]));
        lane.emit("ub2regcont", &names(&[("dst", "h"), ("src", "y"), ("mode", "DIST_UNPACK_B16")], &[]));
        lane.emit("cast", &names(&[("dst", "r"), ("src", "h")], &[]));
        lane.emit("arange", &names(&[("dst", "w")], &[("start", 1.0)]));
        lane.emit("shiftls", &names(&[("dst", "w"), ("src", "w")], &[("val", 3.0)]));
        lane.emit("shiftrs", &names(&[("dst", "w"), ("src", "w")], &[("val", 1.0)]));
        lane.emit("vnot", &names(&[("dst", "w"), ("src", "w")], &[]));
    });
    close(&found, &a.iter().map(|a| f16::from_f32(*a).to_f32()).collect::<Vec<_>>(), 0.0);
    // One element, then a scatter in reverse order.
    let found = micro(&a, &b, |lane| {
        lane.emit("arange", &names(&[("dst", "i"), ("mode", "DECREASE")], &[("start", 63.0)]));
        lane.emit("datacopyscatter", &names(&[("dst", "y"), ("src", "ra"), ("index", "i")], &[]));
        lane.emit(
            "reg2ubcont",
            &names(&[("dst", "y"), ("src", "rb"), ("mode", "DIST_FIRST_ELEMENT_B32")], &[]),
        );
        lane.emit("ub2regcont", &names(&[("dst", "r"), ("src", "y")], &[]));
    });
    let mut expect: Vec<f32> = a.iter().rev().copied().collect();
    expect[0] = b[0];
    close(&found, &expect, 0.0);
}

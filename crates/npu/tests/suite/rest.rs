//! The instructions that no kernel and no other test uses, each against plain arithmetic, and a test that none is left.

use std::collections::BTreeSet;

use trompe_npu::builder::{Kernel, Lane};
use trompe_npu::kernels::{Matmul, matmul};
use trompe_npu::{Argument, ElementType, LaneName, Options, Pipe, Program, Role};

use crate::support::*;

use ElementType::{F32, I32};

/// Fills `a`, lets `body` work, stores `b`; both are 64 floats.
fn floats(body: impl Fn(&mut Kernel, &mut Lane)) -> Vec<f32> {
    let mut kernel = Kernel::new("rest", 1);
    let y = kernel.global("y", F32, &[64], Role::Output);
    kernel.local("a", "ub", F32, &[1, 64]);
    kernel.local("b", "ub", F32, &[1, 64]);
    let mut lane = Lane::default();
    dup(&mut lane, "a", 5.0);
    dup(&mut lane, "b", 7.0);
    body(&mut kernel, &mut lane);
    store(&mut lane, &y, "b", 256);
    kernel.lane(LaneName::Vec0, |to| *to = lane);
    output(&simulate(&kernel.build(), &[], &Options::default()).unwrap(), "y")
}

fn dup(lane: &mut Lane, dst: &str, value: f64) {
    lane.emit("dup", &[("dst", dst.into()), ("src", value.into()), ("repeat", 1.into())]);
}

fn store(lane: &mut Lane, dst: impl Into<Argument>, src: &str, bytes: i64) {
    lane.emit(
        "ub_to_gm_pad",
        &[("dst", dst.into()), ("src", src.into()), ("n_burst", 1.into()), ("burst_len_byte", bytes.into())],
    );
}

/// What two stores of 2 and 5 make of 3.
fn stored_atomically(kind: &str) -> f32 {
    let mut kernel = Kernel::new("atomic", 1);
    let y = kernel.global("y", F32, &[64], Role::Inout);
    kernel.local("a", "ub", F32, &[1, 64]);
    kernel.lane(LaneName::Vec0, |lane| {
        lane.emit(kind, &[]);
        for value in [2.0, 5.0] {
            dup(lane, "a", value);
            store(lane, &y, "a", 256);
        }
        lane.emit("atomic_end", &[]);
    });
    let given = [("y", f32s(&[64], &[3.0; 64]))];
    output(&simulate(&kernel.build(), &given, &Options::default()).unwrap(), "y")[63]
}

#[test]
fn atomic_stores() {
    assert_eq!(["atomic_add", "atomic_max", "atomic_min"].map(stored_atomically), [10.0, 5.0, 2.0]);
}

/// In floats the sum would lose the ones.
#[test]
fn atomic_stores_compute_in_the_type_that_is_set() {
    let mut kernel = Kernel::new("atomic", 1);
    let (x, y) = (kernel.global("x", I32, &[64], Role::Input), kernel.global("y", I32, &[64], Role::Inout));
    kernel.local("a", "ub", I32, &[1, 64]);
    kernel.lane(LaneName::Vec0, |lane| {
        let one = [("n_burst", Argument::Int(1)), ("burst_len_byte", 256.into())];
        lane.emit("gm_to_ub_pad", &[&[("dst", "a".into()), ("src", (&x).into())], &one[..]].concat());
        lane.emit("set_atomic_type", &[("dtype", "i32".into())]);
        lane.emit("atomic_add", &[]);
        store(lane, &y, "a", 256);
    });
    let odd = ints(I32, &[64], &[(1 << 24) + 1; 64]);
    let outcome = simulate(&kernel.build(), &[("x", odd.clone()), ("y", odd)], &Options::default()).unwrap();
    let raw: [u8; 4] = outcome.outputs[0].content.bytes[..4].try_into().unwrap();
    assert_eq!(i32::from_le_bytes(raw), (1 << 25) + 2);
}

#[test]
fn copies_and_fills_of_any_pipe() {
    let found = floats(|_, lane| {
        lane.emit_on(Some(Pipe::V), "fill_shared", &[("dst", "a".into()), ("val", 2.5.into())]);
        lane.emit_on(Some(Pipe::V), "copy_shared", &[("dst", "b".into()), ("src", "a".into())]);
    });
    assert_eq!(found, [2.5; 64]);
}

#[test]
fn counter_mode_takes_its_count_from_the_mask() {
    for op in ["set_mask_count", "set_mask_counter"] {
        let found = floats(|_, lane| {
            lane.emit("set_mask", &[("low", 21.into()), ("high", 0.into())]);
            lane.emit(op, &[]);
            dup(lane, "b", 1.0);
            lane.emit("set_mask_normal", &[]);
            lane.emit("reset_mask", &[]);
        });
        let expect: Vec<f32> = (0..64).map(|at| if at < 21 { 1.0 } else { 7.0 }).collect();
        assert_eq!(found, expect, "{op}");
    }
}

/// Marks and what is for devices change no result and take no cycle.
#[test]
fn marks_have_no_effect() {
    let marks = [
        "enter_vec_scope",
        "end_vec_scope",
        "enter_cube_scope",
        "end_cube_scope",
        "kernel_print",
        "kernel_dump_tensor",
        "inline",
        "reset_cache",
        "clean_dcache",
        "create_gm_tensor",
        "create_tensor",
        "create_dbuf",
        "create_tbuf",
        "create_qbuf",
        "reinterpret",
        "reshape_gm_tensor",
        "split_workspace",
    ];
    let program = |marked: bool| {
        let mut kernel = Kernel::new("marks", 1);
        kernel.global("y", F32, &[64], Role::Output);
        kernel.local("a", "ub", F32, &[1, 64]);
        kernel.lane(LaneName::Vec0, |lane| {
            dup(lane, "a", 5.0);
            for mark in marks.iter().filter(|_| marked) {
                lane.emit(mark, &[]);
            }
            store(lane, "y", "a", 256);
        });
        kernel.build()
    };
    let [with, without] =
        [true, false].map(|marked| simulate(&program(marked), &[], &Options::default()).unwrap());
    assert_eq!((with.makespan, &with.outputs), (without.makespan, &without.outputs));
}

/// Four registers of a list, filled and added up in micro loops.
#[test]
fn lists_of_registers_and_micro_loops() {
    let found = floats(|kernel, lane| {
        kernel.micro("sum", &["a", "b"], |lane| {
            let list = [("name", "r".into()), ("dtype", "f32".into()), ("length", 4.into())];
            lane.emit("create_reglist", &list);
            lane.emit("create_reg", &[("name", "total".into()), ("dtype", "f32".into())]);
            let all = [("name", "all".into()), ("init", "ALL".into()), ("dtype", "f32".into())];
            lane.emit("create_maskreg", &all);
            lane.emit("vdup", &[("dst", "total".into()), ("val", 0.0.into()), ("mask", "all".into())]);
            let turns = |name: &str| [("var_name", name.into()), ("start", 0.into()), ("stop", 4.into())];
            lane.emit("start_micro_loop", &turns("i"));
            lane.emit("ub2reg", &[("dst", "r[i]".into()), ("src", "a".into())]);
            lane.emit("end_loop", &[]);
            lane.emit("start_loop", &turns("j"));
            let sum = [("dst", "total"), ("src1", "total"), ("src2", "r[j]"), ("mask", "all")];
            lane.emit("vadd", &sum.map(|(name, value)| (name, value.into())));
            lane.emit("end_loop", &[]);
            let out = [("dst", "b"), ("src", "total"), ("mask", "all")];
            lane.emit("reg2ub", &out.map(|(name, value)| (name, value.into())));
        });
        let bound: Vec<Argument> = vec!["a".into(), "b".into()];
        lane.emit("call_micro", &[("name", "sum".into()), ("call_bindings", bound.into())]);
    });
    assert_eq!(found, [20.0; 64]);
}

/// The accumulator to the unified buffers: all of it to one of them, or its upper and lower or left and right halves.
#[test]
fn the_accumulator_is_shared_out_among_the_vector_lanes() {
    let check = |mode: &str, sub_block: i64, expect: &dyn Fn(usize, usize, usize) -> Option<usize>| {
        let mut kernel = Kernel::new("split", 1);
        let half = mode != "SINGLE";
        let (rows, cols) = match mode {
            "SPLITM" => (16, 32),
            "SPLITN" => (32, 16),
            _ => (32, 32),
        };
        kernel.global("x", ElementType::F16, &[32, 32], Role::Input);
        kernel.global("one", ElementType::F16, &[32, 32], Role::Input);
        let y = kernel.global("y", F32, &[2, rows * cols], Role::Output);
        for (name, space) in [("lx", "l1"), ("lo", "l1"), ("a", "l0a"), ("b", "l0b")] {
            kernel.local(name, space, ElementType::F16, &[32, 32]);
        }
        kernel.local("c", "l0c", F32, &[32, 32]);
        kernel.local("part", "ub", F32, &[rows, cols]);
        kernel.cube(|lane| {
            let with = |names: [(&'static str, &str); 2], numbers: &[(&'static str, i64)]| {
                let names = names.map(|(name, value)| (name, Argument::from(value)));
                let numbers = numbers.iter().map(|(name, value)| (*name, Argument::Int(*value)));
                names.into_iter().chain(numbers).collect::<Vec<_>>()
            };
            for (dst, src, operand) in [("lx", "x", "a"), ("lo", "one", "b")] {
                let size = [("M", 32), ("N", 32), ("N_src", 32)];
                lane.emit("gm_to_l1_nd2nz", &with([("dst", dst), ("src", src)], &size));
                let size = [("m_dst", 32), ("n_dst", 32), ("m_src", 32), ("n_src", 32)];
                lane.emit("l1_to_l0", &with([("dst", operand), ("src", dst)], &size));
            }
            let size = [("M", 32), ("N", 32), ("K", 32)];
            let mut product = with([("dst", "c"), ("src_a", "a")], &size);
            product.push(("src_b", "b".into()));
            lane.emit("mmad", &product);
            let mut out =
                with([("dst", "part"), ("src", "c")], &[("M", 32), ("N", 32), ("N_dst", cols as i64)]);
            out.extend([("dual_mode", mode.into()), ("sub_block_id", sub_block.into())]);
            lane.emit("l0c_to_ub", &out);
            lane.emit("cube_ready", &[("flag", 0.into())]);
        });
        kernel.vector(|lane| {
            let sub = lane.ask("GetSubBlockIdx");
            lane.emit("wait_cube", &[("flag", 0.into())]);
            let to = lane.rows(&y, &sub, 1, [2, (rows * cols) as i64]);
            if half {
                store(lane, &to, "part", (rows * cols * 4) as i64);
            } else {
                let mine = format!("{} == {sub_block}", sub.name());
                lane.when(&mine, |lane| store(lane, &to, "part", 4096));
            }
        });
        let (input, values) = f16s(&[32, 32], &noise(1, 1024));
        let identity: Vec<f32> = (0..1024).map(|at| f32::from(u8::from(at % 33 == 0))).collect();
        let inputs = [("x", input), ("one", f16s(&[32, 32], &identity).0)];
        let outcome = simulate(&kernel.build(), &inputs, &Options::default()).unwrap();
        let found = output(&outcome, "y");
        let size = (rows * cols) as usize;
        for lane in 0..2 {
            for at in 0..size {
                let (row, column) = (at / cols as usize, at % cols as usize);
                let wanted = expect(lane, row, column).map_or(0.0, |at| values[at]);
                assert_eq!(found[lane * size + at], wanted, "{mode}, lane {lane}, {row} {column}");
            }
        }
    };
    check("SINGLE", 0, &|lane, row, column| (lane == 0).then_some(row * 32 + column));
    check("SINGLE", 1, &|lane, row, column| (lane == 1).then_some(row * 32 + column));
    check("SPLITM", 0, &|lane, row, column| Some((lane * 16 + row) * 32 + column));
    check("SPLITN", 0, &|lane, row, column| Some(row * 32 + lane * 16 + column));
}

#[test]
fn products_of_every_integer_type() {
    for (dtype, low, high) in
        [(ElementType::U8, 0, 255), (ElementType::I8, -128, 127), (ElementType::I16, -3000, 3000)]
    {
        let shape = Matmul { m: 32, n: 32, k: 64, tile: [32, 32, 32], split_k: 1, cores: 1, dtype, slots: 2 };
        let values = |seed| -> Vec<i64> {
            let unit = noise(seed, 2048);
            unit.iter().map(|x| low + ((x + 1.0) / 2.0 * (high - low) as f32) as i64).collect()
        };
        let (a, b) = (values(1), values(2));
        let inputs = [("a", ints(dtype, &[32, 64], &a)), ("b", ints(dtype, &[32, 64], &b))];
        let outcome = simulate(&matmul(&shape), &inputs, &Options::default()).unwrap();
        let found: Vec<i64> = outcome.outputs[0]
            .content
            .bytes
            .chunks_exact(4)
            .map(|raw| i64::from(i32::from_le_bytes(raw.try_into().unwrap())))
            .collect();
        for (at, found) in found.into_iter().enumerate() {
            let (row, column) = (at / 32, at % 32);
            let expect: i64 = (0..64).map(|k| a[row * 64 + k] * b[column * 64 + k]).sum();
            assert_eq!(found, expect, "{} {row} {column}", dtype.name());
        }
    }
}

/// Every instruction of the published table is named by a test, an example or a kernel that a test runs; those that the
/// builder writes for its methods are counted in its own source.
#[test]
fn no_instruction_is_left_untested() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    for folder in [
        "tests/suite",
        "src/kernels",
        "../../tests/npu",
        "../../examples/npu",
        "src/builder.rs",
        "src/builder",
    ] {
        let path = root.join(folder);
        let mut files: Vec<_> = if path.is_file() {
            vec![path]
        } else {
            std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
        };
        files.sort();
        for file in files.into_iter().filter(|file| file.is_file()) {
            text += &std::fs::read_to_string(file).unwrap();
        }
    }
    let table: serde_json::Value = serde_json::from_str(&trompe_npu::python_table()).unwrap();
    let names: BTreeSet<&str> = ["lane", "micro"]
        .iter()
        .flat_map(|part| table[part].as_object().unwrap().keys().map(String::as_str))
        .collect();
    assert!(names.len() > 190, "{}", names.len());
    // `Align8` and its like are made of their numbers.
    let named = |name: &str| {
        let name = if name.starts_with("Align") { "Align{to}" } else { name };
        [format!("\"{name}\""), format!(".{name}(")].iter().any(|text_of| text.contains(text_of))
    };
    let left: Vec<&str> = names.into_iter().filter(|name| !named(name)).collect();
    assert!(left.is_empty(), "no test names {left:?}");
}

/// The builder's program is what its JSON says.
#[test]
fn a_program_is_its_json() {
    let program = matmul(&Matmul {
        m: 32,
        n: 32,
        k: 32,
        tile: [32; 3],
        split_k: 1,
        cores: 1,
        dtype: ElementType::F16,
        slots: 1,
    });
    assert_eq!(Program::from_json(&program.to_json()).unwrap(), program);
}

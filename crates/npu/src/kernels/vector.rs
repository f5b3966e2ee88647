//! Vector lanes alone.

use crate::builder::Kernel;
use crate::element::ElementType::{F32, U32};
use crate::program::{Program, Role};

/// `z = x + y` over `n` floats in tiles of `tile`, with a tail, on every vector lane of `cores` cores.
#[must_use]
pub fn vector_add(n: u64, tile: u64, cores: u32) -> Program {
    let mut kernel = Kernel::new("vector_add", cores);
    let [x, y] = ["x", "y"].map(|name| kernel.global(name, F32, &[n], Role::Input));
    let z = kernel.global("z", F32, &[n], Role::Output);
    let buffers = ["a", "b", "c"].map(|name| kernel.buffer(name, ("ub", 2), F32, &[1, tile]));
    let (n, tile) = (n as i64, tile as i64);
    kernel.vector(|lane| {
        let (index, lanes) = (lane.ask("GetVecIdx"), lane.ask("GetVecNum"));
        let (first, step) = (lane.calc("var_mul", &index, tile), lane.calc("var_mul", &lanes, tile));
        let turn = lane.var("turn", 0);
        lane.auto_sync(|lane| {
            lane.range(&first, n, &step, |lane, i| {
                let left = lane.calc("var_sub", n, &i);
                let count = lane.calc("Min", &left, tile);
                let bytes = lane.calc("var_mul", &count, 4);
                let [a, b, c] = [0, 1, 2].map(|at| lane.slot(&buffers[at], &turn));
                let [from_x, from_y, to_z] = [&x, &y, &z].map(|tensor| lane.span(tensor, &i, &count, n));
                for (slot, view) in [(&a, &from_x), (&b, &from_y)] {
                    lane.emit(
                        "gm_to_ub_pad",
                        &[
                            ("dst", slot.into()),
                            ("src", view.into()),
                            ("n_burst", 1.into()),
                            ("burst_len_byte", (&bytes).into()),
                        ],
                    );
                }
                lane.emit("set_mask_by_count", &[("count", (&count).into())]);
                lane.emit(
                    "add",
                    &[
                        ("dst", (&c).into()),
                        ("src1", (&a).into()),
                        ("src2", (&b).into()),
                        ("repeat", 1.into()),
                    ],
                );
                lane.emit(
                    "ub_to_gm_pad",
                    &[
                        ("dst", (&to_z).into()),
                        ("src", (&c).into()),
                        ("n_burst", 1.into()),
                        ("burst_len_byte", (&bytes).into()),
                    ],
                );
                lane.emit("var_add", &[("out", "turn".into()), ("a", "turn".into()), ("b", 1.into())]);
            });
        });
    });
    kernel.build()
}

/// The values of 128 floats in descending order, as pairs of value and index; on one vector lane.
#[must_use]
pub fn top_k() -> Program {
    let mut kernel = Kernel::new("top_k", 1);
    let x = kernel.global("x", F32, &[128], Role::Input);
    let index = kernel.global("index", U32, &[128], Role::Input);
    let out = kernel.global("sorted", U32, &[256], Role::Output);
    let values = kernel.local("values", "ub", F32, &[1, 128]);
    let numbers = kernel.local("numbers", "ub", U32, &[1, 128]);
    let runs = kernel.local("runs", "ub", F32, &[1, 256]);
    let merged = kernel.local("merged", "ub", F32, &[1, 256]);
    // The pairs as words, to be stored.
    let words = kernel.local("words", "ub", U32, &[1, 256]);
    let tensor = kernel.last_tensor();
    tensor.view_of = Some("merged".to_owned());
    kernel.lane(crate::program::LaneName::Vec0, |lane| {
        for (to, from) in [(&values, &x), (&numbers, &index)] {
            lane.emit(
                "gm_to_ub_pad",
                &[
                    ("dst", to.into()),
                    ("src", from.into()),
                    ("n_burst", 1.into()),
                    ("burst_len_byte", 512.into()),
                ],
            );
        }
        lane.emit(
            "sort32",
            &[
                ("dst", (&runs).into()),
                ("src", (&values).into()),
                ("idx", (&numbers).into()),
                ("repeat", 4.into()),
            ],
        );
        lane.emit(
            "mergesort4",
            &[
                ("dst", (&merged).into()),
                ("src", (&runs).into()),
                ("length_per_seq", 32.into()),
                ("repeat", 1.into()),
            ],
        );
        lane.emit(
            "ub_to_gm_pad",
            &[
                ("dst", (&out).into()),
                ("src", (&words).into()),
                ("n_burst", 1.into()),
                ("burst_len_byte", 1024.into()),
            ],
        );
    });
    kernel.build()
}

/// Every vector lane adds its own 64 floats to `total` atomically; after a collective all of them read the sum back.
///
/// Lane 0 first works `delay` instructions longer than the others.
#[must_use]
pub fn all_reduce(cores: u32, delay: i64) -> Program {
    let lanes = u64::from(cores) * 2;
    let mut kernel = Kernel::new("all_reduce", cores);
    let x = kernel.global("x", F32, &[lanes, 64], Role::Input);
    let total = kernel.global("total", F32, &[64], Role::Output);
    let copies = kernel.global("copies", F32, &[lanes, 64], Role::Output);
    let own = kernel.local("own", "ub", F32, &[1, 64]);
    let sum = kernel.local("sum", "ub", F32, &[1, 64]);
    let lanes = lanes as i64;
    kernel.vector(|lane| {
        let index = lane.ask("GetVecIdx");
        let (from, to) = (lane.rows(&x, &index, 1, [lanes, 64]), lane.rows(&copies, &index, 1, [lanes, 64]));
        let moved = |op: &str,
                     dst: crate::program::Argument,
                     src: crate::program::Argument,
                     lane: &mut crate::builder::Lane| {
            lane.emit(
                op,
                &[("dst", dst), ("src", src), ("n_burst", 1.into()), ("burst_len_byte", 256.into())],
            );
        };
        moved("gm_to_ub_pad", (&own).into(), (&from).into(), lane);
        lane.when(&format!("{} == 0", index.name()), |lane| {
            lane.range(0, delay, 1, |lane, _| {
                lane.emit("noop", &[]);
            });
        });
        lane.emit("atomic_add", &[]);
        moved("ub_to_gm_pad", (&total).into(), (&own).into(), lane);
        lane.emit("atomic_end", &[]);
        lane.emit("allvec_ready", &[("flag", 0.into())]);
        lane.emit("allvec_wait", &[("flag", 0.into())]);
        moved("gm_to_ub_pad", (&sum).into(), (&total).into(), lane);
        moved("ub_to_gm_pad", (&to).into(), (&sum).into(), lane);
    });
    kernel.build()
}

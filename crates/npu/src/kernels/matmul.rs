//! Matrix products on the cube lanes.

use crate::builder::Kernel;
use crate::element::ElementType;
use crate::program::{Program, Role};

/// A product `C[m, n] = A[m, k] B[n, k]^T`.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the formula names them")]
pub struct Matmul {
    pub m: u64,
    pub n: u64,
    pub k: u64,
    /// Tile of C, and of K; each divides its dimension.
    pub tile: [u64; 3],
    /// Parts of K that different cores work on and add atomically.
    pub split_k: u64,
    pub cores: u32,
    /// Of A and B; C is f32, or i32 for integers.
    pub dtype: ElementType,
    /// Slots of the operand buffers: 1 or 2.
    pub slots: usize,
}

/// The kernel of a product.
///
/// # Panics
/// When a tile does not divide its dimension.
#[must_use]
pub fn matmul(shape: &Matmul) -> Program {
    let Matmul { m, n, k, tile: [tm, tn, tk], split_k, cores, dtype, slots } = *shape;
    assert!(m.is_multiple_of(tm) && n.is_multiple_of(tn) && k.is_multiple_of(tk * split_k), "tiles divide");
    let out = if dtype.is_float() { ElementType::F32 } else { ElementType::I32 };
    let mut kernel = Kernel::new("matmul", cores);
    let a = kernel.global("a", dtype, &[m, k], Role::Input);
    let b = kernel.global("b", dtype, &[n, k], Role::Input);
    let c = kernel.global("c", out, &[m, n], Role::Output);
    let c0 = dtype.block() as u64;
    let room = |rows: u64, cols: u64| [rows.next_multiple_of(16), cols.next_multiple_of(c0)];
    let (l1a, l1b) = (
        kernel.buffer("l1a", ("l1", slots), dtype, &room(tm, tk)),
        kernel.buffer("l1b", ("l1", slots), dtype, &room(tn, tk)),
    );
    let (l0a, l0b) = (
        kernel.buffer("l0a", ("l0a", slots), dtype, &room(tm, tk)),
        kernel.buffer("l0b", ("l0b", slots), dtype, &room(tn, tk)),
    );
    let l0c = kernel.local("l0c", "l0c", out, &[tm.next_multiple_of(16), tn.next_multiple_of(16)]);
    let [m, n, k, tm, tn, tk, parts] = [m, n, k, tm, tn, tk, split_k].map(|value| value as i64);
    let columns = n / tn;
    let tiles = m / tm * columns * parts;
    kernel.cube(|lane| {
        let (core, cores) = (lane.ask("GetCubeIdx"), lane.ask("GetCubeNum"));
        let turn = lane.var("turn", 0);
        if parts > 1 {
            lane.emit("atomic_add", &[]);
        }
        lane.auto_sync(|lane| {
            lane.range(&core, tiles, &cores, |lane, tile| {
                let part = lane.calc("var_mod", &tile, parts);
                let which = lane.calc("var_div", &tile, parts);
                let (row, column) =
                    (lane.calc("var_div", &which, columns), lane.calc("var_mod", &which, columns));
                let (row, column) = (lane.calc("var_mul", &row, tm), lane.calc("var_mul", &column, tn));
                let first = lane.calc("var_mul", &part, k / parts);
                lane.range(0, k / parts / tk, 1, |lane, step| {
                    let along = lane.calc("var_mul", &step, tk);
                    let along = lane.calc("var_add", &along, &first);
                    let fresh = lane.calc("var_sub", 1, &step);
                    let fresh = lane.calc("Max", &fresh, 0);
                    let [sa, sb, oa, ob] = [&l1a, &l1b, &l0a, &l0b].map(|buffer| lane.slot(buffer, &turn));
                    let from_a =
                        lane.window(&a, [(&row).into(), (&along).into()], [tm.into(), tk.into()], [m, k]);
                    let from_b =
                        lane.window(&b, [(&column).into(), (&along).into()], [tn.into(), tk.into()], [n, k]);
                    for (dst, src, rows) in [(&sa, &from_a, tm), (&sb, &from_b, tn)] {
                        lane.emit(
                            "gm_to_l1_nd2nz",
                            &[
                                ("dst", dst.into()),
                                ("src", src.into()),
                                ("M", rows.into()),
                                ("N", tk.into()),
                                ("N_src", k.into()),
                            ],
                        );
                    }
                    for (dst, src, rows) in [(&oa, &sa, tm), (&ob, &sb, tn)] {
                        lane.emit(
                            "l1_to_l0",
                            &[
                                ("dst", dst.into()),
                                ("src", src.into()),
                                ("m_dst", rows.into()),
                                ("n_dst", tk.into()),
                                ("m_src", rows.into()),
                                ("n_src", tk.into()),
                            ],
                        );
                    }
                    lane.emit(
                        "mmad",
                        &[
                            ("dst", (&l0c).into()),
                            ("src_a", (&oa).into()),
                            ("src_b", (&ob).into()),
                            ("M", tm.into()),
                            ("N", tn.into()),
                            ("K", tk.into()),
                            ("is_init", (&fresh).into()),
                        ],
                    );
                    lane.emit("var_add", &[("out", "turn".into()), ("a", "turn".into()), ("b", 1.into())]);
                });
                let to = lane.window(&c, [(&row).into(), (&column).into()], [tm.into(), tn.into()], [m, n]);
                lane.emit(
                    "l0c_to_gm_nz2nd",
                    &[
                        ("dst", (&to).into()),
                        ("src", (&l0c).into()),
                        ("M", tm.into()),
                        ("N", tn.into()),
                        ("N_dst", n.into()),
                    ],
                );
            });
        });
    });
    kernel.build()
}

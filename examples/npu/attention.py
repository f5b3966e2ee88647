"""Fused attention (online softmax) over packed heads of 128 columns: out = softmax(q k^T / sqrt(128)) v.

trompe npu run examples/npu/attention.py --in qkv=qkv.npy --out out --device ascend-910b

A row of qkv holds the q of every head, then k, then v. The cube computes scores and products of 128 x 128;
each vector lane keeps the running maximum and sum of 64 rows. They meet in global memory, two slots for each
kind of tile, and hand slots over by flags: 0 scores, 1 probabilities, 2 products. The cube is one tile ahead
with the scores.
"""

from trompe.npu import f16, f32, kernel, main

T, HALF, ALL = 128, 64, 128  # Rows of a tile, rows of a vector lane, repeats of its 64 x 128 floats.
SCORES, PROBABILITIES, PRODUCTS = 0, 1, 2


@kernel
def attention(k, rows=256, heads=1):
    width = heads * T
    qkv, out = k.input("qkv", f16, rows, 3 * width), k.output("out", f16, rows, width)
    shared = [
        k.workspace(name, kind, k.cores * 2 * T, T)
        for name, kind in (("scores", f32), ("probabilities", f16), ("products", f32))
    ]
    blocks, steps = rows // T, rows // T

    def slot_row(turn):
        return (k.cube_index() * 2 + turn % 2) * T

    with k.cube():
        cube(k, (qkv, shared), (heads, blocks, steps), slot_row)
    with k.vec():
        vector(k, (out, shared), (heads, blocks, steps), slot_row)


def cube(k, tensors, sizes, slot_row):
    qkv, (scores, probabilities, products) = tensors
    heads, blocks, steps = sizes
    width = heads * T
    l1q = k.buffer("l1q", "l1", f16, T, T, slots=1)
    l1k, l1v, l1p = (k.buffer(name, "l1", f16, T, T) for name in ("l1k", "l1v", "l1p"))
    l0q, l0p = k.local("l0q", "l0a", f16, T, T), k.local("l0p", "l0a", f16, T, T)
    l0k, l0v = k.local("l0k", "l0b", f16, T, T), k.local("l0v", "l0b", f16, T, T)
    acc_s, acc_o = k.local("acc_s", "l0c", f32, T, T), k.local("acc_o", "l0c", f32, T, T)

    def load(near, row, column):
        k.gm_to_l1_nd2nz(near, qkv.window([row, column], [T, T]), T, T, 3 * width)

    def hand_out(target, turn, acc, flag):
        k.wait_vec(flag)
        k.l0c_to_gm_nz2nd(target.window([slot_row(turn), 0], [T, T]), acc, T, T, T)
        k.cube_ready(flag)

    ahead, behind, zero = k.var(0), k.var(0), k.var(0)
    for _ in range(2):
        k.cube_ready(PROBABILITIES, pipe="MTE2")
    with k.auto_sync(), k.range(k.cube_index(), heads * blocks, k.cube_count()) as index:
        head = index % heads * T
        load(l1q[zero], index // heads * T, head)
        with k.range(steps + 1) as step:
            with k.when(step < steps):
                load(l1k[ahead], step * T, head + width)
                k.l1_to_l0(l0q, l1q[zero], T, T, T, T)
                k.l1_to_l0(l0k, l1k[ahead], T, T, T, T)
                k.mmad(acc_s, l0q, l0k, T, T, T)
                hand_out(scores, ahead, acc_s, SCORES)
                ahead += 1
            with k.when(step > 0):
                load(l1v[behind], (step - 1) * T, head + 2 * width)
                k.wait_vec(PROBABILITIES, pipe="MTE2")
                k.gm_to_l1_nd2nz(l1p[behind], probabilities.window([slot_row(behind), 0], [T, T]), T, T, T)
                k.cube_ready(PROBABILITIES, pipe="MTE2")
                k.l1_to_l0(l0p, l1p[behind], T, T, T, T)
                k.l1_to_l0(l0v, l1v[behind], T, T, T, T, src_is_transpose=True)
                k.mmad(acc_o, l0p, l0v, T, T, T, b_layout="ZN")
                hand_out(products, behind, acc_o, PRODUCTS)
                behind += 1
    for flag in (SCORES, SCORES, PRODUCTS, PRODUCTS):
        k.wait_vec(flag)


def vector(k, tensors, sizes, slot_row):  # noqa: PLR0915
    out, (scores, probabilities, products) = tensors
    heads, blocks, steps = sizes
    near_s, near_o = k.buffer("near_s", "ub", f32, HALF, T), k.buffer("near_o", "ub", f32, HALF, T, slots=1)
    near_p = k.buffer("near_p", "ub", f16, HALF, T, slots=1)
    total_o, result = k.local("total_o", "ub", f32, HALF, T), k.buffer("result", "ub", f16, HALF, T, slots=1)
    work, spread = k.local("work", "ub", f32, HALF, 64), k.local("spread", "ub", f32, HALF, 8)
    names = ("top", "new_top", "total", "factor", "part")
    top, new_top, total, factor, part = (k.local(name, "ub", f32, 1, HALF) for name in names)

    def fold(pair, reduce, rows, number):
        """Each row of 128 to one number."""
        getattr(k, pair)(
            work, rows, rows[0:HALF, 64:128], repeat=HALF, src1_rep_stride=16, src2_rep_stride=16
        )
        getattr(k, reduce)(number, work, repeat=HALF)

    def apply(op, rows, number):
        """rows = rows op the number of the row."""
        k.brcb(spread, number, repeat=HALF // 8)
        for half in (rows[0:HALF, 0:64], rows[0:HALF, 64:128]):
            strides = {
                "dst_rep_stride": 16,
                "src1_rep_stride": 16,
                "src2_blk_stride": 0,
                "src2_rep_stride": 1,
            }
            getattr(k, op)(half, half, spread, repeat=HALF, **strides)

    def take(near, source, turn, flag):
        k.wait_cube(flag, pipe="MTE2")
        k.gm_to_ub_pad(near, source.window([slot_row(turn) + skip, 0], [HALF, T]), 1, HALF * T * 4)
        k.vec_ready(flag, pipe="MTE2")

    skip, turn, zero = k.sub_block() * HALF, k.var(0), k.var(0)
    for flag in (SCORES, SCORES, PRODUCTS, PRODUCTS):
        k.vec_ready(flag, pipe="MTE2")
    with k.auto_sync(), k.range(k.cube_index(), heads * blocks, k.cube_count()) as index:
        k.dup(top, -3.0e38, repeat=1)
        k.dup(total, 0.0, repeat=1)
        k.dup(total_o, 0.0, repeat=ALL)
        with k.range(steps):
            tile, narrow, product = near_s[turn], near_p[turn], near_o[zero]
            take(tile, scores, turn, SCORES)
            k.muls(tile, tile, T**-0.5, repeat=ALL)
            fold("vmax", "cmax", tile, part)
            k.vmax(new_top, top, part, repeat=1)
            k.sub(factor, top, new_top, repeat=1)
            k.exp(factor, factor, repeat=1)
            k.adds(top, new_top, 0.0, repeat=1)
            apply("sub", tile, top)
            k.exp(tile, tile, repeat=ALL)
            k.cast(narrow, tile, mode="CAST_RINT", repeat=ALL, dst_rep_stride=4)
            k.wait_cube(PROBABILITIES, pipe="MTE3")
            target = probabilities.window([slot_row(turn) + skip, 0], [HALF, T])
            k.ub_to_gm_pad(target, narrow, 1, HALF * T * 2)
            k.vec_ready(PROBABILITIES)
            fold("add", "cadd", tile, part)
            k.mul(total, total, factor, repeat=1)
            k.add(total, total, part, repeat=1)
            apply("mul", total_o, factor)
            take(product, products, turn, PRODUCTS)
            k.add(total_o, total_o, product, repeat=ALL)
            turn += 1
        apply("div", total_o, total)
        k.cast(result[zero], total_o, mode="CAST_RINT", repeat=ALL, dst_rep_stride=4)
        where = [index // heads * T + skip, index % heads * T]
        k.ub_to_gm_pad(
            out.window(where, [HALF, T]), result[zero], HALF, T * 2, dst_stride_byte=(heads - 1) * T * 2
        )
    for _ in range(2):
        k.wait_cube(PROBABILITIES, pipe="MTE3")


if __name__ == "__main__":
    main(attention)

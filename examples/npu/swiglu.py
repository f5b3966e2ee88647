"""SwiGLU: y = gate / (1 + e^-gate) * up, where a row of x holds gate, then up.

trompe npu run examples/npu/swiglu.py --in x=x.npy --out out
"""

from trompe.npu import f16, f32, kernel, main


@kernel
def swiglu(k, rows=256, width=512, tile=16):
    x, y = k.input("x", f16, rows, 2 * width), k.output("y", f16, rows, width)
    near = [k.buffer(name, "ub", f16, tile, width) for name in ("near_gate", "near_up")]
    result = k.buffer("result", "ub", f16, tile, width, slots=1)
    gate, up = k.local("gate", "ub", f32, tile, width), k.local("up", "ub", f32, tile, width)
    sigmoid = k.local("sigmoid", "ub", f32, tile, width)
    every, burst = tile * width // 64, width * 2
    with k.vec():
        turn = k.var(0)
        with k.auto_sync(), k.range(k.vec_index() * tile, rows, k.vec_count() * tile) as row:
            for part, slots, wide in ((0, near[0], gate), (width, near[1], up)):
                source = x[row : row + tile, part : part + width]
                k.gm_to_ub_pad(slots[turn], source, tile, burst, src_stride_byte=burst)
                k.cast(wide, slots[turn], repeat=every, src_rep_stride=4)
            k.muls(sigmoid, gate, -1.0, repeat=every)
            k.exp(sigmoid, sigmoid, repeat=every)
            k.adds(sigmoid, sigmoid, 1.0, repeat=every)
            k.div(gate, gate, sigmoid, repeat=every)
            k.mul(gate, gate, up, repeat=every)
            k.cast(result[turn], gate, mode="CAST_RINT", repeat=every, dst_rep_stride=4)
            k.ub_to_gm_pad(y[row : row + tile, :], result[turn], 1, tile * burst)
            turn += 1


if __name__ == "__main__":
    main(swiglu)

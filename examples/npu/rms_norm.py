"""RMS norm over rows of halves: y = x / sqrt(mean(x^2) + 1e-5) * gain.

trompe npu run examples/npu/rms_norm.py --in x=x.npy --in gain=gain.npy --out out

A row is width / 64 repeats. Its squares are folded to 64 sums, those to one number, and that is spread to a
block of eight, which a block stride of 0 reads for the whole row.
"""

from trompe.npu import f16, f32, kernel, main


@kernel
def rms_norm(k, rows=256, width=512, tile=16):
    x, gain = k.input("x", f16, rows, width), k.input("gain", f32, 1, width)
    y = k.output("y", f16, rows, width)
    near, result = k.buffer("near", "ub", f16, tile, width), k.buffer("result", "ub", f16, tile, width)
    values = k.local("values", "ub", f32, tile, width)
    factors = k.local("factors", "ub", f32, 1, width)
    squares, sums = k.local("squares", "ub", f32, tile, 64), k.local("sums", "ub", f32, tile, 64)
    number, spread = k.local("number", "ub", f32, 1, 64), k.local("spread", "ub", f32, 64, 8)
    every, size, pitch = tile * width // 64, tile * width * 2, width // 8
    wide = {"repeat": tile, "src1_rep_stride": pitch}

    def columns(view, first):
        return view[0:tile, first : first + 64]

    with k.vec():
        turn = k.var(0)
        k.dup(number, 1.0, repeat=1)
        with k.auto_sync():
            k.gm_to_ub_pad(factors, gain, 1, width * 4)
            with k.range(k.vec_index() * tile, rows, k.vec_count() * tile) as row:
                k.gm_to_ub_pad(near[turn], x[row : row + tile, :], 1, size)
                k.cast(values, near[turn], repeat=every, src_rep_stride=4)
                for first in range(0, width, 64):
                    part = columns(values, first)
                    k.mul(sums if first else squares, part, part, src2_rep_stride=pitch, **wide)
                    if first:
                        k.add(squares, squares, sums, repeat=tile)
                k.cadd(number, squares, repeat=tile)
                k.muls(number, number, 1.0 / width, repeat=1)
                k.adds(number, number, 1e-5, repeat=1)
                k.sqrt(number, number, repeat=1)
                k.brcb(spread, number, repeat=8)
                for first in range(0, width, 64):
                    part = columns(values, first)
                    k.div(
                        part, part, spread, dst_rep_stride=pitch, src2_blk_stride=0, src2_rep_stride=1, **wide
                    )
                    k.mul(
                        part,
                        part,
                        columns_of(factors, first),
                        dst_rep_stride=pitch,
                        src2_rep_stride=0,
                        **wide,
                    )
                k.cast(result[turn], values, mode="CAST_RINT", repeat=every, dst_rep_stride=4)
                k.ub_to_gm_pad(y[row : row + tile, :], result[turn], 1, size)
                turn += 1


def columns_of(row, first):
    return row[0:1, first : first + 64]


if __name__ == "__main__":
    main(rms_norm)

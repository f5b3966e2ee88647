"""Softmax over rows of 64 floats in one micro program.

trompe npu run examples/npu/softmax.py --in x=x.npy --out out
"""

from trompe.npu import f32, kernel, main


@kernel
def softmax(k, rows=256, tile=64):
    x, y = k.input("x", f32, rows, 64), k.output("y", f32, rows, 64)
    a, b = k.buffer("a", "ub", f32, tile, 64), k.buffer("b", "ub", f32, tile, 64)
    with k.micro("softmax_rows", "source", "target") as (source, target):
        for register in ("row", "one", "all"):
            k.create_reg(register, "f32")
        with k.range(tile) as i:
            k.ub2reg("row", source, offset=i * 64)
            k.vcmax("one", "row")
            k.vduplane("all", "one")
            k.vsub("row", "row", "all")
            k.vexp("row", "row")
            k.vcadd("one", "row")
            k.vduplane("all", "one")
            k.vdiv("row", "row", "all")
            k.reg2ub(target, "row", offset=i * 64)
    with k.vec():
        turn = k.var(0)
        with k.auto_sync(), k.range(k.vec_index() * tile, rows, k.vec_count() * tile) as row:
            near, result = a[turn], b[turn]
            k.gm_to_ub_pad(near, x[row : row + tile, :], 1, tile * 256)
            k.call_micro("softmax_rows", [near, result])
            k.ub_to_gm_pad(y[row : row + tile, :], result, 1, tile * 256)
            turn += 1


if __name__ == "__main__":
    main(softmax)

"""z = x + y over n floats on every vector lane, with a tail.

trompe npu run examples/npu/vector_add.py --in x=x.npy --in y=y.npy --out out
"""

from trompe.npu import f32, kernel, main


@kernel
def vector_add(k, n=10_000, tile=1024):
    x, y, z = k.input("x", f32, n), k.input("y", f32, n), k.output("z", f32, n)
    a, b, c = (k.buffer(name, "ub", f32, 1, tile) for name in "abc")
    with k.vec():
        turn = k.var(0)
        first, step = k.vec_index() * tile, k.vec_count() * tile
        with k.auto_sync(), k.range(first, n, step) as i:
            count = k.min(n - i, tile)
            size = count * 4
            left, right, result = a[turn], b[turn], c[turn]
            k.gm_to_ub_pad(left, x.window([i], [count]), 1, size)
            k.gm_to_ub_pad(right, y.window([i], [count]), 1, size)
            k.set_mask_by_count(count)
            k.add(result, left, right, repeat=1)
            k.ub_to_gm_pad(z.window([i], [count]), result, 1, size)
            turn += 1


if __name__ == "__main__":
    main(vector_add)

"""z = x + y over n halves on every vector lane: trompe npu run examples/npu/residual.py --timing-only"""

from trompe.npu import f16, kernel, main


@kernel
def residual(k, n=65536, tile=8192):
    x, y, z = k.input("x", f16, n), k.input("y", f16, n), k.output("z", f16, n)
    a, b, c = (k.buffer(name, "ub", f16, 1, tile) for name in "abc")
    with k.vec():
        turn = k.var(0)
        with k.auto_sync(), k.range(k.vec_index() * tile, n, k.vec_count() * tile) as first:
            k.gm_to_ub_pad(a[turn], x[first : first + tile], 1, tile * 2)
            k.gm_to_ub_pad(b[turn], y[first : first + tile], 1, tile * 2)
            k.add(c[turn], a[turn], b[turn], repeat=tile // 128)
            k.ub_to_gm_pad(z[first : first + tile], c[turn], 1, tile * 2)
            turn += 1


if __name__ == "__main__":
    main(residual)

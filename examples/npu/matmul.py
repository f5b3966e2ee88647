"""c = a b^T in tiles, double-buffered: trompe npu run examples/npu/matmul.py --timing-only"""

from trompe.npu import f16, f32, kernel, main


@kernel
def matmul(k, m=512, n=512, depth=512, *, slots=2, tile=128, result=f32):  # noqa: PLR0913
    T = tile
    a, b, c = k.input("a", f16, m, depth), k.input("b", f16, n, depth), k.output("c", result, m, n)
    l1 = [k.buffer(f"l1{name}", "l1", f16, T, T, slots=slots) for name in "ab"]
    l0 = [k.buffer(f"l0{name}", f"l0{name}", f16, T, T, slots=slots) for name in "ab"]
    acc = k.local("acc", "l0c", f32, T, T)
    with k.cube():
        turn = k.var(0)
        with k.auto_sync(), k.range(k.cube_index(), (m // T) * (n // T), k.cube_count()) as index:
            row, column = index // (n // T) * T, index % (n // T) * T
            with k.range(0, depth, T) as step:
                for source, start, near, far in ((a, row, l1[0], l0[0]), (b, column, l1[1], l0[1])):
                    k.gm_to_l1_nd2nz(near[turn], source.window([start, step], [T, T]), T, T, depth)
                    k.l1_to_l0(far[turn], near[turn], T, T, T, T)
                k.mmad(acc, l0[0][turn], l0[1][turn], T, T, T, is_init=k.max(1 - step, 0))
                turn += 1
            k.l0c_to_gm_nz2nd(c.window([row, column], [T, T]), acc, T, T, n)


if __name__ == "__main__":
    main(matmul)

"""d = (a b^T) e^T in one kernel: every cube waits for all others between the two products (a collective).

trompe npu run examples/npu/chain.py --timing-only
"""

from trompe.npu import f16, f32, kernel, main

T = 128


@kernel
def chain(k, m=512, n=256, depth=256, width=256):
    a, b, e = k.input("a", f16, m, depth), k.input("b", f16, n, depth), k.input("e", f16, width, n)
    c, d = k.workspace("c", f16, m, n), k.output("d", f32, m, width)
    near = [k.buffer(f"l1{name}", "l1", f16, T, T) for name in "ab"]
    far = [k.buffer(f"l0{name}", f"l0{name}", f16, T, T) for name in "ab"]
    acc = k.local("acc", "l0c", f32, T, T)

    def product(left, right, target, turn):
        (rows, inner), (columns, _) = left.shape, right.shape
        tiles = (rows // T) * (columns // T)
        with k.auto_sync(), k.range(k.cube_index(), tiles, k.cube_count()) as index:
            row, column = index // (columns // T) * T, index % (columns // T) * T
            with k.range(0, inner, T) as step:
                for at, (source, start) in enumerate(((left, row), (right, column))):
                    k.gm_to_l1_nd2nz(near[at][turn], source.window([start, step], [T, T]), T, T, inner)
                    k.l1_to_l0(far[at][turn], near[at][turn], T, T, T, T)
                k.mmad(acc, far[0][turn], far[1][turn], T, T, T, is_init=k.max(1 - step, 0))
                turn += 1
            k.l0c_to_gm_nz2nd(target.window([row, column], [T, T]), acc, T, T, columns)

    with k.cube():
        turn = k.var(0)
        product(a, b, c, turn)
        k.allcube_ready(0)
        k.allcube_wait(0, pipe="MTE2")
        product(c, e, d, turn)


if __name__ == "__main__":
    main(chain)

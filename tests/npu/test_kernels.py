"""The kernels of the Rust builder against PyTorch and numpy on the CPU."""

import torch
from harness import DEVICES, Case, integers, noise, run, rust
from torch.nn import functional


class Kernels(Case):
    def test_vector_add_with_tails(self):
        x, y = noise(10_001, seed=1), noise(10_001, seed=2)
        self.same(run(rust("vector_add"), {"x": x, "y": y})["z"], x + y)

    def test_matmul(self):
        for name, m, n, dtype in (
            ("1_core", 256, 128, torch.float16),
            ("4_cores", 256, 128, torch.float16),
            ("32_cores", 512, 256, torch.float16),
            ("split_k", 256, 128, torch.float16),
            ("f32", 256, 128, torch.float32),
            ("bf16", 256, 128, torch.bfloat16),
            ("f8e4m3", 256, 128, torch.float8_e4m3fn),
            ("f8e5m2", 256, 128, torch.float8_e5m2),
        ):
            for device in DEVICES if name != "32_cores" else ("ascend-950",):
                with self.subTest(name, device=device):
                    a, b = noise(m, 256, seed=3, dtype=dtype), noise(n, 256, seed=4, dtype=dtype)
                    c = run(rust(f"matmul_{name}"), {"a": a, "b": b}, device)["c"]
                    self.close(c, a.double() @ b.double().T, 2e-5)

    def test_matmul_of_integers_is_exact(self):
        a, b = (integers(-127, 128, (rows, 256), torch.int8, rows) for rows in (256, 128))
        c = run(rust("matmul_i8"), {"a": a, "b": b})["c"]
        self.same(c, (a.long() @ b.long().T).int())

    def test_cube_and_vector_lanes_together(self):
        a, b = noise(1024, 128, seed=5, dtype=torch.float16), noise(64, 128, seed=6, dtype=torch.float16)
        self.close(run(rust("mix"), {"a": a, "b": b})["y"], 3 * (a.double() @ b.double().T) + 1, 1e-4)

    def test_rows(self):
        x = noise(256, 128, seed=7, scale=3.0)
        for name, expect in (
            ("softmax", functional.softmax(x.double(), dim=-1)),
            ("layer_norm", functional.layer_norm(x.double(), (128,), eps=1e-5)),
            ("rms_norm", functional.rms_norm(x.double(), (128,), eps=1e-5)),
        ):
            with self.subTest(name):
                self.close(run(rust(name), {"x": x})["y"], expect, 2e-6)

    def test_fused_attention(self):
        q, k, v = (
            noise(rows, 128, seed=seed, dtype=torch.float16) for rows, seed in ((256, 8), (384, 9), (384, 10))
        )
        out = run(rust("attention"), {"q": q, "k": k, "v": v})["out"]
        expect = functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
        # Probabilities are halves.
        self.close(out, expect, 1e-3)

    def test_top_k(self):
        x = noise(128, seed=11)
        index = torch.arange(128, dtype=torch.int64).to(torch.uint32)
        pairs = run(rust("top_k"), {"x": x, "index": index})["sorted"].view(torch.int32).reshape(128, 2)
        expect = x.sort(descending=True)
        self.same(pairs[:, 0].contiguous().view(torch.float32), expect.values)
        self.same(pairs[:, 1].long(), expect.indices)

    def test_collective_of_vector_lanes(self):
        x = noise(8, 64, seed=12)
        found = run(rust("all_reduce"), {"x": x})
        self.close(found["total"], x.double().sum(0), 2e-6)
        self.same(found["copies"], found["total"].expand(8, 64))

    def test_event_rotation(self):
        x = noise(128, 64, seed=13)
        self.same(run(rust("rotation"), {"x": x})["y"], 2 * x)

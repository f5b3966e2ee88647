"""A sweep over what training scripts do beside matrix products.

One function per feature, each on its own; a failing one does not stop the others.
Prints a line per feature and exits with the number of failures. Kernels compute
nothing under the emulation, so shapes, types, devices and whatever was uploaded
or filled are checked, and computed values only where they are zero by nature.

    python operators.py            # all
    python operators.py lstm fft   # those whose name contains one of the words
"""

import contextlib
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

CHECKS = []
DEVICE = "cuda"


def check(function):
    """Registers a feature."""
    CHECKS.append(function)
    return function


def randn(*shape, **options):
    return torch.randn(*shape, device=DEVICE, **options)


def same(found, expected):
    """Fails unless both are equal."""
    if found != expected:
        raise AssertionError(f"{found!r} instead of {expected!r}")


def trains(module, *inputs):
    """Runs forward and backward; every parameter must get a gradient of its shape."""
    module = module.to(DEVICE)
    output = module(*inputs)
    output = output[0] if isinstance(output, tuple) else output
    output.sum().backward()
    for name, parameter in module.named_parameters():
        if parameter.grad is None or parameter.grad.shape != parameter.shape:
            raise AssertionError(f"no gradient for {name}")
    return tuple(output.shape)


# ---- Values that must be right ---------------------------------------------


@check
def upload_and_read_back():
    values = torch.arange(1000)
    same(values.to(DEVICE).cpu().tolist(), values.tolist())


@check
def scalar_item():
    same(torch.tensor(3.5, device=DEVICE).item(), 3.5)


@check
def full_item():
    same(torch.full((), 7.0, device=DEVICE).item(), 7.0)


@check
def ones_to_list():
    same(torch.ones(5, device=DEVICE).tolist(), [1.0] * 5)


@check
def fill_half_and_integers():
    same(torch.full((3,), 1.5, device=DEVICE, dtype=torch.bfloat16).tolist(), [1.5] * 3)
    same(torch.full((3,), -4, device=DEVICE, dtype=torch.int64).tolist(), [-4] * 3)
    same(torch.full((3,), True, device=DEVICE).tolist(), [True] * 3)


@check
def device_to_device_copy():
    values = torch.arange(64, device=DEVICE)
    same(values.clone().cpu().tolist(), torch.arange(64, device=DEVICE).cpu().tolist())


@check
def fresh_memory_reads_zero():
    for _ in range(4):
        uploaded = torch.full((4096,), 0x3F800000, dtype=torch.int32).to(DEVICE)
        del uploaded
        same(torch.empty(4096, device=DEVICE).sum().item(), 0.0)


@check
def grad_scaler_scale():
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(torch.ones((), device=DEVICE))
    same(scaler.get_scale(), 65536.0)


@check
def isnan_is_false():
    same(torch.isnan(randn(100)).any().item(), False)


@check
def save_and_load():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tensor.pt")
        torch.save(torch.arange(100.0).to(DEVICE), path)
        loaded = torch.load(path)
    same(loaded.device.type, "cuda")
    same(loaded.cpu().tolist(), torch.arange(100.0).tolist())


@check
def print_tensor():
    text = repr(randn(10, 10))
    if "device='cuda:0'" not in text:
        raise AssertionError(text)


# ---- Shapes ----------------------------------------------------------------


@check
def sort_and_top_k():
    same(randn(1000).sort()[0].shape, (1000,))
    same(randn(10, 100).topk(5)[1].shape, (10, 5))
    same(randn(8, 4096).argsort(dim=1).shape, (8, 4096))


@check
def scans_and_histograms():
    same(torch.ones(5, device=DEVICE).cumsum(0).shape, (5,))
    same(randn(8, 300).logcumsumexp(1).shape, (8, 300))
    same(torch.histc(randn(100), bins=10).shape, (10,))


@check
def reductions():
    x = randn(16, 32, 64)
    for name in ("sum", "mean", "amax", "amin", "prod", "std", "var", "logsumexp", "argmax"):
        same(getattr(x, name)(dim=1).shape, (16, 64))
    same(x.norm().shape, ())


@check
def data_dependent_shapes():
    x = torch.ones(10, device=DEVICE)
    same(x.nonzero().dim(), 2)
    same(x[x > 4].dim(), 1)
    same(torch.masked_select(x, x > 4).dim(), 1)
    same(torch.tensor([1, 2, 2, 3], device=DEVICE).unique().dim(), 1)


@check
def indexing():
    x = randn(10, 20)
    rows = torch.tensor([1, 5, 2], device=DEVICE)
    same(x[rows].shape, (3, 20))
    same(x[torch.tensor([1, 2])].shape, (2, 20))
    same(x.gather(1, torch.zeros(10, 3, dtype=torch.long, device=DEVICE)).shape, (10, 3))
    same(x.index_select(0, rows).shape, (3, 20))
    same(x.scatter_add(0, torch.zeros(4, 20, dtype=torch.long, device=DEVICE), randn(4, 20)).shape, x.shape)
    x[rows] = 0
    same(x.masked_fill(x > 0, 1.0).shape, x.shape)
    same(torch.where(x > 0, x, -x).shape, x.shape)


@check
def repeat_interleave_known_size():
    repeats = torch.tensor([1, 2, 3], device=DEVICE)
    same(torch.repeat_interleave(randn(3), repeats, output_size=6).shape, (6,))


@check
def concatenation_and_stacking():
    parts = [randn(4, n) for n in (1, 2, 3)]
    same(torch.cat(parts, dim=1).shape, (4, 6))
    same(torch.stack([randn(4)] * 200).shape, (200, 4))
    same([p.shape[1] for p in randn(4, 6).split([1, 2, 3], dim=1)], [1, 2, 3])


@check
def einsum_and_batched_products():
    same(torch.einsum("bij,bjk->bik", randn(4, 8, 16), randn(4, 16, 32)).shape, (4, 8, 32))
    same(torch.baddbmm(randn(4, 8, 8), randn(4, 8, 16), randn(4, 16, 8)).shape, (4, 8, 8))
    same((randn(64, 64, dtype=torch.float64) @ randn(64, 1, dtype=torch.float64)).shape, (64, 1))


@check
def scaled_fp8_product():
    a, b = randn(64, 64).to(torch.float8_e4m3fn), randn(64, 64).to(torch.float8_e4m3fn)
    one = torch.ones((), device=DEVICE)
    out = torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    same((out.shape, out.dtype), ((64, 64), torch.bfloat16))


@check
def integer_product():
    a = torch.ones(32, 32, dtype=torch.int8, device=DEVICE)
    same(torch._int_mm(a, a).dtype, torch.int32)


@check
def complex_numbers():
    x = randn(16, 16, dtype=torch.complex64)
    same((x @ x).abs().dtype, torch.float32)


@check
def fourier_transform():
    same(torch.fft.fft(randn(64, 64)).shape, (64, 64))
    same(torch.fft.irfft2(torch.fft.rfft2(randn(4, 32, 32))).shape, (4, 32, 32))


@check
def singular_values():
    same(torch.linalg.svd(randn(8, 8))[1].shape, (8,))


@check
def cholesky():
    same(torch.linalg.cholesky_ex(torch.eye(8, device=DEVICE))[0].shape, (8, 8))


@check
def inverse_and_solve():
    same(torch.linalg.inv_ex(torch.eye(8, device=DEVICE))[0].shape, (8, 8))
    same(torch.linalg.solve_ex(torch.eye(8, device=DEVICE), randn(8, 2))[0].shape, (8, 2))


@check
def eigenvalues():
    same(torch.linalg.eigh(torch.eye(8, device=DEVICE))[0].shape, (8,))


@check
def qr():
    same(torch.linalg.qr(randn(16, 8))[1].shape, (8, 8))


@check
def sparse_products():
    coordinates = torch.eye(5).to_sparse().to(DEVICE)
    same(torch.sparse.mm(coordinates, randn(5, 5)).shape, (5, 5))
    rows = torch.eye(5).to_sparse_csr().to(DEVICE)
    same((rows @ randn(5, 5)).shape, (5, 5))


@check
def nested_tensors():
    nested = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(3, 4)]).to(DEVICE)
    same(nested.size(0), 2)


@check
def random_numbers():
    same(torch.multinomial(torch.ones(10, device=DEVICE), 3).shape, (3,))
    same(torch.randperm(100, device=DEVICE).shape, (100,))
    same(torch.bernoulli(torch.full((10,), 0.5, device=DEVICE)).shape, (10,))
    same(torch.cuda.get_rng_state().shape, (16,))
    torch.cuda.manual_seed_all(3)


# ---- Layers ----------------------------------------------------------------


@check
def convolutions_1d_and_3d():
    same(trains(nn.Conv1d(4, 8, 3), randn(2, 4, 32)), (2, 8, 30))
    same(trains(nn.Conv3d(4, 8, 3), randn(2, 4, 8, 8, 8)), (2, 8, 6, 6, 6))


@check
def convolution_grouped_and_dilated():
    same(trains(nn.Conv2d(8, 8, 3, groups=8, padding=1), randn(2, 8, 16, 16)), (2, 8, 16, 16))
    same(trains(nn.Conv2d(8, 16, 3, dilation=2, stride=2), randn(2, 8, 32, 32)), (2, 16, 14, 14))


@check
def transposed_convolution():
    same(trains(nn.ConvTranspose2d(4, 8, 3, stride=2), randn(2, 4, 16, 16)), (2, 8, 33, 33))


@check
def pooling():
    x = randn(2, 4, 32, 32, requires_grad=True)
    (F.max_pool2d(x, 2).sum() + F.avg_pool2d(x, 2).sum() + F.adaptive_avg_pool2d(x, 3).sum()).backward()
    same(x.grad.shape, x.shape)


@check
def up_sampling():
    x = randn(2, 4, 16, 16, requires_grad=True)
    y = F.interpolate(x, scale_factor=2, mode="bilinear") + F.interpolate(x, scale_factor=2, mode="nearest")
    y.sum().backward()
    same((y.shape, x.grad.shape), ((2, 4, 32, 32), x.shape))


@check
def grid_sampling():
    x = randn(2, 4, 16, 16, requires_grad=True)
    F.grid_sample(x, torch.zeros(2, 8, 8, 2, device=DEVICE), align_corners=False).sum().backward()
    same(x.grad.shape, x.shape)


@check
def normalisations():
    same(trains(nn.LayerNorm(256), randn(8, 256)), (8, 256))
    same(trains(nn.RMSNorm(256), randn(8, 256)), (8, 256))
    same(trains(nn.GroupNorm(4, 16), randn(2, 16, 8, 8)), (2, 16, 8, 8))
    same(trains(nn.BatchNorm2d(16), randn(2, 16, 8, 8)), (2, 16, 8, 8))
    same(trains(nn.InstanceNorm2d(16, affine=True), randn(2, 16, 8, 8)), (2, 16, 8, 8))


@check
def batch_norm_evaluation():
    layer = nn.BatchNorm2d(16).to(DEVICE).eval()
    same(layer(randn(2, 16, 8, 8)).shape, (2, 16, 8, 8))


@check
def lstm():
    same(trains(nn.LSTM(32, 64, 2), randn(10, 4, 32)), (10, 4, 64))


@check
def lstm_bidirectional_projected():
    same(trains(nn.LSTM(32, 64, 2, bidirectional=True, proj_size=16), randn(10, 4, 32)), (10, 4, 32))


@check
def gru_and_plain_rnn():
    same(trains(nn.GRU(32, 64, batch_first=True), randn(4, 10, 32)), (4, 10, 64))
    same(trains(nn.RNN(32, 64), randn(10, 4, 32)), (10, 4, 64))


@check
def packed_sequences():
    packed = nn.utils.rnn.pack_padded_sequence(randn(10, 3, 32), [10, 7, 2])
    out, _ = nn.utils.rnn.pad_packed_sequence(nn.LSTM(32, 64).to(DEVICE)(packed)[0])
    same(out.shape, (10, 3, 64))


@check
def embeddings():
    tokens = torch.randint(0, 100, (4, 500), device=DEVICE)
    same(trains(nn.Embedding(100, 8), tokens), (4, 500, 8))
    same(trains(nn.EmbeddingBag(100, 8, mode="sum"), torch.randint(0, 100, (4, 5), device=DEVICE)), (4, 8))


@check
def sparse_embedding_gradient():
    layer = nn.Embedding(100, 8, sparse=True).to(DEVICE)
    layer(torch.randint(0, 100, (4, 5), device=DEVICE)).sum().backward()
    same(layer.weight.grad.is_sparse, True)


@check
def activations():
    x = randn(64, 64, requires_grad=True)
    total = sum(
        function(x).sum()
        for function in (F.relu, F.gelu, F.silu, F.mish, F.elu, F.leaky_relu, F.softplus, F.hardswish, F.glu)
    )
    (total + F.softmax(x, -1).sum() + F.log_softmax(x, -1).sum() + F.dropout(x, 0.5).sum()).backward()
    same(x.grad.shape, x.shape)


@check
def losses():
    x = randn(16, 10, requires_grad=True)
    labels = torch.randint(0, 10, (16,), device=DEVICE)
    loss = F.cross_entropy(x, labels) + F.cross_entropy(x, labels, label_smoothing=0.1)
    loss = (
        loss + F.binary_cross_entropy_with_logits(x, torch.zeros_like(x)) + F.smooth_l1_loss(x, randn(16, 10))
    )
    loss = loss + F.kl_div(F.log_softmax(x, 1), F.softmax(randn(16, 10), 1), reduction="batchmean")
    loss.backward()
    same(x.grad.shape, x.shape)


@check
def ctc_loss():
    x = randn(50, 4, 20, requires_grad=True)
    targets = torch.randint(1, 20, (4, 10), dtype=torch.int32)
    F.ctc_loss(x.log_softmax(2), targets, [50] * 4, [10] * 4).backward()
    same(x.grad.shape, x.shape)


def attention(backend, dtype=torch.bfloat16):
    """Runs scaled-dot-product attention forward and backward on one backend."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, k, v = (randn(2, 4, 128, 64, dtype=dtype, requires_grad=True) for _ in range(3))
    with sdpa_kernel(getattr(SDPBackend, backend)):
        F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    same(q.grad.shape, q.shape)


@check
def attention_flash():
    attention("FLASH_ATTENTION")


@check
def attention_memory_efficient():
    attention("EFFICIENT_ATTENTION")


@check
def attention_cudnn():
    attention("CUDNN_ATTENTION")


@check
def attention_math():
    attention("MATH", torch.float32)


@check
def attention_with_mask():
    q = randn(2, 4, 128, 64, dtype=torch.float16)
    mask = torch.zeros(2, 1, 128, 128, device=DEVICE, dtype=torch.float16)
    same(F.scaled_dot_product_attention(q, q, q, attn_mask=mask).shape, q.shape)


@check
def multi_head_attention():
    layer = nn.MultiheadAttention(64, 4, batch_first=True)
    x = randn(2, 16, 64)
    same(trains(layer, x, x, x), (2, 16, 64))


@check
def transformer_fast_path():
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).to(DEVICE).eval()
    with torch.inference_mode():
        same(layer(randn(2, 16, 64)).shape, (2, 16, 64))


# ---- Optimizers ------------------------------------------------------------


@check
def optimizers():
    for name, options in (
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("SGD", {"fused": True}),
        ("Adam", {"fused": True}),
        ("AdamW", {"foreach": True}),
        ("AdamW", {"foreach": False}),
        ("AdamW", {"capturable": True}),
        ("Adagrad", {}),
        ("RMSprop", {}),
        ("Adafactor", {}),
        ("NAdam", {}),
    ):
        layer = nn.Linear(32, 32).to(DEVICE)
        optimizer = getattr(torch.optim, name)(layer.parameters(), lr=1e-3, **options)
        for _ in range(2):
            layer(randn(4, 32)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()


@check
def gradient_clipping():
    layer = nn.Linear(32, 32).to(DEVICE)
    layer(randn(4, 32)).sum().backward()
    same(nn.utils.clip_grad_norm_(layer.parameters(), 1.0).item(), 0.0)


# ---- The runtime -----------------------------------------------------------


@check
def streams_and_events():
    stream, start, end = (
        torch.cuda.Stream(priority=-1),
        *(torch.cuda.Event(enable_timing=True) for _ in range(2)),
    )
    start.record()
    with torch.cuda.stream(stream):
        stream.wait_event(start)
        randn(256, 256) @ randn(256, 256)
        end.record()
    torch.cuda.current_stream().wait_stream(stream)
    end.synchronize()
    same(end.query() and stream.query(), True)
    if start.elapsed_time(end) < 0:
        raise AssertionError("time ran backwards")


@check
def graph_capture_and_replay():
    static, weight = torch.zeros(64, 1000, device=DEVICE), randn(1000, 1000)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        static @ weight
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = (static @ weight).relu()
    for _ in range(3):
        graph.replay()
    same(out.shape, (64, 1000))


@check
def device_properties():
    properties = torch.cuda.get_device_properties(0)
    same(properties.total_memory, torch.cuda.mem_get_info()[1])
    same((properties.major, properties.minor), torch.cuda.get_device_capability())
    str(properties.uuid)


@check
def memory_queries():
    free, total = torch.cuda.mem_get_info()
    if not 0 < free < total:
        raise AssertionError((free, total))
    torch.cuda.memory_summary()
    torch.cuda.empty_cache()


@check
def memory_snapshot():
    torch.cuda.memory._record_memory_history()
    keep = randn(5)
    segments = torch.cuda.memory._snapshot()["segments"]
    torch.cuda.memory._record_memory_history(enabled=None)
    if not segments:
        raise AssertionError(keep)


@check
def memory_limit():
    torch.cuda.set_per_process_memory_fraction(0.5)
    torch.cuda.set_per_process_memory_fraction(1.0)


@check
def out_of_memory_is_recoverable():
    try:
        torch.empty(2**50, dtype=torch.uint8, device=DEVICE)
    except torch.OutOfMemoryError as error:
        if "Tried to allocate" not in str(error):
            raise
    else:
        raise AssertionError("a petabyte was allocated")
    same(torch.ones(3, device=DEVICE).shape, (3,))


@check
def nvml_queries():
    import pynvml

    same(torch.cuda.utilization(), 0)
    if torch.cuda.clock_rate() < 100:
        raise AssertionError("clock rate in MHz")
    # Sensors of a device that does not exist have no readings; NVML has an answer for that.
    for sensor in (torch.cuda.temperature, torch.cuda.power_draw):
        with contextlib.suppress(pynvml.NVMLError_NotSupported):
            sensor()


@check
def nvtx_ranges():
    with torch.cuda.nvtx.range("outer"):
        torch.cuda.nvtx.mark("inside")


@check
def pinned_memory():
    pinned = torch.ones(1000).pin_memory()
    same(pinned.is_pinned(), True)
    same(pinned.to(DEVICE, non_blocking=True).cpu().tolist(), [1.0] * 1000)
    torch.empty(10 << 20, device=DEVICE).to("cpu", non_blocking=True)


@check
def compiled_at_run_time():
    function = torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x + 1; }")
    same(function(torch.ones(3, device=DEVICE)).shape, (3,))


@check
def profiler_with_shapes():
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as found:
        x = randn(64, 64)
        (x @ x).relu_()
        torch.cuda.synchronize()
    if "aten::mm" not in {event.key for event in found.key_averages()}:
        raise AssertionError("no product in the profile")


@check
def per_sample_gradients():
    weight = randn(8, 8)
    grads = torch.func.vmap(torch.func.grad(lambda x: (weight @ x).sum()))(randn(4, 8))
    same(grads.shape, (4, 8))


@check
def double_backward():
    x = randn(8, requires_grad=True)
    (grad,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    grad.sum().backward()
    same(x.grad.shape, (8,))


@check
def data_parallel_on_one_device():
    same(nn.DataParallel(nn.Linear(8, 8).to(DEVICE))(randn(8, 8)).shape, (8, 8))


@check
def ipc_handle():
    handle = torch.ones(4, device=DEVICE).untyped_storage()._share_cuda_()
    same(handle[0], 0)


@check
def deterministic_algorithms():
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        same(trains(nn.Conv2d(4, 4, 3), randn(1, 4, 8, 8)), (1, 4, 6, 6))
    finally:
        torch.use_deterministic_algorithms(False)


@check
def foreach_operations():
    tensors = [randn(n) for n in range(1, 200)]
    torch._foreach_mul_(tensors, 2.0)
    torch._foreach_lerp_(tensors, [randn(n) for n in range(1, 200)], 0.5)
    same(len(torch._foreach_norm(tensors)), 199)


def main():
    words = sys.argv[1:]
    failures = 0
    for function in CHECKS:
        name = function.__name__
        if words and not any(word in name for word in words):
            continue
        try:
            function()
        except Exception as error:
            failures += 1
            message = (str(error) or "no message").splitlines()[0]
            print(f"FAIL {name}: {type(error).__name__}: {message[:200]}", flush=True)
        else:
            print(f"OK   {name}", flush=True)
    print(f"{failures} failures")
    print("max_memory_allocated", torch.cuda.max_memory_allocated())
    return min(failures, 100)


if __name__ == "__main__":
    sys.exit(main())

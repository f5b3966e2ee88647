"""Scripts of the years of Apex: Megatron-LM's softmaxes, LAMB, `apex.amp`, and products in fp8."""

import contextlib

import scaled_masked_softmax_cuda
import scaled_softmax_cuda
import scaled_upper_triang_masked_softmax_cuda
import torch
import transformer_engine.pytorch as te
from apex import amp
from apex.optimizers import FusedAdam, FusedLAMB

scores = torch.randn(2, 4, 64, 64, device="cuda", dtype=torch.half)
for kernels, extra in (
    (scaled_softmax_cuda, ()),
    (scaled_masked_softmax_cuda, (torch.ones(2, 1, 64, 64, device="cuda", dtype=torch.bool),)),
):
    result = kernels.forward(scores, *extra, 0.5)
    assert kernels.backward(result, result, 0.5).shape == scores.shape
result = scaled_upper_triang_masked_softmax_cuda.forward(scores.flatten(0, 1), 0.5)
assert scaled_upper_triang_masked_softmax_cuda.backward(result, result, 0.5).dtype == torch.half


def network(linear):
    """Two products with a batch norm between them."""
    parts = (linear(256, 512), torch.nn.BatchNorm1d(512), torch.nn.ReLU(), linear(512, 256))
    return torch.nn.Sequential(*parts).cuda()


x = torch.randn(64, 256, device="cuda")
for level, kind in (("O0", FusedAdam), ("O1", FusedLAMB), ("O2", FusedLAMB), ("O3", FusedAdam)):
    model = network(torch.nn.Linear)
    model, optimizer = amp.initialize(model, kind(model.parameters(), lr=1e-3), opt_level=level)
    masters = {p.dtype for p in amp.master_params(optimizer)}
    for _ in range(3):
        with amp.scale_loss(model(x).float().pow(2).mean(), optimizer) as scaled:
            scaled.backward()
        optimizer.step()
        optimizer.zero_grad()
    own = {p.dtype for p in model.parameters()}
    print(level, *sorted(str(kind).removeprefix("torch.") for kind in own), "|", *masters)

for eight_bits in (False, True):
    model = torch.nn.Sequential(te.Linear(1024, 4096), te.Linear(4096, 1024)).to(torch.bfloat16)
    x = torch.randn(256, 1024, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    with te.fp8_autocast(enabled=True) if eight_bits else contextlib.nullcontext():
        loss = model(x)
    loss.sum().backward()
    print("fp8" if eight_bits else "bf16", "gradients", x.grad.shape[0], model[0].weight.grad.dtype)

"""Stand-ins for TransformerEngine's kernels around Megatron-Core's own layers, where it is not installed.

Single kernels of PyTorch that read and write as many bytes, and allocate what the originals allocate:

    rotary embedding      one pass over queries, one over keys, each way
    squared ReLU          one pass each way
    context parallelism   attention over the own part, then over half of each other one, which go round
    loss of the logits    a pass for the sums, one that writes the gradient over the logits, one that
                          scales it
    linear layers in FP8  casts that write the transpose too, FP8 products, weights cast once a step, the
                          input gathered in FP8 under sequence parallelism, gradients written where they are
                          added up

Values are not those of the originals: for emulation only. What differs from them: gradients that sequence
parallelism gathers are gathered in 16 bits, and norms write 16 bits that are cast, not FP8.
"""

import dataclasses
import importlib

import torch
from megatron.core import parallel_state
from torch.optim.optimizer import register_optimizer_step_post_hook
from trompe.shims import eight_bits

FORWARD, BACKWARD = torch.float8_e4m3fn, torch.float8_e5m2


class _SquaredReLU(torch.autograd.Function):
    """The square of what is positive, kept as its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.gelu(x, approximate="tanh")

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return torch.ops.aten.gelu_backward(gradient, x, approximate="tanh")


class _Shift(torch.autograd.Function):
    """Keys and values to the next rank of the ring; backwards they go on with their gradients."""

    @staticmethod
    def forward(ctx, pair, group, handles):
        ctx.group = group
        received, started = _exchange([pair], group)
        handles += started
        return received[0]

    @staticmethod
    def backward(ctx, gradient):
        received, started = _exchange([gradient, torch.empty_like(gradient)], ctx.group)
        for handle in started:
            handle.wait()
        return received[0], None, None


def _exchange(tensors, group):
    """What the one before sends while these go to the one after, and what to wait for."""
    ranks, own = torch.distributed.get_process_group_ranks(group), group.rank()
    after, before = ranks[(own + 1) % len(ranks)], ranks[own - 1]
    received = [torch.empty_like(tensor) for tensor in tensors]
    calls = []
    for tensor, place in zip(tensors, received, strict=True):
        calls.append(torch.distributed.P2POp(torch.distributed.isend, tensor.contiguous(), after, group))
        calls.append(torch.distributed.P2POp(torch.distributed.irecv, place, before, group))
    return received, torch.distributed.batch_isend_irecv(calls)


class RingAttention(torch.nn.Module):
    """Causal attention of one context-parallel rank, as much work for each: `[s, b, heads, width]` in.

    A rank holds one chunk from the front and one from the back, so of what others hold it sees half.
    """

    def __init__(self, config, layer_number, attn_mask_type, attention_type, **_ignored):
        super().__init__()
        self.dropout = config.attention_dropout
        self.group = parallel_state.get_context_parallel_group()

    def _attend(self, query, pair, causal):
        query, key, value = (x.permute(1, 2, 0, 3) for x in (query, *pair))
        return torch.nn.functional.scaled_dot_product_attention(
            query,
            key,
            value,
            is_causal=causal,
            dropout_p=self.dropout if self.training else 0.0,
            enable_gqa=key.shape[1] != query.shape[1],
        )

    def forward(self, query, key, value, attention_mask=None, **_ignored):
        """`[s, b, heads * width]` out; the parts are added up where they are weighed and added."""
        pair = torch.stack((key, value))
        output = None
        for step in range(self.group.size()):
            handles = []
            last = step + 1 == self.group.size()
            following = None if last else _Shift.apply(pair, self.group, handles)
            seen = pair if step == 0 else pair[:, : pair.shape[1] // 2]
            part = self._attend(query, seen, causal=step == 0)
            output = part if output is None else output + part
            for handle in handles:
                handle.wait()
            pair = following
        return output.permute(2, 0, 1, 3).flatten(2)


class _Loss(torch.autograd.Function):
    """Loss of every token from logits `[tokens..., vocabulary]`, whose memory takes the gradient."""

    @staticmethod
    def forward(ctx, logits, group):
        sums = logits.amax(-1)
        if group.size() > 1:
            own = torch.empty((3, *sums.shape), dtype=torch.float32, device=sums.device)
            every = own.new_empty((group.size() * 3, *sums.shape))
            torch.distributed.all_gather_into_tensor(every, own, group=group)
        logits.mul_(1.0)
        ctx.save_for_backward(logits.detach())
        return torch.empty(sums.shape, dtype=torch.float32, device=sums.device)

    @staticmethod
    def backward(ctx, gradient):
        (logits,) = ctx.saved_tensors
        return logits.mul_(gradient.unsqueeze(-1)), None


def _loss(logits, _labels, group, _capturable=False):
    return _Loss.apply(logits, group)


def install():
    """Puts rotary embedding, squared ReLU and loss in place, before any configuration is made."""
    rope = importlib.import_module("megatron.core.models.common.embeddings.rope_utils")
    rope.fused_apply_rotary_pos_emb = lambda x, _frequencies, interleaved=False: torch.neg(x)
    language = importlib.import_module("megatron.core.models.common.language_module.language_module")
    language.te_parallel_cross_entropy = _loss
    importlib.import_module("megatron_lm.configs").squared_relu = _SquaredReLU.apply


# ---- Linear layers in FP8 ----------------------------------------------------------------------


class _Steps:
    """Counts the optimizer's steps: weights are cast once after each."""

    def __init__(self):
        self.done = 0
        register_optimizer_step_post_hook(lambda *_: self.count())

    def count(self):
        self.done += 1


class _Weights:
    """A weight's FP8 copies.

    With `gathered`, as under `--fp8-param-gather`, the weight itself is FP8: the 16 bits of an element are
    those of it and of its transpose.
    """

    def __init__(self, steps, gathered):
        self.steps, self.gathered, self.of, self.copies = steps, gathered, -1, None

    def get(self, weight):
        """The weight and its transpose in FP8."""
        if self.of != self.steps.done:
            self.of = self.steps.done
            if self.gathered:
                halves = weight.detach().view(torch.uint8).flatten().chunk(2)
                rows, turned = halves[0].view(weight.shape), halves[1].view(weight.shape[::-1])
                turned.copy_(rows.t())
                self.copies = rows.view(FORWARD), turned.view(FORWARD)
            else:
                self.copies = eight_bits.cast_both(weight.detach(), FORWARD)
        return self.copies


def _gather(rows, group, wait=True):
    """Rows of all ranks, a byte each; with a handle where it is not waited for."""
    whole = torch.empty((rows.shape[0] * group.size(), rows.shape[1]), dtype=torch.uint8, device=rows.device)
    handle = torch.distributed.all_gather_into_tensor(
        whole, rows.view(torch.uint8), group=group, async_op=not wait
    )
    return whole.view(rows.dtype), handle


class _Product(torch.autograd.Function):
    """A column- or row-parallel product, with the communication of Megatron-Core's own."""

    @staticmethod
    def forward(ctx, x, weight, bias, place):
        rows = x.reshape(-1, x.shape[-1])
        layer, ctx.reduce, sequence, group = place
        ctx.layer, ctx.sequence, ctx.group = layer, sequence, group
        ctx.bias, ctx.shape, ctx.kind = bias is not None, x.shape, x.dtype
        weights, _ = layer.eight.get(weight)
        if sequence:
            own = rows.to(FORWARD)
            rows, _ = _gather(own, group)
            ctx.save_for_backward(own, weight)
        else:
            rows, turned = eight_bits.cast_both(rows, FORWARD)
            ctx.save_for_backward(turned, weight)
        result = eight_bits.product(rows, weights, x.dtype, bias)
        return result.view(-1, *x.shape[1:-1], weight.shape[0])

    @staticmethod
    def backward(ctx, gradient):
        kept, weight = ctx.saved_tensors
        flat = gradient.reshape(-1, gradient.shape[-1])
        columns = flat.sum(0) if ctx.bias else None
        rows, turned_rows = eight_bits.cast_both(flat, BACKWARD)
        handle = None
        if ctx.sequence:
            whole, handle = _gather(kept, ctx.group, wait=False)
        _, turned_weights = ctx.layer.eight.get(weight)
        own = eight_bits.product(rows, turned_weights, ctx.kind)
        if ctx.sequence:
            handle.wait()
            turned = whole.view(torch.uint8).t().contiguous().view(FORWARD)
            share = own.new_empty((own.shape[0] // ctx.group.size(), own.shape[1]))
            handle = torch.distributed.reduce_scatter_tensor(share, own, group=ctx.group, async_op=True)
            own = share
        else:
            turned = kept
            if ctx.reduce:
                handle = torch.distributed.all_reduce(own, group=ctx.group, async_op=True)
        of_weight = _into_buffer(weight, turned_rows, turned)
        if handle is not None:
            handle.wait()
        return own.view(ctx.shape), of_weight, columns, None


_EMPTY = {}


def _into_buffer(weight, turned_rows, turned):
    """The weight's gradient, written where gradients are added up; an empty tensor stands for it."""
    total = getattr(weight, "main_grad", None)
    if total is None:
        return eight_bits.product(turned_rows, turned, weight.dtype)
    eight_bits.product(turned_rows, turned, total.dtype, out=total)
    weight.grad_added_to_main_grad = True
    if weight.shape not in _EMPTY:
        _EMPTY[weight.shape] = torch.empty_like(weight)
    return _EMPTY[weight.shape]


def _in_eight_bits(kind, steps, gathered):
    """A column- or row-parallel layer whose products are FP8 where their widths allow it."""

    class EightBits(kind):
        def __init__(self, *positions, **named):
            super().__init__(*positions, **named)
            self.eight = _Weights(steps, gathered)

        def _forward_impl(self, input, weight, bias, **others):
            if any(size % 16 for size in (input.numel() // input.shape[-1], *weight.shape)):
                return super()._forward_impl(input, weight, bias, **others)
            spread = [others[name] for name in ("allreduce_dgrad", "sequence_parallel", "tp_group")]
            return _Product.apply(input, weight, bias, (self, *spread))

    EightBits.__name__ = kind.__name__
    return EightBits


class LayersInEightBits:
    """Puts FP8 layers in place of Megatron-Core's linear ones in the specifications of layers."""

    def __init__(self, gathered):
        parallel = importlib.import_module("megatron.core.tensor_parallel")
        steps = _Steps()
        kinds = (parallel.ColumnParallelLinear, parallel.RowParallelLinear)
        self.replaced = {kind: _in_eight_bits(kind, steps, gathered) for kind in kinds}

    def replace(self, part):
        """In a specification and all that it is made of."""
        for field in dataclasses.fields(part):
            value = getattr(part, field.name)
            if isinstance(value, type) and value in self.replaced:
                setattr(part, field.name, self.replaced[value])
            elif dataclasses.is_dataclass(value) and not isinstance(value, type):
                self.replace(value)


def use_in(layers, arguments):
    """Ring attention under context parallelism and FP8 layers, where `arguments` ask for them."""
    if arguments.context_parallel_size > 1:
        for layer in layers:
            layer.submodules.self_attention.submodules.core_attention = RingAttention
    if arguments.fp8_format:
        eight = LayersInEightBits(arguments.fp8_param_gather)
        for layer in layers:
            eight.replace(layer.submodules)

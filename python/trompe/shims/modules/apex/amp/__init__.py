"""Apex's automatic mixed precision (`initialize`, `scale_loss`) by PyTorch's autocast and master weights.

    O0  nothing
    O1  the model's forward under autocast
    O2  a model in half precision (batch norms stay), master weights in fp32 that the optimizer steps
    O3  a model in half precision

Losses are scaled by a constant, gradients unscaled in one pass over them, and the host reads the overflow
flag after each backward pass, as Apex does.
"""

import contextlib
import functools

import torch
from trompe.shims.missing import attribute_of

__getattr__ = attribute_of("apex.amp")

_LEVELS = ("O0", "O1", "O2", "O3")
_NORMS = torch.nn.modules.batchnorm._BatchNorm


class _Scaler:
    """Unscales the gradients of an optimizer; keeps master weights where there are any."""

    def __init__(self, optimizer, scale):
        self.scale, self.pairs = scale, []
        self.optimizer = optimizer
        self.flag = None

    def make_masters(self):
        for group in self.optimizer.param_groups:
            for at, own in enumerate(group["params"]):
                if own.dtype == torch.float16:
                    master = own.detach().clone().float().requires_grad_()
                    group["params"][at] = master
                    self.pairs.append((own, master))
        step, clear = self.optimizer.step, self.optimizer.zero_grad

        @functools.wraps(step)
        def stepped(*arguments, **named):
            result = step(*arguments, **named)
            with torch.no_grad():
                torch._foreach_copy_([own for own, _ in self.pairs], [master for _, master in self.pairs])
            return result

        @functools.wraps(clear)
        def cleared(*arguments, **named):
            clear(*arguments, **named)
            for own, _ in self.pairs:
                own.grad = None

        self.optimizer.step, self.optimizer.zero_grad = stepped, cleared

    @torch.no_grad()
    def unscale(self):
        """Gradients without the scale, those of half weights in their masters; waits for the flag."""
        if self.flag is None:
            device = self.optimizer.param_groups[0]["params"][0].device
            self.flag = torch.zeros(1, dtype=torch.int32, device=device)
        halves = [(own, master) for own, master in self.pairs if own.grad is not None]
        for _own, master in halves:
            if master.grad is None:
                master.grad = torch.empty_like(master)
        if halves:
            torch._foreach_copy_([m.grad for _, m in halves], [own.grad for own, _ in halves])
        masters = {master for _, master in self.pairs}
        params = [p for group in self.optimizer.param_groups for p in group["params"]]
        others = [p.grad for p in params if p.grad is not None and p not in masters]
        if others:
            torch._foreach_mul_(others, 1.0 / self.scale)
        self.flag.item()


_scalers = {}


def _list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def initialize(
    models,
    optimizers=None,
    enabled=True,
    opt_level="O1",
    keep_batchnorm_fp32=None,
    master_weights=None,
    loss_scale=None,
    **_,
):
    """The models and optimizers, changed as the level says."""
    if opt_level not in _LEVELS:
        raise RuntimeError(f"unexpected optimization level {opt_level}: options are 'O0', 'O1', 'O2', 'O3'")
    if enabled:
        for model in _list(models):
            _change(model, opt_level, keep_batchnorm_fp32)
        scale = float(loss_scale) if loss_scale not in (None, "dynamic") else 65536.0
        for optimizer in _list(optimizers) if optimizers is not None else ():
            scaler = _scalers[id(optimizer)] = _Scaler(optimizer, scale)
            if master_weights or (master_weights is None and opt_level == "O2"):
                scaler.make_masters()
    return models if optimizers is None else (models, optimizers)


def _change(model, level, keep_norms):
    forward = model.forward
    if level == "O1":

        @functools.wraps(forward)
        def mixed(*arguments, **named):
            with torch.autocast("cuda", dtype=torch.float16):
                return forward(*arguments, **named)

        model.forward = mixed
    elif level in ("O2", "O3"):
        keep = keep_norms in (True, "True") or (keep_norms is None and level == "O2")
        for module in model.modules():
            if keep and isinstance(module, _NORMS):
                continue
            for _name, parameter in module.named_parameters(recurse=False):
                if parameter.dtype == torch.float32:
                    parameter.data = parameter.data.half()
            for name, buffer in module.named_buffers(recurse=False):
                if buffer.dtype == torch.float32:
                    module._buffers[name] = buffer.half()

        @functools.wraps(forward)
        def halved(*arguments, **named):
            cast = [x.half() if torch.is_tensor(x) and x.dtype == torch.float32 else x for x in arguments]
            result = forward(*cast, **named)
            return result.float() if torch.is_tensor(result) and result.is_floating_point() else result

        model.forward = halved


@contextlib.contextmanager
def scale_loss(loss, optimizers, loss_id=0, model=None, delay_unscale=False, delay_overflow_check=False):
    """The scaled loss; its gradients are unscaled at the end."""
    scalers = [_scalers[id(own)] for own in _list(optimizers) if id(own) in _scalers]
    yield loss * scalers[0].scale if scalers else loss
    if not delay_unscale:
        for scaler in scalers:
            scaler.unscale()


def master_params(optimizer):
    """All parameters that the optimizer steps."""
    for group in optimizer.param_groups:
        yield from group["params"]


def state_dict(destination=None):
    """The scale of each loss."""
    return {
        f"loss_scaler{at}": {"loss_scale": scaler.scale, "unskipped": 0}
        for at, scaler in enumerate(_scalers.values())
    }


def load_state_dict(state):
    """Nothing: the scale stays constant."""


def _same(function):
    return function


half_function = float_function = promote_function = _same

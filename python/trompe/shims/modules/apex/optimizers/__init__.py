"""Optimizers that update many tensors in one launch: PyTorch's with `fused=True`."""

import torch
from trompe.shims.missing import attribute_of

from .fused_lamb import FusedLAMB

__all__ = ["FusedAdam", "FusedLAMB", "FusedSGD"]
__getattr__ = attribute_of("apex.optimizers")


class FusedAdam(torch.optim.AdamW):
    """Adam, with decoupled weight decay unless `adam_w_mode` is off. States are as wide as parameters."""

    def __init__(
        self,
        params,
        lr=1e-3,
        bias_correction=True,
        betas=(0.9, 0.999),
        eps=1e-8,
        adam_w_mode=True,
        weight_decay=0.0,
        amsgrad=False,
        set_grad_none=True,
        **_,
    ):
        if not bias_correction:
            raise RuntimeError("trompe's light FusedAdam always corrects the bias")
        super().__init__(
            params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, fused=True
        )
        for group in self.param_groups:
            group["decoupled_weight_decay"] = bool(adam_w_mode)
        self.set_grad_none = set_grad_none

    def zero_grad(self, set_to_none=None):
        """Gives the gradients back, as Apex does, unless told to clear them."""
        super().zero_grad(set_to_none=self.set_grad_none if set_to_none is None else set_to_none)


class FusedSGD(torch.optim.SGD):
    """Stochastic gradient descent."""

    def __init__(self, params, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, **_):
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
            fused=True,
        )

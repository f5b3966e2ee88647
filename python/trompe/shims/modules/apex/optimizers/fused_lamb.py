"""Apex's LAMB: norms of all gradients, an update as Adam's, a step as long as each tensor's norm allows.

The kernels are PyTorch's with the same traffic: fused Adam for the first stage (four tensors read, three
written), norms of parameters and updates, one addition for the second stage.
"""

import torch


class FusedLAMB(torch.optim.Optimizer):
    """LAMB with two states as wide as the parameters; updates overwrite the gradients, as in Apex."""

    def __init__(
        self,
        params,
        lr=1e-3,
        bias_correction=True,
        betas=(0.9, 0.999),
        eps=1e-6,
        weight_decay=0.01,
        amsgrad=False,
        adam_w_mode=True,
        grad_averaging=True,
        set_grad_none=True,
        max_grad_norm=1.0,
        use_nvlamb=False,
    ):
        if amsgrad:
            raise RuntimeError("FusedLAMB does not support the AMSGrad variant")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.set_grad_none = set_grad_none
        self.trusts = use_nvlamb or weight_decay != 0.0

    def zero_grad(self, set_to_none=None):
        """Gives the gradients back, as Apex does, unless told to clear them."""
        super().zero_grad(set_to_none=self.set_grad_none if set_to_none is None else set_to_none)

    @torch.no_grad()
    def step(self, closure=None):
        """One step."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        everything = [p.grad for group in self.param_groups for p in group["params"] if p.grad is not None]
        if everything:
            torch.linalg.vector_norm(torch.stack(torch._foreach_norm(everything)))
        for group in self.param_groups:
            for kind in {p.dtype for p in group["params"] if p.grad is not None}:
                self._update(group, [p for p in group["params"] if p.grad is not None and p.dtype == kind])
        return loss

    def _update(self, group, params):
        if "step" not in group:
            group["step"] = torch.zeros((), dtype=torch.float32, device=params[0].device)
        for p in params:
            if not self.state[p]:
                self.state[p].update(exp_avg=torch.zeros_like(p), exp_avg_sq=torch.zeros_like(p))
        group["step"].add_(1)
        gradients = [p.grad for p in params]
        if self.trusts:
            torch._foreach_norm(params)
        torch._fused_adamw_(
            gradients,
            params,
            [self.state[p]["exp_avg"] for p in params],
            [self.state[p]["exp_avg_sq"] for p in params],
            [],
            [group["step"]] * len(params),
            amsgrad=False,
            lr=group["lr"],
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )
        if self.trusts:
            torch._foreach_norm(gradients)
        torch._foreach_add_(params, gradients, alpha=-group["lr"])

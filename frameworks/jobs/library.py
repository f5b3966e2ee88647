"""One training job each for libraries that live inside a step: `library.py NAME [--compile]`."""

import argparse

import common
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("name")
parser.add_argument("--compile", action="store_true")
parser.add_argument("--steps", type=int, default=4)
arguments = parser.parse_args()


def language_model(model):
    """Inputs and loss of a causal language model of transformers."""
    tokens = torch.randint(0, 2000, (2, 128), device="cuda")

    def loss():
        with torch.autocast("cuda", torch.bfloat16):
            return model(input_ids=tokens, labels=tokens).loss

    return loss


def peft_lora():
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(common.tiny_llama(), LoraConfig(r=8, target_modules=["q_proj", "v_proj"])).cuda()
    model.print_trainable_parameters()
    return model, language_model


def liger():
    from liger_kernel.transformers import apply_liger_kernel_to_llama

    apply_liger_kernel_to_llama()
    return common.tiny_llama().cuda(), language_model


def bitsandbytes_linear(kind):
    """A network with 8- or 4-bit weights and adapters that are trained."""
    import bitsandbytes as bnb

    layer = {"8bit": bnb.nn.Linear8bitLt, "4bit": bnb.nn.Linear4bit}[kind]
    options = {"has_fp16_weights": False} if kind == "8bit" else {"quant_type": "nf4"}

    class Adapted(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = layer(512, 512, **options)
            self.base.requires_grad_(False)
            self.down, self.up = nn.Linear(512, 8, bias=False), nn.Linear(8, 512, bias=False)

        def forward(self, x):
            return x + self.base(x) + self.up(self.down(x))

    return nn.Sequential(Adapted(), Adapted()).cuda(), regression


def regression(model):
    x = torch.randn(64, 512, device="cuda")

    def loss():
        with torch.autocast("cuda", torch.bfloat16):
            return model(x).float().square().mean()

    return loss


def plain():
    return nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda(), regression


def float8():
    from torchao.float8 import convert_to_float8_training

    model, loss = plain()
    return convert_to_float8_training(model.to(torch.bfloat16)), loss


def timm_model(name):
    import timm

    def images(model):
        x = torch.randn(4, 3, 224, 224, device="cuda")
        target = torch.randint(0, 1000, (4,), device="cuda")

        def loss():
            with torch.autocast("cuda", torch.bfloat16):
                return nn.functional.cross_entropy(model(x), target)

        return loss

    return timm.create_model(name, pretrained=False).cuda(), images


def geometric(name):
    import torch_geometric.nn as geometric_nn

    kind = getattr(geometric_nn, name)

    def graph(model):
        x = torch.randn(1000, 64, device="cuda")
        edges = torch.randint(0, 1000, (2, 5000), device="cuda")
        target = torch.randint(0, 10, (1000,), device="cuda")
        return lambda: nn.functional.cross_entropy(model(x, edges), target)

    return kind(64, 128, num_layers=3, out_channels=10).cuda(), graph


MODELS = {
    "peft": peft_lora,
    "liger": liger,
    "bitsandbytes-8bit": lambda: bitsandbytes_linear("8bit"),
    "bitsandbytes-4bit": lambda: bitsandbytes_linear("4bit"),
    "float8": float8,
    "resnet50": lambda: timm_model("resnet50"),
    "vit": lambda: timm_model("vit_small_patch16_224"),
    "convnext": lambda: timm_model("convnext_tiny"),
    "gcn": lambda: geometric("GCN"),
    "sage": lambda: geometric("GraphSAGE"),
    "gat": lambda: geometric("GAT"),
}


def optimizer_for(name, parameters):
    if name.startswith("bitsandbytes"):
        import bitsandbytes as bnb

        return bnb.optim.AdamW8bit(parameters)
    if name == "torchao-adamw-8bit":
        from torchao.optim import AdamW8bit

        return AdamW8bit(parameters)
    if name == "bitsandbytes-paged":
        import bitsandbytes as bnb

        return bnb.optim.PagedAdamW8bit(parameters)
    return torch.optim.AdamW(parameters)


model, make_loss = MODELS.get(arguments.name, plain)()
optimizer = optimizer_for(arguments.name, [p for p in model.parameters() if p.requires_grad])
runnable = torch.compile(model) if arguments.compile else model
compute = make_loss(runnable)
for _step in range(arguments.steps):
    loss = compute()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
print(f"loss {loss.item():.4f}")
common.finish(arguments.steps)

"""Trains a small transformer with PyTorch Lightning: `lightning_gpt.py [auto|ddp|fsdp]`."""

import argparse

import common
import lightning
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("strategy", nargs="?", default="auto", choices=("auto", "ddp", "fsdp"))
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--compile", action="store_true")
arguments = parser.parse_args()


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(2000, 256)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(256, 2000)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

    def training_step(self, batch, _index):
        logits = self(batch["input_ids"])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
        self.log("loss", loss, prog_bar=False, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-4)


strategy = arguments.strategy
if strategy == "fsdp":
    from lightning.pytorch.strategies import FSDPStrategy

    strategy = FSDPStrategy(auto_wrap_policy={nn.TransformerEncoderLayer})
trainer = lightning.Trainer(
    accelerator="cuda",
    devices=common.LOCAL_WORLD,
    num_nodes=common.WORLD // common.LOCAL_WORLD,
    strategy=strategy,
    precision="bf16-mixed",
    max_steps=arguments.steps,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    gradient_clip_val=None if arguments.strategy == "fsdp" else 1.0,
)
model = Model()
if arguments.compile:
    model = torch.compile(model)
trainer.fit(model, torch.utils.data.DataLoader(common.Tokens(count=4096), batch_size=4))
common.finish(trainer.global_step)

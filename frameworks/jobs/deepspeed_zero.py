"""Trains a small transformer with DeepSpeed ZeRO: `deepspeed_zero.py STAGE [--offload WHAT]`."""

import argparse

import common
import deepspeed
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("stage", type=int)
parser.add_argument("--offload", choices=("optimizer", "parameters"))
parser.add_argument("--checkpointing", action="store_true")
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--local_rank", type=int, default=common.LOCAL)
arguments = parser.parse_args()


class Model(nn.Module):
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
            x = deepspeed.checkpointing.checkpoint(block, x) if arguments.checkpointing else block(x)
        logits = self.head(x)
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())


zero = {"stage": arguments.stage, "reduce_bucket_size": 1_000_000}
if arguments.stage == 3:
    zero["stage3_param_persistence_threshold"] = 1000
if arguments.offload:
    zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
if arguments.offload == "parameters":
    zero["offload_param"] = {"device": "cpu", "pin_memory": True}
config = {
    "train_micro_batch_size_per_gpu": 2,
    "gradient_accumulation_steps": 2,
    "gradient_clipping": 1.0,
    "bf16": {"enabled": True},
    "zero_optimization": zero,
    "zero_allow_untested_optimizer": True,
    "zero_force_ds_cpu_optimizer": False,  # its own one is compiled with nvcc
    "steps_per_print": 1,
}
deepspeed.init_distributed("nccl")
torch.cuda.set_device(common.LOCAL)
with deepspeed.zero.Init(config_dict_or_path=config, enabled=arguments.stage == 3):
    model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
if arguments.checkpointing:
    deepspeed.checkpointing.configure(None, deepspeed_config=config)
for _step in range(2 * arguments.steps):
    tokens = torch.randint(0, 2000, (2, 128), device=engine.device)
    loss = engine(tokens)
    engine.backward(loss)
    engine.step()
common.finish(arguments.steps)

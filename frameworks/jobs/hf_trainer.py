"""Fine-tunes a tiny Llama with the Trainer of transformers: `hf_trainer.py [ddp|fsdp|deepspeed]`."""

import argparse
import tempfile

import common
from transformers import Trainer, TrainingArguments

parser = argparse.ArgumentParser()
parser.add_argument("kind", nargs="?", default="ddp", choices=("ddp", "fsdp", "deepspeed"))
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--compile", action="store_true")
parser.add_argument("--liger", action="store_true")
parser.add_argument("--checkpointing", action="store_true")
arguments = parser.parse_args()

parallel = {}
if arguments.kind == "fsdp":
    parallel = {
        "fsdp": "full_shard auto_wrap",
        "fsdp_config": {"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]},
    }
if arguments.kind == "deepspeed":
    parallel = {
        "deepspeed": {
            "zero_optimization": {"stage": 2},
            "bf16": {"enabled": True},
            "train_micro_batch_size_per_gpu": "auto",
            "gradient_accumulation_steps": "auto",
            "gradient_clipping": "auto",
        }
    }
settings = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    max_steps=arguments.steps,
    per_device_train_batch_size=2,
    gradient_accumulation_steps=2,
    bf16=True,
    gradient_checkpointing=arguments.checkpointing,
    torch_compile=arguments.compile,
    use_liger_kernel=arguments.liger,
    report_to=[],
    save_strategy="no",
    logging_steps=1,
    **parallel,
)
trainer = Trainer(model=common.tiny_llama(), args=settings, train_dataset=common.Tokens())
trainer.train()
common.finish(arguments.steps)

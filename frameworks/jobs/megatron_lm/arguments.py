"""Megatron-LM's own command line, as far as it shapes a training step of a GPT.

Names, defaults and meanings are those of Megatron-LM's `pretrain_gpt.py` (0.16); what
only concerns data files, checkpoints and logging is left out. `--transformer-impl local`
is the default here, because TransformerEngine may not be installed.
"""

import argparse
import os

import torch

# Megatron-LM's switches that are off unless given.
SWITCHES = """
    bf16 fp16 sequence-parallel swiglu squared-relu disable-bias-linear add-qkv-bias
    group-query-attention untie-embeddings-and-output-weights qk-layernorm use-distributed-optimizer
    overlap-grad-reduce overlap-param-gather accumulate-allreduce-grads-in-fp32
    distribute-saved-activations moe-grouped-gemm moe-pad-expert-input-to-capacity moe-router-pre-softmax
    moe-permute-fusion multi-latent-attention moe-shared-expert-overlap tp-comm-overlap fp8-param-gather
    use-precision-aware-optimizer empty-unused-memory-level no-check-for-nan-in-loss-and-grad
    no-masked-softmax-fusion no-bias-swiglu-fusion no-bias-gelu-fusion no-bias-dropout-fusion
    no-rope-fusion no-persist-layer-norm no-gradient-accumulation-fusion
    no-async-tensor-model-parallel-allreduce no-overlap-p2p-communication disable-gloo-process-groups
    enable-gloo-process-groups attention-softmax-in-fp32 optimizer-cpu-offload
    init-model-with-meta-device create-attention-mask-in-dataloader
    no-create-attention-mask-in-dataloader cross-entropy-loss-fusion grad-reduce-in-bf16
""".split()

# The others with their types and defaults.
VALUES = {
    "tensor-model-parallel-size": (int, 1),
    "pipeline-model-parallel-size": (int, 1),
    "virtual-pipeline-model-parallel-size": (int, None),
    "num-layers-per-virtual-pipeline-stage": (int, None),
    "num-virtual-stages-per-pipeline-rank": (int, None),
    "decoder-first-pipeline-num-layers": (int, None),
    "decoder-last-pipeline-num-layers": (int, None),
    "context-parallel-size": (int, 1),
    "cp-comm-type": (str, "p2p"),
    "expert-model-parallel-size": (int, 1),
    "expert-tensor-parallel-size": (int, None),
    "num-distributed-optimizer-instances": (int, 1),
    "num-layers": (int, None),
    "hidden-size": (int, None),
    "ffn-hidden-size": (int, None),
    "num-attention-heads": (int, None),
    "num-query-groups": (int, 1),
    "kv-channels": (int, None),
    "seq-length": (int, None),
    "max-position-embeddings": (int, None),
    "vocab-size": (int, 50257),
    "make-vocab-size-divisible-by": (int, 128),
    "rotary-base": (int, 10000),
    "rotary-percent": (float, 1.0),
    "norm-epsilon": (float, 1e-5),
    "hidden-dropout": (float, 0.1),
    "attention-dropout": (float, 0.1),
    "init-method-std": (float, 0.02),
    "q-lora-rank": (int, 512),
    "kv-lora-rank": (int, 512),
    "qk-head-dim": (int, 128),
    "qk-pos-emb-head-dim": (int, 64),
    "v-head-dim": (int, 128),
    "rotary-scaling-factor": (float, 40.0),
    "num-experts": (int, None),
    "moe-router-topk": (int, 2),
    "moe-ffn-hidden-size": (int, None),
    "moe-shared-expert-intermediate-size": (int, None),
    "moe-aux-loss-coeff": (float, 0.0),
    "moe-z-loss-coeff": (float, None),
    "moe-expert-capacity-factor": (float, None),
    "micro-batch-size": (int, None),
    "global-batch-size": (int, None),
    "train-iters": (int, 5),
    "log-interval": (int, 1),
    "recompute-num-layers": (int, None),
    "ddp-bucket-size": (int, None),
    "lr": (float, 1e-4),
    "min-lr": (float, 0.0),
    "lr-warmup-iters": (int, 0),
    "weight-decay": (float, 0.01),
    "clip-grad": (float, 1.0),
    "adam-beta1": (float, 0.9),
    "adam-beta2": (float, 0.999),
    "adam-eps": (float, 1e-8),
    "optimizer-offload-fraction": (float, 1.0),
    "seed": (int, 1234),
    "fp8-recipe": (str, "delayed"),
    "fp8-amax-history-len": (int, 1),
    "fp8-amax-compute-algo": (str, "most_recent"),
    "distributed-timeout-minutes": (int, 10),
}

CHOICES = {
    "transformer-impl": (("local", "transformer_engine"), "local"),
    "attention-backend": (("auto", "flash", "fused", "unfused", "local"), "auto"),
    "normalization": (("LayerNorm", "RMSNorm"), "LayerNorm"),
    "position-embedding-type": (("learned_absolute", "rope", "none"), "learned_absolute"),
    "recompute-granularity": (("full", "selective"), None),
    "recompute-method": (("uniform", "block"), None),
    "moe-token-dispatcher-type": (("allgather", "alltoall", "flex"), "allgather"),
    "moe-router-load-balancing-type": (("aux_loss", "seq_aux_loss", "sinkhorn", "none"), "aux_loss"),
    "cross-entropy-fusion-impl": (("native", "te"), "native"),
    "optimizer": (("adam", "sgd"), "adam"),
    "lr-decay-style": (("constant", "linear", "cosine"), "linear"),
    "fp8-format": (("e4m3", "hybrid"), None),
    "main-grads-dtype": (("fp32", "bf16"), "fp32"),
}


def parse():
    """The arguments of this process with Megatron-LM's derived values filled in."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in SWITCHES:
        parser.add_argument(f"--{name}", action="store_true")
    for name, (kind, default) in VALUES.items():
        parser.add_argument(f"--{name}", type=kind, default=default)
    for name, (choices, default) in CHOICES.items():
        parser.add_argument(f"--{name}", choices=choices, default=default)
    parser.add_argument("--recompute-modules", nargs="*", default=None)
    parser.add_argument("--moe-layer-freq", type=_layer_pattern, default=1)
    parser.add_argument(
        "--newer-kernels",
        action="store_true",
        help="over layers of its own: fused rotary embedding and accumulating products (`newer.py`)",
    )
    parser.add_argument("--print-memory", action="store_true", help="print max_memory_allocated at the end")
    arguments = parser.parse_args()
    _derive(arguments, parser)
    return arguments


def _layer_pattern(text):
    """Megatron-LM's `--moe-layer-freq`: a number N, or a list such as `[0]+[1]*7`."""
    if text.isdigit():
        return int(text)
    layers = []
    for part in text.split("+"):
        item, _, times = part.strip().partition("*")
        layers += [int(word) for word in item.strip("[] ").split(",")] * int(times or 1)
    return layers


def _derive(arguments, parser):
    for name in ("num_layers", "hidden_size", "num_attention_heads", "seq_length", "micro_batch_size"):
        if getattr(arguments, name) is None:
            parser.error(f"--{name.replace('_', '-')} is needed")
    world = int(os.environ.get("WORLD_SIZE", "1"))
    model_parallel = (
        arguments.tensor_model_parallel_size
        * arguments.pipeline_model_parallel_size
        * arguments.context_parallel_size
    )
    if world % model_parallel:
        parser.error(f"the world size {world} is not divisible by TP x PP x CP = {model_parallel}")
    arguments.data_parallel_size = world // model_parallel
    if arguments.global_batch_size is None:
        arguments.global_batch_size = arguments.micro_batch_size * arguments.data_parallel_size
    if arguments.ffn_hidden_size is None:
        # Two matrices of 4h, or three of 8h/3 (rounded to 64) for a gated unit.
        width = arguments.hidden_size
        arguments.ffn_hidden_size = int(4 * width * 2 / 3 / 64) * 64 if arguments.swiglu else 4 * width
    if not arguments.group_query_attention:
        arguments.num_query_groups = None
    if arguments.max_position_embeddings is None:
        arguments.max_position_embeddings = arguments.seq_length
    if arguments.fp16 and arguments.bf16:
        parser.error("--fp16 and --bf16 exclude each other")
    arguments.params_dtype = (
        torch.bfloat16 if arguments.bf16 else torch.float16 if arguments.fp16 else torch.float32
    )
    if arguments.bf16 and not arguments.grad_reduce_in_bf16:  # as Megatron-LM does
        arguments.accumulate_allreduce_grads_in_fp32 = True
    arguments.virtual_pipeline_model_parallel_size = _virtual_stages(arguments)
    multiple = arguments.make_vocab_size_divisible_by * arguments.tensor_model_parallel_size
    arguments.padded_vocab_size = -(-arguments.vocab_size // multiple) * multiple


def _virtual_stages(arguments):
    """Model chunks per pipeline rank from any of Megatron-LM's three ways to say it."""
    if arguments.pipeline_model_parallel_size == 1:
        return None
    if arguments.num_virtual_stages_per_pipeline_rank is not None:
        return arguments.num_virtual_stages_per_pipeline_rank
    if arguments.num_layers_per_virtual_pipeline_stage is not None:
        per_stage = arguments.num_layers // arguments.pipeline_model_parallel_size
        return per_stage // arguments.num_layers_per_virtual_pipeline_stage
    return arguments.virtual_pipeline_model_parallel_size

"""The layers of `--transformer-impl local` that Megatron-Core leaves to Apex or TransformerEngine.

Megatron-Core takes user layers through a `ModuleSpec`; these are PyTorch's own norm under
sequence parallelism, and PyTorch's fused attention, which all-gathers keys and values
under context parallelism. `--attention-backend auto|unfused|local` keeps Megatron-Core's
own unfused attention.
"""

import importlib

import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import (
    get_gpt_decoder_block_spec,
    get_gpt_layer_local_spec,
    get_gpt_layer_with_transformer_engine_spec,
)
from megatron.core.tensor_parallel import gather_from_sequence_parallel_region
from megatron.core.transformer.moe import moe_utils
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules, get_num_layers_to_build

# Megatron-Core 0.16.1 asks this name, which only TransformerEngine defines, before it routes tokens.
if not hasattr(moe_utils, "te_general_gemm"):
    moe_utils.te_general_gemm = None


class Norm:
    """PyTorch's LayerNorm or RMSNorm; its gradients are summed over the tensor-parallel group."""

    def __new__(cls, config, hidden_size, eps=1e-5, **_ignored):
        kind = torch.nn.RMSNorm if config.normalization == "RMSNorm" else torch.nn.LayerNorm
        norm = kind(hidden_size, eps=eps)
        for parameter in norm.parameters():
            parameter.sequence_parallel = config.sequence_parallel
        return norm


class FusedAttention(torch.nn.Module):
    """Causal scaled-dot-product attention by PyTorch, with grouped queries and context parallelism."""

    def __init__(self, config, layer_number, attn_mask_type, attention_type, **_ignored):
        super().__init__()
        self.dropout = config.attention_dropout
        self.context = (
            parallel_state.get_context_parallel_group() if config.context_parallel_size > 1 else None
        )

    def forward(self, query, key, value, attention_mask=None, **_ignored):
        """`[s, b, heads, width]` in, `[s, b, heads * width]` out."""
        causal, mask = True, None
        if self.context is not None:
            key, value = (
                gather_from_sequence_parallel_region(
                    x.contiguous(), tensor_parallel_output_grad=True, group=self.context
                )
                for x in (key, value)
            )
            causal, mask = False, self._mask(query.shape[0], key.shape[0], query.device)
        length, batch, heads, _ = query.shape
        output = torch.nn.functional.scaled_dot_product_attention(
            *(x.permute(1, 2, 0, 3) for x in (query, key, value)),
            attn_mask=mask,
            is_causal=causal,
            dropout_p=self.dropout if self.training else 0.0,
            enable_gqa=key.shape[2] != heads,
        )
        return output.permute(2, 0, 1, 3).reshape(length, batch, heads * value.shape[3])

    def _mask(self, queries, keys, device):
        """Which of the gathered keys each own query sees: rank r holds the chunks r and 2n-1-r."""
        size, rank = self.context.size(), self.context.rank()
        half = queries // 2

        def positions(member):
            first, second = member * half, (2 * size - 1 - member) * half
            return torch.cat([torch.arange(first, first + half), torch.arange(second, second + half)])

        own = positions(rank)
        all_keys = torch.cat([positions(member) for member in range(size)])
        return (own[:, None] >= all_keys[None, :]).to(device)


def layer_spec(arguments, config, stage):
    """What `GPTModel` builds its layers from; `stage` is the virtual pipeline stage."""
    engine = arguments.transformer_impl == "transformer_engine"
    if engine and isinstance(config.moe_layer_freq, int) and config.moe_layer_freq == 1:
        return get_gpt_layer_with_transformer_engine_spec(
            config.num_moe_experts,
            config.moe_grouped_gemm,
            config.qk_layernorm,
            config.multi_latent_attention,
        )
    if engine or config.num_moe_experts:
        block = get_gpt_decoder_block_spec(config, engine, normalization=config.normalization, vp_stage=stage)
    else:
        layer = get_gpt_layer_local_spec(
            qk_layernorm=config.qk_layernorm,
            multi_latent_attention=config.multi_latent_attention,
            normalization=config.normalization,
        )
        block = TransformerBlockSubmodules([layer] * get_num_layers_to_build(config, vp_stage=stage), Norm)
    if not engine:
        block.layer_norm = Norm
        for layer in block.layer_specs:
            _use_own_layers(arguments, layer.submodules)
        if arguments.newer_kernels:
            # Needs `trompe.shims`, which other jobs do without.
            newer = importlib.import_module("megatron_lm.newer")
            newer.use_in(block.layer_specs, arguments)
    return block


def _use_own_layers(arguments, layer):
    layer.input_layernorm = layer.pre_mlp_layernorm = Norm
    attention = layer.self_attention.submodules
    for name in ("q_layernorm", "k_layernorm", "kv_layernorm"):
        if "Norm" in getattr(getattr(attention, name, None), "__name__", ""):
            setattr(attention, name, Norm)
    if arguments.attention_backend in ("flash", "fused") or arguments.context_parallel_size > 1:
        attention.core_attention = FusedAttention

"""Megatron-LM arguments turned into Megatron-Core's configurations, as Megatron-LM does it."""

import sys

import torch
from megatron.core.distributed import DistributedDataParallelConfig
from megatron.core.optimizer import OptimizerConfig
from megatron.core.transformer.enums import AttnBackend
from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig

# Arguments whose name is also that of the configuration's field.
SAME = """
    num_layers hidden_size ffn_hidden_size num_attention_heads num_query_groups kv_channels normalization
    tensor_model_parallel_size pipeline_model_parallel_size virtual_pipeline_model_parallel_size
    sequence_parallel context_parallel_size expert_model_parallel_size expert_tensor_parallel_size
    hidden_dropout attention_dropout add_qkv_bias qk_layernorm init_method_std bf16 fp16 params_dtype
    recompute_granularity recompute_method recompute_num_layers recompute_modules
    distribute_saved_activations moe_router_topk moe_ffn_hidden_size moe_shared_expert_intermediate_size
    moe_shared_expert_overlap moe_aux_loss_coeff moe_z_loss_coeff moe_expert_capacity_factor
    moe_pad_expert_input_to_capacity moe_router_pre_softmax moe_permute_fusion moe_token_dispatcher_type
    moe_router_load_balancing_type moe_grouped_gemm moe_layer_freq transformer_impl fp8_recipe
    fp8_amax_history_len fp8_amax_compute_algo attention_softmax_in_fp32 init_model_with_meta_device
    tp_comm_overlap multi_latent_attention cp_comm_type cross_entropy_loss_fusion cross_entropy_fusion_impl
""".split()

# Those of multi-latent attention only.
LATENT = "q_lora_rank kv_lora_rank qk_head_dim qk_pos_emb_head_dim v_head_dim rotary_scaling_factor".split()


def squared_relu(x):
    """The square of what is positive."""
    return torch.relu(x).square()


def transformer_config(arguments):
    """The model's configuration."""
    engine = arguments.transformer_impl == "transformer_engine"
    newer = engine or arguments.newer_kernels
    fields = {name: getattr(arguments, name) for name in SAME}
    pipeline = arguments.pipeline_model_parallel_size > 1
    kind = MLATransformerConfig if arguments.multi_latent_attention else TransformerConfig
    if arguments.multi_latent_attention:
        fields.update({name: getattr(arguments, name) for name in LATENT})
    else:
        fields.pop("multi_latent_attention")
    activation = (
        {"activation_func": torch.nn.functional.silu, "gated_linear_unit": True} if arguments.swiglu else {}
    )
    if arguments.squared_relu:
        activation = {"activation_func": squared_relu}
    fused_activation = not (
        arguments.no_bias_swiglu_fusion if arguments.swiglu else arguments.no_bias_gelu_fusion
    )
    return kind(
        **fields,
        **activation,
        layernorm_epsilon=arguments.norm_epsilon,
        add_bias_linear=not arguments.disable_bias_linear,
        num_moe_experts=arguments.num_experts,
        attention_backend=AttnBackend[arguments.attention_backend],
        # FP8 without TransformerEngine is a matter of the layers (`layers.py`).
        fp8=arguments.fp8_format if engine else None,
        fp8_param=arguments.fp8_param_gather and engine,
        pipeline_dtype=arguments.params_dtype if pipeline else None,
        overlap_p2p_comm=arguments.virtual_pipeline_model_parallel_size is not None
        and not arguments.no_overlap_p2p_communication,
        batch_p2p_comm=arguments.virtual_pipeline_model_parallel_size is None
        or arguments.no_overlap_p2p_communication,
        deallocate_pipeline_outputs=True,
        num_layers_in_first_pipeline_stage=arguments.decoder_first_pipeline_num_layers,
        num_layers_in_last_pipeline_stage=arguments.decoder_last_pipeline_num_layers,
        bias_activation_fusion=fused_activation
        and not arguments.squared_relu
        # A gated activation needs no bias for it.
        and (arguments.swiglu or not arguments.disable_bias_linear),
        bias_dropout_fusion=not arguments.no_bias_dropout_fusion,
        masked_softmax_fusion=(engine or "scaled_masked_softmax_cuda" in sys.modules)
        and not arguments.no_masked_softmax_fusion,
        apply_rope_fusion=newer and not arguments.no_rope_fusion,
        persist_layer_norm=engine and not arguments.no_persist_layer_norm,
        # Needs Apex or TransformerEngine 2.
        gradient_accumulation_fusion=newer and not arguments.no_gradient_accumulation_fusion,
    )


def replica_config(arguments):
    """How gradients are reduced over the data-parallel group."""
    return DistributedDataParallelConfig(
        grad_reduce_in_fp32=arguments.accumulate_allreduce_grads_in_fp32,
        overlap_grad_reduce=arguments.overlap_grad_reduce,
        overlap_param_gather=arguments.overlap_param_gather,
        use_distributed_optimizer=arguments.use_distributed_optimizer,
        num_distributed_optimizer_instances=arguments.num_distributed_optimizer_instances,
        check_for_nan_in_grad=not arguments.no_check_for_nan_in_loss_and_grad,
        bucket_size=arguments.ddp_bucket_size,
        fp8_param_gather=arguments.fp8_param_gather and arguments.transformer_impl == "transformer_engine",
    )


def optimizer_config(arguments):
    """The optimizer's configuration."""
    dtypes = {"fp32": torch.float32, "bf16": torch.bfloat16}
    return OptimizerConfig(
        optimizer=arguments.optimizer,
        lr=arguments.lr,
        min_lr=arguments.min_lr,
        weight_decay=arguments.weight_decay,
        fp16=arguments.fp16,
        bf16=arguments.bf16,
        params_dtype=arguments.params_dtype,
        adam_beta1=arguments.adam_beta1,
        adam_beta2=arguments.adam_beta2,
        adam_eps=arguments.adam_eps,
        clip_grad=arguments.clip_grad,
        use_distributed_optimizer=arguments.use_distributed_optimizer,
        overlap_param_gather=arguments.overlap_param_gather,
        use_precision_aware_optimizer=arguments.use_precision_aware_optimizer,
        main_grads_dtype=dtypes[arguments.main_grads_dtype],
        optimizer_cpu_offload=arguments.optimizer_cpu_offload,
        optimizer_offload_fraction=arguments.optimizer_offload_fraction
        if arguments.optimizer_cpu_offload
        else 0.0,
    )

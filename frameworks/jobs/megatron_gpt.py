"""Trains a GPT with Megatron-Core as Megatron-LM's `pretrain_gpt.py` does, on synthetic tokens.

    torchrun --nproc-per-node 8 megatron_gpt.py --tensor-model-parallel-size 2 --num-layers 4 \
        --hidden-size 256 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1 --bf16

Takes Megatron-LM's own argument names (`megatron_lm/arguments.py` has them all).
"""

import os
from functools import partial

import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.distributed import DistributedDataParallel, finalize_model_grads
from megatron.core.enums import ModelType
from megatron.core.models.gpt import GPTModel
from megatron.core.num_microbatches_calculator import get_num_microbatches, init_num_microbatches_calculator
from megatron.core.optimizer import get_megatron_optimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.rerun_state_machine import RerunDataIterator
from megatron.core.timers import Timers
from megatron.core.transformer.module import Float16Module
from megatron.core.utils import get_batch_on_this_cp_rank, get_model_config
from megatron_lm import arguments as command_line
from megatron_lm import configs, layers


def initialize(arguments):
    """Process groups, seeds and the number of microbatches."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    torch.cuda.set_device(local)
    torch.distributed.init_process_group("nccl")
    parallel_state.initialize_model_parallel(
        arguments.tensor_model_parallel_size,
        arguments.pipeline_model_parallel_size,
        arguments.virtual_pipeline_model_parallel_size,
        context_parallel_size=arguments.context_parallel_size,
        expert_model_parallel_size=arguments.expert_model_parallel_size,
        expert_tensor_parallel_size=arguments.expert_tensor_parallel_size,
        num_distributed_optimizer_instances=arguments.num_distributed_optimizer_instances,
        distributed_timeout_minutes=arguments.distributed_timeout_minutes,
        create_gloo_process_groups=not arguments.disable_gloo_process_groups,
    )
    init_num_microbatches_calculator(
        torch.distributed.get_rank(),
        None,
        arguments.global_batch_size,
        arguments.micro_batch_size,
        arguments.data_parallel_size,
    )
    torch.manual_seed(arguments.seed + 100 * parallel_state.get_pipeline_model_parallel_rank())
    tensor_parallel.model_parallel_cuda_manual_seed(arguments.seed)
    torch.distributed.barrier()


def build_chunk(arguments, config, stage):
    """The part of the model on this rank, or one of its parts under interleaving."""
    position = {"ignore_virtual": False, "vp_stage": stage}
    return GPTModel(
        config=config,
        transformer_layer_spec=layers.layer_spec(arguments, config, stage),
        vocab_size=arguments.padded_vocab_size,
        max_sequence_length=arguments.max_position_embeddings,
        pre_process=parallel_state.is_pipeline_first_stage(**position),
        post_process=parallel_state.is_pipeline_last_stage(**position),
        share_embeddings_and_output_weights=not arguments.untie_embeddings_and_output_weights,
        position_embedding_type=arguments.position_embedding_type,
        rotary_percent=arguments.rotary_percent,
        rotary_base=arguments.rotary_base,
        vp_stage=stage,
    )


def build_model(arguments, config):
    """The chunks of this rank on the device, in half precision and with reduced gradients."""
    count = arguments.virtual_pipeline_model_parallel_size
    chunks = [build_chunk(arguments, config, stage) for stage in (range(count) if count else [None])]
    for chunk in chunks:
        chunk.model_type = ModelType.encoder_or_decoder
        for parameter in chunk.parameters():
            tensor_parallel.set_defaults_if_not_set_tensor_model_parallel_attributes(parameter)
    if arguments.init_model_with_meta_device:
        chunks = [
            chunk.to_empty(device=torch.device("cuda", torch.cuda.current_device())) for chunk in chunks
        ]
    chunks = [chunk.cuda(torch.cuda.current_device()) for chunk in chunks]
    if arguments.fp16 or arguments.bf16:
        chunks = [Float16Module(config, chunk) for chunk in chunks]
    replica = configs.replica_config(arguments)
    if replica.bucket_size is None:  # as Megatron-LM chooses it
        group = parallel_state.get_data_parallel_world_size(with_context_parallel=True)
        replica.bucket_size = max(40_000_000, 1_000_000 * group)
    if not replica.overlap_grad_reduce:
        replica.bucket_size = None
    with torch.cuda.stream(torch.cuda.Stream()):
        chunks = [
            DistributedDataParallel(
                config=config,
                ddp_config=replica,
                module=chunk,
                disable_bucketing=number > 0,
            )
            for number, chunk in enumerate(chunks)
        ]
    if not arguments.init_model_with_meta_device:
        for chunk in chunks:
            chunk.broadcast_params()
    _connect(config, replica, chunks)
    return chunks


def _connect(config, replica, chunks):
    """Tells the schedules how to hold back and to start reductions, as Megatron-LM's `train` does."""

    def of_all(functions):
        return functions if len(functions) > 1 else functions[0]

    if replica.overlap_grad_reduce:
        config.no_sync_func = of_all([chunk.no_sync for chunk in chunks])
    if replica.overlap_grad_reduce and len(chunks) > 1:
        config.grad_sync_func = of_all([chunk.start_grad_sync for chunk in chunks])
    if replica.overlap_param_gather and len(chunks) > 1:
        config.param_sync_func = of_all([chunk.start_param_sync for chunk in chunks])
    config.finalize_model_grads_func = finalize_model_grads


def batches(arguments):
    """Microbatches of synthetic tokens in pinned memory, as a data loader gives them."""
    shape = (arguments.micro_batch_size, arguments.seq_length)
    generator = torch.Generator().manual_seed(arguments.seed)
    tokens = torch.randint(0, arguments.vocab_size, shape, generator=generator)
    batch = {
        "tokens": tokens,
        "labels": tokens.roll(-1, 1),
        "loss_mask": torch.ones(shape),
        "position_ids": torch.arange(shape[1]).expand(shape).contiguous(),
    }
    batch = {name: tensor.pin_memory() for name, tensor in batch.items()}
    while True:
        yield batch


def get_batch(arguments, iterator):
    """This rank's share of a microbatch: read by the first tensor-parallel rank, sent to the others."""
    shape = (arguments.micro_batch_size, arguments.seq_length)
    kinds = {
        "tokens": torch.int64,
        "labels": torch.int64,
        "loss_mask": torch.float32,
        "position_ids": torch.int64,
    }
    if parallel_state.get_tensor_model_parallel_rank() == 0:
        batch = {name: tensor.cuda(non_blocking=True) for name, tensor in next(iterator).items()}
    else:
        batch = {name: torch.empty(shape, dtype=kind, device="cuda") for name, kind in kinds.items()}
    source = parallel_state.get_tensor_model_parallel_src_rank()
    group = parallel_state.get_tensor_model_parallel_group()
    for tensor in batch.values():
        torch.distributed.broadcast(tensor, source, group=group)
    return get_batch_on_this_cp_rank(batch)


def loss_func(loss_mask, output):
    """Summed loss, number of tokens and what is reported of them."""
    losses = output.view(-1).float()
    mask = loss_mask.view(-1).float()
    loss = torch.sum(losses * mask)
    tokens = mask.sum().clone().detach().to(torch.int)
    reported = torch.cat([loss.clone().detach().view(1), tokens.view(1)])
    return loss, tokens, {"lm loss": reported}


def forward_step(arguments, iterator, model):
    """One microbatch through this rank's chunk."""
    first = parallel_state.is_pipeline_first_stage(ignore_virtual=True)
    last = parallel_state.is_pipeline_last_stage(ignore_virtual=True)
    if first or last:
        batch = get_batch(arguments, iterator)
    else:
        batch = dict.fromkeys(("tokens", "position_ids", "labels", "loss_mask"))
    output = model(
        batch["tokens"], batch["position_ids"], None, labels=batch["labels"], loss_mask=batch["loss_mask"]
    )
    return output, partial(loss_func, batch["loss_mask"])


def train_step(arguments, chunks, iterators, optimizer, scheduler):
    """One iteration; the mean loss on the last stage."""
    for chunk in chunks:
        chunk.zero_grad_buffer()
    optimizer.zero_grad()
    losses = get_forward_backward_func()(
        forward_step_func=partial(forward_step, arguments),
        data_iterator=iterators if len(iterators) > 1 else iterators[0],
        model=chunks,
        num_microbatches=get_num_microbatches(),
        seq_length=arguments.seq_length,
        micro_batch_size=arguments.micro_batch_size,
        decoder_seq_length=arguments.seq_length,
        forward_only=False,
    )
    if arguments.empty_unused_memory_level:
        torch.cuda.empty_cache()
    updated, norm, _zeros = optimizer.step()
    if updated:
        scheduler.step(increment=arguments.global_batch_size)
    if not parallel_state.is_pipeline_last_stage(ignore_virtual=True):
        return None, norm
    total = torch.stack([loss["lm loss"] for loss in losses]).sum(dim=0)
    torch.distributed.all_reduce(
        total, group=parallel_state.get_data_parallel_group(with_context_parallel=True)
    )
    return total[0] / total[1], norm


def main():
    arguments = command_line.parse()
    initialize(arguments)
    config = configs.transformer_config(arguments)
    chunks = build_model(arguments, config)
    optimizer = get_megatron_optimizer(
        configs.optimizer_config(arguments),
        chunks,
        use_gloo_process_groups=not arguments.disable_gloo_process_groups,
    )
    config.grad_scale_func = optimizer.scale_loss
    config.timers = timers = Timers(log_level=0, log_option="minmax")
    decay = max(arguments.train_iters, arguments.lr_warmup_iters + 1) * arguments.global_batch_size
    scheduler = OptimizerParamScheduler(
        optimizer,
        init_lr=0.0,
        max_lr=arguments.lr,
        min_lr=arguments.min_lr,
        lr_warmup_steps=arguments.lr_warmup_iters * arguments.global_batch_size,
        lr_decay_steps=decay,
        lr_decay_style=arguments.lr_decay_style,
        start_wd=arguments.weight_decay,
        end_wd=arguments.weight_decay,
        wd_incr_steps=decay,
        wd_incr_style="constant",
    )
    iterators = [RerunDataIterator(batches(arguments)) for _chunk in chunks]
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    assert get_model_config(chunks[0]) is config
    for chunk in chunks:
        chunk.train()
    timers("interval-time", log_level=0).start(barrier=True)
    for iteration in range(1, arguments.train_iters + 1):
        loss, norm = train_step(arguments, chunks, iterators, optimizer, scheduler)
        if iteration % arguments.log_interval == 0:
            elapsed = timers("interval-time").elapsed(barrier=True) / arguments.log_interval
            if rank == world - 1:
                print(
                    f" iteration {iteration:8d}/{arguments.train_iters:8d} | "
                    f"elapsed time per iteration (ms): {elapsed * 1e3:.1f} | "
                    f"global batch size: {arguments.global_batch_size:5d} | "
                    f"lm loss: {loss.item():.6E} | grad norm: {norm:.3f} |",
                    flush=True,
                )
    torch.cuda.synchronize()
    print(f"rank {rank} of {world}: {arguments.train_iters} iterations done", flush=True)
    if arguments.print_memory:
        print(f"max_memory_allocated {torch.cuda.max_memory_allocated()}", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()

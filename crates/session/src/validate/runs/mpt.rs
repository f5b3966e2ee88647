//! MPT models under fully sharded data parallelism, as llm-foundry trains them.
//!
//! Its benchmarks ran with PyTorch 1.13 to 2.0 and the attention of Triton (`attn_impl: triton` is the default of their
//! `submit_benchmarks.py`), mixed precision `PURE`, low-precision norms, tied embeddings and no biases.

use trompe_measure::runs::RunRow;
use trompe_measure::sources::Sources;

use super::jobs::{Job, Length, cluster, needed, option};

/// Iterations that are emulated.
const ITERATIONS: u64 = 4;

/// The job of `row`.
///
/// # Errors
/// In words, when the row states too little.
pub(super) fn job(row: &RunRow, sources: &Sources) -> Result<Job, String> {
    let (cluster, per_node, gpus) = cluster(row, sources)?;
    let (hidden, heads) = (needed(row.hidden, "hidden")?, needed(row.heads, "heads")?);
    let (global, micro) =
        (needed(row.global_batch, "global_batch")?, needed(row.micro_batch, "micro_batch")?);
    if row.tp.unwrap_or(1) * row.pp.unwrap_or(1) > 1 {
        return Err("FSDP with tensor or pipeline parallelism".to_owned());
    }
    if row.notes.contains("offload=True") {
        return Err("activations offloaded to the host".to_owned());
    }
    if global % gpus != 0 {
        return Err(format!("a batch of {global} is no multiple of {gpus} GPUs"));
    }
    let own = global / gpus;
    // Micro batches that do not divide the batch end in a smaller one: such a step is emulated as it is.
    let (micro_batches, sequences) = if own % micro == 0 { (own / micro, micro * gpus) } else { (1, global) };
    let mut arguments = Vec::new();
    for (name, value) in [
        ("hidden-size", hidden),
        ("num-layers", needed(row.layers, "layers")?),
        ("num-attention-heads", heads),
        ("ffn-hidden-size", row.ffn.unwrap_or(4 * hidden)),
        ("vocab-size", row.vocab.unwrap_or(50_368)),
        ("seq-length", needed(row.seq, "seq")?),
        ("micro-batch-size", micro),
        ("train-iters", ITERATIONS),
    ] {
        option(&mut arguments, name, value);
    }
    let sharding = if row.sharding.is_empty() { "FULL_SHARD" } else { &row.sharding };
    option(&mut arguments, "sharding", sharding);
    option(&mut arguments, "attention", "efficient");
    if row.recompute == "full" {
        arguments.push("--recompute".to_owned());
    }
    Ok(Job {
        script: "mpt_fsdp.py",
        arguments,
        cluster,
        simulated: None,
        per_node,
        ranks: "0".to_owned(),
        micro_batches,
        counts: Length { micro_batches, multiple: 1, stages: 1, layers: 1 }.counts(),
        engine: false,
        sequences,
        stages: 1,
        shorter: Vec::new(),
        assumed: vec!["first-generation fused attention; the network of the cluster's node sheet".to_owned()],
    })
}

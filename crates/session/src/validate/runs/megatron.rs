//! GPTs of Megatron-LM and its kin (Megatron-DeepSpeed, NeMo), emulated with Megatron-Core.

use trompe_measure::runs::RunRow;
use trompe_measure::sources::Sources;

use super::jobs::{Job, cluster, needed, option};

/// Iterations that are emulated: the first makes the optimizer's state, and host times are medians over the others.
pub(super) const ITERATIONS: u64 = 4;

/// The first rank of each pipeline stage of `per_stage` ranks: the others of a stage do the same work as it.
pub(super) fn stages(count: u64, per_stage: u64) -> String {
    (0..count).map(|stage| (stage * per_stage).to_string()).collect::<Vec<_>>().join(",")
}

/// The job of `row`.
///
/// # Errors
/// In words, when the row states too little.
pub(super) fn job(row: &RunRow, sources: &Sources) -> Result<Job, String> {
    let (hidden, layers) = (needed(row.hidden, "hidden")?, needed(row.layers, "layers")?);
    let (cluster, per_node, gpus) = cluster(row, sources)?;
    let (seq, tp, pp) = (needed(row.seq, "seq")?, row.tp.unwrap_or(1), row.pp.unwrap_or(1));
    let (cp, vp) = (row.cp.unwrap_or(1), row.vp.unwrap_or(1));
    if gpus % (tp * pp * cp) != 0 {
        return Err(format!("{gpus} GPUs are no multiple of TP x PP x CP = {}", tp * pp * cp));
    }
    let dp = gpus / (tp * pp * cp);
    let mut assumed = Vec::new();
    let heads = row.heads.unwrap_or_else(|| {
        let heads = (hidden / 128).max(1);
        assumed.push(format!("{heads} attention heads of 128"));
        heads
    });
    let global = needed(row.global_batch, "global_batch")?;
    let micro = match row.micro_batch {
        Some(micro) => micro,
        None if pp == 1 && global % dp == 0 && global / dp <= 16 => global / dp,
        None => return Err("`micro_batch` is empty".to_owned()),
    };
    if global % (dp * micro) != 0 {
        return Err(format!("a batch of {global} is no multiple of DP {dp} x micro batch {micro}"));
    }
    let micro_batches = global / (dp * micro);
    // Recent software: attention with one kernel for scores, softmax and context, no dropout, and a sharded optimizer
    // with overlapped reductions.
    let recent = row.framework.to_ascii_lowercase().contains("nemo");
    let mut arguments = Vec::new();
    for (name, value) in [
        ("num-layers", layers),
        ("hidden-size", hidden),
        ("num-attention-heads", heads),
        ("seq-length", seq),
        ("micro-batch-size", micro),
        ("train-iters", ITERATIONS),
        ("tensor-model-parallel-size", tp),
        ("pipeline-model-parallel-size", pp),
    ] {
        option(&mut arguments, name, value);
    }
    let mut switch = |name: &str| arguments.push(format!("--{name}"));
    switch(if row.precision.to_ascii_lowercase().contains("bf16") { "bf16" } else { "fp16" });
    switch("no-check-for-nan-in-loss-and-grad");
    let sequence_parallel = row.recompute.contains("seqpar") || recent && tp > 1;
    if sequence_parallel && tp > 1 {
        switch("sequence-parallel");
    }
    if recent && dp * cp > 1 {
        switch("use-distributed-optimizer");
        switch("overlap-grad-reduce");
        switch("overlap-param-gather");
    }
    if row.model.to_ascii_lowercase().starts_with("llama") {
        for name in ["swiglu", "disable-bias-linear", "untie-embeddings-and-output-weights"] {
            switch(name);
        }
        option(&mut arguments, "normalization", "RMSNorm");
        option(&mut arguments, "position-embedding-type", "rope");
    } else if row.model.starts_with("nemotron") {
        for name in ["squared-relu", "disable-bias-linear", "untie-embeddings-and-output-weights"] {
            switch(name);
        }
        option(&mut arguments, "position-embedding-type", "rope");
    }
    match row.recompute.split('+').next().unwrap_or_default() {
        "full" => {
            option(&mut arguments, "recompute-granularity", "full");
            option(&mut arguments, "recompute-method", "uniform");
            option(&mut arguments, "recompute-num-layers", 1);
        }
        "selective" => option(&mut arguments, "recompute-granularity", "selective"),
        _ => {}
    }
    if recent {
        option(&mut arguments, "attention-backend", "flash");
        option(&mut arguments, "attention-dropout", 0.0);
        option(&mut arguments, "hidden-dropout", 0.0);
    } else {
        assumed.push("dropout 0.1, fused softmax, GeLU and dropout".to_owned());
    }
    if cp > 1 {
        option(&mut arguments, "context-parallel-size", cp);
    }
    if pp > 1 && vp > 1 {
        option(&mut arguments, "num-virtual-stages-per-pipeline-rank", vp);
        if layers % (pp * vp) != 0 {
            return Err(format!("{layers} layers are no multiple of PP x VP = {}", pp * vp));
        }
    } else if layers % pp != 0 {
        return Err(format!("{layers} layers are no multiple of PP = {pp}"));
    }
    if let Some(ffn) = row.ffn {
        option(&mut arguments, "ffn-hidden-size", ffn);
    }
    if let Some(groups) = row.kv_heads.filter(|groups| *groups < heads) {
        arguments.push("--group-query-attention".to_owned());
        option(&mut arguments, "num-query-groups", groups);
    }
    match row.vocab {
        Some(vocab) => option(&mut arguments, "vocab-size", vocab),
        None => assumed.push("GPT-2's vocabulary of 50257".to_owned()),
    }
    Ok(Job {
        script: "megatron_fused.py",
        arguments,
        cluster,
        per_node,
        world: gpus,
        ranks: stages(pp, tp * cp * dp),
        micro_batches,
        multiple: if vp > 1 { pp } else { 1 },
        sequences: micro * dp,
        assumed,
    })
}

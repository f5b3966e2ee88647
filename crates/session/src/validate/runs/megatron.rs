//! GPTs of Megatron-LM and its kin (Megatron-DeepSpeed, NeMo), emulated with Megatron-Core.
//!
//! Two generations of software ran these rows. Until 2022 there were kernels of Megatron-LM's own and of Apex, for which
//! stand-ins are at hand; attention was scores, softmax and context apart. Since 2023 the layers are TransformerEngine's:
//! where the interpreter has it, those rows run over the real one; without it, over PyTorch's fused attention and light
//! modules of the other kernels. Both in FP8 too.

use trompe_measure::runs::RunRow;
use trompe_measure::runs::published::{Completed, Kind, Model};
use trompe_measure::sources::Sources;

use super::jobs::{self, Job, Length, cluster, needed, option};

/// The first rank of each pipeline stage of `per_stage` ranks: the others of a stage do the same work as it.
pub(super) fn stages(count: u64, per_stage: u64) -> String {
    (0..count).map(|stage| (stage * per_stage).to_string()).collect::<Vec<_>>().join(",")
}

/// How a row is spread.
struct Layout {
    tp: u64,
    pp: u64,
    cp: u64,
    dp: u64,
    vp: u64,
    micro: u64,
    length: Length,
}

/// The job of a row; with `engine`, the interpreter has TransformerEngine.
///
/// # Errors
/// In words, when the row states too little.
pub(super) fn job(completed: &Completed, sources: &Sources, engine: bool) -> Result<Job, String> {
    let row = &completed.row;
    let mut assumed = completed.assumed.clone();
    let hidden = needed(row.hidden, "hidden")?;
    let (cluster, per_node, gpus) = cluster(row, sources)?;
    let stand_in = jobs::stand_in(row, sources, &cluster);
    if let Some(other) = &stand_in {
        let other = other.split(':').next().unwrap_or_default();
        assumed.push(format!("emulated on {other}, because PyTorch has no kernels for {}", row.gpu));
    }
    let layout = layout(row, gpus)?;
    let heads = row.heads.unwrap_or_else(|| {
        let heads = (hidden / 128).max(1);
        assumed.push(format!("{heads} attention heads of 128"));
        heads
    });
    let framework = row.framework.to_ascii_lowercase();
    let recent = framework.contains("nemo") || framework.contains("te 2");
    let eight_bits = row.precision.to_ascii_lowercase().contains("fp8");
    let capability = sources
        .device(&row.gpu)
        .map(|sheet| (sheet.compute.capability_major, sheet.compute.capability_minor));
    if eight_bits && capability.is_some_and(|own| own < (8, 9)) {
        return Err(format!("FP8 training, but the {} has no FP8", row.gpu));
    }
    let over = engine;
    let newer = recent || eight_bits;
    let engine = engine && newer;
    let mut arguments = Vec::new();
    for (name, value) in [
        ("num-layers", layout.length.layers),
        ("hidden-size", hidden),
        ("num-attention-heads", heads),
        ("seq-length", needed(row.seq, "seq")?),
        ("micro-batch-size", layout.micro),
        ("train-iters", layout.length.iterations()),
        ("tensor-model-parallel-size", layout.tp),
        ("pipeline-model-parallel-size", layout.pp),
    ] {
        option(&mut arguments, name, value);
    }
    let mut switch = |name: &str| arguments.push(format!("--{name}"));
    let half = !eight_bits && !row.precision.to_ascii_lowercase().contains("bf16");
    switch(if half { "fp16" } else { "bf16" });
    switch("no-check-for-nan-in-loss-and-grad");
    if (row.recompute.contains("seqpar") || recent) && layout.tp > 1 {
        switch("sequence-parallel");
    }
    if recent && layout.dp * layout.cp > 1 {
        switch("use-distributed-optimizer");
        if framework.contains("nemo") {
            switch("overlap-grad-reduce");
            switch("overlap-param-gather");
        }
    }
    model_switches(row, completed.model.as_ref(), &mut arguments);
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
        // TransformerEngine's fused attention is cuDNN's.
        option(&mut arguments, "attention-backend", if engine { "fused" } else { "flash" });
        option(&mut arguments, "attention-dropout", 0.0);
        option(&mut arguments, "hidden-dropout", 0.0);
    } else {
        assumed.push("dropout 0.1, fused softmax, GeLU and dropout".to_owned());
    }
    if eight_bits {
        option(&mut arguments, "fp8-format", "hybrid");
        option(&mut arguments, "fp8-amax-history-len", 1024);
        option(&mut arguments, "fp8-amax-compute-algo", "max");
        if framework.contains("nemo") && layout.dp * layout.cp > 1 {
            // `bf16_with_fp8_mixed` of NeMo's recipes keeps the weights in FP8 and gathers them so.
            arguments.push("--fp8-param-gather".to_owned());
        }
    }
    if newer && !engine {
        arguments.push("--newer-kernels".to_owned());
        assumed.push(if eight_bits {
            "FP8 layers and fused kernels of light modules, because TransformerEngine is not installed; weights are \
             gathered in bf16"
                .to_owned()
        } else {
            "fused kernels of light modules, because TransformerEngine is not installed".to_owned()
        });
    }
    if newer && framework.contains("nemo") {
        // NeMo's recipes reduce gradients in bf16 and take the logits' loss in one kernel.
        arguments.extend(["--grad-reduce-in-bf16", "--cross-entropy-loss-fusion"].map(str::to_owned));
        option(&mut arguments, "cross-entropy-fusion-impl", "te");
    }
    if layout.tp > 1 && framework.contains("nemo") {
        assumed.push("tensor-parallel communication is not overlapped (NeMo's user buffers)".to_owned());
    }
    if layout.cp > 1 {
        option(&mut arguments, "context-parallel-size", layout.cp);
    }
    if layout.pp > 1 && layout.vp > 1 {
        option(&mut arguments, "num-virtual-stages-per-pipeline-rank", layout.vp);
    }
    if let Some(ffn) = row.ffn {
        option(&mut arguments, "ffn-hidden-size", ffn);
    }
    let latent = completed.model.as_ref().is_some_and(|model| model.kind == Kind::DeepSeek);
    if let Some(groups) = row.kv_heads.filter(|groups| *groups < heads && !latent) {
        arguments.push("--group-query-attention".to_owned());
        option(&mut arguments, "num-query-groups", groups);
    }
    match row.vocab {
        Some(vocab) => option(&mut arguments, "vocab-size", vocab),
        None => assumed.push("GPT-2's vocabulary of 50257".to_owned()),
    }
    experts(completed, layout.length.layers, engine, &mut arguments)?;
    let shorter = shorter(completed, sources, over)?;
    if !shorter.is_empty() {
        assumed.push(format!(
            "{} stages from pipelines of 4 and 6: the stages between the first and the last are alike",
            layout.pp
        ));
    }
    arguments.extend(completed.arguments.iter().cloned());
    Ok(Job {
        script: if engine { "megatron_engine.py" } else { "megatron_fused.py" },
        arguments,
        simulated: completed
            .node
            .as_ref()
            .filter(|_| per_node == 8)
            .map(|node| format!("{node}:{}", gpus / 8))
            .or_else(|| stand_in.is_some().then(|| cluster.clone())),
        cluster: stand_in.unwrap_or(cluster),
        per_node,
        ranks: stages(layout.pp, layout.tp * layout.cp * layout.dp),
        micro_batches: layout.length.micro_batches,
        counts: layout.length.counts(),
        engine,
        sequences: layout.micro * layout.dp,
        assumed,
        stages: layout.pp,
        shorter,
    })
}

/// The jobs with shorter pipelines that stand for a deep one: of the second only the longest step is needed.
fn shorter(completed: &Completed, sources: &Sources, engine: bool) -> Result<Vec<Job>, String> {
    let mut jobs = Vec::new();
    for row in jobs::shorter(&completed.row) {
        let mut short = job(&Completed { row, ..completed.clone() }, sources, engine)?;
        if !jobs.is_empty() {
            short.counts.drain(..short.counts.len() - 1);
        }
        jobs.push(short);
    }
    Ok(jobs)
}

/// How `row` is spread over `gpus` devices.
fn layout(row: &RunRow, gpus: u64) -> Result<Layout, String> {
    let layers = needed(row.layers, "layers")?;
    let (tp, pp) = (row.tp.unwrap_or(1), row.pp.unwrap_or(1));
    let (cp, vp) = (row.cp.unwrap_or(1), row.vp.unwrap_or(1));
    if !gpus.is_multiple_of(tp * pp * cp) {
        return Err(format!("{gpus} GPUs are no multiple of TP x PP x CP = {}", tp * pp * cp));
    }
    let dp = gpus / (tp * pp * cp);
    let global = needed(row.global_batch, "global_batch")?;
    let micro = match row.micro_batch {
        Some(micro) => micro,
        None if pp == 1 && global % dp == 0 && global / dp <= 16 => global / dp,
        None => return Err("`micro_batch` is empty".to_owned()),
    };
    if global % (dp * micro) != 0 {
        return Err(format!("a batch of {global} is no multiple of DP {dp} x micro batch {micro}"));
    }
    let parts = if pp > 1 { pp * vp } else { 1 };
    if layers % parts != 0 {
        return Err(format!("{layers} layers are no multiple of PP x VP = {parts}"));
    }
    let multiple = if pp > 1 && vp > 1 { pp } else { 1 };
    let length = Length { micro_batches: global / (dp * micro), multiple, stages: pp, layers };
    Ok(Layout { tp, pp, cp, dp, vp, micro, length })
}

/// What a family of models is made of.
fn model_switches(row: &RunRow, model: Option<&Model>, arguments: &mut Vec<String>) {
    let name = row.model.to_ascii_lowercase();
    let kind = match model {
        Some(model) => model.kind,
        None if name.starts_with("llama") => Kind::Llama,
        None if name.starts_with("nemotron") => Kind::Nemotron,
        None => Kind::Gpt,
    };
    let activation = match kind {
        Kind::Gpt => return,
        Kind::Nemotron => "squared-relu",
        Kind::Llama | Kind::DeepSeek => "swiglu",
    };
    for name in [activation, "disable-bias-linear", "untie-embeddings-and-output-weights"] {
        arguments.push(format!("--{name}"));
    }
    if kind != Kind::Nemotron {
        option(arguments, "normalization", "RMSNorm");
    }
    option(arguments, "position-embedding-type", "rope");
    if kind == Kind::DeepSeek {
        for name in ["multi-latent-attention", "qk-layernorm"] {
            arguments.push(format!("--{name}"));
        }
        option(arguments, "q-lora-rank", 1536);
        option(arguments, "rotary-scaling-factor", 1);
    }
}

/// The experts of a mixture; tokens go to them by `trompe run`'s policy, which is balanced.
fn experts(
    completed: &Completed,
    layers: u64,
    engine: bool,
    arguments: &mut Vec<String>,
) -> Result<(), String> {
    let row = &completed.row;
    let Some(count) = row.n_experts.filter(|count| *count > 1) else {
        return match row.ep {
            Some(ep) if ep > 1 => Err("expert parallelism without a number of experts".to_owned()),
            _ => Ok(()),
        };
    };
    let model = completed.model.as_ref();
    let per_token = model.and_then(|model| model.experts_per_token);
    let per_token = per_token.ok_or("a mixture that does not state how many experts a token goes to")?;
    option(arguments, "num-experts", count);
    option(arguments, "moe-router-topk", per_token);
    option(arguments, "expert-model-parallel-size", row.ep.unwrap_or(1));
    option(arguments, "moe-token-dispatcher-type", "alltoall");
    if engine {
        arguments.push("--moe-grouped-gemm".to_owned());
    }
    let Some(model) = model else { return Ok(()) };
    if let Some(width) = model.expert_ffn {
        option(arguments, "moe-ffn-hidden-size", width);
    }
    if let Some(width) = model.shared_ffn {
        option(arguments, "moe-shared-expert-intermediate-size", width);
    }
    if model.dense_layers > 0 && model.dense_layers < layers {
        let (dense, others) = (model.dense_layers, layers - model.dense_layers);
        option(arguments, "moe-layer-freq", format!("[0]*{dense}+[1]*{others}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use trompe_measure::runs::published::Published;

    use super::*;

    fn line(row: RunRow, engine: bool) -> String {
        let row = RunRow {
            gpu: "H100-SXM5-80GB".to_owned(),
            n_gpus: Some(16),
            seq: Some(4096),
            micro_batch: Some(1),
            global_batch: Some(16),
            ..row
        };
        let completed = Published::builtin().complete(&row);
        let job = job(&completed, &Sources::builtin(), engine).unwrap();
        format!("{} {} on {}", job.script, job.arguments.join(" "), job.ranks)
    }

    fn named(framework: &str, model: &str, precision: &str) -> RunRow {
        RunRow {
            framework: framework.to_owned(),
            model: model.to_owned(),
            precision: precision.to_owned(),
            ..RunRow::default()
        }
    }

    #[test]
    fn recent_rows_run_over_the_engine_where_it_is() {
        let row = || RunRow { tp: Some(4), ..named("NeMo24.x", "Nemotron4-15b", "BF16") };
        let with = line(row(), true);
        assert!(
            with.starts_with("megatron_engine.py") && with.contains("--attention-backend fused"),
            "{with}"
        );
        assert!(with.contains("--squared-relu") && with.contains("--num-query-groups 8"), "{with}");
        let without = line(row(), false);
        assert!(without.starts_with("megatron_fused.py") && without.contains("--newer-kernels"), "{without}");
        assert!(without.contains("--cross-entropy-loss-fusion"), "{without}");
        let light = line(RunRow { precision: "FP8".to_owned(), ..row() }, false);
        for part in ["megatron_fused.py", "--newer-kernels", "--fp8-format hybrid", "--fp8-param-gather"] {
            assert!(light.contains(part), "{part} is not in {light}");
        }
        let eight = line(RunRow { precision: "FP8".to_owned(), ..row() }, true);
        assert!(eight.contains("--bf16") && eight.contains("--fp8-format hybrid"), "{eight}");
        let old = line(
            RunRow { hidden: Some(1024), layers: Some(8), ..named("Megatron-LM 2021", "g", "fp16") },
            true,
        );
        assert!(old.starts_with("megatron_fused.py") && !old.contains("dropout 0"), "{old}");
    }

    #[test]
    fn old_devices_are_emulated_as_another() {
        let row = RunRow {
            gpu: "V100-SXM3-32GB".to_owned(),
            n_gpus: Some(4),
            gpus_per_node: Some(16),
            hidden: Some(1024),
            layers: Some(8),
            seq: Some(1024),
            micro_batch: Some(2),
            global_batch: Some(8),
            ..named("Megatron-LM 2020", "g", "fp16")
        };
        let found = job(&Published::builtin().complete(&row), &Sources::builtin(), false).unwrap();
        assert_eq!(found.cluster, "a100-sxm4-80:4x1");
        assert_eq!(found.simulated.as_deref(), Some("v100-sxm3-32:4x1"));
        assert!(found.assumed.iter().any(|text| text.contains("no kernels for V100")), "{:?}", found.assumed);
    }

    #[test]
    fn mixtures_have_their_experts() {
        let mixtral = line(RunRow { ep: Some(8), ..named("NeMo", "Mixtral 8x7B", "bf16") }, true);
        assert!(
            mixtral.contains("--num-experts 8 --moe-router-topk 2 --expert-model-parallel-size 8"),
            "{mixtral}"
        );
        let deep = RunRow {
            layers: Some(4),
            pp: Some(2),
            ep: Some(4),
            ..named("Megatron-LM 0.14 / TE 2.11", "deepseekv3", "bf16")
        };
        let deep = line(deep, true);
        for part in
            ["--multi-latent-attention", "--moe-layer-freq [0]*1+[1]*3", "--moe-expert-capacity-factor 1"]
        {
            assert!(deep.contains(part), "{part} is not in {deep}");
        }
        assert!(!deep.contains("group-query") && deep.ends_with("on 0,8"), "{deep}");
    }
}

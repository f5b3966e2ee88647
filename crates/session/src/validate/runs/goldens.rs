//! Records of Megatron-LM's continuous integration as jobs: their exact arguments, on the last rank.
//!
//! Their containers have Apex and TransformerEngine, which are not installed here. Stand-ins take the place of the fused
//! kernels; what else differs in memory is allocated by the script as those libraries allocate it: the workspaces of
//! cuBLAS that older PyTorch keeps (one per thread), TransformerEngine's own, and its attention without the score buffer
//! that Megatron-Core's keeps.

use serde::Serialize;
use trompe_measure::runs::golden::{Golden, text};
use trompe_measure::sources::Sources;

use super::jobs::{Job, option};

/// Arguments without influence on the memory of a training step.
const WITHOUT_EFFECT: [&str; 63] = [
    "async-save",
    "async-strategy",
    "calculate-per-token-loss",
    "check-weight-hash-across-dp-replicas-interval",
    "ckpt-assume-constant-structure",
    "ckpt-format",
    "ckpt-fully-parallel-load",
    "ckpt-fully-parallel-save",
    "data-cache-path",
    "data-path",
    "ddp-average-in-collective",
    "deterministic-mode",
    "dist-ckpt-optim-fully-reshardable",
    "dist-ckpt-strictness",
    "distributed-backend",
    "eval-interval",
    "eval-iters",
    "exit-duration-in-mins",
    "exit-interval",
    "fim-data",
    "fim-rate",
    "fim-spm-rate",
    "load",
    "log-interval",
    "log-memory-to-tensorboard",
    "log-num-zeros-in-grad",
    "log-params-norm",
    "log-throughput",
    "log-timers-to-tensorboard",
    "log-validation-ppl-to-tensorboard",
    "logging-level",
    "lr-decay-iters",
    "lr-decay-samples",
    "lr-warmup-fraction",
    "lr-warmup-samples",
    "manual-gc",
    "manual-gc-interval",
    "merge-file",
    "mock-data",
    "no-ckpt-fully-parallel-save",
    "no-mmap-bin-files",
    "no-use-layer-wise-param-layout",
    "override-opt_param-scheduler",
    "profile",
    "save",
    "save-interval",
    "save-retain-interval",
    "split",
    "tensorboard-dir",
    "test-mode",
    "timing-log-level",
    "tokenizer-model",
    "tokenizer-type",
    "train-iters",
    "train-samples",
    "transformer-impl",
    "use-checkpoint-opt_param-scheduler",
    "use-mcore-models",
    "use-persistent-ckpt-worker",
    "use-tp-pp-dp-mapping",
    "verify-integrity",
    "vocab-file",
    "wandb-project",
];

/// Arguments that the script takes as Megatron-LM does.
const TAKEN: [&str; 47] = [
    "adam-beta1",
    "adam-beta2",
    "attention-backend",
    "attention-dropout",
    "attention-softmax-in-fp32",
    "bf16",
    "clip-grad",
    "disable-bias-linear",
    "ffn-hidden-size",
    "fp16",
    "global-batch-size",
    "group-query-attention",
    "hidden-dropout",
    "hidden-size",
    "kv-channels",
    "lr",
    "lr-decay-style",
    "make-vocab-size-divisible-by",
    "max-position-embeddings",
    "micro-batch-size",
    "min-lr",
    "no-bias-gelu-fusion",
    "no-gradient-accumulation-fusion",
    "no-rope-fusion",
    "norm-epsilon",
    "normalization",
    "num-attention-heads",
    "num-layers",
    "num-layers-per-virtual-pipeline-stage",
    "num-query-groups",
    "overlap-grad-reduce",
    "overlap-param-gather",
    "pipeline-model-parallel-size",
    "position-embedding-type",
    "qk-layernorm",
    "recompute-granularity",
    "recompute-method",
    "recompute-num-layers",
    "rotary-base",
    "seq-length",
    "sequence-parallel",
    "swiglu",
    "tensor-model-parallel-size",
    "untie-embeddings-and-output-weights",
    "use-distributed-optimizer",
    "vocab-size",
    "weight-decay",
];

/// A golden's peak memory against the emulated one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryCompared {
    /// Name of the record.
    pub id: String,
    /// Line of the file.
    pub line: u64,
    /// The test.
    pub what: String,
    /// The device.
    pub gpu: String,
    /// What was measured ("allocated, last rank").
    pub kind: String,
    /// Measured bytes.
    pub measured: u64,
    /// Predicted bytes.
    pub predicted: u64,
    /// What is likely behind the difference.
    pub reason: String,
}

impl MemoryCompared {
    /// Prediction over measurement, less one.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.predicted as f64 / self.measured as f64 - 1.0
    }
}

/// The job of a record; with `engine`, the interpreter has TransformerEngine, and records that ran over it do so.
///
/// # Errors
/// In words, when it cannot be emulated.
pub(super) fn job(golden: &Golden, sources: &Sources, engine: bool) -> Result<Job, String> {
    let family = golden.test_case.split('/').next().unwrap_or_default();
    if family != "gpt" {
        return Err(format!("models of the family `{family}` have no script"));
    }
    let sheet =
        sources.device(&golden.gpu).ok_or_else(|| format!("no sheet knows the GPU `{}`", golden.gpu))?;
    let number = |name: &str, or: u64| -> Result<u64, String> {
        let value = golden.argument(&format!("--{name}"));
        value.map_or(Ok(or), |value| value.parse().map_err(|_| format!("`--{name} {value}` is no number")))
    };
    let (tp, pp) = (number("tensor-model-parallel-size", 1)?, number("pipeline-model-parallel-size", 1)?);
    let (micro, global) = (number("micro-batch-size", 1)?, number("global-batch-size", 1)?);
    let world = golden.n_gpus;
    if [tp, pp, micro, global, world].into_iter().any(|count| count == 0 || count > 1 << 20) {
        return Err("a count is zero or absurdly large".to_owned());
    }
    if !world.is_multiple_of(tp * pp) {
        return Err("TP x PP does not divide the GPUs".to_owned());
    }
    let dp = world / (tp * pp);
    let mut arguments = Vec::new();
    for (name, value) in &golden.model_args {
        let bare = name.trim_start_matches('-');
        let value = text(value);
        if WITHOUT_EFFECT.contains(&bare) || bare == "global-batch-size" || value == "false" {
            continue;
        }
        if !TAKEN.contains(&bare) {
            return Err(format!("the argument `{name}` is not emulated"));
        }
        arguments.push(name.clone());
        if value != "true" {
            arguments.push(value);
        }
    }
    option(&mut arguments, "train-iters", 4);
    let over_engine = golden.argument("--transformer-impl").as_deref() == Some("transformer_engine");
    let engine = engine && over_engine;
    if over_engine && fused_attention(golden) {
        // FlashAttention in the containers, but cuDNN's on Hopper, which TransformerEngine prefers there. The former takes and
        // gives rows of a batch, so that copies are kept in every layer; it is not installed here.
        arguments.retain(|argument| argument != "--attention-backend" && argument != "auto");
        option(&mut arguments, "attention-backend", if engine { "fused" } else { "flash" });
        let chosen = golden.argument("--attention-backend");
        let hopper = sheet.compute.capability_major == 9;
        if engine && !hopper && chosen.is_none_or(|backend| backend != "fused") {
            arguments.push("--flash-layout".to_owned());
        }
    }
    if engine
        && !fused_attention(golden)
        && golden.argument("--attention-backend").is_none_or(|own| own == "auto")
    {
        arguments.retain(|argument| argument != "--attention-backend" && argument != "auto");
        option(&mut arguments, "attention-backend", "unfused");
    }
    if over_engine && !engine {
        // 4 MiB, on Hopper and newer 32 MiB (`get_cublas_workspace_size_bytes` of TransformerEngine).
        let bytes = if sheet.compute.capability_major >= 9 { 33_554_432 } else { 4_194_304 };
        option(&mut arguments, "stand-in-engine", bytes);
    }
    option(&mut arguments, "keep-workspaces", 2);
    if let Some(workspace) = golden.env_vars.get("CUBLAS_WORKSPACE_CONFIG") {
        option(&mut arguments, "cublas-workspace", text(workspace));
    }
    let per_node = golden.gpus_per_node.unwrap_or(8).clamp(1, world);
    let micro_batches = global / (dp * micro).max(1);
    Ok(Job {
        script: if engine { "megatron_engine.py" } else { "megatron_fused.py" },
        arguments,
        cluster: format!("{}:{per_node}x{}", sheet.name, world.div_ceil(per_node)),
        simulated: None,
        per_node,
        ranks: (world - 1).to_string(),
        micro_batches,
        counts: vec![micro_batches],
        engine,
        sequences: micro * dp,
        assumed: Vec::new(),
        stages: pp,
        shorter: Vec::new(),
    })
}

/// Whether TransformerEngine takes one kernel for attention where the record leaves the choice to it. The older one of
/// the `lts` containers has no deterministic kernel, which these tests ask for.
fn fused_attention(golden: &Golden) -> bool {
    let deterministic =
        golden.env_vars.get("NVTE_ALLOW_NONDETERMINISTIC_ALGO").is_some_and(|value| text(value) == "0");
    match golden.argument("--attention-backend").as_deref() {
        None | Some("auto") => !(deterministic && golden.environment == "lts"),
        Some(backend) => backend == "flash" || backend == "fused",
    }
}

/// What is likely behind the difference of a record.
pub(super) fn reason(golden: &Golden, measured: u64, predicted: u64) -> String {
    let mib = (predicted as f64 - measured as f64) / 1_048_576.0;
    if mib.abs() <= 3.0 {
        return format!("{mib:+.1} MiB: log tensors, random number states");
    }
    if golden.environment == "lts" && mib < 0.0 {
        return format!("{mib:+.1} MiB: the older software of the container (lts) allocates more");
    }
    if golden
        .argument("--attention-backend")
        .is_some_and(|backend| backend != "unfused" && backend != "local")
    {
        return format!("{mib:+.1} MiB: the scratch memory of the fused attention kernel");
    }
    format!("{mib:+.1} MiB: a fused layer of TransformerEngine or Apex keeps other tensors than its stand-in")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golden(arguments: &str) -> Golden {
        let text = format!(
            "{{\"id\": 1, \"test_case\": \"gpt/x\", \"gpu\": \"H100-SXM5-80GB\", \"n_gpus\": 8, \
             \"model_args\": {{{arguments}}}, \"peak_allocated_bytes\": 5}}"
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn arguments_are_passed_on_dropped_or_refused() {
        let sources = Sources::builtin();
        let base = "\"--num-layers\": 2, \"--micro-batch-size\": 4, \"--global-batch-size\": 32, \"--bf16\": true, \
                    \"--save\": \"x\", \"--fp16\": false, \"--transformer-impl\": \"transformer_engine\"";
        let job = super::job(&golden(base), &sources, false).unwrap();
        let line = job.arguments.join(" ");
        assert_eq!(
            line,
            "--bf16 --micro-batch-size 4 --num-layers 2 --train-iters 4 --attention-backend flash --stand-in-engine \
             33554432 --keep-workspaces 2"
        );
        assert_eq!((job.micro_batches, job.sequences, job.ranks.as_str()), (1, 32, "7"));
        let real = super::job(&golden(base), &sources, true).unwrap();
        assert_eq!(real.script, "megatron_engine.py");
        assert_eq!(
            real.arguments.join(" "),
            "--bf16 --micro-batch-size 4 --num-layers 2 --train-iters 4 --attention-backend fused --keep-workspaces 2"
        );
        let error = super::job(&golden("\"--warp-speed\": 9"), &sources, false).unwrap_err();
        assert!(error.contains("--warp-speed"), "{error}");
    }
}

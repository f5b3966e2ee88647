//! `trompe validate --runs` and `--goldens` without any emulation: what is read, sampled, refused and said.

use std::fs;

use crate::stage::{Stage, TORCH};

const HEADER: &str =
    "id,source,framework,gpu,n_gpus,hidden,layers,heads,seq,global_batch,micro_batch,tp,pp,dp,step_time_s";

/// What an interpreter with the frameworks answers to the question for them.
const FRAMEWORKS: &str = "echo torch 2.15.0 megatron-core 0.16.1";

/// Runs `validate --runs t.csv` on a table with the rows of `rows` and checks that it ends with 2 and says `expect` once.
#[track_caller]
fn refused(header: &str, rows: &[&str], expect: &[&str]) {
    let stage = Stage::new(TORCH, FRAMEWORKS);
    fs::write(stage.path("work/t.csv"), format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let python = stage.path("bin/python").display().to_string();
    let ran =
        stage.trompe(&["validate", "--runs", "t.csv", "--kept-only", "--kept", "kept", "--python", &python]);
    ran.check(2, expect);
    assert_eq!(ran.err.matches("error: ").count(), 1, "{ran:#?}");
}

#[test]
fn a_table_of_runs_that_cannot_be_used_is_one_clear_error() {
    refused("a,b", &["1,2"], &["a table of measurements", "`gpu` is missing", "hint: "]);
    refused(HEADER, &[], &["no row of `t.csv` can be used", "it has no rows"]);
    let zero = "1,s,Megatron-LM,A100-SXM4-80GB,8,1024,12,16,1024,32,2,2,1,4,0";
    refused(HEADER, &[zero], &["its step time is not positive"]);
    let torn = "1,s,Megatron-LM,A100-SXM4-80GB,8,1024,12,16,1024,32,2,2,2,4,1.5";
    refused(HEADER, &[torn], &["TP x PP x DP x CP is not the number of GPUs"]);
}

#[test]
fn rows_that_nothing_can_replay_are_named() {
    let unknown = "1,s,Megatron-LM,H9000,8,1024,12,16,1024,32,2,2,1,4,1.5";
    refused(HEADER, &[unknown], &["no sheet knows the GPU `H9000`"]);
    let other = "1,s,JAX,A100-SXM4-80GB,8,1024,12,16,1024,32,2,2,1,4,1.5";
    refused(HEADER, &[other], &["no script stands for the framework `JAX`"]);
    let good = "1,s,Megatron-LM,A100-SXM4-80GB,8,1024,12,16,1024,32,2,2,1,4,1.5";
    refused(HEADER, &[good], &["its trace is not kept"]);
}

#[test]
fn goldens_that_cannot_be_used_are_one_clear_error() {
    let stage = Stage::new(TORCH, FRAMEWORKS);
    let python = stage.path("bin/python").display().to_string();
    for (text, expect) in [
        ("not json\n", "it is no complete record of a job"),
        ("", "is empty"),
        (
            "{\"id\": 1, \"test_case\": \"t5/x\", \"gpu\": \"H100-SXM5-80GB\", \"n_gpus\": 8, \"model_args\": {}, \
             \"peak_allocated_bytes\": 5}\n",
            "models of the family `t5` have no script",
        ),
    ] {
        fs::write(stage.path("work/g.jsonl"), text).unwrap();
        let ran = stage.trompe(&[
            "validate",
            "--goldens",
            "g.jsonl",
            "--kept-only",
            "--kept",
            "kept",
            "--python",
            &python,
        ]);
        ran.check(2, &[expect]);
        assert_eq!(ran.err.matches("error: ").count(), 1, "{ran:#?}");
    }
}

#[test]
fn without_the_frameworks_it_says_how_to_get_them() {
    let stage = Stage::new(TORCH, "exit 3");
    let row = "1,s,Megatron-LM,A100-SXM4-80GB,8,1024,12,16,1024,32,2,2,1,4,1.5";
    fs::write(stage.path("work/t.csv"), format!("{HEADER}\n{row}\n")).unwrap();
    let python = stage.path("bin/python").display().to_string();
    let ran = stage.trompe(&["validate", "--runs", "t.csv", "--python", &python]);
    ran.check(2, &["lacks PyTorch or Megatron-Core", "hint: ", "--make-environment"]);
}

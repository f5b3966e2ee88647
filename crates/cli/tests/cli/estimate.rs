//! `trompe estimate` and `trompe validate`: every subcommand once on a small table, and every table that cannot be used.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::stage::{Stage, TORCH};

const HEADER: &str = "gpu,dtype,m,n,k,time_us";

/// A stage with the table `t.csv` in the folder that commands run in.
fn with_table(content: impl AsRef<[u8]>) -> Stage {
    let stage = Stage::new(TORCH, "");
    fs::write(stage.path("work/t.csv"), content).unwrap();
    stage
}

/// A table of products on an H100 with these rows.
fn products(rows: &[&str]) -> String {
    rows.iter().fold(format!("{HEADER}\n"), |text, row| text + "H100-SXM5-80GB," + row + "\n")
}

/// `content` as gzip.
fn gzip(content: &str) -> Vec<u8> {
    let mut child =
        Command::new("gzip").arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
    child.wait_with_output().unwrap().stdout
}

const GOOD: [&str; 3] =
    ["bfloat16,4096,4096,4096,230", "bfloat16,8192,4096,4096,450", "bfloat16,1024,1024,4096,22"];

#[test]
fn every_subcommand_answers() {
    let stage = with_table(products(&GOOD));
    let check = |arguments: &[&str], texts: &[&str]| {
        stage.trompe(arguments).check(0, texts);
    };
    let product = ["m=8192", "n=4096", "k=4096", "dtype=bfloat16"];
    let explain = ["estimate", "explain", "--gpu", "h100", "--physics"];
    check(&[&explain[..], &product[..]].concat(), &["estimate", "roofline", "8 of 10"]);
    check(&["estimate", "predict", "t.csv", "--physics"], &["predicted_us", "gemm"]);
    check(&["estimate", "eval", "t.csv", "--physics"], &["gemm", "bf16 large", "roofline"]);
    check(
        &["estimate", "fit", "t.csv", "-o", "my.model"],
        &["too few for a model", "3 operations known exactly"],
    );
    check(&["estimate", "eval", "t.csv", "--model", "my.model", "--physics"], &["100.0%"]);
    check(&["estimate", "predict", "t.csv", "--model", "my.model"], &["230.000", "measured"]);
    check(&["estimate", "card", "my.model"], &["3 operations known exactly", "no model"]);
    check(&["estimate", "features", "t.csv", "-o", "features"], &["gemm         3 rows"]);
    check(
        &["validate", "--kernels", "t.csv", "--physics", "--html", "page.html"],
        &["families by device", "wrote"],
    );
    let page = fs::read_to_string(stage.path("work/page.html")).unwrap();
    assert!(page.contains("Families by device") && page.contains("H100-SXM5-80GB"), "{page}");
    let json = stage.trompe(&["validate", "--kernels", "t.csv", "--physics", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (json["summary"][0]["rows"].as_u64(), json["summary"][0]["label"].as_str()),
        (Some(3), Some("all"))
    );
}

#[test]
fn a_packed_table_is_told_by_its_content() {
    let stage = with_table(gzip(&products(&GOOD)));
    stage.trompe(&["estimate", "predict", "t.csv", "--physics"]).check(0, &["predicted_us"]);
    stage.trompe(&["estimate", "eval", "t.csv", "--physics"]).check(0, &["gemm"]);
}

#[test]
fn a_table_that_cannot_be_used_is_one_clear_error() {
    let row = |gpu: &str, time: &str| format!("{HEADER}\n{gpu},bfloat16,64,64,64,{time}\n").into_bytes();
    let cut = |content: &[u8]| content[..content.len() / 2].to_vec();
    let tables = [
        (b"a,b\n1,2\n".to_vec(), "has the columns `a`, `b`, which are not those of a table of measurements"),
        (row("H9000", "5"), "no sheet knows the GPU `H9000`"),
        (row("H100-SXM5-80GB", "0"), "a time that is not positive"),
        (row("H100-SXM5-80GB", "-3"), "a time that is not positive"),
        (row("H100-SXM5-80GB", "soon"), "no number in `time_us`"),
        (cut(&gzip(&products(&GOOD).repeat(50))), "cut off or damaged"),
        (Vec::new(), "the file is empty"),
        (gzip(""), "the file is empty"),
        (format!("{HEADER}\n").into_bytes(), "it has no rows"),
        (vec![0xff, 0xfe, 0x00, 0x9c, b'\n'], "it is no text"),
    ];
    for (content, expect) in tables {
        let stage = with_table(content);
        for command in [
            &["estimate", "predict", "t.csv"][..],
            &["estimate", "eval", "t.csv"],
            &["estimate", "fit", "t.csv", "-o", "x.model"],
            &["estimate", "features", "t.csv", "-o", "x"],
            &["validate", "--kernels", "t.csv"],
        ] {
            let ran = stage.trompe(command);
            ran.check(2, &[expect, "`t.csv`", "hint: "]);
            assert_eq!(ran.err.matches("error: ").count(), 1, "{ran:#?}");
            assert!(ran.out.is_empty() && !stage.path("work/x.model").exists(), "{ran:#?}");
        }
    }
    let stage = with_table(products(&GOOD));
    stage
        .trompe(&["validate", "--collectives", "t.csv"])
        .check(2, &["(`nodes` is missing)", "collectives needs"]);
    stage.trompe(&["validate", "--kernels", "nowhere.csv"]).check(2, &["cannot read `nowhere.csv`"]);
}

#[test]
fn rows_that_cannot_be_used_are_counted_with_their_line() {
    let stage =
        with_table(products(&[GOOD[0], "bfloat16,64,64,64,0", "bfloat16,64,0,64,7", "quux,64,64,64,7"]));
    for command in ["eval", "predict"] {
        let ran = stage.trompe(&["estimate", command, "t.csv", "--physics"]);
        ran.check(
            0,
            &["line 3): a time that is not positive", "line 4): no positive number in `n`", "`quux`"],
        );
    }
}

#[test]
fn rows_that_contradict_each_other_are_reported() {
    let stage = with_table(products(&["bfloat16,64,64,64,10", "bfloat16,64,64,64,30"]));
    let told = "10.00 us (line 2) and 30.00 us (line 3)";
    stage.trompe(&["estimate", "eval", "t.csv", "--physics"]).check(0, &[told, "by itself"]);
    stage.trompe(&["validate", "--kernels", "t.csv", "--physics"]).check(0, &[told]);
    stage.trompe(&["estimate", "fit", "t.csv", "-o", "x.model"]).check(0, &[told, "median"]);
}

#[test]
fn rows_that_were_trained_on_are_no_comparison() {
    let stage = with_table(format!("{HEADER},split\nH100-SXM5-80GB,bfloat16,64,64,64,7,train\n"));
    for command in [&["estimate", "eval", "t.csv"][..], &["validate", "--kernels", "t.csv"]] {
        stage.trompe(command).check(2, &["nothing to compare", "split `", "hint: "]);
    }
    stage.trompe(&["estimate", "eval", "t.csv", "--split", "train", "--physics"]).check(0, &["gemm"]);
}

//! `trompe calibrate`: from traces, tables, logs and a step time to predictions, and every file that cannot be used.

use std::fmt::Write;
use std::fs;

use crate::stage::{Stage, TORCH, report};

/// A kernel of a trace: name, operator, shapes (JSON), microseconds.
type Kernel<'a> = (&'a str, &'a str, &'a str, f64);

/// The product that the stage's job computes, as a profiler would show it.
const PRODUCT: &str = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x32";
const SQUARE: &str = "[[1024, 1024], [1024, 1024]]";

/// A profiler's trace of `steps` steps of these kernels.
fn trace(gpu: &str, steps: usize, kernels: &[Kernel<'_>]) -> String {
    let mut events = Vec::new();
    let mut now = 1000.0;
    for step in 0..steps {
        let begin = now;
        for (name, operator, shapes, length) in kernels {
            let id = events.len();
            let types = vec!["\"c10::BFloat16\""; shapes.matches('[').count().saturating_sub(1)].join(", ");
            let mut put = |category: &str, name: &str, at: f64, length: f64, arguments: &str| {
                events.push(format!(
                    r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": 1, "ts": {at}, "dur": {length}, "args": {{{arguments}}}}}"#
                ));
            };
            let inputs = format!(r#""Input Dims": {shapes}, "Input type": [{types}]"#);
            put("cpu_op", operator, now, 8.0, &inputs);
            put("cuda_runtime", "cudaLaunchKernel", now + 2.0, 2.0, &format!(r#""correlation": {id}"#));
            let geometry = format!(
                r#""correlation": {id}, "device": 0, "stream": 7, "grid": [256, 1, 1], "block": [256, 1, 1]"#
            );
            put("kernel", name, now + 5.0, *length, &geometry);
            now += 10.0;
        }
        events.push(format!(
            r#"{{"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{step}", "pid": 1, "tid": 1, "ts": {begin}, "dur": {}}}"#,
            now - begin
        ));
    }
    format!(
        r#"{{"deviceProperties": [{{"id": 0, "name": "{gpu}"}}], "traceEvents": [{}]}}"#,
        events.join(",\n")
    )
}

const H100: &str = "NVIDIA H100 80GB HBM3";

/// A stage with the trace `t.json` in the folder that commands run in.
fn with_trace(content: impl AsRef<[u8]>) -> Stage {
    let stage = Stage::new(TORCH, "record");
    fs::write(stage.path("work/t.json"), content).unwrap();
    stage
}

#[test]
fn a_trace_becomes_the_times_of_the_next_prediction() {
    let kernels =
        [(PRODUCT, "aten::mm", SQUARE, 77.0), ("my_gelu(float*, float*)", "mine::gelu", "[[4]]", 5.0)];
    let stage = with_trace(trace(H100, 4, &kernels));
    let calibrate = ["calibrate", "--kineto", "t.json"];
    let told =
        ["4 operations known in full", "4 by name and grid only", "Compared with step 3", "2 of them new"];
    stage.trompe(&calibrate).check(0, &told);
    stage.trompe(&calibrate).check(0, &["2 measured operations, 0 of them new or changed"]);
    let run = |more: &[&str]| {
        let arguments = [&["run", "--steps", "marker=step"], more, &["--", "python", "x.py"]].concat();
        stage.trompe(&arguments).check(0, &[]).clone()
    };
    run(&[]).check(0, &["100.0 % of the kernel time was measured, from t.json", "measured 100.0 %"]);
    let seen = report(&stage.path("work/trompe-out"));
    let seconds: Vec<f64> = seen.kernels.iter().map(|kernel| (kernel.seconds * 1e7).round() / 10.0).collect();
    assert_eq!(seconds, [3.0 * 77.0, 5.0]);
    assert!(!run(&["--calibration", "off"]).out.contains("from t.json"));
    // A folder of its own.
    stage.trompe(&["calibrate", "--kineto", "t.json", "--out", "mine"]).check(0, &["mine/kernels.csv"]);
    run(&["--calibration", "mine"]).check(0, &["from t.json"]);
    stage.trompe(&["estimate", "card", "mine/kernels.model"]).check(0, &["1 operations known exactly"]);
    // Its table is one that can be learned from; another trace is compared with.
    stage
        .trompe(&["calibrate", "--csv", "mine/kernels.csv", "--out", "two"])
        .check(0, &["2 measured operations"]);
    stage
        .trompe(&["calibrate", "--check", "t.json", "--out", "two"])
        .check(0, &["Compared with t.json: 100.0 %"]);
    fs::write(stage.path("work/mine/kernels.csv"), "gpu,kernel\n").unwrap();
    fs::write(stage.path("work/mine/hosts.toml"), "[[host]]\nnode = 1\n").unwrap();
    stage
        .trompe(&["simulate", "trompe-out", "--calibration", "mine"])
        .check(2, &["hosts.toml", "--calibration off"]);
}

#[test]
fn measured_times_of_the_same_job_replace_predictions() {
    // Three products of 60 to 90 us and a kernel that the trace does not hold.
    let stage = with_trace(trace(H100, 3, &[(PRODUCT, "aten::mm", SQUARE, 60.0)]));
    fs::write(stage.path("work/u.json"), trace(H100, 5, &[(PRODUCT, "aten::mm", SQUARE, 90.0)])).unwrap();
    let run = |traces: &[&str]| {
        let oracle: Vec<&str> = traces.iter().flat_map(|name| ["--oracle", *name]).collect();
        let arguments = [&["run", "--steps", "marker=step"], &oracle[..], &["--", "python", "x.py"]].concat();
        stage.trompe(&arguments).clone()
    };
    let seconds = |place: usize| {
        let seen = report(&stage.path("work/trompe-out"));
        (seen.kernels[place].seconds * 1e7).round() / 10.0
    };
    run(&[]).check(0, &[]);
    let predicted = seconds(1);
    let one = run(&["t.json"]);
    one.check(0, &["is not in the measured trace and kept its prediction", "measured 9"]);
    assert_eq!((seconds(0), seconds(1)), (180.0, predicted));
    // The median of both traces (three times 60, five times 90), and nothing of it stays.
    run(&["t.json", "u.json"]).check(0, &["measured"]);
    assert_eq!(seconds(0), 270.0);
    assert!(!run(&[]).out.contains("measured trace"));
    fs::write(stage.path("work/u.json"), "{\"traceEvents\": []}").unwrap();
    run(&["u.json"]).check(2, &["`u.json`", "hint: "]);
    run(&["none.json"]).check(2, &["`none.json`"]);
}

#[test]
fn a_sheet_of_ones_own_is_found_again() {
    let stage = with_trace(trace("Some GPU", 4, &[(PRODUCT, "aten::mm", SQUARE, 77.0)]));
    let sheet = include_str!("../../../hardware/sheets/devices/h100-sxm5-80.toml");
    let own = sheet.replacen("name = \"h100-sxm5-80\"", "name = \"mine\"", 1);
    assert_ne!(own, sheet);
    fs::write(stage.path("work/mine.toml"), own).unwrap();
    let calibrate = ["calibrate", "--gpu", "mine.toml", "--kineto", "t.json"];
    stage.trompe(&calibrate).check(0, &["1 measured operations, 1 of them new"]);
    stage.trompe(&calibrate).check(0, &["1 measured operations, 0 of them new or changed"]);
    let run = ["run", "--steps", "marker=step", "--cluster", "mine.toml", "--", "python", "x.py"];
    stage.trompe(&run).check(0, &["measured, from t.json"]);
}

#[test]
fn a_trace_that_cannot_be_used_is_one_clear_error() {
    let kernels = [(PRODUCT, "aten::mm", SQUARE, 77.0)];
    let good = trace(H100, 2, &kernels);
    let cases = [
        (good[..good.len() / 2].to_owned(), "cut short"),
        (good.replace("\"ph\"", "ph"), "line 1"),
        ("{\"nodes\": [], \"schema\": \"1\"}".to_owned(), "execution trace"),
        ("{\"traceEvents\": []}".to_owned(), "neither operators nor device work"),
        (good.replace("\"kernel\"", "\"other\""), "no kernel with a time"),
        (good.replace("\"dur\": 77", "\"dur\": 0"), "no kernel with a time"),
        (good.replace(H100, "NVIDIA H9000"), "no sheet knows its GPU, `NVIDIA H9000`"),
        (good.replace("\"deviceProperties\"", "\"x\""), "which GPU it was taken on"),
        (String::new(), "ends after 0"),
    ];
    for (content, expect) in cases {
        let stage = with_trace(content);
        let ran = stage.trompe(&["calibrate", "--kineto", "t.json"]);
        ran.check(2, &[expect, "`t.json`", "hint: "]);
        assert_eq!(ran.err.matches("error: ").count(), 1, "{ran:#?}");
        assert!(!stage.path("data/trompe/calibration/kernels.csv").exists());
    }
    let stage = with_trace(good.replace(H100, "NVIDIA H9000"));
    stage
        .trompe(&["calibrate", "--kineto", "t.json", "--gpu", "h100"])
        .check(0, &["NVIDIA H9000 as `h100-sxm5-80`"]);
    stage
        .trompe(&["calibrate", "--kineto", "t.json", "--gpu", "h9"])
        .check(2, &["no sheet knows the GPU `h9`"]);
    stage.trompe(&["calibrate"]).check(2, &["nothing to learn from"]);
}

#[test]
fn times_that_make_no_sense_are_told() {
    let many: Vec<Kernel<'_>> = (0..12).map(|_| (PRODUCT, "aten::mm", SQUARE, 9.0)).collect();
    let good = trace(H100, 2, &many);
    let check = |content: String, expect: &str| {
        with_trace(content).trompe(&["calibrate", "--kineto", "t.json"]).check(0, &[expect]);
    };
    // Nanoseconds where the format has microseconds.
    check(good.replace("\"dur\": 9,", "\"dur\": 9000,"), "durations are nanoseconds");
    check(good.replacen("\"dur\": 9,", "\"dur\": -9,", 3), "3 left out: their duration is not positive");
    check(good.replacen("\"dur\": 9,", "\"dur\": 0,", 2), "2 left out: their duration is not positive");
    // A product that would need ten times the GPU's peak.
    check(good.replacen("\"dur\": 9,", "\"dur\": 0.2,", 1), "1 left out: shorter than the GPU can be");
    // Without shapes only names are known.
    let plain = good.replace("Input Dims", "x");
    check(plain + "", "take the trace with `record_shapes=True`");
}

#[test]
fn sources_that_contradict_each_other_are_reported() {
    let stage = with_trace(trace(H100, 1, &[(PRODUCT, "aten::mm", SQUARE, 10.0)]));
    fs::write(stage.path("work/u.json"), trace(H100, 1, &[(PRODUCT, "aten::mm", SQUARE, 20.0)])).unwrap();
    stage.trompe(&["calibrate", "--kineto", "t.json", "u.json"]).check(
        0,
        &["1 operations of different times in different sources", "10.00 us in t.json, 20.00 us in u.json"],
    );
}

#[test]
fn tables_are_learned_from_or_refused() {
    const HEADER: &str = "gpu,dtype,m,n,k,time_us\n";
    let row = |m: u32, time: f64| format!("H100-SXM5-80GB,bfloat16,{m},1024,1024,{time}\n");
    let rows = |factor: f64| {
        (1..20).fold(HEADER.to_owned(), |mut text, n| {
            let _ = write!(text, "{}", row(n * 256, f64::from(n) * 1.2 * factor + 6.0 * factor));
            text
        })
    };
    let check = |content: String, code: i32, expect: &[&str]| {
        let stage = with_trace(content);
        stage.trompe(&["calibrate", "--csv", "t.json"]).check(code, expect);
    };
    check(rows(1.0), 0, &["19 operations known in full", "19 measured operations"]);
    check(rows(1000.0), 2, &["look like nanoseconds", "hint: "]);
    let twice = rows(1.0) + &row(4096, 40.0) + &row(4096, 90.0);
    check(
        twice,
        0,
        &["1 of the operations were measured more than once with times that differ by more than 25 %"],
    );
    check("a,b\n1,2\n".to_owned(), 2, &["has the columns `a`, `b`"]);
    check(format!("{HEADER}{}", row(1024, -1.0)), 2, &["a time that is not positive"]);
    check(rows(1.0) + "H9000,bfloat16,1,1,1,5\n", 0, &["1 rows left out", "no sheet knows the GPU `H9000`"]);
}

#[test]
fn a_step_time_gives_the_factor_of_the_hosts() {
    let stage = Stage::new(TORCH, "record");
    let calibrate = |time: &str| {
        let arguments = ["calibrate", "--steps", "marker=step", "--measured", time, "--", "python", "x.py"];
        stage.trompe(&arguments)
    };
    // The recorded step takes a fifth of a second on the host.
    calibrate("150ms").check(0, &["measured 0.1500 s", "host times taken", "hosts.toml"]);
    let run = stage.trompe(&["run", "--steps", "marker=step", "--", "python", "x.py"]);
    run.check(0, &["found from a step of 0.1500 s of"]);
    let seen = report(&stage.path("work/trompe-out"));
    let seconds = seen.step_time.unwrap().seconds;
    assert!((seconds / 0.15 - 1.0).abs() < 0.005, "{seconds}");
    calibrate("120ms").check(0, &["in place of "]);
    calibrate("1us").check(1, &["Even a host that takes no time gives"]);
    calibrate("5ms").check(1, &["Not kept, because no processor is so much faster", "--host scale="]);
    calibrate("100s").check(1, &["No factor up to 64"]);
    stage.trompe(&["calibrate", "--measured", "3", "--", "python", "x.py"]).check(2, &["with its unit"]);
    stage.trompe(&["calibrate", "--measured", "3s"]).check(2, &["COMMAND"]);
}

#[test]
fn logs_of_nccl_tests_become_the_clusters_constants() {
    let stage = Stage::new(TORCH, "record");
    let mut log = String::from("collective,ranks,nodes,bytes,time_us\n");
    for shift in 10..30 {
        let bytes = 1_u64 << shift;
        let _ = writeln!(log, "all_reduce,8,1,{bytes},{:.2}", 30.0 + bytes as f64 / 200e3);
    }
    fs::write(stage.path("work/log.csv"), log).unwrap();
    let calibrate = ["calibrate", "--nccl-tests", "log.csv", "--cluster", "dgx-h100"];
    stage.trompe(&calibrate).check(0, &["AllReduce", "network-dgx-h100.toml"]);
    stage.trompe(&["calibrate", "--nccl-tests", "log.csv"]).check(2, &["--cluster"]);
    let run = ["run", "--cluster", "dgx-h100", "--steps", "marker=step", "--", "python", "x.py"];
    stage.trompe(&run).check(0, &["constants fitted to your own logs"]);
}

#[test]
fn profiling_needs_a_gpu_or_a_command() {
    let stage = Stage::new(
        TORCH,
        "case $* in *trompe.profile*) echo \"$*\"; exit 2 ;; esac; env | grep TROMPE_PROFILE",
    );
    stage.trompe(&["profile"]).check(2, &["give `--gpu` for a sweep, or a command"]);
    let sweep = stage.trompe(&["profile", "--gpu", "--python", "python", "--budget", "2m", "--small"]);
    stage.trompe(&["profile", "--gpu", "--budget", "2x"]).check(2, &["minutes (10m)"]);
    sweep.check(2, &["-m trompe.profile --out trompe-profile --budget 120 --device cuda --small"]);
    let record = stage.trompe(&["profile", "--steps", "5", "--", "python", "x.py"]);
    record.check(2, &["TROMPE_PROFILE={", "\"steps\":5", "holds no trace"]);
}

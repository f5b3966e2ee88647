//! Logs of nccl-tests in every form, and constants of one's own from them.

use trompe_base::Bytes;
use trompe_hardware::resolve;
use trompe_network::readers::{Hints, LogError, Measured, read_nccl_tests};
use trompe_network::{Constants, Fabric, NetworkModel, Operation, Placement, ProfileError, profile};

/// Two nodes with one device each, as version 2.17 prints it through `mpirun --tag-output`.
const RECENT: &str = "\
some launcher's words
[1,0]<stdout>:# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807
[1,0]<stdout>:# Collective test starting: all_reduce_perf
[1,0]<stdout>:# nThread 1 nGpus 1 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
[1,0]<stdout>:# Using devices
[1,0]<stdout>:#  Rank  0 Group  0 Pid 204199 on  nid005471 device  0 [0009:01:00] NVIDIA GH200 120GB
[1,0]<stdout>:#  Rank  1 Group  0 Pid 204200 on  nid005472 device  0 [0019:01:00] NVIDIA GH200 120GB
[1,0]<stdout>:#
[1,0]<stdout>:#                                                              out-of-place                       in-place
[1,0]<stdout>:#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
[1,0]<stdout>:#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
[1,0]<stdout>:           0             0     float     sum      -1     5.00    0.00    0.00       0     5.00    0.00    0.00       0
[1,0]<stdout>:           8             2     float     sum      -1    23.45    0.00    0.00       0    23.30    0.00    0.00       0
[1,0]<stdout>:   134217728      33554432     float     sum      -1     5871   22.86   22.86       0   5.87e+3   22.87   22.87     N/A
[1,0]<stdout>:# Out of bounds values : 0 OK
[1,0]<stdout>:# Avg bus bandwidth    : 11.4
";

fn hints(operation: Option<&str>, ranks: Option<u32>) -> Hints {
    Hints { operation: operation.map(str::to_owned), ranks, nodes: None }
}

#[test]
fn texts_of_all_versions() {
    let rows = read_nccl_tests(RECENT, &Hints::default()).unwrap();
    let row = |bytes, micros| Measured { operation: Operation::AllReduce, ranks: 2, nodes: 2, bytes, micros };
    assert_eq!(rows, [row(8, 23.45), row(8, 23.30), row(134_217_728, 5871.0), row(134_217_728, 5870.0)]);
    #[track_caller]
    fn check(line: &str, operation: &str, expect: &[f64]) {
        let rows = read_nccl_tests(line, &hints(Some(operation), Some(8))).unwrap();
        assert_eq!(rows.iter().map(|row| row.micros).collect::<Vec<_>>(), expect, "{line}");
    }
    // Without root, without reduction, in place not measured, errors not counted.
    check(
        "  1048576  262144  float  sum  36.5  28.73  50.27  4e-07  35.9  29.21  51.11  4e-07",
        "all_reduce",
        &[36.5, 35.9],
    );
    check(
        "  1048576  32768  float  none  -1  36.5  28.73  25.14  0  35.9  29.21  25.56  0",
        "all_gather",
        &[36.5, 35.9],
    );
    check(
        "  1048576  32768  float  36.5  28.73  25.14  0e+00  35.9  29.21  25.56  0e+00",
        "reduce-scatter",
        &[36.5, 35.9],
    );
    check(
        "  1048576  32768  float  0  36.5  28.73  28.73  0  35.9  29.21  29.21  0",
        "broadcast_perf",
        &[36.5, 35.9],
    );
    check(
        "  1048576  32768  float  none  -1  36.5  28.73  25.14  0  N/A  N/A  N/A  N/A",
        "alltoall",
        &[36.5],
    );
    check("  1048576  262144  float  sum  -1  36  29.1  29.1  36  29.1  29.1", "sendrecv", &[36.0, 36.0]);
}

#[test]
fn json_and_csv() {
    let json = r#"{"version": "2.17.6", "args": ["./all_gather_perf", "-b", "8"],
      "devices": [{"rank": 0, "hostname": "a"}, {"rank": 1, "hostname": "a"}],
      "results": [{"size": 1048576, "count": 131072, "type": "float", "out_of_place": {"time": 20.0, "alg_bw": 52.4, "bus_bw": 26.2},
        "in_place": {"time": 19.0, "alg_bw": 55.2, "bus_bw": 27.6}}]}"#;
    let rows = read_nccl_tests(json, &Hints::default()).unwrap();
    assert_eq!((rows.len(), rows[1].micros, rows[0].ranks, rows[0].nodes), (2, 19.0, 2, 1));
    assert_eq!(rows[0].operation, Operation::AllGather);
    let csv = "collective,ranks,nodes,bytes,time_us\nall_reduce,8,1,1024,12.5\nalltoall,16,2,4096,30\n";
    let rows = read_nccl_tests(csv, &Hints::default()).unwrap();
    assert_eq!(
        rows[1],
        Measured { operation: Operation::AllToAll, ranks: 16, nodes: 2, bytes: 4096, micros: 30.0 }
    );
}

#[test]
fn what_is_wrong_with_a_log_is_said() {
    #[track_caller]
    fn check(text: &str, hints: &Hints, expect: &str) {
        let error = read_nccl_tests(text, hints).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
    let all = hints(Some("all_reduce"), Some(8));
    let row = "  1048576  262144  float  sum  -1  36.5  28.73  50.27  0  35.9  29.21  51.11  0";
    check("", &all, "no row of sizes and times");
    check("hello\n", &all, "no row of sizes and times");
    check(row, &hints(None, Some(8)), "does not say which operation");
    check(row, &hints(Some("all_reduce"), None), "does not say how many ranks");
    check(row, &hints(Some("all_gather"), Some(8)), "bus rate is 1.750 times");
    check(row, &hints(Some("all_reduce"), Some(2)), "`--ranks`");
    check("  1048576  262144  float  sum  -1  36.5", &all, "is the log complete?");
    check("  1048576  262144  float", &all, "is the log complete?");
    check("  1048576  262144  float  sum  -1  36.5  28.73  50.27  0  35.9", &all, "line 1");
    check(
        "  1048576  262144  float  sum  -1  0.00  28.73  50.27  0  35.9  29.21  51.11  0",
        &all,
        "longer than nothing",
    );
    check(
        "  1048576  262144  float  sum  -1  0.0365  28.73  50.27  0  0.0359  29.21  51.11  0",
        &all,
        "units mixed",
    );
    check("  1048576  262144  float  sum  -1  x.y  28.73  50.27  0  35.9  29.21  51.11  0", &all, "line 1");
    check("#        (B)    (elements)    (ms)  (GB/s)\n", &all, "given in `ms`");
    check("{\"a\": 1}", &all, "no list `results`");
    check("{\"results\": [", &all, "no JSON of nccl-tests");
    check("{\"results\": [{\"count\": 1}]}", &all, "no `size`");
    check("ranks,bytes,time_us\n8,1024\n", &all, "2 cells for 3 columns");
    check("ranks,bytes,time_us\n8,1024,0\n", &all, "no number above zero");
    check("ranks,bytes,time_ms\n8,1024,1\n", &all, "time_ms");
    check("ranks,bytes,x\n8,1024,1\n", &all, "no column `time_us`");
    assert_eq!(read_nccl_tests("#\n", &all), Err(LogError::Empty));
}

/// What a machine would print that takes `factor` times as long as the built-in constants say, with a knee of its own.
fn measured(fabric: &Fabric, nodes: u32, local: u32, factor: f64) -> Vec<Measured> {
    let model = NetworkModel::new(fabric.clone());
    let row = |power: u32| {
        let (operation, bytes) = (Operation::AllReduce, 1_u64 << power);
        let time =
            model.price(operation, Bytes(bytes), &Placement::regular(nodes, local)).time.as_micros_f64();
        let knee = if power > 22 { 1.1 } else { 1.0 };
        Measured { operation, ranks: nodes * local, nodes, bytes, micros: time * factor * knee }
    };
    (3..33).map(row).collect()
}

#[test]
fn constants_of_ones_own() {
    let fabric = Fabric::from_cluster(&resolve("dgx-h100:2").unwrap());
    let rows = measured(&fabric, 1, 8, 1.4);
    let profile = profile(&rows, &fabric, &Constants::builtin()).unwrap();
    let score = profile.scores[0];
    assert!(score.before > 0.25 && score.after < 0.01 && score.unseen < 0.08, "{score:?}");
    // They survive their file, and what was not measured is as it was.
    let read = Constants::parse(&profile.constants.to_toml()).unwrap();
    assert_eq!(read, profile.constants);
    let price = |constants: &Constants, operation, placement: Placement| {
        let model = NetworkModel::with_constants(fabric.clone(), constants.clone());
        model.price(operation, Bytes(1 << 26), &placement).time
    };
    let other = |constants: &Constants| price(constants, Operation::AllToAll, Placement::regular(1, 8));
    assert_eq!(other(&read), other(&Constants::builtin()));
}

#[test]
fn a_network_of_ones_own() {
    let fabric = Fabric::from_cluster(&resolve("dgx-h100:2").unwrap());
    let rows = measured(&fabric, 2, 8, 1.5);
    let profile = profile(&rows, &fabric, &Constants::builtin()).unwrap();
    let score = profile.scores[0];
    assert!(score.before > 0.3 && score.after < 0.5 * score.before, "{score:?}");
    assert!(profile.constants.network.own && profile.constants.network.latency.is_some());
}

#[test]
fn rows_that_do_not_fit_the_cluster() {
    let fabric = Fabric::from_cluster(&resolve("dgx-h100").unwrap());
    let rows = measured(&fabric, 1, 8, 1.0);
    let base = Constants::builtin();
    assert_eq!(profile(&rows[..3], &fabric, &base), Err(ProfileError::Few { sizes: 3 }));
    let wide: Vec<Measured> = rows.iter().map(|row| Measured { ranks: 16, ..*row }).collect();
    let expect = ProfileError::Devices { ranks: 16, nodes: 1, devices: 8 };
    assert_eq!(profile(&wide, &fabric, &base), Err(expect));
}

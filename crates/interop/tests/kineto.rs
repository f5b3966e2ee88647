//! Traces of PyTorch's profiler: every spelling of the years, and files that are none.

use std::io::Write;

use trompe_interop::kineto::{self, DeviceEventKind, KinetoError, Launch, Shape};

/// As written since 2024: nanoseconds, base time, groups.
const RECENT: &str = r#"{
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 85000000000, "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
  "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2, "nccl_version": "2.27.3",
    "pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 1]}]},
  "displayTimeUnit": "ms", "baseTimeNanoseconds": 1711964646000000000,
  "traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 9, "tid": 9, "ts": 100.000, "dur": 900.500, "args": {"External id": 1}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 9, "tid": 9, "ts": 110.000, "dur": 80.000,
      "args": {"External id": 2, "Input Dims": [[4, 8], [16, 8], []], "Input Strides": [[8, 1], [8, 1], []], "Input type": ["float", "float", ""], "Concrete Inputs": ["", "", ""]}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 9, "tid": 9, "ts": 110.000, "dur": 60.000, "args": {"External id": 3, "Sequence number": 5, "Fwd thread id": 0}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::cat", "pid": 9, "tid": 8, "ts": 120.000, "dur": 60.000, "args": {"External id": 4, "Input Dims": [[[2, 3], [2, 3]], []]}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 130.250, "dur": 5.125, "args": {"External id": 3, "cbid": 211, "correlation": 40}},
    {"ph": "s", "id": 40, "pid": 9, "tid": 9, "ts": 130.250, "cat": "ac2g", "name": "ac2g"},
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 141.001, "dur": 3.999,
      "args": {"External id": 3, "device": 0, "context": 1, "stream": 7, "correlation": 40, "registers per thread": 168, "shared memory": 98304, "blocks per SM": 0.5, "grid": [16, 2, 1], "block": [128, 1, 1]}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "pid": 0, "tid": 20, "ts": 150.0, "dur": 30.0,
      "args": {"External id": 9, "device": 0, "stream": 20, "correlation": 41, "grid": [8, 1, 1], "block": [544, 1, 1],
        "Collective name": "allreduce", "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, "dtype": "Float", "In split size": "[]", "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}},
    {"ph": "X", "cat": "cuda_sync", "name": "Event Sync", "pid": 0, "tid": -1, "ts": 190, "dur": 2, "args": {"stream": -1, "device": 0, "correlation": 44, "wait_on_cuda_event_record_corr_id": 43}},
    {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 9, "tid": 9, "ts": 111, "args": {"Device Type": 1, "Device Id": 0, "Bytes": -512, "Total Allocated": 1024, "Total Reserved": 2097152}},
    {"ph": "X", "cat": "python_function", "name": "f", "pid": 9, "tid": 9, "ts": 1, "dur": 1}
  ], "traceName": "x.json"
}"#;

#[test]
fn a_recent_trace() {
    let trace = kineto::read_from(RECENT.as_bytes()).unwrap();
    assert_eq!((trace.rank, trace.world_size, trace.gpus[0].sm_count), (Some(1), Some(2), Some(132)));
    assert_eq!((trace.groups[0].ranks.as_slice(), trace.groups[0].size), (&[0, 1][..], Some(2)));
    assert_eq!(trace.base_time_ns, Some(1_711_964_646_000_000_000));
    assert!(trace.has_nanoseconds);
    let gemm = &trace.device_events[0];
    assert_eq!((gemm.start_ns, gemm.duration_ns), (141_001, 3_999));
    assert_eq!((gemm.grid, gemm.block), (Some([16, 2, 1]), Some([128, 1, 1])));
    assert_eq!((gemm.stream, gemm.registers, gemm.shared_memory), (Some(7), Some(168), Some(98_304)));
    let collective = trace.device_events[1].collective.as_ref().unwrap();
    assert_eq!((collective.name.as_str(), collective.in_elements), ("allreduce", Some(1024)));
    assert_eq!((collective.ranks.as_slice(), collective.in_split.len()), (&[0, 1][..], 0));
    let wait = &trace.device_events[2];
    assert_eq!((wait.kind, wait.waits_for), (DeviceEventKind::Synchronization, Some(43)));
    assert_eq!(trace.operators[0].name.as_ref(), "aten::linear", "the outer of two comes first");
    assert_eq!(trace.operators[0].shapes[1], Shape::Tensor(vec![16, 8]));
    assert_eq!(trace.operators[2].shapes[0], Shape::List(vec![vec![2, 3], vec![2, 3]]));
    assert_eq!((trace.memory[0].bytes, trace.memory[0].device), (-512, Some(0)));
    assert_eq!(trace.skipped.get("python_function"), Some(&1));
    assert_eq!(trace.steps()[0].number, 7);
    assert_eq!(trace.launches()[0], Launch { call: Some(0), operator: Some(1) });
    assert_eq!(trace.launches()[1], Launch::default());
}

/// As written in 2021: other categories, threads as text, microseconds since 1970.
const OLD: &str = r#"{"schemaVersion": 1, "traceEvents": [
  {"ph": "X", "cat": "Operator", "name": "aten::mm", "pid": 5, "tid": "77", "ts": 1623142623460111, "dur": 25, "args": {"External id": "2", "Input Dims": [[2, 2], [2, 2]]}},
  {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": "77", "ts": 1623142623460120, "dur": 7, "args": {"correlation": 9, "external id": 2}},
  {"ph": "X", "cat": "Kernel", "name": "k", "pid": 0, "tid": "stream 7", "ts": 1623142623460140, "dur": 2, "args": {"correlation": 9, "external id": 2}},
  {"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": "stream 7", "ts": 1623142623460150, "dur": 2, "args": {"bytes": 64, "stream": 7}}
]}"#;

#[test]
fn an_old_trace() {
    let trace = kineto::read_from(OLD.as_bytes()).unwrap();
    assert!(!trace.has_nanoseconds);
    assert_eq!(trace.device_events[0].start_ns, 1_623_142_623_460_140_000);
    assert_eq!((trace.device_events[0].stream, trace.device_events[0].device), (Some(7), Some(0)));
    assert_eq!(trace.device_events[1].bytes, Some(64));
    assert_eq!(trace.launches()[0], Launch { call: Some(0), operator: Some(0) });
}

#[test]
fn forms() {
    let kernel = |ts: &str, dur: &str| {
        format!(r#"{{"ph": "X", "cat": "kernel", "name": "k", "ts": {ts}, "dur": {dur}}}"#)
    };
    let check = |text: &str, expect: (i64, u64)| {
        let trace = kineto::read_from(text.as_bytes()).unwrap();
        assert_eq!((trace.device_events[0].start_ns, trace.device_events[0].duration_ns), expect, "{text}");
    };
    // A bare list, nanoseconds since 1970, exponents, text.
    check(&format!("[{}]", kernel("3", "2")), (3_000, 2_000));
    check(&format!("[{}]", kernel("1712195495519689047", "250")), (1_712_195_495_519_689_047, 250));
    check(&format!("[{}]", kernel("1.5e3", "2e0")), (1_500_000, 2_000));
    check(&format!("[{}]", kernel("\"3.5\"", "\"2\"")), (3_500, 2_000));
    // A second argument of the same name, null arguments, unknown keys.
    check(
        r#"[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":{"stream":1,"stream":2},"x":[{}]}]"#,
        (1_000, 1_000),
    );
    check(
        r#"[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":1,"args":null,"cat":"kernel"}]"#,
        (1_000, 1_000),
    );
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compression_does_not_matter() {
    let plain = kineto::read_from(RECENT.as_bytes()).unwrap();
    assert_eq!(kineto::read_from(gzip(RECENT).as_slice()).unwrap(), plain);
    // Two members, as `cat` joins them.
    let (head, tail) = RECENT.split_at(RECENT.len() / 2);
    let both = [gzip(head), gzip(tail)].concat();
    assert_eq!(kineto::read_from(both.as_slice()).unwrap(), plain);
}

#[test]
fn files_that_are_no_traces() {
    #[track_caller]
    fn check(bytes: &[u8], expect: &str) {
        let error = kineto::read_from(bytes).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
    let cut = RECENT.find("\"gemm\"").unwrap();
    check(&RECENT.as_bytes()[..cut], "ends after 6 complete events (line 15)");
    let packed = gzip(RECENT);
    check(&packed[..packed.len() - 200], "cut short");
    let mut damaged = packed.clone();
    for byte in &mut damaged[200..240] {
        *byte ^= 0x5a;
    }
    assert!(kineto::read_from(damaged.as_slice()).is_err());
    check(b"", "ends after 0 complete events");
    check(b"not json", "line 1, column 2");
    check(b"{\"nodes\": [], \"schema\": \"1.0.1\"}", "execution trace");
    check(b"{\"workload_graph\": []}", "Chakra workload graph");
    check(b"{\"other\": 1}", "no `traceEvents`");
    check(b"{\"traceEvents\": []}", "0 events but neither operators nor device work");
    check(b"{\"traceEvents\": {}}", "a list of events");
    check(b"[[-1, 1, 37888, 7]]", "an event (an object)");
    check(b"7", "an object with `traceEvents`");
    check(b"{\"traceEvents\": [{\"ph\": 3}]}", "expected a string");
    check(b"[{\"ph\": \"X\", \"name\": \"\xff\"}]", "line 1");
    check(b"{\"traceEvents\": []} tail", "trailing characters");
}

#[test]
fn the_file_is_named() {
    let error = kineto::read(std::path::Path::new("/no/such/trace.json")).unwrap_err();
    assert!(matches!(error, KinetoError::File { .. }));
    assert!(error.to_string().starts_with("`/no/such/trace.json` cannot be read"), "{error}");
}

#[test]
fn operators_know_the_one_around_them_and_steps_may_be_operators() {
    let trace = kineto::read_from(RECENT.as_bytes()).unwrap();
    assert_eq!(trace.parents(), [None, Some(0), None]);
    let old = RECENT.replace("\"user_annotation\", \"name\": \"Prof", "\"Operator\", \"name\": \"Prof");
    let steps = kineto::read_from(old.as_bytes()).unwrap().steps();
    assert_eq!(steps.iter().map(|step| step.number).collect::<Vec<_>>(), [7]);
}

#[test]
fn a_trace_larger_than_memory_is_read_as_far_as_there_is_room() {
    let path = std::env::temp_dir().join(format!("trompe-kineto-{}.json", std::process::id()));
    std::fs::write(&path, RECENT).unwrap();
    let all = kineto::read(&path).unwrap();
    let some = kineto::read_most(&path, 3).unwrap();
    std::fs::remove_file(&path).unwrap();
    let count = |trace: &kineto::KinetoTrace| {
        let lists = [
            trace.operators.len(),
            trace.device_events.len(),
            trace.runtime_calls.len(),
            trace.annotations.len(),
        ];
        lists.iter().sum::<usize>() as u64
    };
    assert_eq!((count(&some), some.left), (3, count(&all) - 3));
}

//! Logs of nccl-tests become constants that an explanation uses.

use trompe_session::network::{explain, fit};
use trompe_session::{NetworkSource, Times};

#[test]
fn a_log_is_fitted_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("all_reduce.log");
    // A machine on which every all-reduce takes 50 us and a GB takes 10 ms.
    let time = |bytes: u64| 50.0 + bytes as f64 / 1e9 * 10_000.0;
    let row = |power: u32| {
        let (bytes, micros) = (1_u64 << power, time(1 << power));
        let rate = bytes as f64 / micros / 1e3;
        format!("{bytes} {} float sum -1 {micros:.2} {rate:.2} {:.2} 0\n", bytes / 4, rate * 1.75)
    };
    let rows: String = (3..33).map(row).collect();
    let ranks: String = (0..8)
        .map(|rank| format!("#  Rank  {rank} Group  0 Pid 1 on host device  {rank} [0x0f] H100\n"))
        .collect();
    std::fs::write(&log, format!("# Collective test starting: all_reduce_perf\n{ranks}{rows}")).unwrap();
    let out = folder.path().join("mine.toml");
    let request = fit::Request {
        logs: vec![log.clone()],
        cluster: "dgx-h100".to_owned(),
        hints: fit::Hints::default(),
        network: None,
        out: out.clone(),
    };
    let fitted = fit::fit(&request).unwrap();
    assert_eq!(fitted.rows, 30);
    assert!(fitted.scores[0].after < 0.02, "{:?}", fitted.scores);
    let explained = explain::explain(&explain::Request {
        operation: "all_reduce".to_owned(),
        cluster: "dgx-h100".to_owned(),
        devices: Vec::new(),
        sizes: vec![1 << 10, 1 << 30],
        pairs: None,
        network: Some(NetworkSource { topology: None, times: Times::Constants(out) }),
    })
    .unwrap();
    for row in &explained.rows {
        assert!((row.micros / time(row.bytes) - 1.0).abs() < 0.05, "{row:?}");
    }
    assert!(explained.rows[1].busiest.is_some());
    // A cut log names its line.
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, &text[..text.len() - 25]).unwrap();
    let error = fit::fit(&request).unwrap_err().to_string();
    assert!(error.contains("line 39") && error.contains("all_reduce.log"), "{error}");
}

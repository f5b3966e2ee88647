//! Whatever a trace holds, it is collated or refused, never a panic.

use proptest::prelude::*;
use trompe_base::{DType, DeviceIndex, EventId, KernelId, StreamId};
use trompe_collate::{Options, collate};
use trompe_testkit::values::strided;
use trompe_testkit::{Launch, TraceBuilder};
use trompe_trace::record::{MarkerKind, Record};

/// Real kernel names of every family.
fn kernels() -> Vec<&'static str> {
    include_str!("../src/classify/cases.txt")
        .lines()
        .filter_map(|line| line.strip_prefix("kernel "))
        .collect()
}

const OPERATORS: [&str; 10] = [
    "aten::add_",
    "aten::copy_",
    "aten::embedding",
    "aten::embedding_dense_backward",
    "aten::_flash_attention_forward",
    "aten::_efficient_attention_backward",
    "aten::cat",
    "aten::_grouped_mm",
    "aten::linear",
    "Optimizer.step#SGD.step",
];

/// One random record.
fn put(t: &mut TraceBuilder, kind: u8, n: u64, bytes: &[u8]) {
    let names = kernels();
    let (stream, event, api) = (StreamId(n as u32 % 3), EventId(n as u32 % 3), n as u16 % 5);
    let (graph, version, small) = (n as u32 % 3, n as u32 % 3, n as u32);
    let device = DeviceIndex(0);
    match kind % 18 {
        0..3 => {
            let (head, tail) = bytes.split_at(bytes.len() / 2);
            let parameters = [head, tail];
            let launch = Launch {
                parameters: &parameters,
                grid: [small, 7, 65535],
                block: [1024, 2, 1],
                ..Launch::default()
            };
            t.launch(Launch { name: names[n as usize % names.len()], ..launch });
        }
        3 => {
            t.record(&Record::OperatorBegin {
                name: small % 9,
                scope: kind,
                sequence: n as i64,
                forward_thread: 0,
                values: bytes,
            });
        }
        4 => {
            t.record(&Record::OperatorEnd { values: bytes });
        }
        5 => {
            let tensor = strided(DType::F32, &[n, n >> 20, 3], &[1, 0, -5], n);
            let inputs = [tensor.clone(), tensor];
            t.operator(OPERATORS[n as usize % OPERATORS.len()], &inputs, |t| {
                t.launch(Launch { name: names[(n >> 7) as usize % names.len()], ..Launch::default() });
                inputs.to_vec()
            });
        }
        6 if n.is_multiple_of(2) => _ = t.allocator(n as u8 % 12, n, n.rotate_left(9)),
        6 => _ = t.allocator(n as u8 % 12, n % 4096 * 512, n >> 40),
        7 => _ = t.record(&Record::Malloc { api, device, address: n, bytes: n }),
        8 => _ = t.record(&Record::Free { api, device, address: n, bytes: n }),
        9 => _ = t.record(&Record::Charge { device, owner: "x", bytes: n as i64 }),
        10 => _ = t.record(&Record::CaptureBegin { stream, graph }),
        11 => _ = t.record(&Record::CaptureEnd { stream, graph }),
        12 => _ = t.record(&Record::GraphLaunch { api, executable: graph, stream }),
        13 => _ = t.record(&Record::GraphInstantiate { graph, executable: graph }),
        14 => _ = t.record(&Record::EventRecord { api, event, version, stream }),
        15 => _ = t.record(&Record::StreamWaitEvent { api, stream, event, version }),
        16 => {
            let kind = if n.is_multiple_of(2) { MarkerKind::Push } else { MarkerKind::Pop };
            _ = t.record(&Record::Marker { kind, text: "step 1" });
        }
        _ => {
            _ = t.record(&Record::Launch {
                api,
                kernel: KernelId(small),
                stream,
                grid: [small; 3],
                block: [small; 3],
                shared: small,
                parameters: bytes,
            })
        }
    }
    t.on_thread(1 + small % 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_sequence_of_records_is_collated(
        records in proptest::collection::vec((any::<u8>(), any::<u64>(), proptest::collection::vec(any::<u8>(), 0..64)), 1..120),
        meta in "\\PC{0,40}",
    ) {
        let mut t = TraceBuilder::default();
        t.meta("environment", &meta).meta("torch.memory_peaks", &meta).meta("node", &meta);
        t.launch(Launch::default());
        for (kind, n, bytes) in &records {
            put(&mut t, *kind, *n, bytes);
        }
        let job = collate(&[t.finish()], &Options::default()).unwrap();
        let template = &job.templates[0];
        prop_assert!(template.events.iter().all(|e| (e.site as usize) < template.sites.len()));
        prop_assert!(template.steps.boundaries.windows(2).all(|w| w[0] < w[1]));
        prop_assert!(template.steps.boundaries.last().is_some_and(|last| *last <= template.events.len()));
        prop_assert!(template.steps.warmup < template.steps.count().max(1));
    }

    #[test]
    fn random_arguments_never_panic(values in proptest::collection::vec(any::<u64>(), 1..6)) {
        let mut t = TraceBuilder::default();
        for (index, name) in kernels().into_iter().enumerate() {
            let words: Vec<[u8; 8]> = values.iter().map(|v| v.rotate_left(index as u32).to_le_bytes()).collect();
            let parameters: Vec<&[u8]> = words.iter().map(|w| &w[..if w[0].is_multiple_of(2) { 8 } else { 4 }]).collect();
            t.launch(Launch { name, parameters: &parameters, ..Launch::default() });
        }
        prop_assert!(collate(&[t.finish()], &Options::default()).is_ok());
    }
}

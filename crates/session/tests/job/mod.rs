//! A small training job, made by hand: every step copies a batch in, runs two matrix products and their gradients, an
//! element-wise pass and an optimizer, and reads the loss back.

use trompe_base::{Bytes, DType, Duration, Flops, StreamId, ThreadIndex};
use trompe_session::RunFacts;
use trompe_trace::descriptor::{
    Copy, Descriptor, Direction, Elementwise, Epilogue, Gemm, Optimizer, Place, Work,
};
use trompe_trace::job::{
    Action, CallClass, Ending, HostEvent, JobTrace, Memory, MemorySample, Operation, Phase, RankInstance,
    RankTemplate, Site, StepSource, Steps, Stream,
};
use trompe_trace::record::StreamKind;

/// Matrix products of a step, each `2 · 4096³` operations.
pub(crate) const PRODUCTS: u64 = 6;

/// Floating-point operations of one product.
pub(crate) const PRODUCT_FLOPS: f64 = 2.0 * 4096.0 * 4096.0 * 4096.0;

/// The job with `steps` steps, of which the first is warm-up, and the facts of its run.
pub(crate) fn job(steps: usize) -> JobTrace {
    let sites =
        [("aten::linear", Phase::Forward), ("MmBackward0", Phase::Backward), ("step", Phase::Optimizer)];
    let mut template = RankTemplate {
        operations: operations(),
        sites: sites.map(|(operator, phase)| site(operator, phase)).into(),
        streams: vec![Stream { id: StreamId(0), device: 0, priority: 0, kind: StreamKind::Legacy }],
        memory: memory(),
        calls: vec![("cudart/cudaLaunchKernel/emulated".to_owned(), 9)],
        ending: Ending::Orderly,
        ..RankTemplate::default()
    };
    let mut boundaries = Vec::new();
    for step in 0..steps {
        boundaries.push(template.events.len());
        // The first step is slower on the host.
        let gap = Duration::from_micros(if step == 0 { 900 } else { 10 });
        let launches = [(0, 0), (1, 0), (2, 0), (1, 0), (1, 1), (1, 1), (1, 1), (1, 1), (3, 2)];
        template.events.extend(launches.map(|(operation, site)| enqueue(operation, site, gap, false)));
        template.events.push(enqueue(4, 2, gap, true));
    }
    boundaries.push(template.events.len());
    template.steps = Steps {
        boundaries,
        warmup: 1,
        source: StepSource::Optimizer,
        samples: Some(8),
        tokens: Some(4096),
        samples_from: Some("first dimension of aten::linear's input".to_owned()),
    };
    let mut job = JobTrace {
        templates: vec![template],
        ranks: vec![RankInstance { template: 0, communicators: Vec::new(), emulated: true }],
        ..JobTrace::default()
    };
    job.facts.insert("torch.version".to_owned(), "2.15.0".to_owned());
    RunFacts {
        command: vec!["python".to_owned(), "train.py".to_owned()],
        exit_code: Some(0),
        cluster: "h100-sxm".to_owned(),
        device: "h100-sxm5-80".to_owned(),
        capability: (9, 0),
        records: 123,
        processor: Some("a processor".to_owned()),
        ..RunFacts::default()
    }
    .store(&mut job);
    job
}

fn site(operator: &str, phase: Phase) -> Site {
    Site { operator: operator.to_owned(), scope: String::new(), phase }
}

fn enqueue(operation: u32, site: u32, gap: Duration, blocking: bool) -> HostEvent {
    let call = if operation == 1 { CallClass::LibraryLaunch } else { CallClass::Launch };
    let action = Action::Enqueue { stream: StreamId(0), operation, blocking };
    HostEvent { thread: ThreadIndex(0), gap, call, site, action }
}

fn operations() -> Vec<Operation> {
    let bytes = |mib: u64| Bytes::from_mib(mib);
    let work = |mib, flops| Work { read: bytes(mib), written: bytes(mib), flops: Flops(flops) };
    let gemm = Gemm {
        m: 4096,
        n: 4096,
        k: 4096,
        batch: 1,
        transpose_a: true,
        transpose_b: false,
        a: DType::Bf16,
        b: DType::Bf16,
        c: DType::Bf16,
        compute: DType::F32,
        epilogue: Epilogue::None,
        accumulate: false,
        leading: [4096; 3],
        strides: [0; 3],
    };
    let elements = 16 << 20;
    let pass = Elementwise { elements, dtype: DType::Bf16, vectorized: true, work: work(32, elements) };
    let update = Optimizer { elements, lists: 4, dtype: DType::F32, work: work(256, 16 * elements) };
    let copy = |from, to, bytes| Descriptor::Copy(Copy { from, to, bytes });
    let all = [
        ("copy to device", copy(Place::Pinned, Place::Device, Bytes(1 << 20))),
        ("gemm bf16", Descriptor::Gemm(gemm)),
        ("gelu", Descriptor::Elementwise(pass)),
        ("adam", Descriptor::Optimizer(update)),
        ("copy to host", copy(Place::Device, Place::Pageable, Bytes(4))),
    ];
    let operation = |(name, descriptor): (&str, Descriptor)| Operation {
        name: format!("_Z{name}"),
        short_name: name.to_owned(),
        descriptor,
        direction: Direction::Forward,
        launch: None,
    };
    all.map(operation).into()
}

fn memory() -> Memory {
    let gib = |n: u64| Bytes(n << 30);
    let sample = |event, n| MemorySample { event, allocated: gib(n), reserved: gib(n + 1) };
    Memory {
        capacity: gib(79),
        peak_allocated: Some(gib(30)),
        peak_reserved: Some(gib(31)),
        peak_total: gib(32),
        charges: vec![("cublas_workspace".to_owned(), gib(1))],
        timeline: vec![sample(0, 10), sample(5, 30), sample(9, 12)],
        owners_at_peak: vec![("aten::linear, forward".to_owned(), gib(30))],
        out_of_memory: Vec::new(),
    }
}

//! GPT-3 with 145.6 billion parameters on tensor, pipeline and data parallel ranks, as Megatron-LM runs it.
//!
//! Layers 80, hidden size 12,288, 96 heads, sequences of 2,048, vocabulary 51,200 (Narayanan et al., SC 2021, table 1);
//! tensor parallel 8 inside a node, pipeline 8, one forward, one backward; sequence-parallel messages between stages; the
//! all-reduce of an input's gradient runs beside the product for the weights' gradient; gradients are reduce-scattered
//! in fp32 and parameters gathered in bf16 at the end of the step; fused attention, no recomputation.

use std::collections::BTreeMap;

use trompe_base::{Bytes, DType, Duration, EventId, Flops, Rank, StreamId, ThreadIndex};
use trompe_cluster::{Price, Prices};
use trompe_estimate::KernelEstimator;
use trompe_hardware::DeviceSheet;
use trompe_trace::descriptor::{
    Attention, AttentionKind, Descriptor, Direction, Elementwise, Embedding, Epilogue, Gemm, NormKind,
    Normalization, Optimizer, RowWise, Work,
};
use trompe_trace::job::{
    Action, CallClass, Collective, Communicator, HostEvent, JobTrace, Operation, Phase, RankInstance,
    RankTemplate, Site, Steps, Stream,
};
use trompe_trace::record::{CollectiveKind, StreamKind};

pub(crate) const LAYERS: u64 = 80;
pub(crate) const HIDDEN: u64 = 12_288;
const HEADS: u64 = 96;
pub(crate) const SEQUENCE: u64 = 2_048;
const VOCABULARY: u64 = 51_200;
const TENSOR: u64 = 8;
const STAGES: u64 = 8;

/// Streams: compute, tensor-parallel collectives, messages in and out by direction, data-parallel collectives.
const COMPUTE: u32 = 0;
const TENSORS: u32 = 1;
const RECEIVE: [u32; 2] = [2, 3];
const SEND: [u32; 2] = [4, 5];
const GRADIENTS: u32 = 6;

/// Communicator slots.
const TP: u32 = 0;
/// Activations down and gradients up the pipeline.
const PP: [u32; 2] = [1, 2];
const DP: u32 = 3;

/// How the job is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) data: u64,
    pub(crate) micro_batch: u64,
    pub(crate) micro_batches: u64,
}

impl Layout {
    pub(crate) fn ranks(self) -> u64 {
        TENSOR * STAGES * self.data
    }
}

/// Floating-point operations of the model for a batch of `sequences`, recomputation not counted: Narayanan et al., SC
/// 2021, section 5.1, with three passes instead of four.
pub(crate) fn model_flops(sequences: u64) -> f64 {
    let (l, h, s, v) = (LAYERS as f64, HIDDEN as f64, SEQUENCE as f64, VOCABULARY as f64);
    72.0 * sequences as f64 * s * l * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * l * h))
}

/// The job and its prices on `device` by `estimator`.
pub(crate) fn job(
    layout: Layout,
    device: &DeviceSheet,
    estimator: &dyn KernelEstimator,
) -> (JobTrace, Prices) {
    let templates: Vec<RankTemplate> = (0..STAGES).map(|stage| Builder::new(layout).stage(stage)).collect();
    let price = |operation: &Operation| {
        let estimate = estimator.estimate(&operation.descriptor, device);
        Price { time: estimate.time, low: estimate.low, high: estimate.high }
    };
    let prices = templates.iter().map(|template| template.operations.iter().map(price).collect()).collect();
    let (ranks, communicators) = places(layout);
    (JobTrace { templates, ranks, communicators, ..JobTrace::default() }, Prices { templates: prices })
}

/// Ranks and their communicators: tensor-parallel neighbours first, then data, then stages.
fn places(layout: Layout) -> (Vec<RankInstance>, Vec<Communicator>) {
    let (t, d, p) = (TENSOR as u32, layout.data as u32, STAGES as u32);
    let rank = |tensor: u32, data: u32, stage: u32| Rank((stage * d + data) * t + tensor);
    let mut communicators = Vec::new();
    let mut add = |members: Vec<Rank>| {
        communicators.push(Communicator { members, purpose: None });
        communicators.len() - 1
    };
    let mut rows: BTreeMap<(u32, u32, u32), usize> = BTreeMap::new();
    for data in 0..d {
        for stage in 0..p {
            rows.insert((0, data, stage), add((0..t).map(|tensor| rank(tensor, data, stage)).collect()));
        }
        for tensor in 0..t {
            for way in [1, 2] {
                rows.insert(
                    (way, data, tensor),
                    add((0..p).map(|stage| rank(tensor, data, stage)).collect()),
                );
            }
        }
    }
    for stage in 0..p {
        for tensor in 0..t {
            rows.insert((3, stage, tensor), add((0..d).map(|data| rank(tensor, data, stage)).collect()));
        }
    }
    let mut ranks = Vec::with_capacity((t * d * p) as usize);
    for stage in 0..p {
        for data in 0..d {
            for tensor in 0..t {
                let keys = [(0, data, stage), (1, data, tensor), (2, data, tensor), (3, stage, tensor)];
                let communicators = keys.iter().map(|key| rows[key]).collect();
                ranks.push(RankInstance { template: stage as usize, communicators, emulated: true });
            }
        }
    }
    (ranks, communicators)
}

/// Writes the events of one stage.
struct Builder {
    layout: Layout,
    template: RankTemplate,
    known: BTreeMap<String, u32>,
    events: u32,
    calls: BTreeMap<u32, u64>,
    site: u32,
}

impl Builder {
    fn new(layout: Layout) -> Self {
        let stream = |id| Stream { id: StreamId(id), device: 0, priority: 0, kind: StreamKind::NonBlocking };
        let site = |phase| Site { operator: String::new(), scope: String::new(), phase };
        let template = RankTemplate {
            streams: (COMPUTE..=GRADIENTS).map(stream).collect(),
            sites: [Phase::Forward, Phase::Backward, Phase::Optimizer].map(site).to_vec(),
            ..RankTemplate::default()
        };
        Self { layout, template, known: BTreeMap::new(), events: 0, calls: BTreeMap::new(), site: 0 }
    }

    fn stage(mut self, stage: u64) -> RankTemplate {
        let batches = self.layout.micro_batches;
        let warmup = (STAGES - stage - 1).min(batches);
        for batch in 0..batches + warmup {
            if batch < batches {
                self.forward(stage);
            }
            if batch >= warmup {
                self.backward(stage);
            }
        }
        self.finish();
        let boundaries = vec![0, self.template.events.len()];
        self.template.steps = Steps { boundaries, ..Steps::default() };
        self.template
    }

    fn push(&mut self, call: CallClass, action: Action) {
        let (thread, gap, site) = (ThreadIndex(0), Duration::from_micros(6), self.site);
        self.template.events.push(HostEvent { thread, gap, call, site, action });
    }

    fn kernel(&mut self, name: &str, descriptor: Descriptor) {
        let next = self.template.operations.len() as u32;
        let operation = *self.known.entry(name.to_owned()).or_insert(next);
        if operation == next {
            let (name, short_name) = (name.to_owned(), name.to_owned());
            let direction = Direction::Forward;
            self.template.operations.push(Operation {
                name,
                short_name,
                descriptor,
                direction,
                launch: None,
            });
        }
        self.push(
            CallClass::Launch,
            Action::Enqueue { stream: StreamId(COMPUTE), operation, blocking: false },
        );
    }

    /// Lets stream `to` wait for what is on stream `from` now.
    fn after(&mut self, from: u32, to: u32) {
        let event = EventId(self.events % 64);
        let version = self.events / 64 + 1;
        self.events += 1;
        self.push(CallClass::Event, Action::RecordEvent { stream: StreamId(from), event, version });
        self.push(CallClass::Event, Action::WaitEvent { stream: StreamId(to), event, version });
    }

    fn call(&mut self, stream: u32, kind: CollectiveKind, (communicator, peer): (u32, u32), bytes: u64) {
        let sequence = self.calls.entry(communicator).or_default();
        *sequence += 1;
        let sequence = *sequence - 1;
        let (bytes, dtype) = (Bytes(bytes), DType::Bf16);
        let collective = Collective { kind, communicator, sequence, bytes, dtype, peer, group: 0 };
        self.push(CallClass::Collective, Action::Collective { stream: StreamId(stream), collective });
    }

    /// Elements of one layer's activations.
    fn activations(&self) -> u64 {
        self.layout.micro_batch * SEQUENCE * HIDDEN
    }

    fn gemm(&mut self, name: &str, (m, n, k): (u64, u64, u64)) {
        let gemm = Gemm {
            m,
            n,
            k,
            batch: 1,
            transpose_a: true,
            transpose_b: false,
            a: DType::Bf16,
            b: DType::Bf16,
            c: DType::Bf16,
            compute: DType::F32,
            epilogue: Epilogue::None,
            accumulate: false,
            leading: [k, k, m],
            strides: [0; 3],
        };
        self.kernel(name, Descriptor::Gemm(gemm));
    }

    fn pass(&mut self, name: &str, elements: u64, (read, written): (u64, u64)) {
        let work = Work {
            read: Bytes(2 * read * elements),
            written: Bytes(2 * written * elements),
            flops: Flops(0),
        };
        let pass = Elementwise { elements, dtype: DType::Bf16, vectorized: true, work };
        self.kernel(name, Descriptor::Elementwise(pass));
    }

    fn norm(&mut self, name: &str, direction: Direction) {
        // Sequence parallel: each rank normalises its part.
        let elements = self.activations() / TENSOR;
        let passes = if direction == Direction::Forward { 2 } else { 4 };
        let work =
            Work { read: Bytes(2 * (passes - 1) * elements), written: Bytes(2 * elements), flops: Flops(0) };
        let (rows, cols) = (elements / HIDDEN, HIDDEN);
        let norm = Normalization { kind: NormKind::Layer, direction, rows, cols, dtype: DType::Bf16, work };
        self.kernel(name, Descriptor::Normalization(norm));
    }

    fn attention(&mut self, name: &str, direction: Direction) {
        let heads = HEADS / TENSOR;
        let attention = Attention {
            direction,
            kind: AttentionKind::Flash,
            batch: self.layout.micro_batch,
            heads,
            kv_heads: heads,
            seq_q: SEQUENCE,
            seq_kv: SEQUENCE,
            head_dim: HIDDEN / HEADS,
            head_dim_v: HIDDEN / HEADS,
            causal: true,
            dropout: false,
            dtype: DType::Bf16,
        };
        self.kernel(name, Descriptor::Attention(attention));
    }

    /// An all-reduce of activations that compute waits for.
    fn reduce(&mut self) {
        self.after(COMPUTE, TENSORS);
        self.call(TENSORS, CollectiveKind::AllReduce, (TP, 0), 2 * self.activations());
        self.after(TENSORS, COMPUTE);
    }

    fn receive(&mut self, way: usize, from: u64) {
        self.call(
            RECEIVE[way],
            CollectiveKind::Recv,
            (PP[way], from as u32),
            2 * self.activations() / TENSOR,
        );
        self.after(RECEIVE[way], COMPUTE);
    }

    fn send(&mut self, way: usize, to: u64) {
        self.after(COMPUTE, SEND[way]);
        self.call(SEND[way], CollectiveKind::Send, (PP[way], to as u32), 2 * self.activations() / TENSOR);
    }

    fn forward(&mut self, stage: u64) {
        self.site = 0;
        let (n, h, t) = (self.layout.micro_batch * SEQUENCE, HIDDEN, TENSOR);
        if stage == 0 {
            self.embedding(Direction::Forward);
        } else {
            self.receive(0, stage - 1);
        }
        for _ in 0..LAYERS / STAGES {
            self.norm("norm", Direction::Forward);
            self.gemm("qkv", (3 * h / t, n, h));
            self.attention("attention", Direction::Forward);
            self.gemm("projection", (h, n, h / t));
            self.reduce();
            self.pass("dropout and add", n * h / t, (2, 1));
            self.norm("norm", Direction::Forward);
            self.gemm("up", (4 * h / t, n, h));
            self.pass("gelu", n * 4 * h / t, (1, 1));
            self.gemm("down", (h, n, 4 * h / t));
            self.reduce();
            self.pass("dropout and add", n * h / t, (2, 1));
        }
        if stage + 1 < STAGES {
            self.send(0, stage + 1);
        } else {
            self.norm("norm", Direction::Forward);
            self.gemm("head", (VOCABULARY / t, n, h));
            self.loss("loss", Direction::Forward);
        }
    }

    fn embedding(&mut self, direction: Direction) {
        let (tokens, width) = (self.layout.micro_batch * SEQUENCE, HIDDEN);
        let bytes = Bytes(2 * tokens * width);
        let work = Work { read: bytes, written: bytes, flops: Flops(0) };
        let rows = VOCABULARY / TENSOR;
        let embedding = Embedding { direction, tokens, width, rows, dtype: DType::Bf16, work };
        self.kernel(
            if direction == Direction::Forward { "embedding" } else { "embedding gradient" },
            Descriptor::Embedding(embedding),
        );
    }

    fn loss(&mut self, name: &str, direction: Direction) {
        let (rows, cols) = (self.layout.micro_batch * SEQUENCE, VOCABULARY / TENSOR);
        let bytes = Bytes(4 * rows * cols);
        let work = Work { read: bytes, written: bytes, flops: Flops(0) };
        let row_wise = RowWise { direction, rows, cols, dtype: DType::F32, work };
        self.kernel(name, Descriptor::CrossEntropy(row_wise));
    }

    /// The gradients of a product: the input's, whose all-reduce runs beside that of the weights.
    fn gradients(&mut self, name: &str, (m, n, k): (u64, u64, u64), reduce: bool) {
        self.gemm(&format!("{name} input"), (k, n, m));
        if reduce {
            self.after(COMPUTE, TENSORS);
            self.call(TENSORS, CollectiveKind::AllReduce, (TP, 0), 2 * self.activations());
        }
        self.gemm(&format!("{name} weights"), (m, k, n));
        if reduce {
            self.after(TENSORS, COMPUTE);
        }
    }

    fn backward(&mut self, stage: u64) {
        self.site = 1;
        let (n, h, t) = (self.layout.micro_batch * SEQUENCE, HIDDEN, TENSOR);
        if stage + 1 < STAGES {
            self.receive(1, stage + 1);
        } else {
            self.loss("loss gradient", Direction::Backward);
            self.gradients("head", (VOCABULARY / t, n, h), true);
            self.norm("norm gradient", Direction::Backward);
        }
        for _ in 0..LAYERS / STAGES {
            self.pass("dropout gradient", n * h / t, (2, 1));
            self.gradients("down", (h, n, 4 * h / t), false);
            self.pass("gelu gradient", n * 4 * h / t, (2, 1));
            self.gradients("up", (4 * h / t, n, h), true);
            self.norm("norm gradient", Direction::Backward);
            self.pass("dropout gradient", n * h / t, (2, 1));
            self.gradients("projection", (h, n, h / t), false);
            self.attention("attention gradient", Direction::Backward);
            self.gradients("qkv", (3 * h / t, n, h), true);
            self.norm("norm gradient", Direction::Backward);
        }
        if stage > 0 {
            self.send(1, stage - 1);
        } else {
            self.embedding(Direction::Backward);
        }
    }

    /// Gradients are scattered, each rank updates its part, parameters are gathered.
    fn finish(&mut self) {
        self.site = 2;
        let parameters = LAYERS / STAGES * 12 * HIDDEN * HIDDEN / TENSOR;
        self.after(COMPUTE, GRADIENTS);
        self.call(GRADIENTS, CollectiveKind::ReduceScatter, (DP, 0), 4 * parameters);
        self.after(GRADIENTS, COMPUTE);
        let elements = parameters / self.layout.data;
        let work = Work { read: Bytes(16 * elements), written: Bytes(14 * elements), flops: Flops(0) };
        let update = Optimizer { elements, lists: 4, dtype: DType::F32, work };
        self.kernel("adam", Descriptor::Optimizer(update));
        self.after(COMPUTE, GRADIENTS);
        self.call(GRADIENTS, CollectiveKind::AllGather, (DP, 0), 2 * parameters);
        self.after(GRADIENTS, COMPUTE);
        self.push(CallClass::Synchronize, Action::SynchronizeDevice { device: 0 });
    }
}

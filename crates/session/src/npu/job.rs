//! From the description of a job made of NPU kernels to a job trace.
//!
//! Every rank makes the same calls, so the trace has one template. The host's own time between calls is what the
//! description says; what a launch costs comes from the cluster's host when the trace is simulated.

use std::collections::BTreeMap;
use std::path::PathBuf;

use trompe_base::{Bytes, DType, Duration, EventId, Flops, Rank, StreamId, ThreadIndex};
use trompe_hardware::resolve;
use trompe_npu::estimator::KernelTimes;
use trompe_npu::job::{self as describe, Call, Job};
use trompe_npu::tune::Choice;
use trompe_npu::{ElementType, Program, Role, Space};
use trompe_trace::descriptor::{Descriptor, Direction, NpuKernel, NpuWork, Work};
use trompe_trace::job::{
    Action, CallClass, Collective, Communicator, Ending, HostEvent, JobTrace, Memory, Operation, Phase,
    RankInstance, RankTemplate, Site, StepSource, Steps, Stream,
};
use trompe_trace::record::{CollectiveKind, StreamKind};

use super::{files, prices, refused};
use crate::{RunFacts, SessionError, simulate};

/// A job to be written as a trace.
#[derive(Clone, Debug)]
pub struct JobRequest {
    /// Description: `.json`, or `.py` that writes one.
    pub job: PathBuf,
    /// Values of the script's keywords.
    pub values: Choice,
    /// The cluster it is meant for.
    pub cluster: String,
    /// Profile of its kernels: a name or a TOML file.
    pub profile: String,
    /// The trace to write.
    pub out: PathBuf,
}

/// Writes the trace of a job; gives a line about it. Every kernel has been simulated once, so that one that does not
/// run is found here.
///
/// # Errors
/// When the description is wrong, a kernel does not run on the cluster's devices, or the trace cannot be written.
pub fn job(request: &JobRequest) -> Result<String, SessionError> {
    let described = Job::from_json(&files::text(&request.job, &request.values)?).map_err(refused)?;
    let cluster = resolve(&request.cluster)?;
    let device = prices::device(&cluster)?;
    let times = KernelTimes::new(device.clone(), files::profile(&request.profile, &device)?);
    let mut trace = translate(&described, &times)?;
    prices::set_profile(&mut trace, &request.profile)?;
    let sheet = cluster.device();
    let facts = RunFacts {
        command: std::iter::once(request.job.display().to_string())
            .chain(request.values.iter().map(|(name, value)| format!("{name}={value}")))
            .collect(),
        directory: std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default(),
        exit_code: Some(0),
        cluster: request.cluster.clone(),
        device: sheet.name.clone(),
        processor: Some("no machine (the job's description states it)".to_owned()),
        ..RunFacts::default()
    };
    facts.store(&mut trace);
    simulate::save(&trace, &request.out)?;
    Ok(format!(
        "{}: {} ranks, {} kernels, {} calls a step; written to {}\nnow: trompe simulate {} --out DIR\n",
        described.name,
        described.ranks,
        described.kernels.len(),
        described.step.len(),
        request.out.display(),
        request.out.display()
    ))
}

/// The trace of a job without its facts.
fn translate(job: &Job, times: &KernelTimes) -> Result<JobTrace, SessionError> {
    let mut template = RankTemplate { ending: Ending::Orderly, ..RankTemplate::default() };
    let mut rows = BTreeMap::new();
    for (name, kernel) in &job.kernels {
        let macs = times
            .multiply_adds(&kernel.program)
            .map_err(|error| refused(format!("kernel `{name}`: {error}")))?;
        rows.insert(name.as_str(), template.operations.len() as u32);
        template.operations.push(operation(name, kernel, macs));
    }
    let slots: BTreeMap<&str, u32> = job.groups.keys().map(String::as_str).zip(0..).collect();
    let mut writer = Writer { template, rows, slots, ..Writer::default() };
    for _ in 0..job.steps {
        writer.template.steps.boundaries.push(writer.template.events.len());
        for call in &job.step {
            writer.call(call);
        }
    }
    let mut template = writer.template;
    template.steps.boundaries.push(template.events.len());
    let warmup = usize::from(job.steps > 1);
    template.steps = Steps {
        warmup,
        source: StepSource::Marker,
        samples: job.samples,
        tokens: job.tokens,
        samples_from: job.tokens.or(job.samples).map(|_| "the job's description".to_owned()),
        ..template.steps
    };
    template.memory = memory(job);
    let mut communicators = Vec::new();
    let mut ranks: Vec<RankInstance> = (0..job.ranks)
        .map(|_| RankInstance { template: 0, communicators: Vec::new(), emulated: true })
        .collect();
    for (name, group) in &job.groups {
        for members in group.members(job.ranks) {
            for rank in &members {
                ranks[*rank as usize].communicators.push(communicators.len());
            }
            let members = members.into_iter().map(Rank).collect();
            communicators.push(Communicator { members, purpose: Some(name.clone()) });
        }
    }
    Ok(JobTrace { templates: vec![template], ranks, communicators, ..JobTrace::default() })
}

/// A kernel as an operation. Ideal bytes are those of its inputs and outputs, operations those of its matrix products.
fn operation(name: &str, kernel: &describe::Kernel, macs: u64) -> Operation {
    let program = &kernel.program;
    let bytes = |roles: [Role; 2]| {
        let tensors = program.tensors.iter().filter(|t| t.space == Space::Gm && t.view_of.is_none());
        let sizes = tensors
            .filter(|tensor| roles.contains(&tensor.role))
            .map(|tensor| tensor.shape.iter().product::<u64>() * tensor.dtype.size() as u64);
        Bytes(sizes.sum())
    };
    let work = Work {
        read: bytes([Role::Input, Role::Inout]),
        written: bytes([Role::Output, Role::Inout]),
        flops: Flops(2 * macs),
    };
    let does = match kernel.does {
        describe::Work::Gemm => NpuWork::Gemm,
        describe::Work::Attention => NpuWork::Attention,
        describe::Work::Normalization => NpuWork::Normalization,
        describe::Work::Elementwise => NpuWork::Elementwise,
        describe::Work::Reduction => NpuWork::Reduction,
        describe::Work::Embedding => NpuWork::Embedding,
        describe::Work::Optimizer => NpuWork::Optimizer,
        describe::Work::Other => NpuWork::Other,
    };
    // Shortest form: the text is kept in the trace, not read by people.
    let text = serde_json::to_string(program).expect("a program has only text keys");
    let descriptor = NpuKernel { program: text, does, dtype: matrix_dtype(program), work };
    Operation {
        name: program.name.clone(),
        short_name: name.to_owned(),
        descriptor: Descriptor::NpuKernel(descriptor),
        direction: Direction::Forward,
        launch: None,
    }
}

/// The type of the matrix unit's left operand, else of the first input.
fn matrix_dtype(program: &Program) -> DType {
    let tensors = || program.tensors.iter();
    let found = tensors()
        .find(|tensor| tensor.space == Space::L0a)
        .or_else(|| tensors().find(|tensor| tensor.role == Role::Input));
    found.map_or(DType::F32, |tensor| dtype(tensor.dtype))
}

const fn dtype(kind: ElementType) -> DType {
    match kind {
        ElementType::F16 => DType::F16,
        ElementType::Bf16 => DType::Bf16,
        ElementType::F32 => DType::F32,
        ElementType::F8e4m3 => DType::F8E4M3,
        ElementType::F8e5m2 => DType::F8E5M2,
        ElementType::I8 => DType::I8,
        ElementType::U8 => DType::U8,
        ElementType::I16 | ElementType::U16 => DType::I16,
        ElementType::I32 | ElementType::U32 => DType::I32,
        ElementType::I64 | ElementType::U64 => DType::I64,
        ElementType::Bool => DType::Bool,
    }
}

/// What the description says, as the allocator's state all the time.
fn memory(job: &Job) -> Memory {
    let total = Bytes(job.memory.values().sum());
    let mut owners: Vec<_> = job.memory.iter().map(|(owner, bytes)| (owner.clone(), Bytes(*bytes))).collect();
    owners.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let stated = (!owners.is_empty()).then_some(total);
    Memory {
        peak_allocated: stated,
        peak_reserved: stated,
        peak_total: total,
        owners_at_peak: owners,
        ..Memory::default()
    }
}

/// The template under construction.
#[derive(Default)]
struct Writer<'a> {
    template: RankTemplate,
    rows: BTreeMap<&'a str, u32>,
    slots: BTreeMap<&'a str, u32>,
    /// Events: number and version of the last recording.
    events: BTreeMap<&'a str, (u32, u32)>,
    /// Calls of each communicator slot.
    sequences: BTreeMap<u32, u64>,
    /// Host time since the last call.
    gap: Duration,
}

impl<'a> Writer<'a> {
    fn call(&mut self, call: &'a Call) {
        match call {
            Call::Kernel { kernel, stream, operator, phase } => {
                let action = Action::Enqueue {
                    stream: self.stream(*stream),
                    operation: self.rows[kernel.as_str()],
                    blocking: false,
                };
                let site = self.site(operator, *phase);
                self.event(CallClass::Launch, site, action);
            }
            Call::Collective { kind, group, bytes, dtype: element, stream, operator, phase } => {
                let communicator = self.slots[group.as_str()];
                let next = self.sequences.entry(communicator).or_default();
                let sequence = *next;
                *next += 1;
                let kind = match kind {
                    describe::Collective::AllReduce => CollectiveKind::AllReduce,
                    describe::Collective::AllGather => CollectiveKind::AllGather,
                    describe::Collective::ReduceScatter => CollectiveKind::ReduceScatter,
                    describe::Collective::Broadcast => CollectiveKind::Broadcast,
                    describe::Collective::AllToAll => CollectiveKind::AllToAll,
                };
                let collective = Collective {
                    kind,
                    communicator,
                    sequence,
                    bytes: Bytes(*bytes),
                    dtype: dtype(*element),
                    peer: 0,
                    group: 0,
                };
                let stream = self.stream(*stream);
                let site = self.site(operator, *phase);
                self.event(CallClass::Collective, site, Action::Collective { stream, collective });
            }
            Call::Record { event, stream } => {
                let stream = self.stream(*stream);
                let next = self.events.len() as u32;
                let (number, version) = self.events.entry(event).or_insert((next, 0));
                *version += 1;
                let (event, version) = (EventId(*number), *version);
                let site = self.site("", describe::Phase::Forward);
                self.event(CallClass::Event, site, Action::RecordEvent { stream, event, version });
            }
            Call::Wait { event, stream } => {
                let stream = self.stream(*stream);
                let (number, version) = self.events[event.as_str()];
                let event = EventId(number);
                let site = self.site("", describe::Phase::Forward);
                self.event(CallClass::Event, site, Action::WaitEvent { stream, event, version });
            }
            Call::Synchronize => {
                let site = self.site("", describe::Phase::Forward);
                self.event(CallClass::Synchronize, site, Action::SynchronizeDevice { device: 0 });
            }
            Call::Host { microseconds } => self.gap += Duration::from_secs_f64(microseconds * 1e-6),
        }
    }

    fn event(&mut self, call: CallClass, site: u32, action: Action) {
        let gap = std::mem::take(&mut self.gap);
        self.template.events.push(HostEvent { thread: ThreadIndex(0), gap, call, site, action });
    }

    fn stream(&mut self, number: u32) -> StreamId {
        let id = StreamId(number);
        if !self.template.streams.iter().any(|stream| stream.id == id) {
            self.template.streams.push(Stream { id, device: 0, priority: 0, kind: StreamKind::NonBlocking });
        }
        id
    }

    fn site(&mut self, operator: &str, phase: describe::Phase) -> u32 {
        let phase = match phase {
            describe::Phase::Forward => Phase::Forward,
            describe::Phase::Backward => Phase::Backward,
            describe::Phase::Recompute => Phase::Recompute,
            describe::Phase::Optimizer => Phase::Optimizer,
        };
        let site = Site { operator: operator.to_owned(), scope: String::new(), phase };
        let sites = &mut self.template.sites;
        let at = sites.iter().position(|other| *other == site).unwrap_or_else(|| {
            sites.push(site);
            sites.len() - 1
        });
        at as u32
    }
}

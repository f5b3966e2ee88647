//! From the description of a job made of NPU kernels to a job trace.
//!
//! All ranks of a stage make the same calls, so the trace has one template for each stage; a job without stages is one
//! stage. The host's own time between calls is what the
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
        described.steps_of_stages().iter().map(|step| step.len()).sum::<usize>(),
        request.out.display(),
        request.out.display()
    ))
}

/// The trace of a job without its facts.
fn translate(job: &Job, times: &KernelTimes) -> Result<JobTrace, SessionError> {
    let mut operations = BTreeMap::new();
    for (name, kernel) in &job.kernels {
        let macs = times
            .multiply_adds(&kernel.program)
            .map_err(|error| refused(format!("kernel `{name}`: {error}")))?;
        operations.insert(name.as_str(), operation(name, kernel, macs));
    }
    let templates = (0..job.steps_of_stages().len()).map(|stage| template(job, stage, &operations)).collect();
    let per_stage = job.ranks_per_stage();
    let mut communicators = Vec::new();
    let mut ranks: Vec<RankInstance> = (0..job.ranks)
        .map(|rank| RankInstance {
            template: (rank / per_stage) as usize,
            communicators: Vec::new(),
            emulated: true,
        })
        .collect();
    // In the order of the slots: the groups, then the ranks at one place of all stages.
    let mut join = |members: Vec<u32>, purpose: &str| {
        for rank in &members {
            ranks[*rank as usize].communicators.push(communicators.len());
        }
        let members = members.into_iter().map(Rank).collect();
        communicators.push(Communicator { members, purpose: Some(purpose.to_owned()) });
    };
    for (name, group) in &job.groups {
        group.members(job.ranks).into_iter().for_each(|members| join(members, name));
    }
    if job.stages.len() > 1 {
        for place in 0..per_stage {
            join((place..job.ranks).step_by(per_stage as usize).collect(), "pipeline");
        }
    }
    Ok(JobTrace { templates, ranks, communicators, ..JobTrace::default() })
}

/// What the ranks of a stage do.
fn template(job: &Job, stage: usize, operations: &BTreeMap<&str, Operation>) -> RankTemplate {
    let step = job.steps_of_stages()[stage];
    let mut template = RankTemplate { ending: Ending::Orderly, ..RankTemplate::default() };
    let mut rows = BTreeMap::new();
    for (name, operation) in operations {
        let used = |call: &Call| matches!(call, Call::Kernel { kernel, .. } if kernel == name);
        if step.iter().any(used) {
            rows.insert(*name, template.operations.len() as u32);
            template.operations.push(operation.clone());
        }
    }
    let slots: BTreeMap<&str, u32> = job.groups.keys().map(String::as_str).zip(0..).collect();
    let mut writer = Writer { template, rows, slots, ..Writer::default() };
    for _ in 0..job.steps {
        writer.template.steps.boundaries.push(writer.template.events.len());
        for call in step {
            writer.call(call);
        }
    }
    let mut template = writer.template;
    template.steps.boundaries.push(template.events.len());
    template.steps = Steps {
        warmup: usize::from(job.steps > 1),
        source: StepSource::Marker,
        samples: job.samples,
        tokens: job.tokens,
        samples_from: job.tokens.or(job.samples).map(|_| "the job's description".to_owned()),
        ..template.steps
    };
    template.memory = memory(job, stage);
    template
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

/// What the description says of a stage, as the allocator's state all the time.
fn memory(job: &Job, stage: usize) -> Memory {
    let mut all = job.memory.clone();
    for (owner, bytes) in job.stages.get(stage).iter().flat_map(|stage| &stage.memory) {
        *all.entry(owner.clone()).or_default() += bytes;
    }
    let total = Bytes(all.values().sum());
    let mut owners: Vec<_> = all.into_iter().map(|(owner, bytes)| (owner, Bytes(bytes))).collect();
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
    /// Calls of each communicator slot; sends and receives apart, for each peer.
    sequences: BTreeMap<(u32, Option<(CollectiveKind, u32)>), u64>,
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
                let kind = match kind {
                    describe::Collective::AllReduce => CollectiveKind::AllReduce,
                    describe::Collective::AllGather => CollectiveKind::AllGather,
                    describe::Collective::ReduceScatter => CollectiveKind::ReduceScatter,
                    describe::Collective::Broadcast => CollectiveKind::Broadcast,
                    describe::Collective::AllToAll => CollectiveKind::AllToAll,
                };
                let size = (*bytes, *element);
                self.collective((kind, communicator, None), size, (*stream, operator, *phase));
            }
            Call::Send { to: peer, bytes, dtype, stream, operator, phase } => {
                let kind = (CollectiveKind::Send, self.slots.len() as u32, Some(*peer));
                self.collective(kind, (*bytes, *dtype), (*stream, operator, *phase));
            }
            Call::Receive { from: peer, bytes, dtype, stream, operator, phase } => {
                let kind = (CollectiveKind::Recv, self.slots.len() as u32, Some(*peer));
                self.collective(kind, (*bytes, *dtype), (*stream, operator, *phase));
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

    fn collective(
        &mut self,
        (kind, communicator, peer): (CollectiveKind, u32, Option<u32>),
        (bytes, element): (u64, ElementType),
        (stream, operator, phase): (u32, &str, describe::Phase),
    ) {
        let next = self.sequences.entry((communicator, peer.map(|peer| (kind, peer)))).or_default();
        let sequence = *next;
        *next += 1;
        let collective = Collective {
            kind,
            communicator,
            sequence,
            bytes: Bytes(bytes),
            dtype: dtype(element),
            peer: peer.unwrap_or(0),
            group: 0,
        };
        let stream = self.stream(stream);
        let site = self.site(operator, phase);
        self.event(CallClass::Collective, site, Action::Collective { stream, collective });
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

#[cfg(test)]
mod tests {
    use super::*;
    use trompe_npu::{Device, Profile, kernels};

    /// Two stages of two ranks; the second sends something back.
    #[test]
    fn a_pipeline_is_a_template_for_each_stage() {
        let add = serde_json::json!({ "call": "kernel", "kernel": "add" });
        let pair = |call: &str, key: &str, stage: u32| {
            let mut pair = serde_json::json!({ "call": call, "bytes": 256, "dtype": "f32", "stream": 1 });
            pair[key] = stage.into();
            pair
        };
        let job = serde_json::json!({
            "format": "trompe-npu-job", "version": 1, "name": "two stages", "ranks": 4, "steps": 2,
            "groups": { "tp": { "size": 2 } },
            "kernels": {
                "add": { "program": kernels::vector_add(64, 64, 1) },
                "other": { "program": kernels::vector_add(128, 64, 1) },
            },
            "memory": { "weights": 10 },
            "stages": [
                { "step": [add, pair("send", "to", 1), pair("receive", "from", 1)] },
                {
                    "step": [pair("receive", "from", 0), add, pair("send", "to", 0)],
                    "memory": { "weights": 5 },
                },
            ],
        });
        let device = Device::named("ascend-910b").unwrap();
        let times = KernelTimes::new(device.clone(), Profile::named("reference", &device).unwrap());
        let trace = translate(&Job::from_json(&job.to_string()).unwrap(), &times).unwrap();
        assert_eq!(trace.ranks.iter().map(|rank| rank.template).collect::<Vec<_>>(), [0, 0, 1, 1]);
        let members: Vec<Vec<u32>> = trace
            .communicators
            .iter()
            .map(|communicator| communicator.members.iter().map(|rank| rank.0).collect())
            .collect();
        assert_eq!(members, [[0, 1], [2, 3], [0, 2], [1, 3]]);
        assert_eq!(trace.ranks[3].communicators, [1, 3]);
        // Kind, slot, peer and number of each call of the second stage.
        let calls: Vec<_> = trace.templates[1]
            .events
            .iter()
            .filter_map(|event| match &event.action {
                Action::Collective { collective, .. } => {
                    let Collective { kind, communicator, peer, sequence, .. } = *collective;
                    Some((kind, communicator, peer, sequence))
                }
                _ => None,
            })
            .collect();
        let (send, receive) = (CollectiveKind::Send, CollectiveKind::Recv);
        assert_eq!(calls, [(receive, 1, 0, 0), (send, 1, 0, 0), (receive, 1, 0, 1), (send, 1, 0, 1)]);
        assert_eq!(trace.templates.iter().map(|t| t.operations.len()).collect::<Vec<_>>(), [1, 1]);
        assert_eq!([0, 1].map(|stage| trace.templates[stage].memory.peak_total.0), [10, 15]);
    }
}

//! All cores: rounds of independent work, collectives between rounds, and what comes out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trompe_engine::Engine;

use crate::compile::{Lane, compile};
use crate::device::{Device, Profile};
use crate::element::ElementType;
use crate::error::{ProgramError, RunError, Site};
use crate::exec::apply_in_order;
use crate::memory::GlobalMemory;
use crate::ops::Op;
use crate::program::{Program, Role, Space};

use super::core::{Core, Shared};
use super::record::{Cause, CoreTimeline, PipeUse, Step, What, actor_name};
use super::sync::{CollectiveKey, Wait};

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// No data is touched; refused when control flow reads memory.
    pub timing_only: bool,
    /// Reproduce what the reference does differently: its rounding, ignored masks, operands serialised by name.
    pub compat: bool,
    /// Instructions that a lane may execute; a bound for loops that never end.
    pub budget: u64,
    /// Threads for the cores; the results do not depend on it.
    pub threads: usize,
    /// What to check.
    pub checks: Checks,
    /// Largest amount of global memory.
    pub memory_limit: u64,
}

/// What to check beyond what always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checks {
    /// Reads of local memory that nothing has written.
    pub poison: bool,
    /// Accesses of different pipes that no event orders.
    pub hazards: bool,
    /// Tensors that lie over each other while both live.
    pub overlaps: bool,
    /// Flags that are set and never taken.
    pub unconsumed: bool,
}

impl Default for Checks {
    fn default() -> Self {
        Self { poison: true, hazards: true, overlaps: true, unconsumed: true }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timing_only: false,
            compat: false,
            budget: 100_000_000,
            threads: 1,
            checks: Checks::default(),
            memory_limit: 16 << 30,
        }
    }
}

/// The content of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its element type; raw bits stand for types that the file format lacks.
    pub dtype: ElementType,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its elements, little endian, rows first.
    pub bytes: Vec<u8>,
}

/// A tensor that came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its content.
    pub content: Input,
}

/// What a run gave.
#[derive(Debug)]
pub struct Outcome {
    /// Name of the program.
    pub program: String,
    /// Cycles from the start to the end of the last task.
    pub makespan: u64,
    /// Cores that ran.
    pub cores: u32,
    /// Tasks that pipes did.
    pub tasks: u64,
    /// Instructions that control actors executed.
    pub instructions: u64,
    /// Output tensors, in the order of the program; none of a timing-only run.
    pub outputs: Vec<Output>,
    /// What `sim_dump_tensor` kept.
    pub dumps: Vec<Output>,
    /// What `sim_print` printed, core by core.
    pub prints: Vec<String>,
    /// How each pipe spent its time.
    pub pipes: Vec<PipeUse>,
    /// Bytes moved per path.
    pub moved: BTreeMap<&'static str, u64>,
    /// Multiply-adds of the matrix units by the type of their operands.
    pub macs: BTreeMap<ElementType, u64>,
    /// Tasks that each waited for the one before, from the start to the end of the run.
    pub critical_path: Vec<Step>,
    /// Everything that happened, for [`crate::chrome`].
    pub timelines: Vec<CoreTimeline>,
    pub(crate) shared: Arc<Shared>,
}

/// Runs `program`.
///
/// # Errors
/// When the program makes no sense, does not fit the device, lacks an input, or fails while it runs.
pub fn run(
    program: &Program,
    device: &Device,
    profile: &Profile,
    inputs: &BTreeMap<String, Input>,
    options: &Options,
) -> Result<Outcome, RunError> {
    let compiled = compile(program, device, options.checks.overlaps)?;
    if compiled.lanes[2].is_some() && compiled.lanes[1].is_none() {
        let problem = "lane `vec1` has instructions, `vec0` has none; use `vec0` or `vec`".to_owned();
        return Err(ProgramError::Whole(problem).into());
    }
    let bytes: u64 = compiled.tensors.iter().filter(|t| t.view.space == Space::Gm).map(|t| t.bytes).sum();
    if bytes > options.memory_limit && !options.timing_only {
        let problem = format!(
            "the program's global memory is {bytes} bytes, the limit {}; run it timing-only or raise the limit",
            options.memory_limit
        );
        return Err(ProgramError::Whole(problem).into());
    }
    let vector_lanes = compiled.lanes[1..].iter().flatten().count();
    let gm = if options.timing_only { GlobalMemory::default() } else { GlobalMemory::new(&compiled) };
    let shared = Arc::new(Shared {
        program: compiled,
        device: device.clone(),
        profile: profile.clone(),
        options: options.clone(),
        gm,
        vector_lanes,
    });
    if !options.timing_only {
        fill(&shared, inputs)?;
    }
    let mut cores: Vec<(Core, Engine<Core>)> =
        (0..shared.program.cores).map(|index| Core::new(index, &shared)).collect();
    loop {
        round(&mut cores, options.threads);
        if let Some(error) = cores.iter_mut().find_map(|(core, _)| core.error.take()) {
            return Err(error);
        }
        apply_in_order(cores.iter_mut().map(|(core, _)| &mut core.atomics), &shared.gm);
        if !complete(&mut cores, vector_lanes) {
            break;
        }
    }
    if cores.iter().any(|(core, _)| !core.is_done()) {
        let waits = cores.iter().flat_map(|(core, _)| core.waits()).collect();
        return Err(RunError::Deadlock { waits });
    }
    if let Some(race) = super::races::find(cores.iter().map(|(core, _)| core)) {
        return Err(race);
    }
    if options.checks.unconsumed
        && let Some(left) = cores.iter().find_map(|(core, _)| core.unconsumed())
    {
        return Err(RunError::Unconsumed(left));
    }
    Ok(outcome(cores.into_iter().map(|(core, _)| core).collect(), shared))
}

/// Checks `program` against `device` without running it.
///
/// # Errors
/// The first thing that is wrong.
pub fn validate(program: &Program, device: &Device) -> Result<(), ProgramError> {
    compile(program, device, true).map(drop)
}

/// Puts the inputs into global memory.
fn fill(shared: &Shared, inputs: &BTreeMap<String, Input>) -> Result<(), RunError> {
    let refuse = |tensor: &str, problem: String| Err(RunError::Input { tensor: tensor.to_owned(), problem });
    for name in inputs.keys() {
        let known = shared.program.tensors.iter().find(|tensor| tensor.name == *name);
        if !known.is_some_and(|tensor| matches!(tensor.role, Role::Input | Role::Inout)) {
            let names: Vec<&str> = wanted(shared).map(|(_, tensor)| tensor.name.as_str()).collect();
            return refuse(name, format!("the program has no such input; it has {}", names.join(", ")));
        }
    }
    for (index, tensor) in wanted(shared) {
        let Some(input) = inputs.get(&tensor.name) else {
            return refuse(&tensor.name, "is missing; give it with `--in NAME=file.npy`".to_owned());
        };
        let dtype = tensor.view.dtype;
        let raw = !matches!(dtype, ElementType::F16 | ElementType::F32) && dtype.size() == input.dtype.size();
        let bits = matches!(dtype, ElementType::Bf16 | ElementType::F8e4m3 | ElementType::F8e5m2)
            && matches!(input.dtype, ElementType::U16 | ElementType::U8 | ElementType::I16 | ElementType::I8)
            && raw;
        if input.dtype != dtype && !bits {
            return refuse(
                &tensor.name,
                format!("has {} elements, the program wants {}", input.dtype.name(), dtype.name()),
            );
        }
        let flat = [tensor.shape.iter().product::<u64>()];
        if input.shape != tensor.shape && input.shape != flat {
            return refuse(
                &tensor.name,
                format!("has shape {:?}, the program wants {:?}", input.shape, tensor.shape),
            );
        }
        if input.bytes.len() as u64 != tensor.bytes {
            return refuse(
                &tensor.name,
                format!("has {} bytes, the program wants {}", input.bytes.len(), tensor.bytes),
            );
        }
        shared.gm.write(index as u32, 0, &input.bytes);
    }
    Ok(())
}

fn wanted(shared: &Shared) -> impl Iterator<Item = (usize, &crate::compile::Placed)> {
    let all = shared.program.tensors.iter().enumerate();
    all.filter(|(_, tensor)| matches!(tensor.role, Role::Input | Role::Inout))
}

/// Lets every core run until nothing in it can go on.
fn round(cores: &mut [(Core, Engine<Core>)], threads: usize) {
    let run = |(core, engine): &mut (Core, Engine<Core>)| {
        if core.error.is_none() && !engine.scheduler().is_finished() {
            engine.run(core).expect("control actors have a budget, so ticks end");
        }
    };
    let threads = threads.clamp(1, cores.len().max(1));
    if threads == 1 {
        cores.iter_mut().for_each(run);
        return;
    }
    let share = cores.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for part in cores.chunks_mut(share) {
            scope.spawn(move || part.iter_mut().for_each(run));
        }
    });
}

/// Completes the collectives that every participant has reached; false when nobody can go on.
fn complete(cores: &mut [(Core, Engine<Core>)], vector_lanes: usize) -> bool {
    let keys: BTreeSet<CollectiveKey> =
        cores.iter().flat_map(|(core, _)| core.sync.collectives.keys().copied()).collect();
    let mut woken = false;
    // A control actor that paused may have to dispatch what a full pipe waits for.
    for (core, engine) in cores.iter_mut() {
        for lane in Lane::ALL {
            let control = super::core::control_of(lane);
            if core.blocked[control] == Some(Wait::Backlog(lane)) {
                core.blocked[control] = None;
                core.lane(lane).ahead *= 2;
                core.look(control, 0, engine.scheduler_mut());
                woken = true;
            }
        }
    }
    for key in keys {
        let lanes = if key.vector { vector_lanes } else { 1 };
        let arrivals = |core: &Core, sub: usize| {
            core.sync.collectives.get(&key).map_or(0, |known| known.arrived[sub].len())
        };
        let phases =
            cores.iter().flat_map(|(core, _)| (0..lanes).map(|sub| arrivals(core, sub))).min().unwrap_or(0);
        let done = cores
            .iter()
            .map(|(core, _)| core.sync.collectives.get(&key).map_or(0, |known| known.completed.len()))
            .min()
            .unwrap_or(0);
        for phase in done..phases {
            let mut ready = (0, Cause::NONE);
            for (core, _) in cores.iter() {
                for sub in 0..lanes {
                    let token = &core.sync.collectives[&key].arrived[sub][phase];
                    if token.ready > ready.0 {
                        ready = (token.ready, token.cause);
                    }
                }
            }
            for (core, _) in cores.iter_mut() {
                core.sync.collectives.entry(key).or_default().completed.push(ready);
            }
        }
        for (core, engine) in cores.iter_mut() {
            for actor in 0..core.blocked.len() {
                let Some(Wait::Collective(wanted, sub)) = core.blocked[actor] else { continue };
                let known = &core.sync.collectives[&key];
                if wanted == key && known.completed.len() > known.taken[sub] {
                    core.blocked[actor] = None;
                    core.look(actor, 0, engine.scheduler_mut());
                    woken = true;
                }
            }
        }
    }
    woken
}

fn outcome(mut cores: Vec<Core>, shared: Arc<Shared>) -> Outcome {
    let makespan = cores.iter().map(|core| core.makespan).max().unwrap_or(0);
    let data = !shared.options.timing_only;
    let mut outputs = Vec::new();
    for (index, tensor) in shared.program.tensors.iter().enumerate() {
        if data && matches!(tensor.role, Role::Output | Role::Inout) {
            let bytes = shared.gm.content(index as u32, tensor.bytes);
            let content = Input { dtype: tensor.view.dtype, shape: tensor.shape.clone(), bytes };
            outputs.push(Output { name: tensor.name.clone(), content });
        }
    }
    let critical_path = critical_path(&cores);
    let mut moved = BTreeMap::new();
    let mut macs = BTreeMap::new();
    let mut pipes = Vec::new();
    for core in &cores {
        pipes.extend(uses(core));
        for (path, bytes) in &core.moved {
            *moved.entry(*path).or_insert(0) += bytes;
        }
        for (dtype, count) in &core.macs {
            *macs.entry(*dtype).or_insert(0) += count;
        }
    }
    let mut dumps = Vec::new();
    let mut prints = Vec::new();
    for core in &mut cores {
        prints.append(&mut core.prints);
        for (name, view, bytes) in core.dumps.drain(..) {
            let shape = vec![(bytes.len() / view.dtype.size()) as u64];
            dumps.push(Output { name, content: Input { dtype: view.dtype, shape, bytes } });
        }
    }
    Outcome {
        program: shared.program.name.clone(),
        makespan,
        cores: shared.program.cores,
        tasks: cores.iter().flat_map(|core| &core.pipes).map(|pipe| pipe.done).sum(),
        instructions: cores
            .iter()
            .flat_map(|core| core.lanes.iter().flatten())
            .map(|lane| lane.executed)
            .sum(),
        outputs,
        dumps,
        prints,
        pipes,
        moved,
        macs,
        critical_path,
        timelines: cores
            .into_iter()
            .map(|core| CoreTimeline { core: core.index, records: core.records })
            .collect(),
        shared,
    }
}

/// How the pipes of a core spent their time.
fn uses(core: &Core) -> Vec<PipeUse> {
    let mut uses = Vec::new();
    for lane in Lane::ALL {
        let Some(state) = &core.lanes[lane as usize] else { continue };
        for &pipe in &lane.pipes()[1..] {
            let actor = super::pipe::actor_number(lane, pipe);
            // By what the records say; names are made once, not per record.
            let mut waits = BTreeMap::<(Op, u32), u64>::new();
            let (mut busy, mut tasks, mut end) = (0, 0, 0);
            for record in core.records.iter().filter(|record| usize::from(record.actor) == actor) {
                end = end.max(record.end);
                match record.what {
                    What::Wait if record.end > record.start => {
                        *waits.entry((record.op, record.detail)).or_insert(0) += record.end - record.start;
                    }
                    What::Task => {
                        busy += record.end - record.start;
                        tasks += 1;
                    }
                    What::Wait | What::Set => {}
                }
            }
            let name = |(op, detail): (Op, u32)| match op {
                Op::EventWait | Op::EventRelease => {
                    let event = &state.code.events[detail as usize];
                    format!("{} by {}", event.name, event.source.name())
                }
                Op::WaitCube => format!("flag {detail} of the cube"),
                Op::WaitVec => format!("flag {detail} of the vector lanes"),
                Op::AllcubeWait => format!("all cubes, flag {detail}"),
                Op::AllvecWait => format!("all vector lanes, flag {detail}"),
                op => format!("{} {detail}", crate::ops::spec_of(op).name),
            };
            let mut named = BTreeMap::<String, u64>::new();
            for (key, cycles) in waits {
                *named.entry(name(key)).or_insert(0) += cycles;
            }
            let mut stalls: Vec<(String, u64)> = named.into_iter().collect();
            stalls.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            uses.push(PipeUse {
                core: core.index,
                lane: lane.name(),
                pipe: pipe.name(),
                tasks,
                busy,
                stalls,
                end,
            });
        }
    }
    uses
}

/// Back from the task that ended last, each time to what its start waited for.
fn critical_path(cores: &[Core]) -> Vec<Step> {
    let all = cores.iter().enumerate().flat_map(|(core, state)| {
        state.records.iter().enumerate().map(move |(at, record)| (record.end, std::cmp::Reverse((core, at))))
    });
    let Some((_, std::cmp::Reverse(last))) = all.max() else { return Vec::new() };
    let mut next = Some(last);
    let mut steps = Vec::new();
    while let Some((core, at)) = next {
        let record = &cores[core].records[at];
        if record.what == What::Task {
            let (start, end) = (record.start, record.end);
            steps.push(Step { core: core as u32, actor: record.actor, instr: record.instr, start, end });
        }
        // Records are made in the order of their starts, so causes lie before what they caused.
        next = record.cause.get().filter(|&cause| {
            cores.get(cause.0).and_then(|core| core.records.get(cause.1)).is_some_and(|c| c.end <= record.end)
                && cause != (core, at)
        });
    }
    steps.reverse();
    steps
}

impl Outcome {
    /// Where an instruction stands.
    pub(crate) fn site(&self, lane: Lane, instr: u32) -> Option<&Site> {
        self.shared.program.lanes[lane as usize].as_ref()?.sites.get(instr as usize)
    }

    /// The makespan in microseconds of the device's clock.
    #[must_use]
    pub fn microseconds(&self) -> f64 {
        self.makespan as f64 / self.shared.device.clock_mhz
    }

    /// First and one past the last cycle of each task of a pipe, for example `cube.MTE2`.
    #[must_use]
    pub fn spans(&self, core: u32, pipe: &str) -> Vec<(u64, u64)> {
        let Some(timeline) = self.timelines.iter().find(|timeline| timeline.core == core) else {
            return Vec::new();
        };
        let on_pipe = |actor: u8| {
            let (lane, name) = actor_name(actor.into());
            pipe.split_once('.').is_some_and(|(wanted, pipe)| wanted == lane.name() && pipe == name)
        };
        let tasks =
            timeline.records.iter().filter(|record| record.what == What::Task && on_pipe(record.actor));
        tasks.map(|record| (record.start, record.end)).collect()
    }
}

//! One core: its lanes, pipes and memories as the world of an engine.

use std::collections::VecDeque;
use std::sync::Arc;

use trompe_base::Duration;
use trompe_engine::{Event, Scheduler, Setup};

use crate::compile::{Code, Compiled, Lane, Operand, View};
use crate::device::{Device, Profile};
use crate::error::{BlockedActor, Fault, RunError, Site};
use crate::exec::{AtomicLog, MicroMachine, Scratch, VectorState};
use crate::memory::{GlobalMemory, LocalMemory};
use crate::program::Pipe;
use crate::shadow::{ACTORS, Clock, Shadow};
use crate::task::{Atomic, Task};

use super::machine::Options;
use super::record::{Cause, Record, actor_name};
use super::sync::{EventState, Sync, Wait};

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Int(i64),
    Float(f64),
}

impl Value {
    pub(super) fn as_float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    pub(super) const fn is_true(self) -> bool {
        match self {
            Self::Int(value) => value != 0,
            Self::Float(value) => value != 0.0,
        }
    }
}

/// The control actor of a lane.
#[derive(Debug)]
pub(super) struct LaneState {
    pub(super) code: Arc<Code>,
    pub(super) at: usize,
    pub(super) cycle: u64,
    pub(super) variables: Vec<Value>,
    pub(super) lists: Vec<Vec<Value>>,
    pub(super) views: Vec<View>,
    pub(super) loops: Vec<(i64, i64, i64)>,
    pub(super) atomic: Option<Atomic>,
    pub(super) atomic_dtype: Option<crate::element::ElementType>,
    pub(super) executed: u64,
    pub(super) done: bool,
    /// What its clock was, by version.
    pub(super) clocks: Vec<Clock>,
    /// What led to its present cycle.
    pub(super) cause: Cause,
    /// Tasks that may wait on one of its pipes before the control actor pauses.
    pub(super) ahead: usize,
    /// Predicted ends by name (`--compat reference`).
    pub(super) busy: Vec<u64>,
}

/// A pipe.
#[derive(Debug, Default)]
pub(super) struct PipeState {
    pub(super) queue: VecDeque<Task>,
    /// End of its last task.
    pub(super) clock: u64,
    /// The task at work, when it publishes something at its end.
    pub(super) publishes: Option<Task>,
    pub(super) working: bool,
    /// Its last record.
    pub(super) last: Option<usize>,
    pub(super) done: u64,
}

/// Operands of micro calls, in the order of dispatch.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) tensors: [View; 12],
    pub(super) scalars: [f64; 8],
}

/// What all cores share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) program: Compiled,
    pub(crate) device: Device,
    pub(crate) profile: Profile,
    pub(crate) options: Options,
    pub(crate) gm: GlobalMemory,
    pub(crate) vector_lanes: usize,
}

/// See the module's documentation.
pub(super) struct Core {
    pub(super) index: u32,
    pub(super) shared: Arc<Shared>,
    pub(super) lanes: [Option<LaneState>; 3],
    pub(super) pipes: Vec<PipeState>,
    pub(super) bindings: [VecDeque<Binding>; 2],
    pub(super) vectors: [VectorState; 2],
    pub(super) events: Vec<Event>,
    pub(super) blocked: [Option<Wait>; ACTORS],
    pub(super) clocks: [Clock; ACTORS],
    /// Instruction of each memory access, by actor and count.
    pub(super) accesses: Vec<Vec<u32>>,
    pub(super) memory: LocalMemory,
    pub(super) shadow: Shadow,
    pub(super) atomics: AtomicLog,
    pub(super) scratch: Scratch,
    pub(super) micro: MicroMachine,
    pub(super) sync: Sync,
    pub(super) records: Vec<Record>,
    pub(super) prints: Vec<String>,
    pub(super) dumps: Vec<(String, View, Vec<u8>)>,
    pub(super) error: Option<RunError>,
    pub(super) makespan: u64,
    /// What it touched of global memory, where races are looked for.
    pub(super) accesses_gm: Vec<super::races::Access>,
    pub(super) looks_for_races: bool,
    /// Bytes that data moves read, per path.
    pub(super) moved: std::collections::BTreeMap<&'static str, u64>,
    pub(super) macs: std::collections::BTreeMap<crate::element::ElementType, u64>,
    /// Micro counts already known: program and numbers to count.
    pub(super) counted: std::collections::BTreeMap<(u32, [u64; 8]), crate::exec::MicroCount>,
}

/// The control actor of a lane.
pub(super) const fn control_of(lane: Lane) -> usize {
    match lane {
        Lane::Cube => 0,
        Lane::Vec0 => 5,
        Lane::Vec1 => 9,
    }
}

/// The lane of an actor.
pub(super) const fn lane_of(actor: usize) -> Lane {
    match actor {
        0..5 => Lane::Cube,
        5..9 => Lane::Vec0,
        _ => Lane::Vec1,
    }
}

/// The actor that is this pipe of the lane.
pub(super) fn actor_of(lane: Lane, pipe: Pipe) -> usize {
    let at = lane.pipes().iter().position(|known| *known == pipe).unwrap_or(0);
    control_of(lane) + at
}

impl Core {
    /// A core with its engine; its control actors are scheduled for cycle 0.
    pub(super) fn new(index: u32, shared: &Arc<Shared>) -> (Self, trompe_engine::Engine<Self>) {
        let mut setup = Setup::<Self>::new();
        let events: Vec<Event> = (0..ACTORS)
            .map(|actor| {
                let (lane, pipe) = actor_name(actor);
                let name = format!("{actor:02} {}.{pipe}", lane.name());
                setup.event(name.as_str(), move |core: &mut Self, now: &mut Scheduler| core.step(actor, now))
            })
            .collect();
        let mut engine = setup.finalize().expect("thirteen names and no edges");
        let program = &shared.program;
        let options = &shared.options;
        let data = !options.timing_only;
        let lanes = [0, 1, 2].map(|at| program.lanes[at].as_ref().map(|code| LaneState::new(code, program)));
        let mut sync = Sync::default();
        for (at, lane) in lanes.iter().enumerate() {
            if let Some(lane) = lane {
                let event = |definition: &crate::compile::EventDefinition| EventState {
                    flags: vec![None; definition.flags],
                    ..EventState::default()
                };
                sync.events[at] = lane.code.events.iter().map(event).collect();
                engine
                    .scheduler_mut()
                    .schedule(events[control_of(Lane::ALL[at])], Duration::ZERO)
                    .expect("cycle 0");
            }
        }
        let checks = &options.checks;
        let core = Self {
            index,
            shared: Arc::clone(shared),
            lanes,
            pipes: (0..ACTORS).map(|_| PipeState::default()).collect(),
            bindings: [VecDeque::new(), VecDeque::new()],
            vectors: [VectorState::default(); 2],
            events,
            blocked: [None; ACTORS],
            clocks: [Clock::default(); ACTORS],
            accesses: vec![vec![0]; ACTORS],
            memory: if data { LocalMemory::new(program) } else { LocalMemory::default() },
            shadow: Shadow::new(program, data && checks.poison, data && checks.hazards),
            atomics: AtomicLog::default(),
            scratch: Scratch::default(),
            micro: MicroMachine::default(),
            sync,
            records: Vec::new(),
            prints: Vec::new(),
            dumps: Vec::new(),
            error: None,
            makespan: 0,
            accesses_gm: Vec::new(),
            looks_for_races: super::races::applies(shared),
            moved: std::collections::BTreeMap::new(),
            macs: std::collections::BTreeMap::new(),
            counted: std::collections::BTreeMap::new(),
        };
        (core, engine)
    }

    fn step(&mut self, actor: usize, now: &mut Scheduler) {
        if self.error.is_some() {
            return;
        }
        let lane = lane_of(actor);
        if control_of(lane) == actor {
            self.control(lane, now)
        } else {
            self.pipe(actor, now)
        }
        if self.error.is_some() {
            now.stop();
        }
    }

    /// Lets `actor` be looked at in `cycle`, or now if that is past.
    pub(super) fn look(&self, actor: usize, cycle: u64, now: &mut Scheduler) {
        let delay = Duration::from_picos(cycle.saturating_sub(now.now().as_picos()));
        now.schedule(self.events[actor], delay).expect("events of a core have one group");
    }

    /// Wakes whoever waits for what `matches`.
    pub(super) fn wake(&mut self, now: &mut Scheduler, matches: impl Fn(&Wait) -> bool) {
        for actor in 0..ACTORS {
            if self.blocked[actor].as_ref().is_some_and(&matches) {
                self.blocked[actor] = None;
                self.look(actor, 0, now);
            }
        }
    }

    pub(super) fn lane(&mut self, lane: Lane) -> &mut LaneState {
        self.lanes[lane as usize].as_mut().expect("an actor's lane has code")
    }

    /// Stores the first error.
    pub(super) fn fail(&mut self, lane: Lane, instr: usize, cycle: u64, fault: Fault) {
        let site = self.site(lane, instr);
        let fault = match fault {
            Fault::Range { operand, tensor, start, end, limit } => {
                let named = tensor.parse::<usize>().ok().and_then(|at| self.shared.program.tensors.get(at));
                let tensor = named.map_or(tensor, |tensor| tensor.name.clone());
                Fault::Range { operand, tensor, start, end, limit }
            }
            other => other,
        };
        let error = RunError::Instruction { core: self.index, cycle, site: Box::new(site), fault };
        self.error.get_or_insert(error);
    }

    pub(super) fn site(&self, lane: Lane, instr: usize) -> Site {
        self.lanes[lane as usize]
            .as_ref()
            .and_then(|state| state.code.sites.get(instr).cloned())
            .unwrap_or_default()
    }

    /// Whether a pipe has nothing left to do.
    pub(super) fn is_idle(&self, actor: usize) -> bool {
        let pipe = &self.pipes[actor];
        pipe.queue.is_empty() && !pipe.working && self.blocked[actor].is_none()
    }

    pub(super) fn is_lane_idle(&self, lane: Lane) -> bool {
        let control = control_of(lane);
        (control + 1..control + lane.pipes().len()).all(|actor| self.is_idle(actor))
    }

    /// Whether everything is done.
    pub(super) fn is_done(&self) -> bool {
        let controls = self.lanes.iter().flatten().all(|lane| lane.done);
        controls && Lane::ALL.into_iter().all(|lane| self.is_lane_idle(lane))
    }

    /// What is set and was never taken.
    pub(super) fn unconsumed(&self) -> Option<String> {
        for (lane, state) in Lane::ALL.into_iter().zip(&self.lanes) {
            let Some(state) = state else { continue };
            for (event, definition) in self.sync.events[lane as usize].iter().zip(&state.code.events) {
                let left = event.flags.iter().flatten().count();
                if left > event.preset {
                    return Some(format!(
                        "core {} {}: event `{}` ({} to {}) has {left} flags set, {} at its creation",
                        self.index,
                        lane.name(),
                        definition.name,
                        definition.source.name(),
                        definition.target.name(),
                        event.preset
                    ));
                }
            }
        }
        for ((lane, source, target, id), (token, ..)) in &self.sync.flags {
            if token.is_some() {
                let (lane, source, target) = (lane.name(), source.name(), target.name());
                return Some(format!(
                    "core {} {lane}: flag {id} from {source} to {target} is still set",
                    self.index
                ));
            }
        }
        for (kind, table) in
            [("cube to vector", &self.sync.to_vector), ("vector to cube", &self.sync.to_cube)]
        {
            for (flag, lanes) in table.iter().enumerate() {
                for (sub, tokens) in lanes.iter().enumerate() {
                    if !tokens.is_empty() {
                        let left = tokens.len();
                        return Some(format!(
                            "core {}: flag {flag} ({kind}, vec{sub}) has {left} phases left",
                            self.index
                        ));
                    }
                }
            }
        }
        None
    }

    /// The blocked actors, for the wait-for graph.
    pub(super) fn waits(&self) -> Vec<BlockedActor> {
        (0..ACTORS).filter_map(|actor| self.blocked[actor].map(|wait| self.describe(actor, wait))).collect()
    }

    fn describe(&self, actor: usize, wait: Wait) -> BlockedActor {
        let lane = lane_of(actor);
        let state = self.lanes[lane as usize].as_ref().expect("a blocked actor has code");
        let instr = self.pipes[actor].queue.front().map_or(state.at, |task| task.instr as usize);
        let own = control_of(lane) == actor;
        let instr = if own { state.at } else { instr };
        let (waits_for, wanted): (String, Box<Setter>) = match wait {
            Wait::Event(lane, event) => {
                let definition = &state.code.events[event];
                let counts = &self.sync.events[lane as usize][event];
                let text = format!(
                    "event `{}` ({} to {}; {} sets, {} waits)",
                    definition.name,
                    definition.source.name(),
                    definition.target.name(),
                    counts.sets,
                    counts.waits
                );
                let sets = |op| matches!(op, crate::ops::Op::EventSet | crate::ops::Op::EventSetall);
                (text, Box::new(move |l, i| l == lane && sets(i.op) && i.out as usize == event))
            }
            Wait::Flag((lane, source, target, id)) => {
                let (_, set, taken) =
                    self.sync.flags.get(&(lane, source, target, id)).copied().unwrap_or_default();
                let text = format!(
                    "flag {id} from {} to {} ({set} set, {taken} taken)",
                    source.name(),
                    target.name()
                );
                (text, Box::new(move |l, i| l == lane && i.op == crate::ops::Op::SetFlag && i.pipe == source))
            }
            Wait::Cube(flag, sub) => (
                format!("flag {flag} from the cube to vec{sub}"),
                Box::new(move |_, i| i.op == crate::ops::Op::CubeReady && may_be(&i.ints, flag)),
            ),
            Wait::Vector(flag) => {
                let missing: Vec<String> = (0..self.shared.vector_lanes)
                    .filter(|&sub| self.sync.to_cube[flag][sub].is_empty())
                    .map(|sub| format!("vec{sub}"))
                    .collect();
                let text = format!("flag {flag} from {}", missing.join(" and "));
                (text, Box::new(move |_, i| i.op == crate::ops::Op::VecReady && may_be(&i.ints, flag)))
            }
            Wait::Collective(key, sub) => {
                let known = self.sync.collectives.get(&key).cloned().unwrap_or_default();
                let text = format!(
                    "phase {} of {} flag {} (this participant counted in {} times)",
                    known.taken[sub],
                    if key.vector { "allvec" } else { "allcube" },
                    key.flag,
                    known.arrived[sub].len()
                );
                let ready =
                    if key.vector { crate::ops::Op::AllvecReady } else { crate::ops::Op::AllcubeReady };
                (text, Box::new(move |_, i| i.op == ready && may_be(&i.ints, key.flag)))
            }
            Wait::Drain(pipe) => {
                let (_, name) = actor_name(pipe);
                (format!("the tasks of {name}"), Box::new(|_, _| false))
            }
            Wait::Backlog(_) => ("room on its pipes".to_owned(), Box::new(|_, _| false)),
            Wait::DrainLane(_) => ("all tasks of its lane".to_owned(), Box::new(|_, _| false)),
        };
        let mut setters = Vec::new();
        for (lane, state) in Lane::ALL.into_iter().zip(&self.lanes) {
            let Some(state) = state else { continue };
            for (instr, site) in state.code.instrs.iter().zip(&state.code.sites) {
                if wanted(lane, instr) {
                    setters.push(site.to_string());
                }
            }
        }
        BlockedActor {
            actor: format!("core{}.{}.{}", self.index, lane.name(), actor_name(actor).1),
            site: self.site(lane, instr),
            waits_for,
            setters,
        }
    }
}

/// Whether an instruction of a lane could set what somebody waits for.
type Setter = dyn Fn(Lane, &crate::compile::Instr) -> bool;

/// Whether a flag operand may be `flag`.
fn may_be(ints: &[Operand], flag: usize) -> bool {
    ints.last().is_some_and(|operand| match operand {
        Operand::Int(value) => *value == flag as i64,
        _ => true,
    })
}

impl LaneState {
    fn new(code: &Arc<Code>, program: &Compiled) -> Self {
        let mut views: Vec<View> = program.tensors.iter().map(|tensor| tensor.view).collect();
        views.resize(code.views.len(), crate::task::NO_VIEW);
        Self {
            code: Arc::clone(code),
            at: 0,
            cycle: 0,
            variables: vec![Value::Int(0); code.variables.len()],
            lists: vec![Vec::new(); code.lists.len()],
            views,
            loops: vec![(0, 0, 1); code.loops],
            atomic: None,
            atomic_dtype: None,
            executed: 0,
            done: false,
            clocks: vec![Clock::default()],
            cause: Cause::NONE,
            ahead: 128,
            busy: vec![0; code.views.len()],
        }
    }
}

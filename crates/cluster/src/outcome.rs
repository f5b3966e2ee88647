//! What a replay found, as plain data.

use trompe_base::{Bytes, Duration, Rank, SimTime};
use trompe_results::{Kind, Timeline};
use trompe_trace::job::JobTrace;
use trompe_trace::record::CollectiveKind;

use crate::account::{KINDS, Times};
use crate::path::{self, CriticalPath};
use crate::plan::{Plan, TemplatePlan, What};
use crate::state::{RankState, State};
use crate::timeline;

/// The result of one replay.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Mean time of the used steps of the slowest rank.
    pub step: Duration,
    /// Row of the slowest rank in [`Self::ranks`]; its step is what `step`, `steps` of that rank and the breakdown describe.
    pub slowest: usize,
    /// Every rank that was replayed, in order: those that ran, or all when none did.
    pub ranks: Vec<RankOutcome>,
    /// Launches of each operation during the used steps, by template: see [`OperationUse`].
    pub operations: Vec<Vec<OperationUse>>,
    /// When the last operation and the last host program ended.
    pub end: SimTime,
    /// The timeline that was asked for.
    pub timeline: Timeline,
    /// The critical path that was asked for, on the slowest rank.
    pub path: Option<CriticalPath>,
    /// Acts of all hosts that were replayed.
    pub host_events: u64,
    /// Events that the engine fired.
    pub engine_events: u64,
}

/// What one rank did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankOutcome {
    /// The rank.
    pub rank: Rank,
    /// Mean time of its used steps.
    pub step: Duration,
    /// Every step, warm-up included.
    pub steps: Vec<StepOutcome>,
    /// How many of them, at the start, are warm-up.
    pub warmup: usize,
    /// The used steps together.
    pub used: StepOutcome,
    /// Number of used steps.
    pub used_count: usize,
    /// Communication of the used steps together, by communicator and operation.
    pub communication: Vec<GroupUse>,
    /// When its host program ended.
    pub host_end: SimTime,
    /// When its last operation ended.
    pub device_end: SimTime,
    /// How many ranks of the job it stands for, itself included.
    pub stands_for: u32,
    /// When its host came to each of its events, in picoseconds, if that was asked for.
    pub host_times: Vec<u64>,
}

/// One step of one rank, or several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepOutcome {
    /// From the end of the last operation of the step before to the end of its own last one.
    pub time: Duration,
    /// What the device did at each moment of that time; adds up to `time`. By kind, in the order of [`Kind::ALL`].
    pub kinds: [Duration; KINDS],
    /// Time in which at least one collective transferred.
    pub communication: Duration,
    /// Summed time of the operations launched for the step, overlapped or not, by kind.
    pub operation_time: [Duration; KINDS],
    /// Their number by kind.
    pub operation_count: [u64; KINDS],
    /// Host time, waiting excluded.
    pub host: Duration,
}

impl StepOutcome {
    /// Time in which the device did something.
    #[must_use]
    pub fn busy(&self) -> Duration {
        Kind::ALL.into_iter().filter(|kind| !kind.is_idle()).map(|kind| self.kinds[kind as usize]).sum()
    }

    /// Time in which the device was idle because its next work had not been launched.
    #[must_use]
    pub const fn host_bound(&self) -> Duration {
        self.kinds[Kind::HostBound as usize]
    }

    /// Time in which collectives transferred and nothing else ran.
    #[must_use]
    pub const fn exposed_communication(&self) -> Duration {
        self.kinds[Kind::Communication as usize]
    }

    /// Number of operations launched.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.operation_count.iter().sum()
    }
}

/// Communication of one rank in one communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupUse {
    /// Row of the job's communicators.
    pub communicator: usize,
    /// The operation.
    pub kind: CollectiveKind,
    /// Calls.
    pub calls: u64,
    /// Summed bytes, as the calls count them.
    pub bytes: Bytes,
    /// Summed transfer time; overlapping transfers count twice.
    pub time: Duration,
    /// The part of it in which nothing else ran.
    pub exposed: Duration,
    /// Idle time of the device while these calls waited for other ranks.
    pub bubble: Duration,
}

/// Launches of one operation during the used steps of its template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationUse {
    /// Number of launches.
    pub launches: u64,
    /// The kind that most of them count for.
    pub kind: Kind,
    /// The site that launches it most.
    pub site: Option<u32>,
}

impl Outcome {
    pub(crate) fn of(mut state: State<'_>, engine_events: u64) -> Self {
        let (plan, trace) = (state.shared.plan, state.shared.trace);
        let timeline = timeline::build(trace, plan, &state.shared.recorder);
        let ranks: Vec<RankOutcome> =
            state.ranks.iter_mut().enumerate().map(|(rank, state)| rank_outcome(plan, rank, state)).collect();
        let slowest = (0..ranks.len()).rev().max_by_key(|&rank| ranks[rank].step).expect("a plan has ranks");
        let end = ranks.iter().map(|rank| rank.device_end.max(rank.host_end)).max().unwrap_or_default();
        Self {
            step: ranks[slowest].step,
            slowest,
            end,
            path: path::find(&state, slowest),
            host_events: plan.ranks.iter().map(|rank| plan.templates[rank.template].acts.len() as u64).sum(),
            operations: operations(trace, plan),
            ranks,
            timeline,
            engine_events,
        }
    }

    /// The slowest rank.
    #[must_use]
    pub fn slowest_rank(&self) -> &RankOutcome {
        &self.ranks[self.slowest]
    }
}

fn rank_outcome(plan: &Plan, rank: usize, state: &mut RankState<'_>) -> RankOutcome {
    let template = plan.template_of(rank);
    let marks = &state.segments.marks;
    let work = &state.segments.work;
    let steps: Vec<StepOutcome> = (1..=template.steps())
        .map(|segment| {
            let (begin, end) = (&marks[segment - 1], &marks[segment]);
            let mut step = step_outcome(&end.times.since(&begin.times));
            for kind in 0..KINDS {
                step.operation_time[kind] = Duration::from_picos(work[segment].kinds[kind].0);
                step.operation_count[kind] = work[segment].kinds[kind].1;
            }
            step.host = Duration::from_picos(work[segment].host);
            debug_assert_eq!(step.time.as_picos(), end.at - begin.at);
            step
        })
        .collect();
    let used = sum(&steps[template.warmup..]);
    let used_count = steps.len() - template.warmup;
    let slots = &plan.ranks[rank].slots;
    let communication = template.groups.iter().zip(&state.groups).map(|(&(slot, kind), count)| GroupUse {
        communicator: slots[slot as usize].communicator,
        kind,
        calls: count.calls,
        bytes: Bytes(count.bytes),
        time: Duration::from_picos(count.time),
        exposed: Duration::from_picos(count.exposed),
        bubble: Duration::from_picos(count.bubble),
    });
    RankOutcome {
        rank: plan.ranks[rank].rank,
        step: Duration::from_picos(used.time.as_picos() / used_count as u64),
        warmup: template.warmup,
        used,
        used_count,
        communication: communication.collect(),
        host_end: SimTime::from_picos(state.queues().map(|host| host.time).max().unwrap_or(0)),
        device_end: SimTime::from_picos(state.last_end),
        stands_for: plan.ranks[rank].stands_for,
        host_times: host_times(state),
        steps,
    }
}

/// When the host came to its events; for those of other queues than the first one, when that one came to its last event
/// before them: it is the clock of all that was recorded in this order.
fn host_times(state: &mut RankState<'_>) -> Vec<u64> {
    let mut times = state.host_times.take().unwrap_or_default();
    let mut last = 0;
    for (row, time) in times.iter_mut().enumerate() {
        if state.template.queues.of(row as u32) == 0 {
            last = *time;
        }
        *time = last;
    }
    times
}

fn step_outcome(times: &Times) -> StepOutcome {
    StepOutcome {
        time: Duration::from_picos(times.kinds.iter().sum()),
        kinds: times.kinds.map(Duration::from_picos),
        communication: Duration::from_picos(times.communication),
        ..StepOutcome::default()
    }
}

fn sum(steps: &[StepOutcome]) -> StepOutcome {
    let mut sum = StepOutcome::default();
    for step in steps {
        sum.time += step.time;
        sum.communication += step.communication;
        sum.host += step.host;
        for kind in 0..KINDS {
            sum.kinds[kind] += step.kinds[kind];
            sum.operation_time[kind] += step.operation_time[kind];
            sum.operation_count[kind] += step.operation_count[kind];
        }
    }
    sum
}

/// Launches of one operation by kind and by site. An operation has one or two of each, so a list is the right table.
#[derive(Clone, Debug, Default)]
struct Launches {
    kinds: Vec<(Kind, u64)>,
    sites: Vec<(u32, u64)>,
}

impl Launches {
    fn add(&mut self, kind: Kind, site: u32) {
        count(&mut self.kinds, kind);
        count(&mut self.sites, site);
    }

    fn summary(&self) -> OperationUse {
        OperationUse {
            launches: self.kinds.iter().map(|row| row.1).sum(),
            kind: most(&self.kinds).unwrap_or_default(),
            site: most(&self.sites),
        }
    }
}

fn count<T: PartialEq>(table: &mut Vec<(T, u64)>, key: T) {
    match table.iter_mut().find(|row| row.0 == key) {
        Some(row) => row.1 += 1,
        None => table.push((key, 1)),
    }
}

/// The key with the highest count; of equals the least.
fn most<T: Copy + Ord>(table: &[(T, u64)]) -> Option<T> {
    table.iter().max_by_key(|row| (row.1, std::cmp::Reverse(row.0))).map(|row| row.0)
}

/// How often each operation is launched in the used steps of its template; no replay is needed for that.
fn operations(trace: &JobTrace, plan: &Plan) -> Vec<Vec<OperationUse>> {
    let count = |(index, template): (usize, &TemplatePlan)| {
        let mut launches = vec![Launches::default(); template.durations.len()];
        let rows =
            template.boundaries[template.warmup] as usize..template.boundaries[template.steps()] as usize;
        for row in rows {
            let site = trace.templates[index].events[row].site;
            match template.acts[row].what {
                What::Enqueue { operation, kind, .. } => launches[operation as usize].add(kind, site),
                What::Graph { first, count, .. } => {
                    for &(operation, kind) in
                        &template.graph_operations[first as usize..(first + count) as usize]
                    {
                        launches[operation as usize].add(kind, site);
                    }
                }
                _ => {}
            }
        }
        launches.iter().map(Launches::summary).collect()
    };
    plan.templates.iter().enumerate().map(count).collect()
}

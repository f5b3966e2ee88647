//! The job trace, compiled for replay: indices resolved and checked, host delays summed, durations chosen.
//!
//! Everything that can be wrong with a job trace is found here, so the replay may index without asking. A plan is
//! immutable and shared by all ranks of a template.

mod compile;
mod fold;

use std::ops::Range;

use trompe_base::{Rank, StreamId};
use trompe_results::Kind;
use trompe_trace::job::{Collective, JobTrace, RankTemplate};
use trompe_trace::peers::Turn;
use trompe_trace::record::CollectiveKind;

use crate::collective::{CollectiveModel, Others, Traffic};
use crate::contention::Demand;
use crate::error::SimulationError;
use crate::options::Options;
use crate::path::PathOwner;
use crate::price::Prices;
use crate::threads::Queues;
use compile::Compiler;
use fold::Folding;

/// The longest time that can be counted with room to spare, in picoseconds.
pub(crate) const LONGEST: u64 = u64::MAX / 2;

/// A whole job, ready to replay.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) templates: Vec<TemplatePlan>,
    /// The ranks that are replayed, ascending.
    pub(crate) ranks: Vec<RankPlan>,
    /// Where collectives meet.
    pub(crate) points: Vec<Point>,
    /// By rank of the job: whether it is replayed.
    replayed: Vec<bool>,
}

/// What one rank does, and with whom.
#[derive(Debug, Clone)]
pub(crate) struct RankPlan {
    pub(crate) rank: Rank,
    pub(crate) template: usize,
    /// How many ranks it stands for, itself included.
    pub(crate) stands_for: u32,
    /// By communicator slot of the template.
    pub(crate) slots: Vec<SlotPlan>,
}

/// What a communicator slot of a template is for one rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotPlan {
    /// Row of the job's communicators.
    pub(crate) communicator: usize,
    /// Row of [`Plan::points`].
    pub(crate) point: u32,
    /// The rank's place among the members.
    pub(crate) place: u32,
    /// How the places of the template's peers become those of this rank's.
    pub(crate) turn: Turn,
}

/// A communicator, or several that are alike in everything and of which one is replayed.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// Row of the job's communicators: the first of those it stands for.
    pub(crate) communicator: usize,
    /// Arrivals that complete a collective.
    members: usize,
    /// By place: whether somebody arrives for it; empty when somebody does for each.
    present: Vec<bool>,
    /// Rows of communicators that do the same without being replayed.
    alike: Vec<usize>,
}

impl Point {
    /// Arrivals that complete an operation of all members, or of the two ends of a point-to-point operation.
    pub(crate) fn needed(&self, ends: Option<(u32, u32)>) -> usize {
        let present =
            |end: u32| usize::from(self.present.is_empty() || self.present.get(end as usize) == Some(&true));
        match ends {
            None => self.members,
            // A rank that sends to itself makes both calls.
            Some((source, destination)) if source == destination => 2,
            Some((source, destination)) => present(source) + present(destination),
        }
    }
}

/// One template.
#[derive(Debug, Default, Clone)]
pub(crate) struct TemplatePlan {
    pub(crate) acts: Vec<Act>,
    pub(crate) streams: Vec<StreamPlan>,
    pub(crate) devices: usize,
    /// Picoseconds of each operation.
    pub(crate) durations: Vec<u64>,
    /// What each operation wants of its device; empty when contention is not modelled.
    pub(crate) demands: Vec<Demand>,
    /// The copy engine that an operation needs.
    pub(crate) copies: Vec<Option<CopyDirection>>,
    pub(crate) calls: Vec<CallPlan>,
    /// Operations of graphs, one after the other.
    pub(crate) graph_operations: Vec<(u32, Kind)>,
    pub(crate) slots: u32,
    /// The host's threads.
    pub(crate) queues: Queues,
    /// Ends of segments, ascending: segment 0 is what precedes the first step, segment `k + 1` is step `k`, the last
    /// one is what follows the last step.
    pub(crate) boundaries: Vec<u32>,
    /// First steps that are left out.
    pub(crate) warmup: usize,
    /// Communication rows: distinct (communicator slot, operation).
    pub(crate) groups: Vec<(u32, CollectiveKind)>,
}

/// A stream.
#[derive(Debug, Clone)]
pub(crate) struct StreamPlan {
    pub(crate) id: StreamId,
    pub(crate) device: u32,
    /// Lower is more urgent.
    pub(crate) priority: i32,
    pub(crate) order: StreamOrder,
}

impl TemplatePlan {
    /// Number of steps, warm-up included.
    pub(crate) fn steps(&self) -> usize {
        self.boundaries.len() - 1
    }

    /// Multiplies the times of everything that `chosen` names by `factor`.
    pub(crate) fn scale(
        &mut self,
        template: usize,
        factor: f64,
        trace: &RankTemplate,
        chosen: &dyn Fn(PathOwner) -> bool,
    ) {
        let scaled = |time: u64| (time as f64 * factor) as u64;
        let mut kinds: Vec<Option<Kind>> = vec![None; self.durations.len()];
        for act in &self.acts {
            match act.what {
                What::Enqueue { operation, kind, .. } => kinds[operation as usize] = Some(kind),
                What::Graph { first, count, .. } => {
                    for &(operation, kind) in &self.graph_operations[first as usize..(first + count) as usize]
                    {
                        kinds[operation as usize] = Some(kind);
                    }
                }
                _ => {}
            }
        }
        for (operation, (duration, kind)) in self.durations.iter_mut().zip(kinds).enumerate() {
            let operation = operation as u32;
            if kind.is_some_and(|kind| chosen(PathOwner::Operation { template, operation, kind })) {
                *duration = scaled(*duration);
            }
        }
        for call in &mut self.calls {
            if chosen(PathOwner::Collective { template, slot: call.call.communicator, kind: call.call.kind })
            {
                call.factor *= factor;
            }
        }
        let sites: Vec<bool> =
            (0..trace.sites.len() as u32).map(|site| chosen(PathOwner::Host { template, site })).collect();
        for (act, event) in self.acts.iter_mut().zip(&trace.events) {
            if sites.get(event.site as usize) == Some(&true) {
                act.delay = scaled(act.delay);
            }
        }
    }

    /// The segments of the steps that the prediction rests on.
    pub(crate) fn used_segments(&self) -> Range<usize> {
        1 + self.warmup..1 + self.steps()
    }
}

/// How a stream orders against the legacy default stream of its device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamOrder {
    /// It is the legacy default stream; these streams order against it.
    Legacy(Vec<u16>),
    /// It orders against the legacy default stream, which is this one.
    Blocking(u16),
    /// It orders against nothing.
    Free,
}

/// One thing the host does, after `delay` picoseconds of its own time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Act {
    pub(crate) delay: u64,
    pub(crate) what: What,
}

/// See [`trompe_trace::job::Action`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Enqueue {
        stream: u16,
        operation: u32,
        kind: Kind,
        blocking: bool,
    },
    /// Calls `first..first + count` run as one operation.
    Collective {
        stream: u16,
        first: u32,
        count: u32,
    },
    Record {
        stream: u16,
        slot: u32,
    },
    Wait {
        stream: u16,
        slot: u32,
    },
    SynchronizeSlot {
        slot: u32,
    },
    SynchronizeStream {
        stream: u16,
    },
    SynchronizeDevice {
        device: u32,
    },
    /// Rows `first..first + count` of the graph operations.
    Graph {
        stream: u16,
        first: u32,
        count: u32,
    },
    Host,
    /// Hands something over to another queue.
    Give {
        token: u32,
    },
    /// Waits until another queue has given it.
    Take {
        token: u32,
    },
}

/// A collective call.
#[derive(Debug, Clone)]
pub(crate) struct CallPlan {
    pub(crate) call: Collective,
    /// The call's number among those it can be matched with: its sequence number, or for point-to-point operations
    /// the number of earlier ones of this kind with this peer.
    pub(crate) number: u64,
    /// For a message: how many of its direction its group call makes on the communicator; else 1.
    pub(crate) together: u32,
    /// Row of [`TemplatePlan::groups`].
    pub(crate) group: u32,
    /// Factor on its time: 1 but for questions of the kind "what if".
    pub(crate) factor: f64,
}

/// Copy engines by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    HostToDevice,
    DeviceToHost,
    /// To or from another device.
    Peer,
}

impl Plan {
    /// Compiles and checks `trace`.
    pub(crate) fn new(
        trace: &JobTrace,
        prices: &Prices,
        model: &dyn CollectiveModel,
        options: &Options,
    ) -> Result<Self, SimulationError> {
        if trace.ranks.is_empty() {
            return Err(SimulationError::NoRanks);
        }
        let mut templates = Vec::with_capacity(trace.templates.len());
        for (index, template) in trace.templates.iter().enumerate() {
            let prices = prices.templates.get(index).map_or(&[][..], Vec::as_slice);
            templates.push(Compiler::new(index, template, options).compile(prices)?);
        }
        let Folding { ranks, points, replayed } = Folding::new(trace, &templates, model, options)?;
        let plan = Self { templates, ranks, points, replayed };
        if plan.longest(options) > u128::from(LONGEST) {
            return Err(SimulationError::TooLong);
        }
        Ok(plan)
    }

    /// The time that the job takes if nothing overlaps, collectives excepted.
    fn longest(&self, options: &Options) -> u128 {
        let latencies =
            u128::from(options.launch_latency.as_picos()) + u128::from(options.wake_latency.as_picos());
        let template = |template: &TemplatePlan| -> u128 {
            let duration = |operation: u32| u128::from(template.durations[operation as usize]);
            let device = |what: What| match what {
                What::Enqueue { operation, .. } => duration(operation),
                What::Graph { first, count, .. } => {
                    let operations = &template.graph_operations[first as usize..(first + count) as usize];
                    operations.iter().map(|&(operation, _)| duration(operation)).sum()
                }
                _ => 0,
            };
            template.acts.iter().map(|act| u128::from(act.delay) + device(act.what) + latencies).sum()
        };
        let templates: Vec<u128> = self.templates.iter().map(template).collect();
        self.ranks.iter().map(|rank| templates[rank.template]).sum()
    }

    /// Asks `model` for the use of links of an operation at `point`, given what goes on beside it.
    pub(crate) fn traffic(
        &self,
        point: u32,
        trace: &JobTrace,
        model: impl FnOnce(&Others<'_>) -> Option<Traffic>,
    ) -> Option<Traffic> {
        if self.ranks.len() == self.replayed.len() {
            return model(&Others::default());
        }
        let rows = &self.points[point as usize].alike;
        let alike: Vec<&[Rank]> = rows.iter().map(|&row| &trace.communicators[row].members[..]).collect();
        let replayed: Vec<Rank> = self.ranks.iter().map(|rank| rank.rank).collect();
        model(&Others { alike: &alike, replayed: Some(&replayed) })
    }

    /// Whether a rank of the job is replayed.
    pub(crate) fn replays(&self, rank: Rank) -> bool {
        self.replayed.get(rank.index()).copied().unwrap_or(false)
    }

    pub(crate) fn template_of(&self, rank: usize) -> &TemplatePlan {
        &self.templates[self.ranks[rank].template]
    }
}

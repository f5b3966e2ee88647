//! The job trace, compiled for replay: indices resolved and checked, host delays summed, durations chosen.
//!
//! Everything that can be wrong with a job trace is found here, so the replay may index without asking. A plan is
//! immutable and shared by all ranks of a template.

use std::collections::BTreeMap;
use std::ops::Range;

use trompe_base::{EventId, Rank, StreamId};
use trompe_results::Kind;
use trompe_trace::descriptor::{Descriptor, Place};
use trompe_trace::job::{Action, Collective, HostEvent, JobTrace, RankTemplate};
use trompe_trace::record::{CollectiveKind, StreamKind};

use crate::error::SimulationError;
use crate::kind::kind_of;
use crate::options::{HostTime, Options};
use crate::price::{Price, Prices};

/// The longest time that can be counted with room to spare, in picoseconds.
pub(crate) const LONGEST: u64 = u64::MAX / 2;

/// A whole job, ready to replay.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) templates: Vec<TemplatePlan>,
    /// The ranks that are replayed, ascending.
    pub(crate) ranks: Vec<RankPlan>,
    /// By rank of the job: whether it is replayed.
    replayed: Vec<bool>,
}

/// What one rank does, and with whom.
#[derive(Debug)]
pub(crate) struct RankPlan {
    pub(crate) rank: Rank,
    pub(crate) template: usize,
    /// Row of the job's communicators, by slot.
    pub(crate) communicators: Vec<usize>,
    /// The rank's place among the members, by slot.
    pub(crate) places: Vec<u32>,
}

/// One template.
#[derive(Debug, Default)]
pub(crate) struct TemplatePlan {
    pub(crate) acts: Vec<Act>,
    pub(crate) streams: Vec<StreamPlan>,
    pub(crate) devices: usize,
    /// Picoseconds of each operation.
    pub(crate) durations: Vec<u64>,
    /// The copy engine that an operation needs.
    pub(crate) copies: Vec<Option<CopyDirection>>,
    pub(crate) calls: Vec<CallPlan>,
    /// Operations of graphs, one after the other.
    pub(crate) graph_operations: Vec<(u32, Kind)>,
    pub(crate) slots: u32,
    /// Ends of segments, ascending: segment 0 is what precedes the first step, segment `k + 1` is step `k`, the last
    /// one is what follows the last step.
    pub(crate) boundaries: Vec<u32>,
    /// First steps that are left out.
    pub(crate) warmup: usize,
    /// Communication rows: distinct (communicator slot, operation).
    pub(crate) groups: Vec<(u32, CollectiveKind)>,
}

/// A stream.
#[derive(Debug)]
pub(crate) struct StreamPlan {
    pub(crate) id: StreamId,
    pub(crate) device: u32,
    pub(crate) order: StreamOrder,
}

impl TemplatePlan {
    /// Number of steps, warm-up included.
    pub(crate) fn steps(&self) -> usize {
        self.boundaries.len() - 1
    }

    /// The segments of the steps that the prediction rests on.
    pub(crate) fn used_segments(&self) -> Range<usize> {
        1 + self.warmup..1 + self.steps()
    }
}

/// How a stream orders against the legacy default stream of its device.
#[derive(Debug, PartialEq, Eq)]
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

/// See [`Action`].
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
}

/// A collective call.
#[derive(Debug, Clone)]
pub(crate) struct CallPlan {
    pub(crate) call: Collective,
    /// The call's number among those it can be matched with: its sequence number, or for point-to-point operations
    /// the number of earlier ones of this kind with this peer.
    pub(crate) number: u64,
    /// Row of [`TemplatePlan::groups`].
    pub(crate) group: u32,
}

/// Copy engines by direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    HostToDevice,
    DeviceToHost,
}

impl Plan {
    /// Compiles and checks `trace`.
    pub(crate) fn new(trace: &JobTrace, prices: &Prices, options: &Options) -> Result<Self, SimulationError> {
        if trace.ranks.is_empty() {
            return Err(SimulationError::NoRanks);
        }
        let mut templates = Vec::with_capacity(trace.templates.len());
        for (index, template) in trace.templates.iter().enumerate() {
            let prices = prices.templates.get(index).map_or(&[][..], Vec::as_slice);
            templates.push(Compiler::new(index, template, options).compile(prices)?);
        }
        // A rank that did not run is a copy of one that did: it comes to every collective when that one does.
        let all = trace.ranks.iter().all(|rank| !rank.emulated);
        let replayed: Vec<bool> = trace.ranks.iter().map(|rank| all || rank.emulated).collect();
        let ranks = (0..trace.ranks.len())
            .filter(|&rank| replayed[rank])
            .map(|rank| rank_plan(trace, &templates, rank))
            .collect::<Result<_, _>>()?;
        let plan = Self { templates, ranks, replayed };
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

    /// Whether a rank of the job is replayed.
    pub(crate) fn replays(&self, rank: Rank) -> bool {
        self.replayed.get(rank.index()).copied().unwrap_or(false)
    }

    pub(crate) fn template_of(&self, rank: usize) -> &TemplatePlan {
        &self.templates[self.ranks[rank].template]
    }
}

fn rank_plan(trace: &JobTrace, templates: &[TemplatePlan], rank: usize) -> Result<RankPlan, SimulationError> {
    let id = Rank(u32::try_from(rank).expect("ranks are numbered by u32"));
    let instance = &trace.ranks[rank];
    let Some(template) = templates.get(instance.template) else {
        let count = templates.len();
        return Err(SimulationError::UnknownTemplate { rank: id, template: instance.template, count });
    };
    let mut places = vec![u32::MAX; instance.communicators.len()];
    for &(slot, _) in &template.groups {
        let dangling = |what, index, count| SimulationError::Dangling {
            template: instance.template,
            event: 0,
            what,
            index,
            count,
        };
        let Some(&row) = instance.communicators.get(slot as usize) else {
            return Err(dangling("communicator slot", u64::from(slot), instance.communicators.len()));
        };
        let Some(communicator) = trace.communicators.get(row) else {
            return Err(dangling("communicator", row as u64, trace.communicators.len()));
        };
        let Some(place) = communicator.members.iter().position(|&member| member == id) else {
            return Err(SimulationError::NotAMember { rank: id, communicator: row });
        };
        places[slot as usize] = place as u32;
    }
    Ok(RankPlan {
        rank: id,
        template: instance.template,
        communicators: instance.communicators.clone(),
        places,
    })
}

/// Compiles one template.
struct Compiler<'a> {
    index: usize,
    template: &'a RankTemplate,
    options: &'a Options,
    streams: BTreeMap<StreamId, u16>,
    slots: BTreeMap<(EventId, u32), u32>,
    /// First row of the calls and their number, by the event that completes the call or group call.
    anchors: BTreeMap<usize, (u32, u32)>,
    point_to_point: BTreeMap<(u32, bool, u32), u64>,
    groups: BTreeMap<(u32, CollectiveKind), u32>,
    plan: TemplatePlan,
}

impl<'a> Compiler<'a> {
    fn new(index: usize, template: &'a RankTemplate, options: &'a Options) -> Self {
        Self {
            index,
            template,
            options,
            streams: BTreeMap::new(),
            slots: BTreeMap::new(),
            anchors: BTreeMap::new(),
            point_to_point: BTreeMap::new(),
            groups: BTreeMap::new(),
            plan: TemplatePlan::default(),
        }
    }

    fn compile(mut self, prices: &[Price]) -> Result<TemplatePlan, SimulationError> {
        let operations = &self.template.operations;
        if prices.len() != operations.len() {
            let (given, needed) = (prices.len(), operations.len());
            return Err(SimulationError::Prices { template: self.index, given, needed });
        }
        self.plan.durations = prices.iter().map(|price| price.at(self.options.bound).as_picos()).collect();
        self.plan.copies = operations.iter().map(|operation| copy_direction(&operation.descriptor)).collect();
        self.streams();
        self.calls()?;
        let mut acts = Vec::with_capacity(self.template.events.len());
        for (row, event) in self.template.events.iter().enumerate() {
            acts.push(Act { delay: self.delay(event), what: self.what(row, event)? });
        }
        self.plan.acts = acts;
        self.plan.slots = self.slots.len() as u32;
        self.plan.boundaries = self.boundaries();
        self.plan.warmup = self.template.steps.warmup.min(self.plan.boundaries.len() - 2);
        let mut groups: Vec<_> = self.groups.into_iter().map(|(group, row)| (row, group)).collect();
        groups.sort_unstable();
        self.plan.groups = groups.into_iter().map(|(_, group)| group).collect();
        Ok(self.plan)
    }

    /// Numbers the streams and finds out how they order against their device's legacy default stream.
    fn streams(&mut self) {
        let streams = &self.template.streams;
        let legacy = |device| streams.iter().position(|s| s.device == device && s.kind == StreamKind::Legacy);
        let blocks = |kind| matches!(kind, StreamKind::Blocking | StreamKind::PerThread);
        for (i, stream) in streams.iter().enumerate() {
            let order = if stream.kind == StreamKind::Legacy {
                let others = streams.iter().enumerate();
                let blocking =
                    others.filter(|(_, other)| other.device == stream.device && blocks(other.kind));
                StreamOrder::Legacy(blocking.map(|(i, _)| i as u16).collect())
            } else {
                match legacy(stream.device) {
                    Some(legacy) if blocks(stream.kind) => StreamOrder::Blocking(legacy as u16),
                    _ => StreamOrder::Free,
                }
            };
            self.streams.insert(stream.id, i as u16);
            self.plan.devices = self.plan.devices.max(stream.device as usize + 1);
            self.plan.streams.push(StreamPlan { id: stream.id, device: stream.device, order });
        }
    }

    /// Collects the collective calls, so that a group call's members stand together.
    fn calls(&mut self) -> Result<(), SimulationError> {
        let mut anchored: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut grouped: BTreeMap<(u64, u16), Vec<usize>> = BTreeMap::new();
        let mut numbers = BTreeMap::new();
        for (row, event) in self.template.events.iter().enumerate() {
            let Action::Collective { stream, collective } = &event.action else { continue };
            let stream = self.stream(row, *stream)?;
            numbers.insert(row, self.number(collective));
            if collective.group == 0 {
                anchored.push((row, vec![row]));
            } else {
                grouped.entry((collective.group, stream)).or_default().push(row);
            }
        }
        // A group call is launched by its end, so its last member stands for all.
        anchored.extend(grouped.into_values().filter_map(|rows| Some((*rows.last()?, rows))));
        anchored.sort();
        for (anchor, rows) in anchored {
            let first = self.plan.calls.len() as u32;
            for &row in &rows {
                let Action::Collective { collective, .. } = &self.template.events[row].action else {
                    unreachable!("only collectives were collected")
                };
                let next = self.groups.len() as u32;
                let group = *self.groups.entry((collective.communicator, collective.kind)).or_insert(next);
                let number = numbers[&row];
                self.plan.calls.push(CallPlan { call: collective.clone(), number, group });
            }
            self.anchors.insert(anchor, (first, rows.len() as u32));
        }
        Ok(())
    }

    fn number(&mut self, collective: &Collective) -> u64 {
        let send = match collective.kind {
            CollectiveKind::Send => true,
            CollectiveKind::Recv => false,
            _ => return collective.sequence,
        };
        let count = self.point_to_point.entry((collective.communicator, send, collective.peer)).or_insert(0);
        *count += 1;
        *count - 1
    }

    fn delay(&self, event: &HostEvent) -> u64 {
        let cost = self.options.calls.of(event.call);
        let delay = match self.options.host {
            HostTime::Measured => event.gap + cost,
            HostTime::Scale(factor) => event.gap.scale(factor) + cost,
            HostTime::Fixed(delay) => match event.action {
                Action::Enqueue { .. } | Action::Collective { .. } | Action::Graph { .. } => delay,
                _ => return 0,
            },
            HostTime::Off => return 0,
        };
        delay.as_picos()
    }

    fn what(&mut self, row: usize, event: &HostEvent) -> Result<What, SimulationError> {
        Ok(match &event.action {
            Action::Enqueue { stream, operation, blocking } => {
                let (stream, kind) = (self.stream(row, *stream)?, self.kind(row, *operation, event.site)?);
                What::Enqueue { stream, operation: *operation, kind, blocking: *blocking }
            }
            Action::Collective { stream, .. } => {
                let stream = self.stream(row, *stream)?;
                let anchor = self.anchors.get(&row);
                anchor.map_or(What::Host, |&(first, count)| What::Collective { stream, first, count })
            }
            Action::RecordEvent { stream, event, version } => {
                let next = self.slots.len() as u32;
                let slot = *self.slots.entry((*event, *version)).or_insert(next);
                What::Record { stream: self.stream(row, *stream)?, slot }
            }
            Action::WaitEvent { stream, event, version } => {
                let stream = self.stream(row, *stream)?;
                self.slots.get(&(*event, *version)).map_or(What::Host, |&slot| What::Wait { stream, slot })
            }
            Action::SynchronizeEvent { event, version } => {
                // What was recorded before the trace began, or never, is not waited for, as in the real API.
                self.slots.get(&(*event, *version)).map_or(What::Host, |&slot| What::SynchronizeSlot { slot })
            }
            Action::SynchronizeStream { stream } => {
                What::SynchronizeStream { stream: self.stream(row, *stream)? }
            }
            Action::SynchronizeDevice { device } => What::SynchronizeDevice { device: *device },
            Action::Graph { stream, operations } => {
                let stream = self.stream(row, *stream)?;
                let first = self.plan.graph_operations.len() as u32;
                for &operation in operations {
                    let kind = self.kind(row, operation, event.site)?;
                    self.plan.graph_operations.push((operation, kind));
                }
                What::Graph { stream, first, count: operations.len() as u32 }
            }
            Action::Host => What::Host,
        })
    }

    fn stream(&self, event: usize, stream: StreamId) -> Result<u16, SimulationError> {
        let known = self.streams.get(&stream).copied();
        known.ok_or(SimulationError::UnknownStream { template: self.index, event, stream })
    }

    fn kind(&self, event: usize, operation: u32, site: u32) -> Result<Kind, SimulationError> {
        let dangling = |what, index: u32, count| SimulationError::Dangling {
            template: self.index,
            event,
            what,
            index: u64::from(index),
            count,
        };
        let (operations, sites) = (&self.template.operations, &self.template.sites);
        let row = operations.get(operation as usize);
        let row = row.ok_or_else(|| dangling("operation", operation, operations.len()))?;
        let site = sites.get(site as usize).ok_or_else(|| dangling("site", site, sites.len()))?;
        Ok(kind_of(&row.descriptor, site.phase))
    }

    fn boundaries(&self) -> Vec<u32> {
        let events = self.template.events.len();
        let given = &self.template.steps.boundaries;
        let valid = given.len() > 1 && given.is_sorted() && given.iter().all(|&row| row <= events);
        let rows = if valid { given.as_slice() } else { &[0, events][..] };
        rows.iter().map(|&row| row as u32).collect()
    }
}

fn copy_direction(descriptor: &Descriptor) -> Option<CopyDirection> {
    let Descriptor::Copy(copy) = descriptor else { return None };
    let host = |place| matches!(place, Place::Pinned | Place::Pageable);
    match (host(copy.from), host(copy.to)) {
        (true, false) => Some(CopyDirection::HostToDevice),
        (false, true) => Some(CopyDirection::DeviceToHost),
        _ => None,
    }
}

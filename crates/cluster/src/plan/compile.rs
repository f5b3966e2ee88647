//! One template, compiled: streams and recordings numbered, calls matched to their group calls, host delays summed.

use std::collections::BTreeMap;

use trompe_base::{EventId, StreamId};
use trompe_results::Kind;
use trompe_trace::descriptor::{Descriptor, Place};
use trompe_trace::job::{Action, Collective, HostEvent, RankTemplate};
use trompe_trace::record::{CollectiveKind, StreamKind};

use super::{Act, CallPlan, CopyDirection, StreamOrder, StreamPlan, TemplatePlan, What};
use crate::contention::Demand;
use crate::error::SimulationError;
use crate::kind::kind_of;
use crate::options::{HostTime, Options};
use crate::price::Price;
use crate::threads::{Queues, alone};

/// Compiles one template.
pub(super) struct Compiler<'a> {
    index: usize,
    template: &'a RankTemplate,
    options: &'a Options,
    streams: BTreeMap<StreamId, u16>,
    slots: BTreeMap<(EventId, u32), u32>,
    /// First row of the calls and their number, by the event that completes the call or group call.
    anchors: BTreeMap<usize, (u32, u32)>,
    point_to_point: BTreeMap<(u32, bool, u32), u64>,
    groups: BTreeMap<(u32, CollectiveKind), u32>,
    /// Hand-overs by their tokens.
    tokens: BTreeMap<u32, u32>,
    plan: TemplatePlan,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(index: usize, template: &'a RankTemplate, options: &'a Options) -> Self {
        Self {
            index,
            template,
            options,
            streams: BTreeMap::new(),
            slots: BTreeMap::new(),
            anchors: BTreeMap::new(),
            point_to_point: BTreeMap::new(),
            groups: BTreeMap::new(),
            tokens: BTreeMap::new(),
            plan: TemplatePlan::default(),
        }
    }

    pub(super) fn compile(mut self, prices: &[Price]) -> Result<TemplatePlan, SimulationError> {
        let operations = &self.template.operations;
        if prices.len() != operations.len() {
            let (given, needed) = (prices.len(), operations.len());
            return Err(SimulationError::Prices { template: self.index, given, needed });
        }
        self.plan.durations = prices.iter().map(|price| price.at(self.options.bound).as_picos()).collect();
        self.plan.copies = operations.iter().map(|operation| copy_direction(&operation.descriptor)).collect();
        if let Some(contention) = &self.options.contention {
            let demand = |(operation, price): (&_, &Price)| Demand::of(operation, price.time, contention);
            self.plan.demands = operations.iter().zip(prices).map(demand).collect();
        }
        self.streams();
        self.calls()?;
        let mut acts = Vec::with_capacity(self.template.events.len());
        for (row, event) in self.template.events.iter().enumerate() {
            acts.push(Act { delay: self.delay(event), what: self.what(row, event)? });
        }
        self.plan.acts = acts;
        self.queues();
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
            let (id, device, priority) = (stream.id, stream.device, stream.priority);
            self.plan.streams.push(StreamPlan { id, device, priority, order });
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
            let call = |row: usize| match &self.template.events[row].action {
                Action::Collective { collective, .. } => collective,
                _ => unreachable!("only collectives were collected"),
            };
            // By direction and communicator.
            let mut messages: BTreeMap<(u32, CollectiveKind), u32> = BTreeMap::new();
            for &row in &rows {
                let Collective { communicator, kind, .. } = *call(row);
                *messages.entry((communicator, kind)).or_default() += 1;
            }
            for &row in &rows {
                let collective = call(row);
                let together = match collective.kind {
                    CollectiveKind::Send | CollectiveKind::Recv => {
                        messages[&(collective.communicator, collective.kind)]
                    }
                    _ => 1,
                };
                let next = self.groups.len() as u32;
                let group = *self.groups.entry((collective.communicator, collective.kind)).or_insert(next);
                let number = numbers[&row];
                self.plan.calls.push(CallPlan {
                    call: collective.clone(),
                    number,
                    together,
                    group,
                    factor: 1.0,
                });
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
            Action::Give { token } => {
                let next = self.tokens.len() as u32;
                What::Give { token: *self.tokens.entry(*token).or_insert(next) }
            }
            // What nobody gave before is not waited for: the recording began later.
            Action::Take { token } => {
                self.tokens.get(token).map_or(What::Host, |&token| What::Take { token })
            }
        })
    }

    /// Divides the acts among the host's threads.
    fn queues(&mut self) {
        let queues = self.template.queues();
        if queues.is_single() {
            self.plan.acts.iter_mut().for_each(|act| act.what = alone(act.what));
            return;
        }
        let of = self.template.events.iter().map(|event| queues.queue(event.thread));
        self.plan.queues = Queues::new(of.collect(), self.tokens.len());
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
        // Copies inside one device run on its multiprocessors.
        _ if copy.from == Place::Peer || copy.to == Place::Peer => Some(CopyDirection::Peer),
        _ => None,
    }
}

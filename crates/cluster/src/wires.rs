//! Collectives on the wire: they share links with others until they end ([`crate::flows`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use trompe_base::{Rank, SimTime};
use trompe_engine::{Event, Scheduler};
use trompe_trace::job::JobTrace;
use trompe_trace::record::CollectiveKind;

use crate::collective::{CollectiveCall, Others, Traffic};
use crate::error::SimulationError;
use crate::flows::Flows;
use crate::plan::{LONGEST, Plan};
use crate::state::{Actor, State};

/// What distinguishes calls: row of the communicator, operation, bytes, ends.
type Offer = (usize, CollectiveKind, u64, (u32, u32));

/// What is on the wire, and what is known of it.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    /// Operations, each with the streams that take part.
    flows: Flows<Vec<u32>>,
    /// Fires when an operation begins or ends.
    pub(crate) event: Option<Event>,
    /// When that is next.
    at: Option<u64>,
    /// Time alone and use of links, by call. Nothing ever walks through it.
    known: HashMap<Offer, (u64, Option<Traffic>)>,
    /// By row of a communicator: those that do as it does without being replayed.
    alike: BTreeMap<usize, Vec<usize>>,
    /// The ranks that are replayed, when not all are.
    replayed: Option<Vec<Rank>>,
    /// Streams whose operation ends; kept to spare allocations.
    ended: Vec<Vec<u32>>,
}

impl Wires {
    pub(crate) fn new(trace: &JobTrace, plan: &Plan) -> Self {
        let replayed: Vec<Rank> = plan.ranks.iter().map(|rank| rank.rank).collect();
        if replayed.len() == trace.ranks.len() {
            return Self::default();
        }
        Self { alike: alike(trace, plan), replayed: Some(replayed), ..Self::default() }
    }
}

impl State<'_> {
    /// All members have come to a call on the communicator in `row`: it is on the wire from now on, and `streams` end
    /// with it.
    pub(crate) fn put_on_wire(
        &mut self,
        call: &CollectiveCall<'_>,
        row: usize,
        streams: Vec<u32>,
        scheduler: &mut Scheduler,
    ) -> Result<(), SimulationError> {
        let now = scheduler.now().as_picos();
        let offer = (row, call.kind, call.bytes.0, call.ends);
        let (model, options, trace, wires) = (self.model, self.options, self.trace, &mut self.wires);
        let (alike, replayed) = (&wires.alike, &wires.replayed);
        let (time, traffic) = *wires.known.entry(offer).or_insert_with(|| {
            let rows = alike.get(&row).map_or(&[][..], Vec::as_slice);
            let alike: Vec<&[Rank]> = rows.iter().map(|&row| &trace.communicators[row].members[..]).collect();
            let others = Others { alike: &alike, replayed: replayed.as_deref() };
            (model.price(call).at(options.bound).as_picos(), model.traffic(call, &others))
        });
        if now.saturating_add(time) > LONGEST {
            return Err(SimulationError::TooLong);
        }
        wires.flows.begin(streams, time, traffic, now);
        self.wake_wires(Some(now), scheduler);
        Ok(())
    }

    /// Lets the event of the wires fire at `at`, and not before.
    fn wake_wires(&mut self, at: Option<u64>, scheduler: &mut Scheduler) {
        if at == self.wires.at {
            return;
        }
        let event = self.wires.event.expect("the wires are registered before the run");
        if self.wires.at.is_some() {
            scheduler.cancel(event);
        }
        self.wires.at = at;
        if let Some(at) = at {
            let scheduled = scheduler.schedule_at(event, SimTime::from_picos(at));
            scheduled.expect("the wires come after everything else of a moment");
        }
    }

    /// Something begins or ends on the wire.
    pub(crate) fn on_wires(&mut self, scheduler: &mut Scheduler) {
        let now = scheduler.now().as_picos();
        self.wires.at = None;
        let mut ended = std::mem::take(&mut self.wires.ended);
        let next = self.wires.flows.step(now, self.model, &mut ended);
        if next.is_some_and(|at| at > LONGEST) {
            self.error = Some(SimulationError::TooLong);
            scheduler.stop();
            return;
        }
        self.wake_wires(next, scheduler);
        for stream in ended.drain(..).flatten() {
            if self.part_is_over(stream) {
                self.finish(stream, scheduler);
                self.work.push(Actor::Stream(stream));
            }
        }
        self.wires.ended = ended;
        self.work(scheduler);
    }
}

/// For each communicator of a replayed rank those of ranks that are not replayed, in the same place of the same template.
fn alike(trace: &JobTrace, plan: &Plan) -> BTreeMap<usize, Vec<usize>> {
    let mut alike: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut taken: BTreeSet<usize> =
        plan.ranks.iter().flat_map(|rank| rank.communicators.iter().copied()).collect();
    for (number, instance) in trace.ranks.iter().enumerate() {
        if plan.replays(Rank(number as u32)) {
            continue;
        }
        // It does what the nearest rank of its template below it does (or else the first).
        let same = || plan.ranks.iter().filter(|rank| rank.template == instance.template);
        let Some(example) = same().rfind(|rank| rank.rank.index() < number).or_else(|| same().next()) else {
            continue;
        };
        for (&own, &row) in instance.communicators.iter().zip(&example.communicators) {
            if taken.insert(own) {
                alike.entry(row).or_default().push(own);
            }
        }
    }
    alike
}

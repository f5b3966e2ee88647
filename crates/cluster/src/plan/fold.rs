//! Which ranks are replayed, and where their collectives meet.
//!
//! Three ways:
//!
//! * **All of them**, when ranks differ by chance, by a straggler or by request. Ranks that did not run under emulation
//!   follow the template of the one they are taken to be equal to.
//! * **Those that ran**, when only some did: the others are by assumption copies, which come to every collective when
//!   the ones that ran do.
//! * **One of each kind of equals**, when all ranks ran (or none did, as in a trace that was built): ranks are equal
//!   when they follow one template and all their communicators are alike, and communicators are alike when the model
//!   gives their calls the same prices and their members are equal in pairs. This is the coarsest such partition, found by refining
//!   the partition by templates until nothing changes (Hopcroft's idea, in its plain form: each round costs one pass).
//!   Where point-to-point operations are used, a rank's place counts too, since peers are named by place; where
//!   operations share links, so does what the rank's node looks like.
//!   Equal ranks then do the same at the same time, by induction over simulated time, so the folded replay is the
//!   unfolded one to the picosecond; a test holds it to that over random jobs.

use std::collections::{BTreeMap, BTreeSet};

use trompe_base::{Bytes, DType, Duration, Rank};
use trompe_trace::job::JobTrace;
use trompe_trace::peers::{Peers, Turn};
use trompe_trace::record::CollectiveKind;

use super::{Point, RankPlan, SlotPlan, TemplatePlan};
use crate::collective::{CollectiveCall, CollectiveModel, Neighbourhood};
use crate::error::SimulationError;
use crate::options::Options;

/// See the module's documentation.
pub(super) struct Folding {
    pub(super) ranks: Vec<RankPlan>,
    pub(super) points: Vec<Point>,
    pub(super) replayed: Vec<bool>,
}

impl Folding {
    pub(super) fn new(
        trace: &JobTrace,
        templates: &[TemplatePlan],
        model: &dyn CollectiveModel,
        options: &Options,
    ) -> Result<Self, SimulationError> {
        let ran = trace.ranks.iter().filter(|rank| rank.emulated).count();
        let uniform = ran == 0 || ran == trace.ranks.len();
        let members = Members::new(trace, templates);
        if options.fold && !options.variation.tells_ranks_apart() {
            if uniform {
                return members.representatives(trace, templates, model);
            }
            return members.each(trace, |rank| trace.ranks[rank].emulated);
        }
        members.each(trace, |_| true)
    }
}

/// Who calls what where.
struct Members<'a> {
    /// By template: the slots that it uses, ascending.
    used: Vec<Vec<u32>>,
    peers: Peers<'a>,
}

impl<'a> Members<'a> {
    fn new(trace: &'a JobTrace, templates: &[TemplatePlan]) -> Self {
        let slots = |template: &TemplatePlan| -> BTreeSet<u32> {
            template.groups.iter().map(|group| group.0).collect()
        };
        let used = templates.iter().map(|template| slots(template).into_iter().collect()).collect();
        Self { used, peers: Peers::new(trace) }
    }

    /// Replays the ranks that are `wanted`, each for itself.
    fn each(&self, trace: &JobTrace, wanted: impl Fn(usize) -> bool) -> Result<Folding, SimulationError> {
        let replayed: Vec<bool> = (0..trace.ranks.len()).map(wanted).collect();
        let all = replayed.iter().all(|&replayed| replayed);
        let points = trace.communicators.iter().enumerate().map(|(communicator, found)| {
            let present = |member: &Rank| replayed.get(member.index()).copied().unwrap_or(false);
            let members = found.members.iter().filter(|member| present(member)).count();
            let present = if all { Vec::new() } else { found.members.iter().map(present).collect() };
            Point { communicator, members, present, alike: Vec::new() }
        });
        let mut points: Vec<Point> = points.collect();
        let ranks = (0..trace.ranks.len()).filter(|&rank| replayed[rank]);
        let ranks: Vec<RankPlan> = ranks.map(|rank| self.rank(trace, rank)).collect::<Result<_, _>>()?;
        if !all {
            copies(trace, &ranks, &replayed, &mut points);
        }
        Ok(Folding { ranks, points, replayed })
    }

    /// A rank that stands for itself, each communicator being a point of its own.
    fn rank(&self, trace: &JobTrace, rank: usize) -> Result<RankPlan, SimulationError> {
        let instance = &trace.ranks[rank];
        let id = Rank(rank as u32);
        let unused = |&communicator: &usize| SlotPlan {
            communicator,
            point: u32::MAX,
            place: u32::MAX,
            turn: Turn::Same,
        };
        let mut slots: Vec<SlotPlan> = instance.communicators.iter().map(unused).collect();
        let Some(used) = self.used.get(instance.template) else {
            let count = self.used.len();
            return Err(SimulationError::UnknownTemplate { rank: id, template: instance.template, count });
        };
        for &slot in used {
            let row = communicator(trace, rank, slot)?;
            let place =
                place(trace, row, id).ok_or(SimulationError::NotAMember { rank: id, communicator: row })?;
            let turn = self.peers.turn(rank, slot);
            slots[slot as usize] = SlotPlan { communicator: row, point: row as u32, place, turn };
        }
        Ok(RankPlan { rank: id, template: instance.template, stands_for: 1, slots })
    }

    /// Replays one rank of each kind of equals.
    fn representatives(
        &self,
        trace: &JobTrace,
        templates: &[TemplatePlan],
        model: &dyn CollectiveModel,
    ) -> Result<Folding, SimulationError> {
        let mut plans: Vec<RankPlan> = Vec::with_capacity(trace.ranks.len());
        for rank in 0..trace.ranks.len() {
            plans.push(self.rank(trace, rank)?);
        }
        // By communicator: whether point-to-point operations are used on it.
        let mut pairs = vec![false; trace.communicators.len()];
        for plan in &plans {
            for &(slot, kind) in &templates[plan.template].groups {
                let row = plan.slots[slot as usize].communicator;
                pairs[row] |= matches!(kind, CollectiveKind::Send | CollectiveKind::Recv);
            }
        }
        let seen = Seen::new(trace, &plans);
        let first = Likeness { trace, templates, model, pairs: &pairs }.of_all(&seen, &plans);
        let around = model.neighbourhood();
        let mut ranks: Vec<u32> = trace.ranks.iter().map(|rank| rank.template as u32).collect();
        let mut kinds = 0;
        loop {
            let neighbours = around.map(|around| neighbourhoods(around, &ranks)).unwrap_or_default();
            let mut found = Dense::default();
            let groups: Vec<u32> = (0..trace.communicators.len())
                .map(|row| found.number((first[row], seen.signature(row, &ranks, pairs[row]))))
                .collect();
            let mut found = Dense::default();
            let next: Vec<u32> = plans
                .iter()
                .enumerate()
                .map(|(rank, plan)| {
                    let slots = self.used[plan.template].iter().map(|&slot| {
                        let SlotPlan { communicator, place, .. } = plan.slots[slot as usize];
                        (groups[communicator], if pairs[communicator] { place } else { 0 })
                    });
                    let (near, place) = match around {
                        Some(Neighbourhood { ranks, places }) => {
                            let place = rank as u32 % ranks;
                            (neighbours[rank / ranks as usize], if places { place } else { 0 })
                        }
                        None => (0, 0),
                    };
                    found.number((ranks[rank], near, place, slots.collect::<Vec<_>>()))
                })
                .collect();
            let count = found.len();
            ranks = next;
            if count == kinds {
                return Ok(folded(trace, (&ranks, &groups, &pairs), &seen, plans));
            }
            kinds = count;
        }
    }
}

/// Whether a communicator has equally many members in every neighbourhood that it touches (and at the same places, where
/// those matter).
fn is_even(members: &[Rank], around: Neighbourhood) -> bool {
    let mut found: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for member in members {
        let place = if around.places { member.0 % around.ranks } else { 0 };
        found.entry(member.0 / around.ranks).or_default().push(place);
    }
    let mut found = found.into_values();
    let first = found.next();
    found.all(|places| Some(places) == first)
}

/// By neighbourhood: what it looks like when ranks are only known by their kind.
fn neighbourhoods(around: Neighbourhood, kinds: &[u32]) -> Vec<u32> {
    let mut found = Dense::default();
    let number = |kinds: &[u32]| {
        let mut kinds = kinds.to_vec();
        if !around.places {
            kinds.sort_unstable();
        }
        found.number(kinds)
    };
    kinds.chunks(around.ranks.max(1) as usize).map(number).collect()
}

/// Finds, for each communicator of a replayed rank, those of ranks that are not replayed in the same place of the same
/// template.
fn copies(trace: &JobTrace, ranks: &[RankPlan], replayed: &[bool], points: &mut [Point]) {
    let rows = |rank: &RankPlan| trace.ranks[rank.rank.index()].communicators.clone();
    let mut taken: BTreeSet<usize> = ranks.iter().flat_map(rows).collect();
    for (number, instance) in trace.ranks.iter().enumerate().filter(|(number, _)| !replayed[*number]) {
        // It does what the nearest rank of its template below it does (or else the first).
        let same = || ranks.iter().filter(|rank| rank.template == instance.template);
        let Some(example) = same().rfind(|rank| rank.rank.index() < number).or_else(|| same().next()) else {
            continue;
        };
        for (&own, &row) in
            instance.communicators.iter().zip(&trace.ranks[example.rank.index()].communicators)
        {
            if taken.insert(own) {
                points[row].alike.push(own);
            }
        }
    }
}

/// Keeps the first rank of each kind and the first communicator of each group.
fn folded(
    trace: &JobTrace,
    (kinds, groups, pairs): (&[u32], &[u32], &[bool]),
    seen: &Seen,
    plans: Vec<RankPlan>,
) -> Folding {
    // Numbers were given in order of first appearance, so point `k` is the `k`-th new group.
    let mut points: Vec<Point> = Vec::new();
    for (communicator, &group) in groups.iter().enumerate() {
        if group as usize == points.len() {
            let members = if pairs[communicator] {
                trace.communicators[communicator].members.len()
            } else {
                seen.distinct(communicator, kinds)
            };
            points.push(Point { communicator, members, present: Vec::new(), alike: Vec::new() });
        }
    }
    let mut replayed = vec![false; trace.ranks.len()];
    let mut asked = vec![false; points.len()];
    let mut ranks: Vec<RankPlan> = Vec::new();
    for (mut plan, &kind) in plans.into_iter().zip(kinds) {
        if (kind as usize) < ranks.len() {
            ranks[kind as usize].stands_for += 1;
            continue;
        }
        replayed[plan.rank.index()] = true;
        for slot in plan.slots.iter_mut().filter(|slot| slot.point != u32::MAX) {
            slot.point = groups[slot.communicator];
            // The communicator to ask about is one of a rank that is replayed.
            let point = &mut points[slot.point as usize];
            if !std::mem::replace(&mut asked[slot.point as usize], true)
                && point.communicator != slot.communicator
            {
                point.alike.retain(|&row| row != slot.communicator);
                point.alike.push(std::mem::replace(&mut point.communicator, slot.communicator));
            }
        }
        ranks.push(plan);
    }
    Folding { ranks, points, replayed }
}

/// Which communicators have the same calls at the same prices.
struct Likeness<'a> {
    trace: &'a JobTrace,
    templates: &'a [TemplatePlan],
    model: &'a dyn CollectiveModel,
    pairs: &'a [bool],
}

/// What is called: operation, bytes, and root or the two ends.
type Call = (CollectiveKind, u64, (u32, u32));

/// What it costs: expected, low and high price, multiprocessors.
type Cost = (Duration, Duration, Duration, u32);

impl Likeness<'_> {
    /// By communicator: a number that those alike share.
    fn of_all(&self, seen: &Seen, plans: &[RankPlan]) -> Vec<u32> {
        let mut calls_of: BTreeMap<(usize, u32), BTreeMap<Call, DType>> = BTreeMap::new();
        for (index, template) in self.templates.iter().enumerate() {
            for call in &template.calls {
                let call = &call.call;
                let found = calls_of.entry((index, call.communicator)).or_default();
                found.insert((call.kind, call.bytes.0, (call.peer, call.peer)), call.dtype);
            }
        }
        let (mut kinds, mut lists, mut costs) = (Dense::default(), Dense::default(), Dense::default());
        // A model is asked once for communicators that it says are alike.
        let mut known: BTreeMap<(Vec<u32>, u32), u32> = BTreeMap::new();
        let of = |row: usize| {
            let members = &self.trace.communicators[row].members;
            let pairs = self.pairs[row];
            let mut callers: Vec<(usize, u32, u32)> = seen.members[row]
                .iter()
                .enumerate()
                .filter_map(|(place, &(rank, slot))| {
                    let template = plans.get(rank as usize)?.template;
                    Some((template, slot, if pairs { place as u32 } else { 0 }))
                })
                .collect();
            callers.sort_unstable();
            callers.dedup();
            let mut calls: BTreeMap<Call, DType> = BTreeMap::new();
            for (template, slot, place) in callers {
                for (&(kind, bytes, (peer, _)), &dtype) in
                    calls_of.get(&(template, slot)).into_iter().flatten()
                {
                    let ends = match kind {
                        CollectiveKind::Send => (place, peer),
                        CollectiveKind::Recv => (peer, place),
                        _ => (peer, peer),
                    };
                    calls.insert((kind, bytes, ends), dtype);
                }
            }
            let list = lists.number(calls.keys().copied().collect::<Vec<Call>>());
            let cost = *known.entry((self.model.likeness(members, pairs), list)).or_insert_with(|| {
                let cost = |(&(kind, bytes, ends), &dtype): (&Call, &DType)| -> Cost {
                    let wire =
                        CollectiveCall { kind, bytes: Bytes(bytes), dtype, members, ends, together: 1 };
                    let price = self.model.price(&wire);
                    (price.time, price.low, price.high, self.model.channels(&wire))
                };
                costs.number(calls.iter().map(cost).collect::<Vec<Cost>>())
            });
            // What loads its neighbourhoods unevenly is like nothing else: where it is slowest cannot be told from one.
            let odd = self.model.neighbourhood().is_some_and(|around| !is_even(members, around));
            kinds.number((members.len(), pairs, list, cost, odd.then_some(row)))
        };
        (0..self.trace.communicators.len()).map(of).collect()
    }
}

/// By communicator: the rank and the slot by which it knows the communicator, for each member in order.
struct Seen {
    members: Vec<Vec<(u32, u32)>>,
}

impl Seen {
    fn new(trace: &JobTrace, plans: &[RankPlan]) -> Self {
        let unknown = |member: &Rank| (member.0, u32::MAX);
        let mut members: Vec<Vec<(u32, u32)>> = trace
            .communicators
            .iter()
            .map(|communicator| communicator.members.iter().map(unknown).collect())
            .collect();
        for plan in plans {
            for (slot, found) in plan.slots.iter().enumerate().filter(|(_, slot)| slot.point != u32::MAX) {
                let entry = &mut members[found.communicator][found.place as usize];
                entry.1 = entry.1.min(slot as u32);
            }
        }
        Self { members }
    }

    /// What a communicator looks like when ranks are only known by their kind: each member's kind and slot, with
    /// numbers of repetitions; in order of place where places count.
    fn signature(&self, row: usize, kinds: &[u32], places: bool) -> Vec<(u32, u32, u32)> {
        let kind = |&(rank, slot): &(u32, u32)| (kinds.get(rank as usize).copied().unwrap_or(u32::MAX), slot);
        let mut all: Vec<(u32, u32)> = self.members[row].iter().map(kind).collect();
        if !places {
            all.sort_unstable();
        }
        let mut runs: Vec<(u32, u32, u32)> = Vec::new();
        for (kind, slot) in all {
            match runs.last_mut() {
                Some(run) if (run.0, run.1) == (kind, slot) => run.2 += 1,
                _ => runs.push((kind, slot, 1)),
            }
        }
        runs
    }

    /// Number of different members.
    fn distinct(&self, row: usize, kinds: &[u32]) -> usize {
        self.signature(row, kinds, false).len()
    }
}

/// Numbers things by the order of their first appearance.
struct Dense<T>(BTreeMap<T, u32>);

impl<T: Ord> Default for Dense<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Ord> Dense<T> {
    fn number(&mut self, thing: T) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(thing).or_insert(next)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// The communicator that `rank` has in `slot`.
fn communicator(trace: &JobTrace, rank: usize, slot: u32) -> Result<usize, SimulationError> {
    let instance = &trace.ranks[rank];
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
    if row >= trace.communicators.len() {
        return Err(dangling("communicator", row as u64, trace.communicators.len()));
    }
    Ok(row)
}

/// The place of a rank in a communicator; members mostly stand in ascending order.
fn place(trace: &JobTrace, row: usize, rank: Rank) -> Option<u32> {
    let members = &trace.communicators[row].members;
    if let Ok(place) = members.binary_search(&rank)
        && (place == 0 || members[place - 1] != rank)
    {
        return Some(place as u32);
    }
    members.iter().position(|&member| member == rank).map(|place| place as u32)
}

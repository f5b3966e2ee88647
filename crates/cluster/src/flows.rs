//! Operations on the wire, and how they slow each other.
//!
//! An operation has so much work: the time it takes when nothing is in its way. It does its work at a speed that changes
//! only when an operation that it meets, directly or through others, begins or ends ([`CollectiveModel::speeds`]).
//! Between those moments nothing is computed.
//!
//! Whoever keeps the time calls [`Flows::begin`] for what begins and then [`Flows::step`] once at every moment at which
//! something began or at which [`Flows::step`] said that something ends. All that begins and ends at one moment does so
//! together, in whatever order it was told.
//!
//! Work is counted in picoseconds with a fraction; an end is rounded up to a whole picosecond.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};

use crate::collective::{CollectiveModel, Traffic};

/// Operations under way; `T` says whose they are.
#[derive(Debug)]
pub(crate) struct Flows<T> {
    flows: Vec<Option<Flow<T>>>,
    /// Free places.
    free: Vec<u32>,
    /// Places of flows by where their links are ([`CollectiveModel::whereabouts`]). Nothing ever walks through it.
    near: HashMap<u32, Vec<u32>>,
    /// Ends to come: when, the flow's number, its place, and which of its ends; later ones replace earlier ones.
    ends: BinaryHeap<Reverse<(u64, u64, u32, u32)>>,
    /// Places that began since the last step.
    begun: Vec<u32>,
    /// How many have begun in all.
    count: u64,
}

#[derive(Debug)]
struct Flow<T> {
    owner: T,
    number: u64,
    traffic: Option<Traffic>,
    /// Work left at `since`.
    left: f64,
    since: u64,
    speed: f64,
    /// Which of its ends in the heap is valid.
    version: u32,
    /// Places of flows that it meets.
    neighbours: Vec<u32>,
    /// Where its links are.
    whereabouts: Vec<u32>,
}

impl<T> Default for Flows<T> {
    fn default() -> Self {
        Self {
            flows: Vec::new(),
            free: Vec::new(),
            near: HashMap::new(),
            ends: BinaryHeap::new(),
            begun: Vec::new(),
            count: 0,
        }
    }
}

impl<T> Flows<T> {
    /// An operation of `work` picoseconds begins at `now`; [`Flows::step`] must follow at `now`.
    pub(crate) fn begin(&mut self, owner: T, work: u64, traffic: Option<Traffic>, now: u64) {
        let flow = Flow {
            owner,
            number: self.count,
            traffic,
            left: work as f64,
            since: now,
            speed: traffic.map_or(1.0, |traffic| traffic.alone),
            version: 0,
            neighbours: Vec::new(),
            whereabouts: Vec::new(),
        };
        self.count += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() as u32 - 1
        });
        self.flows[place as usize] = Some(flow);
        self.begun.push(place);
    }

    /// Ends what ends at `now` (its owners go to `ended`, in the order in which they began), lets what began go on, and
    /// returns when the next one ends.
    pub(crate) fn step(&mut self, now: u64, model: &dyn CollectiveModel, ended: &mut Vec<T>) -> Option<u64> {
        let mut touched = BTreeSet::new();
        // What begins without work ends now, and is in nobody's way.
        let mut over: Vec<(u64, u32)> = Vec::new();
        let mut begun = std::mem::take(&mut self.begun);
        begun.retain(|&place| {
            let flow = self.flow(place);
            let lasts = flow.left > 0.0;
            if !lasts {
                over.push((flow.number, place));
            }
            lasts
        });
        while let Some(&Reverse((at, number, place, version))) = self.ends.peek()
            && at <= now
        {
            self.ends.pop();
            if self.flows[place as usize].as_ref().is_some_and(|f| (f.number, f.version) == (number, version))
            {
                over.push((number, place));
            }
        }
        over.sort_unstable();
        for (_, place) in over {
            let flow = self.flows[place as usize].take().expect("an operation ends once");
            self.free.push(place);
            self.unlist(place, &flow.whereabouts);
            for neighbour in flow.neighbours {
                // One that ends as well may be gone already.
                let Some(flow) = &mut self.flows[neighbour as usize] else { continue };
                flow.neighbours.retain(|&other| other != place);
                touched.insert(neighbour);
            }
            touched.remove(&place);
            ended.push(flow.owner);
        }
        for &place in &begun {
            self.introduce(place, model);
            touched.insert(place);
        }
        self.settle(touched, now, model);
        begun.clear();
        self.begun = begun;
        self.next()
    }

    /// Whether nothing is under way.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.flows.iter().all(Option::is_none)
    }

    fn flow(&self, place: u32) -> &Flow<T> {
        self.flows[place as usize].as_ref().expect("only flows under way are asked for")
    }

    fn flow_mut(&mut self, place: u32) -> &mut Flow<T> {
        self.flows[place as usize].as_mut().expect("only flows under way are asked for")
    }

    /// The next end; forgets those that were replaced.
    fn next(&mut self) -> Option<u64> {
        while let Some(&Reverse((at, number, place, version))) = self.ends.peek() {
            if self.flows[place as usize].as_ref().is_some_and(|f| (f.number, f.version) == (number, version))
            {
                return Some(at);
            }
            self.ends.pop();
        }
        None
    }

    /// Finds out whom a new flow meets.
    fn introduce(&mut self, place: u32, model: &dyn CollectiveModel) {
        let Some(traffic) = self.flow(place).traffic else { return };
        let mut whereabouts = Vec::new();
        model.whereabouts(traffic, &mut whereabouts);
        let mut met: Vec<u32> =
            whereabouts.iter().filter_map(|at| self.near.get(at)).flatten().copied().collect();
        // Two may be near each other in several places.
        met.sort_unstable();
        met.dedup();
        met.retain(|&other| self.flow(other).traffic.is_some_and(|other| model.meets(traffic, other)));
        for &other in &met {
            self.flow_mut(other).neighbours.push(place);
        }
        for &at in &whereabouts {
            self.near.entry(at).or_default().push(place);
        }
        let flow = self.flow_mut(place);
        (flow.neighbours, flow.whereabouts) = (met, whereabouts);
    }

    fn unlist(&mut self, place: u32, whereabouts: &[u32]) {
        for at in whereabouts {
            let Some(list) = self.near.get_mut(at) else { continue };
            if let Some(at) = list.iter().position(|&other| other == place) {
                list.swap_remove(at);
            }
        }
    }

    /// Gives new speeds to `touched` and to all whom they meet, directly or through others.
    fn settle(&mut self, mut touched: BTreeSet<u32>, now: u64, model: &dyn CollectiveModel) {
        while let Some(first) = touched.pop_first() {
            let mut group = vec![first];
            let mut at = 0;
            let mut known = BTreeSet::from([first]);
            while at < group.len() {
                for &other in &self.flow(group[at]).neighbours {
                    if known.insert(other) {
                        group.push(other);
                        touched.remove(&other);
                    }
                }
                at += 1;
            }
            if let [alone] = group[..] {
                let speed = self.flow(alone).traffic.map_or(1.0, |traffic| traffic.alone);
                self.go_on(alone, speed, now);
                continue;
            }
            let traffic: Vec<Traffic> = group.iter().filter_map(|&place| self.flow(place).traffic).collect();
            for (place, speed) in group.into_iter().zip(model.speeds(&traffic)) {
                self.go_on(place, speed, now);
            }
        }
    }

    /// The flow at `place` goes on at `speed` from `now` on.
    fn go_on(&mut self, place: u32, speed: f64, now: u64) {
        let flow = self.flow_mut(place);
        if flow.version > 0 && flow.speed == speed {
            return;
        }
        let passed = (now - flow.since) as f64;
        flow.left = (flow.left - passed * flow.speed).max(0.0);
        flow.since = now;
        flow.speed = speed;
        flow.version += 1;
        // Speeds are above zero; a model that says otherwise stops time, which the caller's limit finds.
        let wait = flow.left / speed;
        let end = if wait.is_finite() { now.saturating_add(wait.ceil() as u64) } else { u64::MAX };
        let entry = (end, flow.number, place, flow.version);
        self.ends.push(Reverse(entry));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::collective::CollectiveCall;
    use crate::price::Price;

    /// One wire by number of the traffic's tens; operations on it share it evenly.
    struct Even;

    impl CollectiveModel for Even {
        fn price(&self, _call: &CollectiveCall<'_>) -> Price {
            Price::default()
        }

        fn meets(&self, one: Traffic, other: Traffic) -> bool {
            one.id / 10 == other.id / 10
        }

        fn speeds(&self, under_way: &[Traffic]) -> Vec<f64> {
            vec![1.0 / under_way.len() as f64; under_way.len()]
        }
    }

    /// Begins `(owner, at, work, wire)` and returns when each owner ends.
    fn run(operations: &[(u32, u64, u64, Option<u32>)]) -> BTreeMap<u32, u64> {
        let mut flows = Flows::default();
        let mut starts: Vec<u64> = operations.iter().map(|operation| operation.1).collect();
        starts.sort_unstable();
        starts.dedup();
        let (mut ends, mut ended) = (BTreeMap::new(), Vec::new());
        let mut next: Option<u64> = None;
        let mut starts = starts.into_iter().peekable();
        loop {
            let now = match (starts.peek().copied(), next) {
                (Some(start), Some(end)) => start.min(end),
                (Some(moment), None) | (None, Some(moment)) => moment,
                (None, None) => break,
            };
            starts.next_if_eq(&now);
            for &(owner, at, work, wire) in operations.iter().filter(|operation| operation.1 == now) {
                assert_eq!(at, now);
                let traffic = wire.map(|wire| Traffic { id: wire * 10, alone: 1.0 });
                flows.begin(owner, work, traffic, now);
            }
            next = flows.step(now, &Even, &mut ended);
            for owner in ended.drain(..) {
                assert_eq!(ends.insert(owner, now), None, "{owner} ends once");
            }
        }
        assert!(flows.is_empty());
        ends
    }

    #[track_caller]
    fn check(operations: &[(u64, u64, Option<u32>)], expect: &[u64]) {
        let numbered: Vec<_> =
            operations.iter().zip(0..).map(|(&(at, work, wire), owner)| (owner, at, work, wire)).collect();
        let ends: Vec<u64> = run(&numbered).into_values().collect();
        assert_eq!(ends, expect);
        // The order in which they are told does not matter.
        let turned: Vec<_> = numbered.into_iter().rev().collect();
        assert_eq!(run(&turned).into_values().collect::<Vec<_>>(), expect, "turned round");
    }

    #[test]
    fn hand_computed() {
        for wire in [Some(1), Some(2)] {
            check(&[(5, 100, wire)], &[105]);
            check(&[(0, 100, wire), (0, 100, wire)], &[200, 200]);
            // Half a wire each until the first ends.
            check(&[(0, 100, wire), (0, 50, wire)], &[150, 100]);
            check(&[(0, 100, wire), (50, 100, wire)], &[150, 200]);
            // One after the other: the second begins as the first ends.
            check(&[(0, 100, wire), (100, 100, wire)], &[100, 200]);
            check(&[(0, 0, wire), (0, 10, wire)], &[0, 10]);
        }
        // Other wires, and operations without any.
        check(&[(0, 100, Some(1)), (0, 100, Some(3)), (0, 100, Some(2)), (0, 100, None)], &[100; 4]);
        check(&[(0, 90, Some(4)), (0, 90, Some(4)), (0, 90, Some(4))], &[270; 3]);
    }

    #[test]
    fn work_is_conserved_on_a_wire() {
        // Whatever begins when, a wire that is never idle is done with all work after the sum of it.
        let mut rng = trompe_base::Rng::new(7);
        for _ in 0..200 {
            let mut operations = vec![(0, 0, 1_000_000, Some(1))];
            for owner in 1..12 {
                operations.push((owner, rng.below(900_000), 1 + rng.below(300_000), Some(1)));
            }
            let work: u64 = operations.iter().map(|operation| operation.2).sum();
            let last = run(&operations).into_values().max().unwrap();
            assert!(last.abs_diff(work) <= 24, "{last} for {work}");
        }
    }
}

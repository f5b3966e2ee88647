//! The price of an operation: NCCL's choice, paid at fitted cost.

use trompe_base::{Bytes, Duration};
use trompe_hardware::ClusterSheet;

use crate::constants::{Bend, Carrier, Constants, FabricConstants, Term};
use crate::fabric::{Fabric, Wire};
use crate::features::Features;
use crate::flow::Load;
use crate::operation::Operation;
use crate::placement::Placement;
use crate::tuner::{self, Algorithm, Choice, Protocol};

/// Prices operations on one fabric.
#[derive(Clone, Debug)]
pub struct NetworkModel {
    fabric: Fabric,
    constants: Constants,
}

/// A price and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The expected time, from the last rank's arrival to the end on every rank.
    pub time: Duration,
    /// The lower end of the interval, from the fit's residuals.
    pub low: Duration,
    /// The upper end.
    pub high: Duration,
    /// Which algorithm and protocol.
    pub choice: Choice,
    /// How many channels, each one block on a multiprocessor.
    pub channels: u32,
    /// What the price rests on.
    pub method: Method,
}

/// What a price rests on, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// Constants fitted to this kind of fabric.
    Fitted,
    /// Constants fitted to another kind of fabric or another algorithm, scaled by nominal rates.
    Scaled,
    /// NCCL's own estimate, for want of measurements.
    Tuner,
}

/// How far a price may be off that rests on less than its own measurements: assumed, from the spread between public
/// systems of one class (16 to 28 % between three A100 sources, a factor of two across kinds).
const SCALED: (f64, f64) = (0.7, 1.5);
/// The same for NCCL's own estimate.
const UNMEASURED: (f64, f64) = (0.5, 2.5);

impl NetworkModel {
    /// A model of `fabric` with the built-in constants.
    #[must_use]
    pub fn new(fabric: Fabric) -> Self {
        Self::with_constants(fabric, Constants::builtin())
    }

    /// A model of the cluster that a sheet describes, with the built-in constants.
    #[must_use]
    pub fn of_cluster(cluster: &ClusterSheet) -> Self {
        Self::new(Fabric::from_cluster(cluster))
    }

    /// A model with constants of the caller's own.
    #[must_use]
    pub fn with_constants(fabric: Fabric, constants: Constants) -> Self {
        Self { fabric, constants }
    }

    /// The fabric.
    #[must_use]
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The price of `operation` on `bytes` (counted as [`Operation`] says) between the ranks of `placement`.
    #[must_use]
    pub fn price(&self, operation: Operation, bytes: Bytes, placement: &Placement) -> Estimate {
        let communicator = self.fabric.communicator(placement);
        let choice = tuner::choose(operation, bytes, &communicator);
        let channels = tuner::channels(operation, &choice, bytes, &communicator);
        if placement.ranks < 2 {
            return self.alone(operation, bytes, choice);
        }
        let features = Features::of(operation, choice.algorithm, bytes.as_f64(), placement);
        let (inside, term, method) = self.inside(operation, placement, &choice, &features);
        // Networks differ more than nodes do, and one was measured.
        let method = match placement.nodes {
            ..=1 => method,
            _ if self.constants.network.own => Method::Fitted,
            _ => method.max(Method::Scaled),
        };
        let (micros, low, high) = if placement.nodes > 1 {
            let across = self.across((operation, bytes), placement, &choice, &features);
            let network = &self.constants.network;
            // Both carry the same bytes at the same time, in each other's way.
            let bytes = (inside.bytes.powf(network.overlap) + across.bytes.powf(network.overlap))
                .powf(1.0 / network.overlap);
            let (low, high) = match method {
                _ if network.own => (1.0, 1.0),
                Method::Tuner => UNMEASURED,
                _ => SCALED,
            };
            // Filling a pipeline whose chunks are neither too short for the steps' latency nor too long to fill it.
            let filling = network.ramp * (across.start * across.bytes).sqrt();
            (inside.start + across.start + bytes + filling, low.min(network.low), high.max(network.high))
        } else {
            let (low, high) = match (method, term) {
                (Method::Fitted, Some(term)) => (term.low, term.high),
                (Method::Tuner, _) => UNMEASURED,
                _ => SCALED,
            };
            let micros = match (method, term) {
                (Method::Fitted, Some(term)) => {
                    self.bent((operation, bytes), placement, &choice, (term, inside.start + inside.bytes))
                }
                _ => inside.start + inside.bytes,
            };
            (micros, low, high)
        };
        let at = |factor: f64| Duration::from_secs_f64(micros * factor * 1e-6);
        Estimate { time: at(1.0), low: at(low), high: at(high), choice, channels, method }
    }

    /// The price of `operation` between these devices (global numbers; for [`Operation::SendReceive`] sender and receiver),
    /// with what lies behind their ports counted as well: shared adapters, the host's PCIe tree, an oversubscribed core.
    #[must_use]
    pub fn estimate(&self, operation: Operation, bytes: Bytes, devices: &[u32]) -> Estimate {
        self.estimate_with_load(operation, bytes, devices, |_| false).0
    }

    /// The same, with what the operation asks of those wires that `counts` while it runs, for [`crate::flow::speeds`].
    #[must_use]
    pub fn estimate_with_load(
        &self,
        operation: Operation,
        bytes: Bytes,
        devices: &[u32],
        counts: impl Fn(Wire) -> bool,
    ) -> (Estimate, Load) {
        let placement = Placement::of(&self.fabric, devices.iter().copied());
        let mut estimate = self.price(operation, bytes, &placement);
        let algorithm = estimate.choice.algorithm;
        let mut demand = self.fabric.demand(operation, bytes.as_f64(), algorithm, devices);
        // The links of a node whose time was fitted carry what they were measured to carry.
        let behind = |wire: Wire| matches!(wire, Wire::Up(..) | Wire::Down(..));
        let seconds = |(wire, bytes): (&Wire, &f64)| bytes / self.capacity(*wire);
        let least = demand.iter().filter(|(wire, _)| behind(**wire)).map(seconds).fold(0.0, f64::max);
        let slower = least / estimate.time.as_secs_f64().max(1e-12);
        if slower > 1.0 {
            estimate.time = estimate.time.scale(slower);
            estimate.low = estimate.low.scale(slower);
            estimate.high = estimate.high.scale(slower);
        }
        demand.retain(|wire, _| counts(*wire));
        let load = Load::new(&demand, estimate.time, |wire| self.capacity(wire));
        (estimate, load)
    }

    /// Bytes per second that a wire carries at most.
    #[must_use]
    pub fn capacity(&self, wire: Wire) -> f64 {
        let constants = self.constants.find(self.fabric.architecture, Carrier::Pcie);
        self.fabric.capacity(wire, |ranks| constants.map_or(1.0, |fabric| fabric.share(ranks)))
    }

    /// One rank: the launch, and a copy where there are two buffers.
    fn alone(&self, operation: Operation, bytes: Bytes, choice: Choice) -> Estimate {
        let rate = self.fabric.layout(&[0, 1]).ring.0.max(self.fabric.host.0);
        let copied = match operation {
            Operation::SendReceive => 0.0,
            _ => bytes.as_f64() / rate,
        };
        let time = Duration::from_secs_f64(2e-6 + copied);
        let (low, high) = (time.scale(UNMEASURED.0), time.scale(UNMEASURED.1));
        Estimate { time, low, high, choice, channels: 1, method: Method::Tuner }
    }

    /// Cost of the part inside nodes.
    fn inside(
        &self,
        operation: Operation,
        placement: &Placement,
        choice: &Choice,
        features: &Features,
    ) -> (Cost, Option<&Term>, Method) {
        let layout = self.fabric.layout(&placement.local);
        let constants = self.constants.find(self.fabric.architecture, layout.carrier);
        let Some((fabric, term)) =
            constants.and_then(|fabric| Some((fabric, nearest(fabric, operation, choice)?)))
        else {
            return (self.by_tuner(placement, choice, features), None, Method::Tuner);
        };
        let rate = layout.ring.0 / 1e9 * fabric.share(placement.per_node());
        let scale = fabric.nominal / rate;
        let own = fabric.nominal / (layout.ring.0 / 1e9);
        // A lone rank per node moves nothing over its node's links.
        let wire = if placement.per_node() < 2 { 0.0 } else { features.wire };
        let start = term.base + term.step * features.steps;
        let wire = 1e-9 * scale * wire;
        let bytes = term.wire * wire + term.own * own * 1e-9 * features.own + term.ramp * wire.sqrt();
        let exact = fabric.architecture == self.fabric.architecture
            && (term.operation, term.algorithm, term.protocol)
                == (operation, choice.algorithm, choice.protocol);
        (Cost { start, bytes }, Some(term), if exact { Method::Fitted } else { Method::Scaled })
    }

    /// The sum of a term with what it leaves at the sizes that were measured: between two of them the times are
    /// interpolated, and no size takes less than a smaller one.
    fn bent(
        &self,
        (operation, bytes): (Operation, Bytes),
        placement: &Placement,
        choice: &Choice,
        (term, sum): (&Term, f64),
    ) -> f64 {
        let Some(bend) = Bend::nearest(&term.bends, placement.ranks) else { return sum };
        let size = bytes.as_f64().max(1.0).log2();
        let at = |size: f64| {
            let features = Features::of(operation, choice.algorithm, size.exp2(), placement);
            let (cost, ..) = self.inside(operation, placement, choice, &features);
            cost.start + cost.bytes
        };
        let mut below: Option<(f64, f64)> = None;
        for &(point, factor) in &bend.points {
            let time = (at(point) * factor).max(below.map_or(0.0, |(_, time)| time));
            if point >= size {
                return match below {
                    Some((x0, t0)) if point > x0 => {
                        (t0.ln() + (size - x0) / (point - x0) * (time.ln() - t0.ln())).exp()
                    }
                    _ => sum * factor * (time / (at(point) * factor)),
                };
            }
            below = Some((point, time));
        }
        // Beyond the last one the last factor holds.
        let (last, time) = below.expect("a bend has a point");
        sum * time / at(last)
    }

    /// NCCL's own estimate of the part inside nodes.
    fn by_tuner(&self, placement: &Placement, choice: &Choice, features: &Features) -> Cost {
        let communicator = self.fabric.communicator(placement);
        // NCCL counts NVLS as one long step, whatever the number of ranks.
        let steps = match choice.algorithm {
            Algorithm::Nvls | Algorithm::NvlsTree => 1.0,
            _ => features.steps,
        };
        let start = tuner::start(choice) + steps * tuner::inside_step(choice, communicator.nvlink);
        let bytes = match placement.per_node() {
            ..2 => 0.0,
            _ => features.wire / (1e3 * communicator.inside),
        };
        Cost { start, bytes }
    }

    /// Cost of the part between nodes.
    fn across(
        &self,
        (operation, bytes): (Operation, Bytes),
        placement: &Placement,
        choice: &Choice,
        features: &Features,
    ) -> Cost {
        let network = &self.constants.network;
        let efficiency = match (choice.algorithm, operation) {
            (Algorithm::Direct, Operation::AllToAll) => network.all_to_all,
            (Algorithm::Direct, _) => network.message,
            (Algorithm::Tree | Algorithm::NvlsTree, _) => network.tree,
            _ => network.ring,
        };
        // LL and LL128 carry flags between the data.
        let payload = match choice.protocol {
            Protocol::LowLatency => 0.5,
            Protocol::LowLatency128 => 120.0 / 128.0,
            Protocol::Simple => 1.0,
        };
        let rate = match operation {
            // One pair: the adapters of one device.
            Operation::SendReceive => self.fabric.network_rate(&Placement::regular(2, 1)).0,
            _ => self.fabric.network_rate(placement).0,
        } * efficiency
            * payload;
        // Trees reach less at medium sizes, by NCCL's own factors.
        let rate = match choice.algorithm {
            Algorithm::Tree | Algorithm::NvlsTree => rate * tuner::tree_share(choice.protocol, bytes),
            _ => rate,
        };
        let latency = crate::profile::latency(network, &self.fabric).as_micros_f64();
        let step = tuner::network_step(choice, latency);
        // Messages to many peers are posted without waiting for each other.
        let steps = if choice.algorithm == Algorithm::Direct {
            1.0 + 0.1 * (features.network_steps - 1.0)
        } else {
            features.network_steps
        };
        Cost { start: steps * step, bytes: features.network / rate * 1e6 }
    }
}

/// Microseconds that do not and that do depend on the bytes.
#[derive(Clone, Copy, Debug)]
struct Cost {
    start: f64,
    bytes: f64,
}

/// The term of a choice, or the one that is most like it.
fn nearest<'a>(fabric: &'a FabricConstants, operation: Operation, choice: &Choice) -> Option<&'a Term> {
    let Choice { algorithm, protocol, .. } = *choice;
    let like = match algorithm {
        Algorithm::NvlsTree => Algorithm::Nvls,
        Algorithm::Pat | Algorithm::CollnetDirect | Algorithm::CollnetChain => Algorithm::Ring,
        other => other,
    };
    let operations: &[Operation] = match operation {
        Operation::Broadcast => &[Operation::Broadcast, Operation::AllGather],
        Operation::Reduce => &[Operation::Reduce, Operation::ReduceScatter],
        Operation::SendReceive => &[Operation::SendReceive, Operation::AllToAll],
        _ => std::slice::from_ref(match operation {
            Operation::AllReduce => &Operation::AllReduce,
            Operation::AllGather => &Operation::AllGather,
            Operation::ReduceScatter => &Operation::ReduceScatter,
            _ => &Operation::AllToAll,
        }),
    };
    // A protocol that was hardly measured is paid like the one it is chosen instead of.
    let protocols: &[Protocol] = match protocol {
        Protocol::LowLatency => &[Protocol::LowLatency, Protocol::Simple],
        Protocol::LowLatency128 => &[Protocol::LowLatency128, Protocol::Simple],
        Protocol::Simple => &[Protocol::Simple],
    };
    let term = |&protocol: &Protocol| {
        operations.iter().find_map(|&operation| fabric.term(operation, like, protocol))
    };
    protocols.iter().find_map(term)
}

//! Collectives on the wire: they share links with others until they end ([`crate::flows`]).
//!
//! An end is one only if no member's device slowed the transfer more than its links did ([`crate::contention`]).
//! Otherwise the operation stays on the wire for what the slowest member lost beyond that: the slower of the two sets the
//! pace, they do not add up. What is lost meanwhile is looked at again at that end, until it is negligible. So devices
//! never have to tell the wires about a kernel that starts or ends.

use trompe_base::SimTime;
use trompe_engine::{Event, Scheduler};

use crate::collective::Traffic;
use crate::error::SimulationError;
use crate::flows::Flows;
use crate::plan::LONGEST;
use crate::state::State;

/// Ranks and their streams that take part in an operation.
pub(crate) type Parties = Vec<(u32, u16)>;

/// An operation on the wire.
#[derive(Debug)]
struct Transfer {
    parties: Parties,
    traffic: Option<Traffic>,
    /// Picoseconds on links that follow.
    next: Option<u64>,
    /// Picoseconds that devices had lost when this part began, also by other parts of its group call.
    credited: f64,
    /// When this part would be over with nothing in its way.
    due: u64,
}

/// Picoseconds that are too short to go on for.
const NEGLIGIBLE: f64 = 5_000.0;

/// What is on the wire.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    /// Operations, each with the streams that take part.
    flows: Flows<Transfer>,
    /// Fires when an operation begins or ends.
    pub(crate) event: Option<Event>,
    /// When that is next.
    at: Option<u64>,
    /// Operations whose part is over, and those of them that end; kept to spare allocations.
    over: Vec<Transfer>,
    ended: Vec<Transfer>,
}

impl State<'_> {
    /// An operation is on the wire from now on, and the `parties` end with it; alone it takes `start` picoseconds without
    /// links and then `time` on them.
    pub(crate) fn put_on_wire(
        &mut self,
        parties: Parties,
        (start, time): (u64, u64),
        traffic: Option<Traffic>,
        scheduler: &mut Scheduler,
    ) {
        let now = scheduler.now().as_picos();
        let credited = self.lost(&parties, now);
        let first = if start > 0 { (start, None) } else { (time, traffic) };
        let transfer = Transfer {
            parties,
            traffic,
            next: (start > 0).then_some(time),
            credited,
            due: now + start + time,
        };
        self.wires.flows.begin(transfer, first.0, first.1, now);
        self.wake_wires(Some(now), scheduler);
    }

    /// What an operation has lost on its slowest member's device.
    fn lost(&self, parties: &Parties, now: u64) -> f64 {
        if self.shared.options.contention.is_none() {
            return 0.0;
        }
        let each = parties.iter().map(|&(rank, stream)| self.ranks[rank as usize].lost(stream, now));
        each.fold(0.0, f64::max)
    }

    /// Lets those go on whose part is `over` but that have only started or that devices have slowed more than their links
    /// did; the others are `ended`. Returns whether any goes on.
    fn extend(&mut self, over: &mut Vec<Transfer>, ended: &mut Vec<Transfer>, now: u64) -> bool {
        let mut extended = false;
        for mut transfer in over.drain(..) {
            let more = if let Some(time) = transfer.next.take() {
                time
            } else {
                let lost = self.lost(&transfer.parties, now);
                // Links have cost all beyond the work, devices what they lost: the larger of the two counts.
                let owed = lost - transfer.credited - now.saturating_sub(transfer.due) as f64;
                if owed < NEGLIGIBLE {
                    ended.push(transfer);
                    continue;
                }
                let more = owed.ceil() as u64;
                (transfer.credited, transfer.due) = (lost, now + more);
                more
            };
            let traffic = transfer.traffic;
            self.wires.flows.begin(transfer, more, traffic, now);
            extended = true;
        }
        extended
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
        let mut over = std::mem::take(&mut self.wires.over);
        let mut ended = std::mem::take(&mut self.wires.ended);
        let next = loop {
            let next = self.wires.flows.step(now, self.model, &mut over);
            // One that begins without bytes ends at once.
            if !self.extend(&mut over, &mut ended, now) {
                break next;
            }
        };
        self.wires.over = over;
        if next.is_some_and(|at| at > LONGEST) {
            self.error = Some(SimulationError::TooLong);
            scheduler.stop();
            return;
        }
        self.wake_wires(next, scheduler);
        for Transfer { mut parties, .. } in ended.drain(..) {
            for (rank, stream) in parties.drain(..) {
                self.ranks[rank as usize].part_is_over(stream, now);
                self.awake.push(rank);
            }
            self.rendezvous.spare.push(parties);
        }
        self.wires.ended = ended;
        self.wake_all(scheduler);
    }
}

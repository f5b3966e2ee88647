//! Collectives on the wire: they share links with others until they end ([`crate::flows`]).

use trompe_base::SimTime;
use trompe_engine::{Event, Scheduler};

use crate::collective::Traffic;
use crate::error::SimulationError;
use crate::flows::Flows;
use crate::plan::LONGEST;
use crate::state::State;

/// Ranks and their streams that take part in an operation.
pub(crate) type Parties = Vec<(u32, u16)>;

/// What is on the wire.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    /// Operations, each with the streams that take part.
    flows: Flows<Parties>,
    /// Fires when an operation begins or ends.
    pub(crate) event: Option<Event>,
    /// When that is next.
    at: Option<u64>,
    /// Streams whose operation ends; kept to spare allocations.
    ended: Vec<Parties>,
}

impl State<'_> {
    /// An operation of `time` picoseconds alone is on the wire from now on, and the `parties` end with it.
    pub(crate) fn put_on_wire(
        &mut self,
        parties: Parties,
        time: u64,
        traffic: Option<Traffic>,
        scheduler: &mut Scheduler,
    ) {
        let now = scheduler.now().as_picos();
        self.wires.flows.begin(parties, time, traffic, now);
        self.wake_wires(Some(now), scheduler);
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
        for mut parties in ended.drain(..) {
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

//! Replays a job trace on the event engine.
//!
//! What it is: given a [`trompe_trace::job::JobTrace`], the price of each distinct device operation ([`Prices`]), a
//! [`CollectiveModel`] and [`Options`], [`simulate`] lets every rank's host launch its operations, its streams run
//! them in order, its events, default-stream rules, copy engines and launch queues hold them back, and its collectives
//! wait for each other and share links; and says how long a step takes and where the time goes ([`Outcome`]).
//!
//! What it is not: it prices nothing, reads no file, no clock and no environment, and knows no name of any vendor's
//! interface.
//!
//! Invariants: the same input gives the same output, bit by bit; each rank's order of launches is kept; at every moment
//! of a step the device does exactly one [kind](trompe_results::Kind) of thing, so the breakdown adds up to the step.

mod account;
mod collective;
mod error;
mod flows;
mod host;
mod kind;
mod network;
mod options;
mod outcome;
mod plan;
mod price;
mod recorder;
mod rendezvous;
mod segment;
mod state;
mod stream;
mod timeline;
mod wires;

use trompe_engine::{Ended, Phase, Setup, Spec};
use trompe_trace::job::JobTrace;

pub use collective::{AlphaBeta, CollectiveCall, CollectiveModel, Instant, Others, Traffic};
pub use error::{Seconds, SimulationError};
pub use kind::kind_of;
pub use network::Network;
pub use options::{CallCosts, HostTime, Options};
pub use outcome::{GroupUse, OperationUse, Outcome, RankOutcome, StepOutcome};
pub use price::{Bound, Price, Prices};

use crate::plan::Plan;
use crate::state::{HostWait, State};

/// Replays `trace` once.
///
/// # Errors
/// A trace that contradicts itself, prices that do not fit it, or a job that hangs.
pub fn simulate(
    trace: &JobTrace,
    prices: &Prices,
    model: &dyn CollectiveModel,
    options: &Options,
) -> Result<Outcome, SimulationError> {
    let plan = Plan::new(trace, prices, options)?;
    let mut state = State::new(trace, &plan, model, options);
    let mut setup = Setup::<State<'_>>::new();
    setup.start_up_event("start", |state: &mut State<'_>, scheduler| state.work(scheduler));
    let name: std::sync::Arc<str> = "stream".into();
    for stream in 0..state.streams.len() as u32 {
        let spec = Spec::new(std::sync::Arc::clone(&name)).index(u64::from(stream));
        let event =
            setup.event(spec, move |state: &mut State<'_>, scheduler| state.on_alarm(stream, scheduler));
        state.streams[stream as usize].event = Some(event);
    }
    // After everything else of a moment: what begins and ends together shares links together.
    let spec = Spec::new("wires").phase(Phase::PostTick);
    state.wires.event = Some(setup.event(spec, |state: &mut State<'_>, scheduler| state.on_wires(scheduler)));
    let mut engine = setup.finalize().expect("streams are numbered and not ordered against each other");
    let ended = engine.run(&mut state)?;
    if let Some(error) = state.error.take() {
        return Err(error);
    }
    debug_assert_eq!(ended, Ended::Finished);
    let over = state.ranks.iter().all(|rank| rank.host.wait == HostWait::Finished)
        && state.streams.iter().all(|stream| stream.completed == stream.enqueued);
    if !over {
        let seconds = Seconds(engine.scheduler().elapsed().as_secs_f64());
        return Err(SimulationError::Hang { seconds, waiting: state.waiting() });
    }
    Ok(Outcome::of(state, engine.scheduler().events_fired()))
}

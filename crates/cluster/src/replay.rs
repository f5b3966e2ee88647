//! A compiled job, ready to be replayed: as it is, or with something of it faster.

use std::sync::Arc;

use trompe_base::Duration;
use trompe_engine::{Ended, Phase, Setup, Spec};
use trompe_trace::job::JobTrace;

use crate::collective::CollectiveModel;
use crate::error::{Seconds, SimulationError};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::path::PathOwner;
use crate::plan::Plan;
use crate::price::Prices;
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
    Replay::new(trace, prices, model, options)?.run()
}

/// A job, compiled under some options.
pub struct Replay<'a> {
    trace: &'a JobTrace,
    model: &'a dyn CollectiveModel,
    options: &'a Options,
    plan: Plan,
}

impl<'a> Replay<'a> {
    /// Compiles `trace`.
    ///
    /// # Errors
    /// A trace that contradicts itself, or prices that do not fit it.
    pub fn new(
        trace: &'a JobTrace,
        prices: &Prices,
        model: &'a dyn CollectiveModel,
        options: &'a Options,
    ) -> Result<Self, SimulationError> {
        Ok(Self { trace, model, options, plan: Plan::new(trace, prices, model, options)? })
    }

    /// Events of all hosts that one replay goes through.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.plan.ranks.iter().map(|rank| self.plan.templates[rank.template].acts.len() as u64).sum()
    }

    /// Replays the job.
    ///
    /// # Errors
    /// A job that hangs.
    pub fn run(&self) -> Result<Outcome, SimulationError> {
        run(self.trace, &self.plan, self.model, self.options)
    }

    /// The step time if everything that `faster` names took `factor` times as long.
    ///
    /// # Errors
    /// A job that hangs.
    pub fn what_if(
        &self,
        factor: f64,
        faster: &dyn Fn(PathOwner) -> bool,
    ) -> Result<Duration, SimulationError> {
        let mut plan = self.plan.clone();
        for (index, template) in plan.templates.iter_mut().enumerate() {
            template.scale(index, factor, &self.trace.templates[index], faster);
        }
        let options = Options { timeline: None, path: None, host_times: false, ..self.options.clone() };
        Ok(run(self.trace, &plan, self.model, &options)?.step)
    }
}

fn run(
    trace: &JobTrace,
    plan: &Plan,
    model: &dyn CollectiveModel,
    options: &Options,
) -> Result<Outcome, SimulationError> {
    let mut state = State::new(trace, plan, model, options);
    let mut setup = Setup::<State<'_>>::new();
    let name: Arc<str> = "rank".into();
    for rank in 0..state.ranks.len() as u32 {
        let spec = Spec::new(Arc::clone(&name)).index(u64::from(rank));
        let event =
            setup.event(spec, move |state: &mut State<'_>, scheduler| state.on_alarm(rank, scheduler));
        state.events.push(event);
    }
    // After everything else of a moment: what begins and ends together shares links together.
    let spec = Spec::new("wires").phase(Phase::PostTick);
    state.wires.event = Some(setup.event(spec, |state: &mut State<'_>, scheduler| state.on_wires(scheduler)));
    let mut engine = setup.finalize().expect("ranks are numbered and not ordered against each other");
    for &event in &state.events {
        engine.scheduler_mut().schedule(event, Duration::ZERO).expect("nothing has run yet");
    }
    let ended = engine.run(&mut state)?;
    if let Some(error) = state.error.take() {
        return Err(error);
    }
    debug_assert_eq!(ended, Ended::Finished);
    let over = state.ranks.iter().all(|rank| {
        rank.queues().all(|host| host.wait == HostWait::Finished)
            && rank.streams.iter().all(|stream| stream.completed == stream.enqueued)
    });
    if !over {
        let reached = state.ranks.iter().map(|rank| rank.now).max().unwrap_or(0);
        let seconds = Seconds(Duration::from_picos(reached).as_secs_f64());
        return Err(SimulationError::Hang { seconds, waiting: state.waiting() });
    }
    Ok(Outcome::of(state, engine.scheduler().events_fired()))
}

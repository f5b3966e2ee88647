//! The loop of a study: asks for points, has them run or takes what is known of them, and tells the outcomes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use trompe_results::study::TrialOrigin;
use trompe_search::journal::{Entry, Journal};
use trompe_search::memo::{Key, Memo};
use trompe_search::space::MachineFacts;
use trompe_search::study::{Asked, Proposal};
use trompe_search::{Outcome, Study};

use super::measure::completed;
use super::order::{self, Order, Reply};
use super::watch::{self, SearchProgress, State};
use super::{Budget, Plan, Pool, SearchError};
use crate::SessionError;
use crate::clock::Stopwatch;

/// A study under way with everything that it needs.
pub(super) struct Drive<'a> {
    pub(super) plan: &'a Plan,
    pub(super) study: Study,
    pub(super) pool: Box<dyn Pool>,
    journal: Journal,
    /// Trials of earlier sessions by point.
    pub(super) kept: BTreeMap<trompe_search::Point, Entry>,
    pub(super) memo: Option<Memo>,
    watch: Stopwatch,
    /// Seconds that earlier sessions took.
    pub(super) earlier_seconds: f64,
    pub(super) known_at: BTreeMap<u32, f64>,
    /// Under which key the result of a trial under way is kept.
    keys: BTreeMap<u32, Key>,
    /// Outcomes that are known without running, in the order in which they were asked for.
    ready: VecDeque<(u32, Outcome, TrialOrigin)>,
    under_way: usize,
    pub(super) lag: usize,
    pub(super) stop_hopeless: bool,
    pub(super) interrupted: Arc<AtomicBool>,
}

impl<'a> Drive<'a> {
    /// A study of which nothing is known yet.
    pub(super) fn new(plan: &'a Plan, study: Study, pool: Box<dyn Pool>, journal: Journal) -> Self {
        Self {
            plan,
            study,
            pool,
            journal,
            kept: BTreeMap::new(),
            memo: None,
            watch: Stopwatch::start(),
            earlier_seconds: 0.0,
            known_at: BTreeMap::new(),
            keys: BTreeMap::new(),
            ready: VecDeque::new(),
            under_way: 0,
            lag: 1,
            stop_hopeless: true,
            interrupted: Arc::new(AtomicBool::new(false)),
        }
    }
}

impl Drive<'_> {
    /// Lets `Ctrl-C` end the study in an orderly way.
    pub(super) fn listen(&self) {
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // A second one ends the program: the journal has everything.
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&self.interrupted));
            let _ = signal_hook::flag::register(signal, Arc::clone(&self.interrupted));
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.earlier_seconds + self.watch.elapsed().as_secs_f64()
    }

    /// Runs trials until the budget is spent or nothing is left; why it ended.
    pub(super) fn run(
        &mut self,
        budget: Budget,
        progress: &mut dyn SearchProgress,
    ) -> Result<&'static str, SessionError> {
        self.rounds(budget, true, progress)
    }

    /// Runs at most `most` of the best trials that rules told, which may change which one is the best.
    pub(super) fn verify(
        &mut self,
        most: usize,
        progress: &mut dyn SearchProgress,
    ) -> Result<(), SessionError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let proposals = self.study.verify(most).map_err(SearchError::from)?;
        if proposals.is_empty() {
            return Ok(());
        }
        progress
            .note(&format!("running {} of the best trials that rules had made needless", proposals.len()));
        proposals.iter().try_for_each(|proposal| self.begin(proposal))?;
        self.rounds(Budget::default(), false, progress).map(drop)
    }

    /// Has trials run until none is under way and, when `asking`, the budget is spent or nothing is left.
    fn rounds(
        &mut self,
        budget: Budget,
        mut asking: bool,
        progress: &mut dyn SearchProgress,
    ) -> Result<&'static str, SessionError> {
        const GLANCE: Duration = Duration::from_millis(200);
        let mut ended = "every point of the space is known";
        loop {
            while asking && self.under_way + self.ready.len() < self.lag {
                if let Some(reason) = self.spent(budget) {
                    (ended, asking) = (reason, false);
                    break;
                }
                match self.study.ask().map_err(SearchError::from)? {
                    Asked::Run(proposal) => self.begin(&proposal)?,
                    Asked::Wait => break,
                    Asked::Done => asking = false,
                }
            }
            progress.state(&self.state(budget));
            if let Some((number, outcome, origin)) = self.ready.pop_front() {
                self.known_at.entry(number).or_insert_with(|| self.watch.elapsed().as_secs_f64());
                self.study.tell(number, outcome, origin).map_err(SearchError::from)?;
                continue;
            }
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok("it was interrupted");
            }
            if self.under_way == 0 {
                if asking {
                    continue;
                }
                return Ok(ended);
            }
            if let Some(reply) = self.pool.next(GLANCE)? {
                self.under_way -= 1;
                self.finish(reply.usable()?)?;
            }
        }
    }

    /// Why no further trial begins.
    fn spent(&self, budget: Budget) -> Option<&'static str> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Some("it was interrupted");
        }
        if budget.trials.is_some_and(|most| self.study.proposals() >= most as usize) {
            return Some("the budget of trials is spent");
        }
        if budget.seconds.is_some_and(|most| self.watch.elapsed().as_secs_f64() >= most) {
            return Some("the time is up");
        }
        None
    }

    /// Answers a proposal from the journal or the memo, or has it run.
    fn begin(&mut self, proposal: &Proposal) -> Result<(), SessionError> {
        let number = proposal.number;
        if let Some(entry) = self.kept.remove(&proposal.point) {
            self.known_at.insert(number, entry.at_seconds);
            self.ready.push_back((number, entry.outcome, entry.origin));
            return Ok(());
        }
        let order = self.order(proposal)?;
        let key = self.plan.grounds.key(&order);
        if let Some(outcome) = self.memo.as_ref().and_then(|memo| memo.get(&key)) {
            let outcome = completed(outcome, &self.plan.space, &proposal.values, self.facts(proposal));
            self.write(number, &outcome, TrialOrigin::Cached)?;
            self.ready.push_back((number, outcome, TrialOrigin::Cached));
            return Ok(());
        }
        self.keys.insert(number, key);
        self.pool.submit(order)?;
        self.under_way += 1;
        Ok(())
    }

    fn facts(&self, proposal: &Proposal) -> &MachineFacts {
        self.plan.machines.of(&proposal.point)
    }

    pub(super) fn order(&self, proposal: &Proposal) -> Result<Order, SessionError> {
        let mut order = order::of(self.plan, proposal)?;
        if !self.stop_hopeless {
            order.best_seconds = None;
        }
        Ok(order)
    }

    /// A trial has ended.
    fn finish(&mut self, reply: Reply) -> Result<(), SessionError> {
        let number = reply.number;
        let trial = &self.study.trials()[number as usize];
        let facts = self.plan.machines.of(&trial.point);
        if let (Some(memo), Some(key)) = (&self.memo, self.keys.remove(&number))
            && reply.is_lasting()
        {
            // A memo that cannot be written costs time later, not this study.
            let _ = memo.put(&key, &reply.outcome);
        }
        let outcome = completed(reply.outcome, &self.plan.space, &trial.values, facts);
        self.write(number, &outcome, reply.origin)?;
        self.study.tell(number, outcome, reply.origin).map_err(SearchError::from)?;
        Ok(())
    }

    /// Writes a finished trial to the journal.
    fn write(&mut self, number: u32, outcome: &Outcome, origin: TrialOrigin) -> Result<(), SessionError> {
        let at_seconds = self.seconds();
        self.known_at.insert(number, at_seconds);
        let point = self.study.trials()[number as usize].point.clone();
        let entry = Entry { point, outcome: outcome.clone(), origin, at_seconds };
        self.journal.add(&entry).map_err(SearchError::from)?;
        Ok(())
    }

    fn state(&self, budget: Budget) -> State {
        watch::state(&self.study, budget, self.seconds(), self.under_way)
    }
}

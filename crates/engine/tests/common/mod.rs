//! A naive scheduler with the engine's contract, and programs that run on both.
//!
//! The reference keeps pending schedulings in one list and looks for the least (tick, group, tie) before each firing.
//! It shares no code with the engine.

use std::collections::BTreeSet;

/// Kinds of events that programs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Unique,
    SingleCycle,
    Payload,
    EveryTick,
}

/// One event of a program.
#[derive(Clone, Debug)]
pub(crate) struct EventPlan {
    pub(crate) kind: Kind,
    /// Index into the phases.
    pub(crate) phase: usize,
    pub(crate) continuing: bool,
    /// What it does when it fires; each firing does the next `per_firing` actions, round and round.
    pub(crate) actions: Vec<Action>,
    pub(crate) per_firing: usize,
}

/// What a handler does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    Schedule {
        target: usize,
        delay: u64,
    },
    Cancel {
        target: usize,
    },
    CancelAfter {
        target: usize,
        delay: u64,
    },
    /// Cancels the values of a payload event that are odd.
    CancelOdd {
        target: usize,
    },
    Every {
        target: usize,
        on: bool,
    },
    Stop {
        after_tick: bool,
    },
}

/// A whole program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) events: Vec<EventPlan>,
    pub(crate) edges: Vec<(usize, usize)>,
    pub(crate) keyed: bool,
    pub(crate) start: Vec<(usize, u64)>,
    pub(crate) runs: Vec<Run>,
    /// Firings after which handlers do nothing any more.
    pub(crate) budget: usize,
}

/// What happens between firings.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    For(u64),
    AtMost(u64),
    Schedule { target: usize, delay: u64 },
    Clear,
    RestartAt(u64),
}

/// What a machine says about a scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    EarlierGroup,
    AlreadyFired,
    NotThisOrNextCycle,
    Other,
}

/// What programs need of a scheduler.
pub(crate) trait Machine {
    fn now(&self) -> u64;
    fn schedule(&mut self, target: usize, delay: u64, value: u64) -> Verdict;
    fn cancel(&mut self, target: usize, delay: Option<u64>) -> u32;
    fn cancel_odd(&mut self, target: usize) -> u32;
    fn every(&mut self, target: usize, on: bool);
    fn stop(&mut self, after_tick: bool);
}

/// What a program saw and did: one line per firing and action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) lines: Vec<(u64, usize, u64)>,
    fired: Vec<usize>,
    firings: usize,
}

/// The handler of event `event`: the same for every machine.
pub(crate) fn react(program: &Program, log: &mut Log, event: usize, value: u64, machine: &mut dyn Machine) {
    log.fired.resize(program.events.len(), 0);
    log.lines.push((machine.now(), event, value));
    log.firings += 1;
    if log.firings > program.budget {
        machine.stop(false);
        return;
    }
    let plan = &program.events[event];
    if plan.actions.is_empty() {
        return;
    }
    for _ in 0..plan.per_firing {
        let action = plan.actions[log.fired[event] % plan.actions.len()];
        log.fired[event] += 1;
        let result = match action {
            Action::Schedule { target, delay } => machine.schedule(target, delay, log.firings as u64) as u64,
            Action::Cancel { target } => u64::from(machine.cancel(target, None)),
            Action::CancelAfter { target, delay } => u64::from(machine.cancel(target, Some(delay))),
            Action::CancelOdd { target } => u64::from(machine.cancel_odd(target)),
            Action::Every { target, on } => {
                machine.every(target, on);
                0
            }
            Action::Stop { after_tick } => {
                machine.stop(after_tick);
                0
            }
        };
        log.lines.push((u64::MAX, event, result));
    }
}

/// A pending scheduling of the reference.
#[derive(Clone, Copy, Debug)]
struct Pending {
    tick: u64,
    event: usize,
    sequence: u64,
    value: u64,
}

/// The naive scheduler.
pub(crate) struct Reference {
    groups: Vec<usize>,
    kinds: Vec<Kind>,
    continuing: Vec<bool>,
    keyed: bool,
    now: u64,
    in_tick: bool,
    group: usize,
    pending: Vec<Pending>,
    sequence: u64,
    last_fired: Vec<Option<u64>>,
    every: BTreeSet<usize>,
    stop: Option<bool>,
}

impl Reference {
    pub(crate) fn new(program: &Program) -> Self {
        let events = program.events.len();
        Self {
            groups: groups(program),
            kinds: program.events.iter().map(|event| event.kind).collect(),
            continuing: program.events.iter().map(|event| event.continuing).collect(),
            keyed: program.keyed,
            now: 0,
            in_tick: false,
            group: 0,
            pending: Vec::new(),
            sequence: 0,
            last_fired: vec![None; events],
            every: (0..events).filter(|&event| program.events[event].kind == Kind::EveryTick).collect(),
            stop: None,
        }
    }

    pub(crate) fn finished(&self) -> bool {
        !self.pending.iter().any(|pending| self.continuing[pending.event])
            && !self.every.iter().any(|&event| self.continuing[event])
    }

    pub(crate) fn next_tick(&self) -> Option<u64> {
        let pending = self.pending.iter().map(|pending| pending.tick).min();
        if self.every.is_empty() || pending == Some(self.now) {
            return pending;
        }
        // A tick that was stopped has fired them already.
        Some(self.now + u64::from(self.in_tick))
    }

    pub(crate) fn clear(&mut self) {
        self.pending.clear();
        self.last_fired.fill(None);
        self.in_tick = false;
        self.group = 0;
    }

    pub(crate) fn restart_at(&mut self, tick: u64) {
        self.clear();
        self.now = tick;
    }

    pub(crate) fn run(&mut self, program: &Program, log: &mut Log, ticks: u64, exact: bool) {
        let end = self.now + ticks;
        self.stop = None;
        loop {
            if !self.in_tick {
                if !exact && self.finished() || self.now >= end {
                    return;
                }
                match self.next_tick() {
                    Some(tick) if tick < end => self.now = tick,
                    _ => {
                        self.now = end;
                        return;
                    }
                }
                self.in_tick = true;
                let mut every: Vec<usize> = self.every.iter().copied().collect();
                every.sort_by_key(|&event| self.tie(event));
                // They come before everything that was scheduled for this tick.
                for (i, event) in every.iter().enumerate() {
                    let pending = Pending { tick: self.now, event: *event, sequence: 0, value: 0 };
                    self.pending.insert(i, pending);
                }
            }
            while let Some(next) = self.take() {
                self.group = self.groups[next.event];
                self.last_fired[next.event] = Some(self.now);
                react(program, log, next.event, next.value, self);
                if self.stop == Some(false) {
                    return;
                }
            }
            self.in_tick = false;
            self.group = 0;
            self.now += 1;
            if self.stop == Some(true) {
                return;
            }
        }
    }

    /// Order of an event among those of its tick.
    fn tie(&self, event: usize) -> (usize, usize) {
        (self.groups[event], if self.keyed { event } else { 0 })
    }

    fn take(&mut self) -> Option<Pending> {
        let due = |pending: &&(usize, Pending)| pending.1.tick == self.now;
        let all: Vec<(usize, Pending)> = self.pending.iter().copied().enumerate().collect();
        let least = all.iter().filter(due).min_by_key(|(_, p)| (self.tie(p.event), p.sequence))?;
        Some(self.pending.remove(least.0))
    }
}

impl Machine for Reference {
    fn now(&self) -> u64 {
        self.now
    }

    fn schedule(&mut self, target: usize, delay: u64, value: u64) -> Verdict {
        let tick = self.now + delay;
        if self.in_tick && delay == 0 && self.groups[target] < self.group {
            return Verdict::EarlierGroup;
        }
        let kind = self.kinds[target];
        if kind == Kind::SingleCycle && delay > 1 {
            return Verdict::NotThisOrNextCycle;
        }
        if matches!(kind, Kind::Unique | Kind::SingleCycle) {
            if self.last_fired[target] == Some(tick) {
                return if kind == Kind::Unique { Verdict::AlreadyFired } else { Verdict::Fine };
            }
            if self.pending.iter().any(|pending| pending.event == target && pending.tick == tick) {
                return Verdict::Fine;
            }
        }
        let value = if kind == Kind::Payload { value } else { 0 };
        self.sequence += 1;
        self.pending.push(Pending { tick, event: target, sequence: self.sequence, value });
        Verdict::Fine
    }

    fn cancel(&mut self, target: usize, delay: Option<u64>) -> u32 {
        let (before, now) = (self.pending.len(), self.now);
        self.pending.retain(|p| p.event != target || delay.is_some_and(|delay| p.tick != now + delay));
        (before - self.pending.len()) as u32
    }

    fn cancel_odd(&mut self, target: usize) -> u32 {
        let before = self.pending.len();
        self.pending.retain(|p| p.event != target || p.value % 2 == 0);
        (before - self.pending.len()) as u32
    }

    fn every(&mut self, target: usize, on: bool) {
        if on {
            self.every.insert(target)
        } else {
            self.every.remove(&target)
        };
    }

    fn stop(&mut self, after_tick: bool) {
        if self.stop != Some(false) {
            self.stop = Some(after_tick);
        }
    }
}

/// Group of each event: by phase, then by the longest path inside the phase.
fn groups(program: &Program) -> Vec<usize> {
    let events = program.events.len();
    let mut layer = vec![0; events];
    for _ in 0..events {
        for &(from, to) in &program.edges {
            if program.events[from].phase == program.events[to].phase {
                layer[to] = layer[to].max(layer[from] + 1);
            }
        }
    }
    (0..events).map(|event| program.events[event].phase * events + layer[event]).collect()
}

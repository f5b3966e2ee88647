//! A pipe: tasks in order, one at a time; and what they set and wait for.

use trompe_engine::Scheduler;

use crate::compile::{Lane, View};
use crate::cycles::{Cost, Model, cost_of, micro_cost, path_of};
use crate::error::{Fault, Hazard};
use crate::exec::{self, Context, Limits, MicroCount, MicroRun, footprint, plan};
use crate::memory::{Bank, Region};
use crate::ops::Op;
use crate::program::Pipe;
use crate::shadow::{Accessor, Finding};
use crate::task::Task;

use super::core::{Core, actor_of, lane_of};
use super::record::{Cause, Record, What};
use super::sync::{CollectiveKey, FLAGS, Token, Wait};

impl Core {
    /// Goes on with what a pipe has to do at this moment.
    pub(super) fn pipe(&mut self, actor: usize, now: &mut Scheduler) {
        let lane = lane_of(actor);
        let cycle = now.now().as_picos();
        loop {
            if self.blocked[actor].is_some() || self.error.is_some() {
                return;
            }
            if self.pipes[actor].working {
                if cycle < self.pipes[actor].clock {
                    return;
                }
                self.pipes[actor].working = false;
                if let Some(task) = self.pipes[actor].publishes.take() {
                    let latency = match task.op {
                        Op::SetFlag => 0,
                        _ => self.shared.profile.sync.cross_lane_latency,
                    };
                    let last = self.pipes[actor].last;
                    let token = Token {
                        ready: self.pipes[actor].clock + latency,
                        clock: self.clocks[actor],
                        cause: last.map_or(Cause::NONE, |last| Cause::new(self.index, last)),
                    };
                    if let Err(fault) = self.publish(lane, &task, token, now) {
                        return self.fail(lane, task.instr as usize, cycle, fault);
                    }
                }
            }
            let Some(task) = self.pipes[actor].queue.front() else {
                self.wake(now, |wait| *wait == Wait::Drain(actor));
                if self.is_lane_idle(lane) {
                    self.wake(now, |wait| *wait == Wait::DrainLane(lane));
                }
                return;
            };
            // The control actor may be ahead of this pipe.
            let issued = task.issued.max(task.earliest);
            let start = self.pipes[actor].clock.max(issued);
            if issued > cycle && start > cycle {
                return self.look(actor, start, now);
            }
            let task = task.clone();
            match self.begin(actor, &task, start, now) {
                Ok(true) => {
                    self.pipes[actor].queue.pop_front();
                    if self.pipes[actor].queue.len() * 2 == self.lane(lane).ahead {
                        self.wake(now, |wait| *wait == Wait::Backlog(lane));
                    }
                    if self.pipes[actor].working && self.pipes[actor].clock > cycle {
                        let clock = self.pipes[actor].clock;
                        return self.look(actor, clock, now);
                    }
                }
                Ok(false) => return,
                Err(fault) => return self.fail(lane, task.instr as usize, start, fault),
            }
        }
    }

    /// Begins a task; false when it has to wait for something that is not there yet.
    fn begin(&mut self, actor: usize, task: &Task, start: u64, now: &mut Scheduler) -> Result<bool, Fault> {
        let lane = lane_of(actor);
        match task.op {
            Op::EventSet | Op::EventSetall => {
                self.learn(actor, task);
                let event = task.ints[0] as usize;
                let flags = self.sync.events[lane as usize][event].flags.len();
                let times = if task.op == Op::EventSet { 1 } else { flags };
                let last = self.pipes[actor].last;
                let cause = last.map_or(Cause::NONE, |last| Cause::new(self.index, last));
                let token = Token { ready: start, clock: self.clocks[actor], cause };
                let instant = start + self.shared.profile.sync.instant;
                self.note(
                    actor,
                    task,
                    (start, instant),
                    (What::Set, Cost { cycles: 0, model: Model::Marker, quantity: 0 }, cause),
                );
                for _ in 0..times {
                    self.set_event(lane, event, token, now)?;
                }
                Ok(true)
            }
            Op::EventWait | Op::EventRelease => {
                let event = task.ints[0] as usize;
                let Some(mut token) = self.sync.events[lane as usize][event].take() else {
                    self.blocked[actor] = Some(Wait::Event(lane, event));
                    return Ok(false);
                };
                if task.op == Op::EventRelease
                    && self.sync.events[lane as usize][event].flags.len() > 1
                    && let Some(second) = self.sync.events[lane as usize][event].take()
                {
                    if second.ready > token.ready {
                        (token.ready, token.cause) = (second.ready, second.cause);
                    }
                    token.clock.join(&second.clock);
                }
                self.received(actor, task, (start, start), &token);
                Ok(true)
            }
            Op::WaitFlag | Op::WaitCube | Op::WaitVec | Op::AllcubeWait | Op::AllvecWait => {
                let wait = self.wait_of(lane, task)?;
                let Some(token) = self.take(actor, &wait) else {
                    self.blocked[actor] = Some(wait);
                    return Ok(false);
                };
                let marker = self.shared.profile.sync.marker;
                self.received(actor, task, (start, start + marker), &token);
                Ok(true)
            }
            Op::SetFlag | Op::CubeReady | Op::VecReady | Op::AllcubeReady | Op::AllvecReady => {
                self.learn(actor, task);
                let marker = self.shared.profile.sync.marker;
                let cost = Cost { cycles: marker, model: Model::Marker, quantity: 0 };
                let cause = self.cause_of(actor, task, start);
                self.note(actor, task, (start, start + marker), (What::Set, cost, cause));
                let pipe = &mut self.pipes[actor];
                pipe.clock = start + marker;
                pipe.working = true;
                pipe.publishes = Some(task.clone());
                Ok(true)
            }
            _ => {
                self.learn(actor, task);
                let cost = self.work(actor, task, start)?;
                let cause = self.cause_of(actor, task, start);
                self.note(actor, task, (start, start + cost.cycles), (What::Task, cost, cause));
                let pipe = &mut self.pipes[actor];
                pipe.clock = start + cost.cycles;
                pipe.working = true;
                pipe.done += 1;
                Ok(true)
            }
        }
    }

    /// What the dispatching actor knew, the pipe knows.
    fn learn(&mut self, actor: usize, task: &Task) {
        if let Some(lane) = &self.lanes[lane_of(actor) as usize] {
            self.clocks[actor].join(&lane.clocks[task.clock as usize]);
        }
    }

    /// What a start waited for: the control actor, or the pipe's task before.
    fn cause_of(&self, actor: usize, task: &Task, start: u64) -> Cause {
        let pipe = &self.pipes[actor];
        let own = pipe.last.map_or(Cause::NONE, |last| Cause::new(self.index, last));
        if task.issued == start && pipe.clock < start {
            self.lanes[lane_of(actor) as usize].as_ref().map_or(own, |lane| lane.cause)
        } else {
            own
        }
    }

    /// Ends a wait: at the later of its own earliest end and the token's cycle.
    fn received(&mut self, actor: usize, task: &Task, (start, earliest): (u64, u64), token: &Token) {
        self.learn(actor, task);
        self.clocks[actor].join(&token.clock);
        let end = earliest.max(token.ready);
        let cause = if token.ready > earliest { token.cause } else { self.cause_of(actor, task, start) };
        let cost = Cost { cycles: end - start, model: Model::Marker, quantity: 0 };
        self.note(actor, task, (start, end), (What::Wait, cost, cause));
        let pipe = &mut self.pipes[actor];
        pipe.clock = end;
        pipe.working = true;
    }

    fn note(&mut self, actor: usize, task: &Task, (start, end): (u64, u64), noted: (What, Cost, Cause)) {
        let (what, cost, cause) = noted;
        let instant = if end == start { self.shared.profile.sync.instant } else { 0 };
        self.makespan = self.makespan.max(end + instant);
        let index = self.records.len();
        self.records.push(Record {
            start,
            end,
            quantity: cost.quantity,
            cause,
            instr: task.instr,
            issued: task.issued,
            op: task.op,
            actor: actor as u8,
            what,
            model: cost.model,
            detail: task.ints[0] as u32,
        });
        // A set takes no time of its pipe and is no step of a chain.
        if !matches!(task.op, Op::EventSet | Op::EventSetall) {
            self.pipes[actor].last = Some(index);
        }
    }

    // What tasks wait for.

    pub(super) fn wait_of(&self, lane: Lane, task: &Task) -> Result<Wait, Fault> {
        match task.op {
            Op::WaitFlag => {
                let instr =
                    &self.lanes[lane as usize].as_ref().expect("it runs").code.instrs[task.instr as usize];
                let source = Pipe::ALL[task.ints[0] as usize];
                Ok(Wait::Flag((lane, source, instr.pipe, event_id(task.ints[1], &self.shared.device)?)))
            }
            Op::WaitCube => Ok(Wait::Cube(flag(task.ints[0])?, lane.sub_block())),
            Op::WaitVec => Ok(Wait::Vector(flag(task.ints[0])?)),
            _ => {
                let vector = task.op == Op::AllvecWait;
                Ok(Wait::Collective(CollectiveKey { vector, flag: flag(task.ints[0])? }, lane.sub_block()))
            }
        }
    }

    /// Takes what `wait` waits for, if it is there.
    pub(super) fn take(&mut self, actor: usize, wait: &Wait) -> Option<Token> {
        match *wait {
            Wait::Flag(key) => {
                let slot = self.sync.flags.entry(key).or_default();
                slot.2 += usize::from(slot.0.is_some());
                slot.0.take()
            }
            Wait::Cube(flag, sub) => self.sync.to_vector[flag][sub].pop_front(),
            Wait::Vector(flag) => {
                let lanes = self.shared.vector_lanes;
                let queues = &mut self.sync.to_cube[flag][..lanes];
                if lanes == 0 || queues.iter().any(std::collections::VecDeque::is_empty) {
                    return None;
                }
                let mut tokens = queues.iter_mut().filter_map(std::collections::VecDeque::pop_front);
                let mut token = tokens.next()?;
                for other in tokens {
                    token.clock.join(&other.clock);
                    if other.ready > token.ready {
                        (token.ready, token.cause) = (other.ready, other.cause);
                    }
                }
                Some(token)
            }
            Wait::Collective(key, sub) => {
                let clock = self.clocks[actor];
                let known = self.sync.collectives.entry(key).or_default();
                let phase = known.taken[sub];
                let (ready, cause) = *known.completed.get(phase)?;
                known.taken[sub] += 1;
                let mut token = Token { ready, clock, cause };
                for arrived in &known.arrived {
                    if let Some(other) = arrived.get(phase) {
                        token.clock.join(&other.clock);
                    }
                }
                Some(token)
            }
            _ => None,
        }
    }

    /// Makes what a task sets visible.
    pub(super) fn publish(
        &mut self,
        lane: Lane,
        task: &Task,
        token: Token,
        now: &mut Scheduler,
    ) -> Result<(), Fault> {
        let limit = self.shared.device.flag_tokens;
        match task.op {
            Op::SetFlag => {
                let instr = &self.lane(lane).code.instrs[task.instr as usize];
                let source = instr.pipe;
                let target = Pipe::ALL[task.ints[0] as usize];
                let key = (lane, source, target, event_id(task.ints[1], &self.shared.device)?);
                let slot = self.sync.flags.entry(key).or_default();
                if slot.0.is_some() {
                    let what = format!("flag {} from {} to {}", key.3, source.name(), target.name());
                    return Err(Fault::DoubleSet { what });
                }
                slot.0 = Some(token);
                slot.1 += 1;
                self.wake(now, |wait| *wait == Wait::Flag(key));
            }
            Op::CubeReady => {
                let flag = flag(task.ints[0])?;
                for sub in 0..self.shared.vector_lanes {
                    let queue = &mut self.sync.to_vector[flag][sub];
                    queue.push_back(token);
                    if queue.len() > limit {
                        let what = format!("flag {flag} from the cube to vec{sub}");
                        return Err(Fault::Tokens { what, tokens: queue.len(), limit });
                    }
                    self.wake(now, |wait| *wait == Wait::Cube(flag, sub));
                }
            }
            Op::VecReady => {
                let flag = flag(task.ints[0])?;
                let queue = &mut self.sync.to_cube[flag][lane.sub_block()];
                queue.push_back(token);
                if queue.len() > limit {
                    let what = format!("flag {flag} from {} to the cube", lane.name());
                    return Err(Fault::Tokens { what, tokens: queue.len(), limit });
                }
                self.wake(now, |wait| *wait == Wait::Vector(flag));
            }
            _ => {
                let vector = task.op == Op::AllvecReady;
                let key = CollectiveKey { vector, flag: flag(task.ints[0])? };
                let known = self.sync.collectives.entry(key).or_default();
                let sub = lane.sub_block();
                known.arrived[sub].push(token);
                let tokens = known.arrived[sub].len() - known.taken[sub];
                if tokens > limit {
                    let what = format!("{} flag {}", if vector { "allvec" } else { "allcube" }, key.flag);
                    return Err(Fault::Tokens { what, tokens, limit });
                }
            }
        }
        Ok(())
    }

    // Work.

    fn limits<'a>(&self, device: &'a crate::device::Device, lane: Lane) -> Limits<'a> {
        Limits {
            device,
            sub_block: lane.sub_block(),
            left_zz: device.left_operand_layout == crate::device::LeftLayout::Zz,
            cube: lane == Lane::Cube,
        }
    }

    /// Predicted cycles of a task that is being dispatched.
    pub(super) fn cost(&mut self, actor: usize, task: &Task) -> Result<u64, Fault> {
        let lane = lane_of(actor);
        let shared = std::sync::Arc::clone(&self.shared);
        if task.op == Op::CallMicro {
            let binding = self.bindings[lane.sub_block()].back().cloned();
            let Some(binding) = binding else { return Ok(0) };
            let count = self.count_micro(task, &binding.tensors, &binding.scalars)?;
            return Ok(micro_cost(&count, &shared.profile).cycles);
        }
        let limits = self.limits(&shared.device, lane);
        let plan = plan(task, &self.vectors[lane.sub_block()])?;
        Ok(cost_of(task, plan.as_ref(), &shared.profile, &limits).cycles)
    }

    fn count_micro(&mut self, task: &Task, tensors: &[View], scalars: &[f64]) -> Result<MicroCount, Fault> {
        let shared = std::sync::Arc::clone(&self.shared);
        let (tensor_count, scalar_count) = (task.ints[1] as usize, task.ints[2] as usize);
        let mut key = (task.ints[0] as u32, [0u64; 8]);
        key.1.iter_mut().zip(&scalars[..scalar_count]).for_each(|(bits, scalar)| *bits = scalar.to_bits());
        if let Some(count) = self.counted.get(&key) {
            return Ok(*count);
        }
        let call = MicroRun {
            code: &shared.program.micros[task.ints[0] as usize],
            tensors: &tensors[..tensor_count],
            scalars: &scalars[..scalar_count],
            compat: shared.options.compat,
            vector: self.vectors[0],
            budget: shared.options.budget,
        };
        let count = self.micro.run(&call, None)?;
        self.counted.insert(key, count);
        Ok(count)
    }

    /// Checks a task, moves its data, and says how long it takes.
    fn work(&mut self, actor: usize, task: &Task, start: u64) -> Result<Cost, Fault> {
        let lane = lane_of(actor);
        let sub = lane.sub_block();
        let shared = std::sync::Arc::clone(&self.shared);
        if task.op == Op::CallMicro {
            return self.call_micro(actor, task);
        }
        let limits = self.limits(&shared.device, lane);
        if exec::set_vector_state(task, &mut self.vectors[sub]) {
            return Ok(cost_of(task, None, &shared.profile, &limits));
        }
        let footprint = footprint(task, &self.vectors[sub], &limits)?;
        if let Some(path) = path_of(task.op) {
            let read: u64 = footprint.iter().filter(|region| !region.write).map(Region::bytes).sum();
            *self.moved.entry(path).or_insert(0) += read;
        }
        if task.op == Op::Mmad {
            let count = task.ints[..3].iter().map(|value| *value as u64).product::<u64>();
            *self.macs.entry(task.views[1].dtype).or_insert(0) += count;
        }
        let turns = plan(task, &self.vectors[sub])?;
        if self.looks_for_races {
            self.remember(actor, task.instr, &footprint, task.atomic.is_some());
        }
        if !shared.options.timing_only {
            let size = turns.map_or(4, |turns| 256 / turns.lanes);
            let mask = self.vectors[sub].bytes(size);
            self.note_access(actor, task.instr as usize, footprint.iter(), &mask)?;
            let mut context = Context {
                memory: &mut self.memory,
                gm: &shared.gm,
                atomics: &mut self.atomics,
                vector: &mut self.vectors[sub],
                scratch: &mut self.scratch,
                sub_block: sub,
                left_zz: limits.left_zz,
                compat: shared.options.compat,
                cycle: start,
            };
            exec::execute(task, &mut context)?;
        }
        Ok(cost_of(task, turns.as_ref(), &shared.profile, &limits))
    }

    fn call_micro(&mut self, actor: usize, task: &Task) -> Result<Cost, Fault> {
        let lane = lane_of(actor);
        let sub = lane.sub_block();
        let shared = std::sync::Arc::clone(&self.shared);
        let binding = self.bindings[sub].pop_front().expect("every call was bound when it was dispatched");
        if shared.options.timing_only {
            let count = self.count_micro(task, &binding.tensors, &binding.scalars)?;
            return Ok(micro_cost(&count, &shared.profile));
        }
        let code = &shared.program.micros[task.ints[0] as usize];
        let call = MicroRun {
            code,
            tensors: &binding.tensors[..task.ints[1] as usize],
            scalars: &binding.scalars[..task.ints[2] as usize],
            compat: shared.options.compat,
            vector: self.vectors[sub],
            budget: shared.options.budget,
        };
        for (view, (name, _)) in call.tensors.iter().zip(code.parameters.iter().filter(|(_, tensor)| *tensor))
        {
            if view.space != crate::program::Space::Ub {
                let problem =
                    format!("in {}; a micro program works on the unified buffer", view.space.name());
                return Err(Fault::Operand { operand: name.clone(), problem });
            }
        }
        let bank = if sub == 0 { Bank::Ub0 } else { Bank::Ub1 };
        let count = self.next_access(actor, task.instr as usize);
        let mut micro = std::mem::take(&mut self.micro);
        let (memory, shadow, clock) = (&mut self.memory, &mut self.shadow, &self.clocks[actor]);
        let who = Accessor { actor, count, clock, mask: &[u32::MAX; 8] };
        let mut found = None;
        let mut watch = |view: &View, offset: u64, length: u64, store: bool| {
            let mut region = Region::run(if store { "dst" } else { "src" }, *view, bank, length);
            region.start = offset as i64;
            region.write = store;
            match shadow.access(&region, &who) {
                None => Ok(()),
                Some(finding) => {
                    found = Some((region, finding));
                    Err(Fault::Other(String::new()))
                }
            }
        };
        let result = micro.run(&call, Some((memory.bank_mut(bank), &mut watch)));
        self.micro = micro;
        if let Some((region, finding)) = found {
            return Err(self.finding(actor, &region, finding));
        }
        Ok(micro_cost(&result?, &shared.profile))
    }

    /// Counts a task of `actor` that touches memory.
    fn next_access(&mut self, actor: usize, instr: usize) -> u32 {
        self.clocks[actor].0[actor] += 1;
        self.accesses[actor].push(instr as u32);
        self.clocks[actor].0[actor]
    }

    /// Checks and remembers accesses.
    pub(super) fn note_access<'a>(
        &mut self,
        actor: usize,
        instr: usize,
        regions: impl Iterator<Item = &'a Region>,
        mask: &[u32; 8],
    ) -> Result<(), Fault> {
        let count = self.next_access(actor, instr);
        let clock = self.clocks[actor];
        let who = Accessor { actor, count, clock: &clock, mask };
        for region in regions {
            if let Some(finding) = self.shadow.access(region, &who) {
                return Err(self.finding(actor, region, finding));
            }
        }
        Ok(())
    }

    fn finding(&self, actor: usize, region: &Region, finding: Finding) -> Fault {
        let tensor = self.shared.program.tensors.get(region.view.tensor as usize);
        let tensor = tensor.map_or_else(String::new, |tensor| tensor.name.clone());
        let space = region.bank.name();
        match finding {
            Finding::Poison { offset, bytes } => Fault::Poison { tensor, space, offset, bytes },
            Finding::Hazard { offset, actor: other, count, wrote } => {
                let name = |actor: usize| {
                    let (lane, pipe) = super::record::actor_name(actor);
                    format!("{}.{pipe}", lane.name())
                };
                let instr = self.accesses[other].get(count as usize).copied().unwrap_or(0);
                Fault::Hazard(Box::new(Hazard {
                    tensor,
                    space,
                    offset,
                    this: if region.write { "write" } else { "read" },
                    other: if wrote { "write" } else { "read" },
                    here: name(actor),
                    there: name(other),
                    other_site: self.site(lane_of(other), instr as usize),
                }))
            }
        }
    }
}

/// The actor of a pipe, for the summary.
pub(super) fn actor_number(lane: Lane, pipe: Pipe) -> usize {
    actor_of(lane, pipe)
}

fn flag(value: i64) -> Result<usize, Fault> {
    usize::try_from(value).ok().filter(|&flag| flag < FLAGS).ok_or_else(|| Fault::Limit {
        quantity: "flag".to_owned(),
        value,
        limit: FLAGS as u64 - 1,
    })
}

fn event_id(value: i64, device: &crate::device::Device) -> Result<i64, Fault> {
    if (0..device.events_per_pair as i64).contains(&value) {
        return Ok(value);
    }
    let limit = device.events_per_pair as u64 - 1;
    Err(Fault::Limit { quantity: "event_id".to_owned(), value, limit })
}

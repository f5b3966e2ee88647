//! The control actor of a lane: scalars, control flow, views, dispatch.
//!
//! Its instructions take no cycles. Its cycle moves on only when it waits itself: for an event or flag whose target is
//! `S`, for a barrier, or, in a lane without any event, for each task that it dispatched.

use trompe_engine::Scheduler;

use crate::compile::{Condition, Index, Instr, Lane, NONE, Operand};
use crate::element::ElementType;
use crate::error::Fault;
use crate::ops::Op;
use crate::program::Pipe;
use crate::shadow::Clock;
use crate::task::{Atomic, AtomicKind, NO_VIEW, NUMBERS, Task};

use super::core::{Binding, Core, Value, actor_of, control_of};
use super::sync::{EventState, Token, Wait};

/// Tasks that may wait on the pipes of a core.
const BACKLOG: usize = 1 << 22;

/// Whether the actor goes on.
enum Next {
    On,
    Jump(usize),
    /// Blocked: the same instruction runs again.
    Again,
    /// Blocked: the next instruction runs then.
    Pause,
}

type Flow = Result<Next, Fault>;

impl Core {
    /// Runs the control actor until it blocks or ends.
    pub(super) fn control(&mut self, lane: Lane, now: &mut Scheduler) {
        let code = std::sync::Arc::clone(&self.lane(lane).code);
        let control = control_of(lane);
        if self.blocked[control].is_some() || self.lane(lane).done {
            return;
        }
        self.settle_drain(lane);
        let budget = self.shared.options.budget;
        loop {
            // A control actor that is far ahead pauses; its cycle stays, so no time depends on it.
            let ahead = self.lane(lane).ahead;
            if (control + 1..control + lane.pipes().len()).any(|actor| self.pipes[actor].queue.len() >= ahead)
            {
                self.blocked[control] = Some(Wait::Backlog(lane));
                return;
            }
            let state = self.lane(lane);
            let at = state.at;
            let Some(instr) = code.instrs.get(at) else {
                state.done = true;
                return;
            };
            state.executed += 1;
            let result = if state.executed > budget {
                Err(Fault::Budget { budget })
            } else {
                self.control_one(lane, instr, now)
            };
            match result {
                Ok(Next::On) => self.lane(lane).at = at + 1,
                Ok(Next::Jump(to)) => self.lane(lane).at = to,
                Ok(Next::Again) => {
                    self.lane(lane).executed -= 1;
                    return;
                }
                Ok(Next::Pause) => {
                    self.lane(lane).at = at + 1;
                    return;
                }
                Err(fault) => {
                    let cycle = self.lane(lane).cycle;
                    self.fail(lane, at, cycle, fault);
                    return;
                }
            }
        }
    }

    /// After a drain: the lane's cycle and clock take in what the pipes did.
    fn settle_drain(&mut self, lane: Lane) {
        if !self.lane(lane).code.serial {
            return;
        }
        self.join_pipes(lane, true);
    }

    /// Joins the clocks of idle pipes, and their cycles if `advance`.
    fn join_pipes(&mut self, lane: Lane, advance: bool) {
        let control = control_of(lane);
        let mut clock = self.clocks[control];
        let mut cycle = self.lane(lane).cycle;
        let mut cause = self.lane(lane).cause;
        for actor in control + 1..control + lane.pipes().len() {
            clock.join(&self.clocks[actor]);
            let pipe = &self.pipes[actor];
            if advance && pipe.clock > cycle {
                cycle = pipe.clock;
                cause = pipe.last.map_or(cause, |last| super::record::Cause::new(self.index, last));
            }
        }
        let state = self.lane(lane);
        (state.cycle, state.cause) = (cycle, cause);
        self.set_control_clock(lane, clock);
    }

    pub(super) fn set_control_clock(&mut self, lane: Lane, clock: Clock) {
        let control = control_of(lane);
        self.clocks[control] = clock;
        let state = self.lane(lane);
        if state.clocks.last() != Some(&clock) {
            state.clocks.push(clock);
        }
    }

    /// What the control actor learns from a token.
    fn take_token(&mut self, lane: Lane, token: &Token) {
        let mut clock = self.clocks[control_of(lane)];
        clock.join(&token.clock);
        let state = self.lane(lane);
        if token.ready > state.cycle {
            state.cycle = token.ready;
            state.cause = token.cause;
        }
        self.set_control_clock(lane, clock);
    }

    fn control_one(&mut self, lane: Lane, instr: &Instr, now: &mut Scheduler) -> Flow {
        if instr.pipe != Pipe::S {
            return self.dispatch(lane, instr, now);
        }
        let vector_lanes = self.shared.vector_lanes as i64;
        let core = i64::from(self.index);
        let int = |core: &Self, at: usize| core.int(lane, instr.ints[at], instr.op, at);
        match instr.op {
            Op::CreateVar | Op::VarAssign => {
                let value = self.value(lane, instr.ints[0])?;
                self.assign(lane, instr, value)?;
            }
            Op::VarAdd | Op::VarSub | Op::VarMul | Op::VarDiv => {
                let (a, b) = (self.value(lane, instr.ints[0])?, self.value(lane, instr.ints[1])?);
                let value = arithmetic(instr.op, a, b)?;
                self.assign(lane, instr, value)?;
            }
            Op::VarMod => {
                let (a, b) = (int(self, 0)?, int(self, 1)?);
                let value = floor_div(a, b).map(|quotient| a - quotient * b).ok_or(Fault::DivisionByZero)?;
                self.assign(lane, instr, Value::Int(value))?;
            }
            Op::ScalarSqrt => {
                let value = self.value(lane, instr.ints[0])?.as_float().sqrt();
                self.assign(lane, instr, Value::Float(value))?;
            }
            Op::CeilDiv => {
                let (a, b) = (int(self, 0)?, int(self, 1)?);
                let value = floor_div(a.wrapping_neg(), b).ok_or(Fault::DivisionByZero)?.wrapping_neg();
                self.assign(lane, instr, Value::Int(value))?;
            }
            Op::Min | Op::Max => {
                let (a, b) = (int(self, 0)?, int(self, 1)?);
                self.assign(lane, instr, Value::Int(if instr.op == Op::Min { a.min(b) } else { a.max(b) }))?;
            }
            Op::Align8 | Op::Align16 | Op::Align32 | Op::Align64 | Op::Align128 | Op::Align256 => {
                let to = 8i64 << (instr.op as usize - Op::Align8 as usize);
                let value = int(self, 0)?
                    .checked_add(to - 1)
                    .ok_or_else(|| Fault::Other("the number is too large".into()))?;
                self.assign(lane, instr, Value::Int(value.div_euclid(to) * to))?;
            }
            Op::CreateVarlist => {
                let length = int(self, 0)?;
                if !(0..=65536).contains(&length) {
                    return Err(Fault::Limit { quantity: "length".to_owned(), value: length, limit: 65536 });
                }
                self.lane(lane).lists[instr.out as usize] = vec![Value::Int(0); length as usize];
            }
            Op::GetCubeNum => self.assign(lane, instr, Value::Int(i64::from(self.shared.program.cores)))?,
            Op::GetCubeIdx => self.assign(lane, instr, Value::Int(core))?,
            Op::GetVecNum => {
                self.assign(lane, instr, Value::Int(i64::from(self.shared.program.cores) * vector_lanes))?;
            }
            Op::GetVecIdx => {
                self.assign(lane, instr, Value::Int(core * vector_lanes + lane.sub_block() as i64))?;
            }
            Op::GetSubBlockIdx => self.assign(lane, instr, Value::Int(lane.sub_block() as i64))?,
            Op::StartLoop | Op::StartMicroLoop => {
                let (start, stop, step) = (int(self, 0)?, int(self, 1)?, int(self, 2)?);
                if step == 0 {
                    return Err(Fault::ZeroStep);
                }
                self.lane(lane).loops[instr.aux as usize] = (start, stop, step);
                if step > 0 && start >= stop || step < 0 && start <= stop {
                    return Ok(Next::Jump(instr.jump as usize + 1));
                }
                self.assign(lane, instr, Value::Int(start))?;
            }
            Op::EndLoop => return self.turn(lane, instr.jump as usize),
            Op::ContinueLoop => return self.turn(lane, instr.aux as usize),
            Op::BreakLoop => {
                let end = self.lane(lane).code.instrs[instr.aux as usize].jump;
                return Ok(Next::Jump(end as usize + 1));
            }
            Op::StartIf => return self.branch(lane),
            // Reached from the branch before: that one ran.
            Op::StartElif | Op::StartElse => return Ok(Next::Jump(instr.out as usize + 1)),
            Op::GetBuf => {
                let index = int(self, 0)?;
                let state = self.lane(lane);
                let code = std::sync::Arc::clone(&state.code);
                let slots = &code.buffers[instr.aux as usize];
                let slot = slots[index.rem_euclid(slots.len() as i64) as usize];
                state.views[instr.out as usize] = state.views[slot as usize];
            }
            Op::SliceGm => self.slice_gm(lane, instr)?,
            Op::SliceTensor => self.slice_local(lane, instr)?,
            Op::GetValueFrom | Op::SetValueTo => self.scalar_access(lane, instr)?,
            Op::AtomicAdd => self.set_atomic(lane, Some(AtomicKind::Add)),
            Op::AtomicMax => self.set_atomic(lane, Some(AtomicKind::Max)),
            Op::AtomicMin => self.set_atomic(lane, Some(AtomicKind::Min)),
            Op::AtomicEnd => self.set_atomic(lane, None),
            Op::SetAtomicType => {
                let kind = ElementType::ALL[int(self, 0)? as usize];
                self.lane(lane).atomic_dtype = Some(kind);
            }
            Op::CreateSevent | Op::CreateDevent | Op::CreateTevent | Op::CreateQevent => {
                self.create_event(lane, instr.out as usize);
            }
            Op::EventSet | Op::EventSetall | Op::EventWait | Op::EventRelease => {
                return self.event_instruction(lane, instr, now);
            }
            Op::WaitFlag | Op::WaitCube | Op::WaitVec | Op::AllcubeWait | Op::AllvecWait => {
                let task = self.task(lane, instr)?;
                let wait = self.wait_of(lane, &task)?;
                return Ok(match self.take(control_of(lane), &wait) {
                    Some(token) => {
                        self.take_token(lane, &token);
                        Next::On
                    }
                    None => self.block(control_of(lane), wait),
                });
            }
            Op::SetFlag => {
                let task = self.task(lane, instr)?;
                let token = Token {
                    ready: self.lane(lane).cycle,
                    clock: self.clocks[control_of(lane)],
                    cause: self.lane(lane).cause,
                };
                self.publish(lane, &task, token, now)?;
            }
            Op::Barrier if instr.aux == 1 => {
                if !self.is_lane_idle(lane) {
                    return Ok(self.block(control_of(lane), Wait::DrainLane(lane)));
                }
                self.join_pipes(lane, true);
            }
            Op::SimPrint | Op::SimDump => {
                if !self.is_lane_idle(lane) {
                    return Ok(self.block(control_of(lane), Wait::DrainLane(lane)));
                }
                self.debug(lane, instr)?;
            }
            // Marks, and what the builder needs: no effect when it runs.
            Op::EnterVecScope
            | Op::EndVecScope
            | Op::EnterCubeScope
            | Op::EndCubeScope
            | Op::EndIf
            | Op::Barrier
            | Op::KernelPrint
            | Op::KernelDump
            | Op::Inline
            | Op::ResetCache
            | Op::CleanDcache
            | Op::CreateGmTensor
            | Op::CreateTensor
            | Op::CreateDbuf
            | Op::CreateTbuf
            | Op::CreateQbuf
            | Op::Reinterpret
            | Op::ReshapeGm
            | Op::SplitWorkspace => {}
            other => return Err(Fault::Other(format!("{other:?} cannot run on the control actor"))),
        }
        Ok(Next::On)
    }

    fn block(&mut self, actor: usize, wait: Wait) -> Next {
        self.blocked[actor] = Some(wait);
        Next::Again
    }

    // Numbers.

    pub(super) fn value(&self, lane: Lane, operand: Operand) -> Result<Value, Fault> {
        let state = self.lanes[lane as usize].as_ref().expect("the lane runs");
        match operand {
            Operand::Absent => Ok(Value::Int(0)),
            Operand::Int(value) => Ok(Value::Int(value)),
            Operand::Float(value) => Ok(Value::Float(value)),
            Operand::Variable(at) => Ok(state.variables[at as usize]),
            Operand::Item { list, at } => {
                let at = self.item(lane, list, at)?;
                Ok(state.lists[list as usize][at])
            }
        }
    }

    fn item(&self, lane: Lane, list: u32, at: Index) -> Result<usize, Fault> {
        let state = self.lanes[lane as usize].as_ref().expect("the lane runs");
        let index = match at {
            Index::At(at) => i64::from(at),
            Index::Variable(at) => whole(state.variables[at as usize]).unwrap_or(-1),
        };
        let length = state.lists[list as usize].len();
        usize::try_from(index).ok().filter(|&at| at < length).ok_or_else(|| Fault::Index {
            list: state.code.lists[list as usize].clone(),
            index,
            length,
        })
    }

    /// An operand as an integer.
    fn int(&self, lane: Lane, operand: Operand, op: Op, at: usize) -> Result<i64, Fault> {
        let value = self.value(lane, operand)?;
        whole(value).ok_or_else(|| Fault::Operand {
            operand: crate::task::operand_name(op, at),
            problem: format!("{value:?}; it must be a whole number"),
        })
    }

    pub(super) fn assign(&mut self, lane: Lane, instr: &Instr, value: Value) -> Result<(), Fault> {
        if instr.out == NONE {
            if let Some(Operand::Item { list, at }) = instr.ints.last().copied() {
                let at = self.item(lane, list, at)?;
                self.lane(lane).lists[list as usize][at] = value;
            }
        } else {
            self.lane(lane).variables[instr.out as usize] = value;
        }
        Ok(())
    }

    // Control flow.

    /// The next turn of the loop that starts at `start`.
    fn turn(&mut self, lane: Lane, start: usize) -> Flow {
        let code = std::sync::Arc::clone(&self.lane(lane).code);
        let head = &code.instrs[start];
        let (value, stop, step) = &mut self.lane(lane).loops[head.aux as usize];
        *value =
            value.checked_add(*step).ok_or_else(|| Fault::Other("the loop variable overflows".into()))?;
        let (value, goes_on) = (*value, if *step > 0 { *value < *stop } else { *value > *stop });
        if !goes_on {
            return Ok(Next::Jump(head.jump as usize + 1));
        }
        self.assign(lane, head, Value::Int(value))?;
        Ok(Next::Jump(start + 1))
    }

    /// Goes into the first branch that holds.
    fn branch(&mut self, lane: Lane) -> Flow {
        let code = std::sync::Arc::clone(&self.lane(lane).code);
        let mut at = self.lane(lane).at;
        loop {
            let instr = &code.instrs[at];
            let enters = match instr.op {
                Op::StartIf | Op::StartElif => self.holds(lane, &code.conditions[instr.aux as usize])?,
                _ => true,
            };
            if enters {
                return Ok(Next::Jump(at + 1));
            }
            at = instr.jump as usize;
        }
    }

    fn holds(&self, lane: Lane, condition: &Condition) -> Result<bool, Fault> {
        Ok(match condition {
            Condition::Truth(operand) => self.value(lane, *operand)?.is_true(),
            Condition::Compare(comparison, a, b) => match (self.value(lane, *a)?, self.value(lane, *b)?) {
                (Value::Int(a), Value::Int(b)) => comparison.holds(&a, &b),
                (a, b) => comparison.holds(&a.as_float(), &b.as_float()),
            },
            Condition::Not(inner) => !self.holds(lane, inner)?,
            Condition::And(a, b) => self.holds(lane, a)? && self.holds(lane, b)?,
            Condition::Or(a, b) => self.holds(lane, a)? || self.holds(lane, b)?,
        })
    }

    fn set_atomic(&mut self, lane: Lane, kind: Option<AtomicKind>) {
        let state = self.lane(lane);
        state.atomic = kind.map(|kind| Atomic { kind, dtype: None });
    }

    // Events.

    fn create_event(&mut self, lane: Lane, event: usize) {
        let state = self.lane(lane);
        let (cycle, cause) = (state.cycle, state.cause);
        let code = std::sync::Arc::clone(&state.code);
        let definition = &code.events[event];
        let clock = self.clocks[control_of(lane)];
        let mut fresh = EventState { flags: vec![None; definition.flags], ..EventState::default() };
        if definition.preset {
            fresh.preset = definition.flags;
            for _ in 0..definition.flags {
                fresh.set(Token { ready: cycle, clock, cause });
            }
        }
        self.sync.events[lane as usize][event] = fresh;
    }

    fn event_instruction(&mut self, lane: Lane, instr: &Instr, now: &mut Scheduler) -> Flow {
        let code = std::sync::Arc::clone(&self.lane(lane).code);
        let definition = &code.events[instr.out as usize];
        let sets = matches!(instr.op, Op::EventSet | Op::EventSetall);
        let pipe = if sets { definition.source } else { definition.target };
        if pipe != Pipe::S {
            let mut task = self.task(lane, instr)?;
            task.ints[0] = i64::from(instr.out);
            self.push(lane, pipe, task, now)?;
            return Ok(Next::On);
        }
        let control = control_of(lane);
        let event = instr.out as usize;
        if sets {
            let token = Token {
                ready: self.lane(lane).cycle,
                clock: self.clocks[control],
                cause: self.lane(lane).cause,
            };
            let times = if instr.op == Op::EventSet { 1 } else { definition.flags };
            for _ in 0..times {
                self.set_event(lane, event, token, now)?;
            }
            return Ok(Next::On);
        }
        let Some(token) = self.sync.events[lane as usize][event].take() else {
            return Ok(self.block(control, Wait::Event(lane, event)));
        };
        self.take_token(lane, &token);
        if instr.op == Op::EventRelease
            && definition.flags > 1
            && let Some(token) = self.sync.events[lane as usize][event].take()
        {
            self.take_token(lane, &token);
        }
        Ok(Next::On)
    }

    pub(super) fn set_event(
        &mut self,
        lane: Lane,
        event: usize,
        token: Token,
        now: &mut Scheduler,
    ) -> Result<(), Fault> {
        if !self.sync.events[lane as usize][event].set(token) {
            let name = &self.lane(lane).code.events[event].name;
            return Err(Fault::DoubleSet { what: format!("event `{name}`") });
        }
        self.wake(now, |wait| *wait == Wait::Event(lane, event));
        Ok(())
    }

    // Dispatch.

    /// The task that `instr` is at this moment.
    fn task(&self, lane: Lane, instr: &Instr) -> Result<Task, Fault> {
        let state = self.lanes[lane as usize].as_ref().expect("the lane runs");
        let mut task = Task {
            op: instr.op,
            instr: state.at as u32,
            issued: state.cycle,
            clock: (state.clocks.len() - 1) as u32,
            atomic: None,
            views: [NO_VIEW; 4],
            ints: [0; NUMBERS],
            val: 0.0,
            earliest: 0,
        };
        for (view, &at) in task.views.iter_mut().zip(&instr.tensors) {
            if at != NONE {
                *view = self.view(lane, at)?;
            }
        }
        for (at, (number, operand)) in task.ints.iter_mut().zip(&instr.ints).enumerate() {
            *number = match operand {
                Operand::Int(value) => *value,
                operand => self.int(lane, *operand, instr.op, at)?,
            };
        }
        if instr.val != Operand::Absent {
            task.val = self.value(lane, instr.val)?.as_float();
        }
        if matches!(instr.op, Op::L0cToGm | Op::UbToGm) {
            task.atomic = state.atomic.map(|atomic| Atomic { dtype: state.atomic_dtype, ..atomic });
            if let Some(kind) = task.atomic.and_then(|atomic| atomic.dtype)
                && kind != task.views[0].dtype
            {
                let problem = format!("{} to a tensor of {}", kind.name(), task.views[0].dtype.name());
                return Err(Fault::Types(format!("the lane's atomic type is {problem}")));
            }
        }
        Ok(task)
    }

    fn dispatch(&mut self, lane: Lane, instr: &Instr, now: &mut Scheduler) -> Flow {
        let mut task = self.task(lane, instr)?;
        if instr.op == Op::CallMicro {
            let code = std::sync::Arc::clone(&self.lane(lane).code);
            let call = &code.calls[instr.aux as usize];
            let mut binding = Binding { tensors: [NO_VIEW; 12], scalars: [0.0; 8] };
            for (to, &view) in binding.tensors.iter_mut().zip(&call.tensors) {
                *to = self.view(lane, view)?;
            }
            for (to, &scalar) in binding.scalars.iter_mut().zip(&call.scalars) {
                *to = self.value(lane, scalar)?.as_float();
            }
            task.ints[0] = i64::from(call.micro);
            task.ints[1] = call.tensors.len() as i64;
            task.ints[2] = call.scalars.len() as i64;
            self.bindings[lane.sub_block()].push_back(binding);
        }
        if self.shared.options.compat {
            self.serialise(lane, instr, &mut task)?;
        }
        self.push(lane, instr.pipe, task, now)?;
        if self.lane(lane).code.serial {
            self.blocked[control_of(lane)] = Some(Wait::Drain(actor_of(lane, instr.pipe)));
            return Ok(Next::Pause);
        }
        Ok(Next::On)
    }

    fn push(&mut self, lane: Lane, pipe: Pipe, task: Task, now: &mut Scheduler) -> Result<(), Fault> {
        let actor = actor_of(lane, pipe);
        let state = &mut self.pipes[actor];
        if state.queue.len() >= BACKLOG {
            return Err(Fault::Backlog { limit: BACKLOG });
        }
        let idle = state.queue.is_empty() && !state.working;
        state.queue.push_back(task);
        if idle && self.blocked[actor].is_none() {
            self.look(actor, 0, now);
        }
        Ok(())
    }

    /// The reference lets two tasks that name one tensor follow each other, by predicted ends.
    fn serialise(&mut self, lane: Lane, instr: &Instr, task: &mut Task) -> Result<(), Fault> {
        let cycles = self.cost(actor_of(lane, instr.pipe), task)?;
        let code = std::sync::Arc::clone(&self.lane(lane).code);
        let calls =
            if instr.op == Op::CallMicro { code.calls[instr.aux as usize].tensors.as_slice() } else { &[] };
        let names = || instr.tensors.iter().chain(calls).copied().filter(|&name| name != NONE);
        let state = self.lane(lane);
        let earliest = names().map(|name| state.busy[name as usize]).max().unwrap_or(0).max(state.cycle);
        for name in names() {
            let busy = &mut state.busy[name as usize];
            *busy = (*busy).max(earliest + cycles);
        }
        task.earliest = earliest;
        Ok(())
    }
}

pub(super) fn whole(value: Value) -> Option<i64> {
    match value {
        Value::Int(value) => Some(value),
        Value::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(value as i64),
        Value::Float(_) => None,
    }
}

/// The quotient rounded down.
fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
}

fn arithmetic(op: Op, a: Value, b: Value) -> Result<Value, Fault> {
    let overflow = || Fault::Other(format!("{a:?} and {b:?} give more than 64 bits"));
    if let (Value::Int(x), Value::Int(y)) = (a, b) {
        let result = match op {
            Op::VarAdd => x.checked_add(y),
            Op::VarSub => x.checked_sub(y),
            Op::VarMul => x.checked_mul(y),
            _ if y == 0 => return Err(Fault::DivisionByZero),
            _ => floor_div(x, y),
        };
        return result.map(Value::Int).ok_or_else(overflow);
    }
    let (x, y) = (a.as_float(), b.as_float());
    Ok(Value::Float(match op {
        Op::VarAdd => x + y,
        Op::VarSub => x - y,
        Op::VarMul => x * y,
        _ if y == 0.0 => return Err(Fault::DivisionByZero),
        _ => x / y,
    }))
}

//! The run loop.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use trompe_base::{Duration, SimTime};

use crate::asynchronous::Mailbox;
use crate::error::RunError;
use crate::event::EventName;
use crate::phase::Phase;
use crate::scheduler::{Scheduler, Stop, Taken};

/// The number of events in one tick at which a run gives up, unless told otherwise.
const TICK_LIMIT: u64 = 1_000_000_000;

/// A registered handler.
pub(crate) trait Fire<W>: Send {
    fn fire(&mut self, world: &mut W, scheduler: &mut Scheduler, payload: u32);
}

/// The handler of an event without a value.
pub(crate) struct Handler<F>(pub(crate) F);

impl<W, F: FnMut(&mut W, &mut Scheduler) + Send> Fire<W> for Handler<F> {
    #[inline]
    fn fire(&mut self, world: &mut W, scheduler: &mut Scheduler, _payload: u32) {
        (self.0)(world, scheduler);
    }
}

/// The handler of a payload event.
pub(crate) struct PayloadHandler<P, F> {
    event: u32,
    handler: F,
    payload: PhantomData<fn(P)>,
}

impl<P, F> PayloadHandler<P, F> {
    pub(crate) const fn new(event: u32, handler: F) -> Self {
        Self { event, handler, payload: PhantomData }
    }
}

impl<W, P: Send + 'static, F: FnMut(&mut W, &mut Scheduler, P) + Send> Fire<W> for PayloadHandler<P, F> {
    #[inline]
    fn fire(&mut self, world: &mut W, scheduler: &mut Scheduler, payload: u32) {
        let value = scheduler.take_payload(self.event, payload);
        (self.handler)(world, scheduler, value);
    }
}

/// One firing, as an [`Observer`] sees it.
#[derive(Debug)]
pub struct Firing<'a> {
    /// The running tick.
    pub tick: SimTime,
    /// The event's group.
    pub group: u32,
    /// The event's phase.
    pub phase: Phase,
    /// The event's name.
    pub event: &'a EventName,
}

/// Watches every firing, for logs, traces and profiles. It cannot change what happens.
pub trait Observer: Send {
    /// Called before the handler.
    fn before(&mut self, firing: &Firing<'_>);
    /// Called after the handler.
    fn after(&mut self, _firing: &Firing<'_>) {}
}

/// Ends a run from another thread, between two ticks.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Lets the run end with [`RunError::Interrupted`]. One raise ends one run.
    pub fn raise(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is pending that keeps a run alive.
    Finished,
    /// The time asked for is over.
    TimeIsUp,
    /// A handler asked for it.
    Stopped,
}

/// Events, their handlers and their order, ready to run. Made by [`Setup::finalize`](crate::Setup::finalize).
pub struct Engine<W> {
    scheduler: Scheduler,
    /// By event; ordering points never fire.
    handlers: Vec<Box<dyn Fire<W>>>,
    mailboxes: Vec<Mailbox>,
    mail: Arc<AtomicBool>,
    interrupt: Interrupt,
    observer: Option<Box<dyn Observer>>,
    tick_limit: u64,
    started: bool,
}

impl<W> Engine<W> {
    pub(crate) fn new(
        scheduler: Scheduler,
        handlers: Vec<Box<dyn Fire<W>>>,
        mailboxes: Vec<Mailbox>,
        mail: Arc<AtomicBool>,
    ) -> Self {
        Self {
            scheduler,
            handlers,
            mailboxes,
            mail,
            interrupt: Interrupt::default(),
            observer: None,
            tick_limit: TICK_LIMIT,
            started: false,
        }
    }

    /// What is pending.
    #[must_use]
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// What is pending, to schedule between runs. With zero delay an event fires in the tick that runs next.
    pub fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// A switch that ends a run from another thread.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }

    /// Lets `observer` see every firing from now on, or nobody.
    pub fn observe(&mut self, observer: Option<Box<dyn Observer>>) {
        self.observer = observer;
    }

    /// Sets the number of events in one tick at which a run ends with [`RunError::Livelock`].
    pub fn set_tick_limit(&mut self, events: u64) {
        self.tick_limit = events;
    }

    /// Runs until nothing is pending that keeps the run alive, or a handler stops it.
    ///
    /// # Errors
    /// A tick that does not end; an interrupt.
    pub fn run(&mut self, world: &mut W) -> Result<Ended, RunError> {
        self.run_ticks(world, u64::MAX, false)
    }

    /// Runs the `ticks` ticks from now on, whether or not something is pending in them.
    ///
    /// # Errors
    /// A tick that does not end; an interrupt.
    pub fn run_for(&mut self, world: &mut W, ticks: Duration) -> Result<Ended, RunError> {
        self.run_ticks(world, self.scheduler.now().as_picos().saturating_add(ticks.as_picos()), true)
    }

    /// Runs the `ticks` ticks from now on, or fewer when nothing is pending any more that keeps the run alive.
    ///
    /// # Errors
    /// A tick that does not end; an interrupt.
    pub fn run_at_most(&mut self, world: &mut W, ticks: Duration) -> Result<Ended, RunError> {
        self.run_ticks(world, self.scheduler.now().as_picos().saturating_add(ticks.as_picos()), false)
    }

    /// Runs the ticks before `end`; with `exact`, all of them.
    fn run_ticks(&mut self, world: &mut W, end: u64, exact: bool) -> Result<Ended, RunError> {
        self.scheduler.stop = Stop::No;
        if !std::mem::replace(&mut self.started, true) {
            self.scheduler.schedule_start_up();
        }
        if self.observer.is_some() {
            self.run_loop::<true>(world, end, exact)
        } else {
            self.run_loop::<false>(world, end, exact)
        }
    }

    fn run_loop<const OBSERVED: bool>(
        &mut self,
        world: &mut W,
        end: u64,
        exact: bool,
    ) -> Result<Ended, RunError> {
        loop {
            if !self.scheduler.in_tick() {
                self.between_ticks()?;
                if !exact && self.scheduler.is_finished() {
                    return Ok(Ended::Finished);
                }
                let now = self.scheduler.now().as_picos();
                if now >= end {
                    return Ok(Ended::TimeIsUp);
                }
                if !self.scheduler.begin_tick(end - 1) {
                    self.scheduler.skip_to(end);
                    return Ok(Ended::TimeIsUp);
                }
            }
            let finished = self.finish_tick::<OBSERVED>(world);
            self.scheduler.handlers_returned();
            finished?;
            if self.scheduler.stop != Stop::No {
                return Ok(Ended::Stopped);
            }
        }
    }

    /// Takes what other threads have to say.
    #[inline]
    fn between_ticks(&mut self) -> Result<(), RunError> {
        if self.interrupt.0.load(Ordering::Relaxed) && self.interrupt.0.swap(false, Ordering::Acquire) {
            return Err(RunError::Interrupted { tick: self.scheduler.now().as_picos() });
        }
        if !self.mailboxes.is_empty() && self.mail.swap(false, Ordering::Acquire) {
            for mailbox in &mut self.mailboxes {
                mailbox(&mut self.scheduler);
            }
        }
        Ok(())
    }

    /// Fires what is left of the tick under way, unless a handler stops the run.
    #[inline]
    fn finish_tick<const OBSERVED: bool>(&mut self, world: &mut W) -> Result<(), RunError> {
        let mut left = self.tick_limit;
        while let Some(Taken { event, payload }) = self.scheduler.take_due() {
            if OBSERVED {
                self.fire_observed(world, event, payload);
            } else {
                self.handlers[event as usize].fire(world, &mut self.scheduler, payload);
            }
            if self.scheduler.stop == Stop::Now {
                return Ok(());
            }
            left -= 1;
            if left == 0 {
                return Err(self.livelock(event));
            }
        }
        self.scheduler.end_tick();
        Ok(())
    }

    #[cold]
    fn fire_observed(&mut self, world: &mut W, event: u32, payload: u32) {
        let handler = &mut self.handlers[event as usize];
        let Some(observer) = &mut self.observer else {
            return handler.fire(world, &mut self.scheduler, payload);
        };
        let name = self.scheduler.label(event).name.clone();
        let (tick, phase) = (self.scheduler.now(), self.scheduler.label(event).phase);
        let firing = Firing { tick, group: self.scheduler.running_group(), phase, event: &name };
        observer.before(&firing);
        handler.fire(world, &mut self.scheduler, payload);
        observer.after(&firing);
    }

    #[cold]
    fn livelock(&self, event: u32) -> RunError {
        RunError::Livelock {
            tick: self.scheduler.now().as_picos(),
            events: self.tick_limit,
            event: self.scheduler.label(event).name.clone(),
        }
    }
}

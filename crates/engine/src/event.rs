//! Events as the outside sees them: names, specifications and typed handles.
//!
//! A handle is a small copyable value. Its type says what kind of event it is, so that a payload cannot be forgotten
//! and a unique event cannot be mistaken for a plain one.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::phase::Phase;
pub(crate) use sealed::Id;

/// A name and, for one of many alike, an index. Names order events: see [`Ties::Keyed`](crate::Ties::Keyed).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventName {
    base: Arc<str>,
    index: Option<u64>,
}

impl EventName {
    /// The name without its index.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "{}[{index}]", self.base),
            None => f.write_str(&self.base),
        }
    }
}

/// What an event is to be: its name, phase, and whether it keeps a run alive.
///
/// A plain string is a specification too: an event of the [`Phase::Tick`] phase that keeps the run alive.
#[derive(Clone, Debug)]
pub struct Spec {
    pub(crate) name: EventName,
    /// The phase asked for; [`Phase::Tick`] when none is.
    pub(crate) phase: Option<Phase>,
    pub(crate) continuing: bool,
    pub(crate) auto_precedence: bool,
}

impl Spec {
    /// An event called `name`.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: EventName { base: name.into(), index: None },
            phase: None,
            continuing: true,
            auto_precedence: true,
        }
    }

    /// Tells this event from others of the same name; ties fire in the order of the index.
    #[must_use]
    pub fn index(mut self, index: u64) -> Self {
        self.name.index = Some(index);
        self
    }

    /// Puts the event into `phase`.
    #[must_use]
    pub fn phase(mut self, phase: Phase) -> Self {
        self.phase = Some(phase);
        self
    }

    /// The event does not keep a run alive: a run ends when only such events are pending.
    #[must_use]
    pub fn non_continuing(mut self) -> Self {
        self.continuing = false;
        self
    }

    /// Ports derive no precedence for this event.
    #[must_use]
    pub fn without_auto_precedence(mut self) -> Self {
        self.auto_precedence = false;
        self
    }
}

impl From<&str> for Spec {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for Spec {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

/// How often an event fires per tick, and how it comes to be scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Unique,
    SingleCycle,
    Payload,
    EveryTick,
    StartUp,
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub(crate) Id);

        impl $name {
            pub(crate) const fn from_id(id: Id) -> Self {
                Self(id)
            }
        }

        impl sealed::Sealed for $name {
            fn id(&self) -> Id {
                self.0
            }
        }

        impl sealed::Vertices for $name {
            fn add_to(&self, members: &mut Vec<Id>) {
                members.push(self.0);
            }
        }
    )*};
}

handles! {
    /// An event that fires as often as it is scheduled, also several times in one tick.
    Event;
    /// An event that fires at most once per tick, however often it is scheduled for it.
    UniqueEvent;
    /// A unique event that can be scheduled only for this cycle and the next one of its clock.
    SingleCycleEvent;
    /// An event that fires in every tick while it is on; time does not skip meanwhile.
    EveryTickEvent;
    /// An event that fires once, before the first tick; it can only be ordered.
    StartUpEvent;
    /// A named point that other events can be ordered against; nothing fires there.
    OrderingPoint;
}

/// An event that carries a value of type `P` to its handler.
pub struct PayloadEvent<P> {
    pub(crate) id: Id,
    payload: PhantomData<fn(P)>,
}

impl<P> PayloadEvent<P> {
    pub(crate) const fn from_id(id: Id) -> Self {
        Self { id, payload: PhantomData }
    }
}

impl<P> Clone for PayloadEvent<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for PayloadEvent<P> {}

impl<P> PartialEq for PayloadEvent<P> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl<P> Eq for PayloadEvent<P> {}

impl<P> fmt::Debug for PayloadEvent<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PayloadEvent({:?})", self.id)
    }
}

impl<P> sealed::Sealed for PayloadEvent<P> {
    fn id(&self) -> Id {
        self.id
    }
}

impl<P> sealed::Vertices for PayloadEvent<P> {
    fn add_to(&self, members: &mut Vec<Id>) {
        members.push(self.id);
    }
}

/// One scheduled value of a payload event: cancels it in constant time.
///
/// A ticket is worthless once the value was delivered or cancelled; using it then has no effect.
pub struct Ticket<P> {
    pub(crate) event: Id,
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    payload: PhantomData<fn(P)>,
}

impl<P> Ticket<P> {
    pub(crate) const fn new(event: Id, slot: u32, generation: u32) -> Self {
        Self { event, slot, generation, payload: PhantomData }
    }
}

impl<P> Clone for Ticket<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Ticket<P> {}

impl<P> fmt::Debug for Ticket<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({}, {}#{})", self.event.vertex, self.slot, self.generation)
    }
}

/// Several events that are ordered against others together: a group before a group is every pair.
#[derive(Clone, Debug, Default)]
pub struct EventGroup {
    pub(crate) members: Vec<Id>,
}

impl EventGroup {
    /// A group without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The group with `event` added.
    #[must_use]
    pub fn with(mut self, event: impl Ordered) -> Self {
        event.add_to(&mut self.members);
        self
    }
}

/// Whatever can stand on either side of [`Setup::precedes`](crate::Setup::precedes): an event of any kind, an
/// [`OrderingPoint`], an [`EventGroup`], or a reference to one.
pub trait Ordered: sealed::Vertices {}

impl<T: sealed::Vertices + ?Sized> Ordered for T {}

/// A handle of an event of any kind, to ask about it or to cancel it.
pub trait AnyEvent: sealed::Sealed {}

impl<T: sealed::Sealed> AnyEvent for T {}

/// An event that is scheduled without a value: [`Event`], [`UniqueEvent`] or [`SingleCycleEvent`].
pub trait Schedulable: sealed::Sealed + Copy {}

impl Schedulable for Event {}
impl Schedulable for UniqueEvent {}
impl Schedulable for SingleCycleEvent {}

pub(crate) mod sealed {
    use super::EventGroup;

    /// What all handles are inside: the vertex of the event in the engine that made it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct Id {
        pub(crate) engine: u32,
        pub(crate) vertex: u32,
    }

    /// A handle of one vertex.
    pub trait Sealed {
        fn id(&self) -> Id;
    }

    /// One or several vertices.
    pub trait Vertices {
        fn add_to(&self, members: &mut Vec<Id>);
    }

    impl Vertices for EventGroup {
        fn add_to(&self, members: &mut Vec<Id>) {
            members.extend_from_slice(&self.members);
        }
    }

    impl<T: Vertices + ?Sized> Vertices for &T {
        fn add_to(&self, members: &mut Vec<Id>) {
            (**self).add_to(members);
        }
    }
}

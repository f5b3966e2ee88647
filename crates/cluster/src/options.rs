//! What the user may turn: how host time passes, and what the machine around the device costs.

use trompe_base::Duration;
use trompe_trace::job::CallClass;

use crate::contention::Contention;
use crate::price::Bound;
use crate::variation::Variation;

/// How host time between two calls is modelled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum HostTime {
    /// As recorded, plus the cost of each call.
    #[default]
    Measured,
    /// The same time for each call that launches device work, its cost included, and none for anything else.
    Fixed(Duration),
    /// As recorded times a factor, plus the cost of each call.
    Scale(f64),
    /// The host takes no time: the device's own limit.
    Off,
}

/// Host time of one call of each class on the simulated machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCosts {
    /// A kernel launch.
    pub launch: Duration,
    /// A library call that chooses and launches a kernel.
    pub library_launch: Duration,
    /// A collective.
    pub collective: Duration,
    /// An asynchronous copy or fill.
    pub copy: Duration,
    /// Recording an event, or letting a stream wait for one.
    pub event: Duration,
    /// A query, or a synchronisation that has nothing to wait for.
    pub synchronize: Duration,
    /// Device memory from or to the driver.
    pub memory: Duration,
    /// Device memory from or to a stream-ordered pool.
    pub pool: Duration,
    /// A graph launch.
    pub graph: Duration,
}

impl CallCosts {
    /// The cost of a call of `class`.
    #[must_use]
    pub const fn of(&self, class: CallClass) -> Duration {
        match class {
            CallClass::Launch => self.launch,
            CallClass::LibraryLaunch => self.library_launch,
            CallClass::Collective => self.collective,
            CallClass::Copy => self.copy,
            CallClass::Event => self.event,
            CallClass::Synchronize => self.synchronize,
            CallClass::Memory => self.memory,
            CallClass::Pool => self.pool,
            CallClass::Graph => self.graph,
            CallClass::None => Duration::ZERO,
        }
    }
}

/// How a job trace is replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How host time passes.
    pub host: HostTime,
    /// What calls cost.
    pub calls: CallCosts,
    /// From the end of a launch call to the start of its kernel on an idle stream.
    pub launch_latency: Duration,
    /// From the end of the awaited work to the host's return from a synchronisation.
    pub wake_latency: Duration,
    /// From a thread's handing over to the return of another one that waits for that.
    pub hand_over_latency: Duration,
    /// Operations that may wait or run on one stream before the next launch into it blocks the host.
    pub queue_depth: u32,
    /// Which end of every price is used.
    pub bound: Bound,
    /// Which steps get a timeline: `(first, count)`, counted from the first step of the run; `None` for no timeline.
    pub timeline: Option<(usize, usize)>,
    /// How many ranks get a timeline (the first ones).
    pub timeline_ranks: usize,
    /// What operations that run at once on a device cost each other; `None`: nothing.
    pub contention: Option<Contention>,
    /// Chance and stragglers.
    pub variation: Variation,
    /// Whether equal ranks are replayed once. It changes no time, only the work.
    pub fold: bool,
    /// The step whose critical path is wanted, counted from the first step of the run.
    pub path: Option<usize>,
    /// Whether to keep when each host came to each of its events.
    pub host_times: bool,
}

impl Options {
    /// The depth of a stream's launch queue: assumed. No vendor documents it; programs that launch into a busy stream
    /// are commonly reported to block after about a thousand launches.
    pub const QUEUE_DEPTH: u32 = 1_022;
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: HostTime::Measured,
            calls: CallCosts::default(),
            launch_latency: Duration::ZERO,
            wake_latency: Duration::ZERO,
            hand_over_latency: Duration::ZERO,
            queue_depth: Self::QUEUE_DEPTH,
            bound: Bound::Expected,
            timeline: None,
            timeline_ranks: 1,
            contention: None,
            variation: Variation::default(),
            fold: true,
            path: None,
            host_times: false,
        }
    }
}

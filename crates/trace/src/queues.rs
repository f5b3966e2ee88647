//! Dispatch queues: which host threads go on by themselves.
//!
//! Threads that hand over to each other ([`Action::Give`], [`Action::Take`]) go on by themselves in between: each is a
//! queue. All others take turns with the first thread, which calls them and waits for them (the autograd engine's are
//! such), and are part of its queue, number 0.

use std::collections::BTreeSet;

use trompe_base::ThreadIndex;

use crate::job::{Action, HostEvent};

/// The dispatch queues of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DispatchQueues {
    /// Threads that are queues beside the first one, ascending: the first of them is queue 1.
    own: Vec<ThreadIndex>,
}

impl DispatchQueues {
    /// Those of these events.
    #[must_use]
    pub fn of(events: &[HostEvent]) -> Self {
        let hands_over =
            |event: &&HostEvent| matches!(event.action, Action::Give { .. } | Action::Take { .. });
        let threads = events.iter().filter(hands_over).map(|event| event.thread);
        let own: BTreeSet<ThreadIndex> = threads.filter(|thread| thread.0 > 0).collect();
        Self { own: own.into_iter().collect() }
    }

    /// Their number, the first one included.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.own.len() + 1
    }

    /// Whether all threads take turns.
    #[must_use]
    pub const fn is_single(&self) -> bool {
        self.own.is_empty()
    }

    /// The queue that a thread belongs to.
    #[must_use]
    pub fn queue(&self, thread: ThreadIndex) -> u16 {
        let found = self.own.binary_search(&thread);
        found.map_or(0, |row| u16::try_from(row + 1).unwrap_or(u16::MAX))
    }
}

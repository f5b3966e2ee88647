//! Unique events that are pending for many ticks at once: a table that says for which.
//!
//! Nearly all unique events are pending for one or two ticks, and a look at their nodes answers whether a tick is among
//! them. Those with more than [`FEW`] are entered here, so that the question never takes longer.

use std::collections::HashSet;

use super::EventState;
use crate::event::Kind;
use crate::slab::{NIL, Slab};

/// As many pending nodes are looked at one by one.
const FEW: u32 = 16;

/// Events and ticks. Nothing ever walks through the table, so its order has no influence on anything.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    ticks: HashSet<(u32, u64)>,
}

impl Crowd {
    pub(super) fn clear(&mut self) {
        self.ticks.clear();
    }

    pub(super) fn contains(&self, event: u32, tick: u64) -> bool {
        self.ticks.contains(&(event, tick))
    }
}

/// Puts a node on its event's list.
#[inline]
pub(super) fn chain(state: &mut EventState, slab: &mut Slab, crowd: &mut Crowd, index: u32) {
    state.head = slab.event_push(state.head, index);
    state.pending += 1;
    // Once it is in the table all its nodes are, also when few are left.
    if (state.crowded || state.pending > FEW) && matches!(state.kind, Kind::Unique | Kind::SingleCycle) {
        enter(state, slab, crowd, index);
    }
}

/// Takes a node off its event's list and frees it.
#[inline(always)]
pub(super) fn unchain(state: &mut EventState, slab: &mut Slab, crowd: &mut Crowd, index: u32) {
    state.head = slab.event_unlink(state.head, index);
    if state.crowded {
        leave(state, slab, crowd, index);
    }
    slab.release(index);
}

#[cold]
fn leave(state: &mut EventState, slab: &Slab, crowd: &mut Crowd, index: u32) {
    let node = slab.get(index);
    crowd.ticks.remove(&(node.event, node.tick));
    state.crowded = state.head != NIL;
}

#[cold]
fn enter(state: &mut EventState, slab: &Slab, crowd: &mut Crowd, index: u32) {
    let in_table = std::mem::replace(&mut state.crowded, true);
    let mut index = index;
    while index != NIL {
        let node = slab.get(index);
        crowd.ticks.insert((node.event, node.tick));
        // The nodes before this one are in the table if the event is.
        index = if in_table { NIL } else { node.event_next };
    }
}

//! Scheduled events as slab nodes on intrusive lists.
//!
//! A node is on exactly one time list (a wheel slot or a bucket of the running tick) and on the list of its event's
//! pending nodes. Freed nodes are taken again first, so a steady state allocates nothing.

/// "No node".
pub(crate) const NIL: u32 = u32::MAX;

/// One scheduled firing of an event.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// When it fires.
    pub(crate) tick: u64,
    /// Neighbours on the time list.
    pub(crate) next: u32,
    pub(crate) prev: u32,
    /// Neighbours on the event's list.
    pub(crate) event_next: u32,
    pub(crate) event_prev: u32,
    /// The event.
    pub(crate) event: u32,
    /// The slot of its payload in the event's pool, or [`NIL`].
    pub(crate) payload: u32,
}

/// A doubly linked first-in, first-out list of nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl List {
    /// A list without nodes.
    pub(crate) const EMPTY: Self = Self { head: NIL, tail: NIL };
}

/// The store of all nodes. Free ones are chained by [`Node::next`].
#[derive(Debug)]
pub(crate) struct Slab {
    nodes: Vec<Node>,
    free: u32,
}

impl Default for Slab {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: NIL }
    }
}

impl Slab {
    /// How many nodes there is memory for.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.nodes.capacity()
    }

    /// A node for `event` at `tick`, on no list yet.
    #[inline]
    pub(crate) fn allocate(&mut self, event: u32, tick: u64, payload: u32) -> u32 {
        let index = if self.free == NIL { self.grow() } else { self.free };
        let node = &mut self.nodes[index as usize];
        self.free = node.next;
        *node = Node { tick, next: NIL, prev: NIL, event_next: NIL, event_prev: NIL, event, payload };
        index
    }

    /// Adds a free node.
    #[cold]
    fn grow(&mut self) -> u32 {
        let index = u32::try_from(self.nodes.len()).ok().filter(|&index| index != NIL);
        let index = index.expect("more than 4 billion events are pending at once");
        let (event_next, event_prev) = (NIL, NIL);
        self.nodes.push(Node {
            tick: 0,
            next: NIL,
            prev: NIL,
            event_next,
            event_prev,
            event: 0,
            payload: NIL,
        });
        index
    }

    /// Gives a node back.
    #[inline]
    pub(crate) fn release(&mut self, index: u32) {
        self.nodes[index as usize].next = self.free;
        self.free = index;
    }

    /// Gives all nodes back and keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.free = NIL;
    }

    /// The node at `index`.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    /// Appends `index` to `list`.
    #[inline]
    pub(crate) fn push_back(&mut self, list: &mut List, index: u32) {
        let tail = list.tail;
        let node = &mut self.nodes[index as usize];
        node.prev = tail;
        node.next = NIL;
        if tail == NIL {
            list.head = index;
        } else {
            self.nodes[tail as usize].next = index;
        }
        list.tail = index;
    }

    /// Puts `index` before the others of `list`.
    #[inline]
    pub(crate) fn push_front(&mut self, list: &mut List, index: u32) {
        let head = list.head;
        let node = &mut self.nodes[index as usize];
        node.prev = NIL;
        node.next = head;
        if head == NIL {
            list.tail = index;
        } else {
            self.nodes[head as usize].prev = index;
        }
        list.head = index;
    }

    /// Takes the first node off `list`, which must have one.
    #[inline]
    pub(crate) fn pop_front(&mut self, list: &mut List) -> u32 {
        let index = list.head;
        let next = self.nodes[index as usize].next;
        list.head = next;
        if next == NIL {
            list.tail = NIL;
        } else {
            self.nodes[next as usize].prev = NIL;
        }
        index
    }

    /// Takes `index` out of `list`, wherever it stands in it.
    #[inline]
    pub(crate) fn unlink(&mut self, list: &mut List, index: u32) {
        let (prev, next) = {
            let node = &self.nodes[index as usize];
            (node.prev, node.next)
        };
        if prev == NIL {
            list.head = next;
        } else {
            self.nodes[prev as usize].next = next;
        }
        if next == NIL {
            list.tail = prev;
        } else {
            self.nodes[next as usize].prev = prev;
        }
    }

    /// Puts `index` in front of the event list that starts at `head`; returns the new head.
    #[inline]
    pub(crate) fn event_push(&mut self, head: u32, index: u32) -> u32 {
        if head != NIL {
            self.nodes[index as usize].event_next = head;
            self.nodes[head as usize].event_prev = index;
        }
        index
    }

    /// Takes `index` out of the event list that starts at `head`; returns the new head.
    #[inline]
    pub(crate) fn event_unlink(&mut self, head: u32, index: u32) -> u32 {
        let (prev, next) = {
            let node = &self.nodes[index as usize];
            (node.event_prev, node.event_next)
        };
        if next != NIL {
            self.nodes[next as usize].event_prev = prev;
        }
        if prev == NIL {
            return next;
        }
        self.nodes[prev as usize].event_next = next;
        head
    }
}

//! The values of payload events: one typed pool per event, whose slots are used again.

use std::any::Any;

use crate::slab::NIL;

/// One slot of a pool.
#[derive(Debug)]
struct Slot<P> {
    value: Option<P>,
    /// Counts up whenever the slot is emptied, so that old tickets are known as such.
    generation: u32,
    /// The node that will deliver the value.
    node: u32,
}

/// The values of one event that wait for delivery.
#[derive(Debug)]
pub(crate) struct Pool<P> {
    slots: Vec<Slot<P>>,
    free: Vec<u32>,
}

impl<P> Default for Pool<P> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<P> Pool<P> {
    /// Stores a value; returns slot and generation.
    #[inline]
    pub(crate) fn store(&mut self, value: P) -> (u32, u32) {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.value = Some(value);
            return (index, slot.generation);
        }
        let index = u32::try_from(self.slots.len()).expect("more than 4 billion payloads wait");
        self.slots.push(Slot { value: Some(value), generation: 0, node: NIL });
        // Room for every slot to be given back, so that giving back never allocates.
        self.free.reserve(self.slots.capacity());
        (index, 0)
    }

    /// Remembers which node delivers `slot`.
    #[inline]
    pub(crate) fn set_node(&mut self, slot: u32, node: u32) {
        self.slots[slot as usize].node = node;
    }

    /// Takes the value out of a slot that has one.
    #[inline]
    pub(crate) fn take(&mut self, index: u32) -> P {
        let slot = &mut self.slots[index as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        slot.value.take().expect("a pending slot holds a value")
    }

    /// The node that delivers `slot`, if the slot still holds the value of `generation`.
    pub(crate) fn node(&self, slot: u32, generation: u32) -> Option<u32> {
        let slot = self.slots.get(slot as usize)?;
        (slot.generation == generation && slot.value.is_some()).then_some(slot.node)
    }

    /// The value in `slot` and its generation.
    pub(crate) fn peek(&self, slot: u32) -> Option<(&P, u32)> {
        let slot = self.slots.get(slot as usize)?;
        Some((slot.value.as_ref()?, slot.generation))
    }
}

/// A pool whose type is known only to its event.
pub(crate) trait AnyPool: Any + Send {
    /// Drops the value in a slot.
    fn discard(&mut self, slot: u32);
    /// Drops every value.
    fn clear(&mut self);
}

impl<P: Send + 'static> AnyPool for Pool<P> {
    fn discard(&mut self, slot: u32) {
        drop(self.take(slot));
    }

    fn clear(&mut self) {
        for index in 0..self.slots.len() as u32 {
            if self.slots[index as usize].value.is_some() {
                drop(self.take(index));
            }
        }
    }
}

//! Handles: opaque numbers that a caller holds, each of one kind and one generation.
//!
//! A handle is `kind << 48 | generation << 28 | (index + 1) << 4`. The low four bits are clear because frameworks keep
//! flags in the low bits of stream and event pointers; the special streams 0, 1 and 2 can never be a handle. A freed
//! slot's generation grows, so an old handle is recognised until 2^20 reuses later.

use std::marker::PhantomData;

/// What a handle stands for; the number is part of the handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names are the documentation")]
#[repr(u8)]
pub enum Kind {
    Context = 0x11,
    Stream,
    Event,
    Graph,
    GraphNode,
    GraphExec,
    Module,
    Function,
    Pool,
    Allocation,
    UserObject,
    Link,
    Blas = 0x31,
    BlasLt,
    BlasLtLayout,
    BlasLtOperation,
    BlasLtPreference,
    Dnn,
    DnnDescriptor,
    Communicator,
    Fft,
    Sparse,
    Solver,
    Random,
    Compiler,
    Management,
    Opaque,
}

/// A handle as the caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u64);

/// The handle is not one of this table, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("handle {0:#x} is not live")]
pub struct NotLive(pub u64);

const INDEX_BITS: u32 = 24;
const GENERATION_BITS: u32 = 20;

impl Handle {
    const fn pack(kind: Kind, generation: u32, index: u32) -> Self {
        Self((kind as u64) << 48 | (generation as u64) << (4 + INDEX_BITS) | (index as u64 + 1) << 4)
    }

    fn index(self, kind: Kind) -> Option<(usize, u32)> {
        if self.0 >> 48 != kind as u64 || self.0 & 0xf != 0 {
            return None;
        }
        let index = ((self.0 >> 4) & ((1 << INDEX_BITS) - 1)).checked_sub(1)?;
        let generation = (self.0 >> (4 + INDEX_BITS)) as u32 & ((1 << GENERATION_BITS) - 1);
        Some((index as usize, generation))
    }
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Live objects of one kind by handle.
#[derive(Debug)]
pub struct HandleTable<T> {
    kind: Kind,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    holds: PhantomData<T>,
}

impl<T> HandleTable<T> {
    /// An empty table of handles of `kind`.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self { kind, slots: Vec::new(), free: Vec::new(), holds: PhantomData }
    }

    /// Keeps `value` and names it.
    ///
    /// # Panics
    /// When more than 2^24 objects are alive at once.
    pub fn insert(&mut self, value: T) -> Handle {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[index as usize];
            slot.value = Some(value);
            return Handle::pack(self.kind, slot.generation, index);
        }
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 objects");
        assert!(index < (1 << INDEX_BITS) - 1, "more than 2^24 live objects of one kind");
        self.slots.push(Slot { generation: 0, value: Some(value) });
        Handle::pack(self.kind, 0, index)
    }

    /// The object, if the handle is live.
    ///
    /// # Errors
    /// [`NotLive`] when it is not.
    pub fn get(&self, handle: u64) -> Result<&T, NotLive> {
        let (index, generation) = Handle(handle).index(self.kind).ok_or(NotLive(handle))?;
        let slot =
            self.slots.get(index).filter(|slot| slot.generation == generation).ok_or(NotLive(handle))?;
        slot.value.as_ref().ok_or(NotLive(handle))
    }

    /// The object, if the handle is live, to change it.
    ///
    /// # Errors
    /// [`NotLive`] when it is not.
    pub fn get_mut(&mut self, handle: u64) -> Result<&mut T, NotLive> {
        let (index, generation) = Handle(handle).index(self.kind).ok_or(NotLive(handle))?;
        let slot =
            self.slots.get_mut(index).filter(|slot| slot.generation == generation).ok_or(NotLive(handle))?;
        slot.value.as_mut().ok_or(NotLive(handle))
    }

    /// Takes the object out; the handle is dead afterwards.
    ///
    /// # Errors
    /// [`NotLive`] when it is not live.
    pub fn remove(&mut self, handle: u64) -> Result<T, NotLive> {
        let (index, generation) = Handle(handle).index(self.kind).ok_or(NotLive(handle))?;
        let slot =
            self.slots.get_mut(index).filter(|slot| slot.generation == generation).ok_or(NotLive(handle))?;
        let value = slot.value.take().ok_or(NotLive(handle))?;
        slot.generation = (slot.generation + 1) & ((1 << GENERATION_BITS) - 1);
        self.free.push(index as u32);
        Ok(value)
    }

    /// All live objects with their handles, in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (Handle, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            slot.value.as_ref().map(|value| (Handle::pack(self.kind, slot.generation, index as u32), value))
        })
    }

    /// All live objects, to change them, in slot order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }

    /// Number of live objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether nothing is alive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_or_foreign_handle_is_not_live() {
        let mut streams = HandleTable::new(Kind::Stream);
        let mut events = HandleTable::new(Kind::Event);
        let a = streams.insert("a").0;
        let b = events.insert("b").0;
        assert_eq!(streams.get(a), Ok(&"a"));
        assert_eq!(streams.get(b), Err(NotLive(b)));
        assert_eq!(streams.get(0), Err(NotLive(0)));
        assert_eq!(streams.get(a + 1), Err(NotLive(a + 1)));
        assert_eq!(streams.remove(a), Ok("a"));
        assert_eq!(streams.get(a), Err(NotLive(a)));
        let c = streams.insert("c").0;
        assert_ne!(a, c, "a reused slot has another generation");
        assert_eq!(streams.get(a), Err(NotLive(a)));
        assert_eq!(a & 0xf, 0);
        assert_eq!(streams.len(), 1);
    }
}

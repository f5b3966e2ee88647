//! Atomic stores to global memory, kept back and applied in a fixed order.
//!
//! Floating-point sums depend on the order of their terms, so atomic stores of different cores are put into the order
//! (cycle, core, order in the core) and applied when every core stands still at a collective or has ended. A core that
//! touches a tensor itself applies its own stores to it first.

use crate::element::{ElementType, load_f32, read_int, store_f32, write_int};
use crate::memory::GlobalMemory;
use crate::task::AtomicKind;

#[derive(Clone, Copy, Debug)]
struct Store {
    cycle: u64,
    tensor: u32,
    offset: u64,
    /// Bytes in the log's data.
    from: usize,
    length: usize,
    dtype: ElementType,
    kind: AtomicKind,
}

/// The atomic stores of a core that are not in global memory yet.
#[derive(Debug, Default)]
pub(crate) struct AtomicLog {
    stores: Vec<Store>,
    data: Vec<u8>,
    room: Room,
}

/// Room for the values of one store.
#[derive(Debug, Default)]
struct Room {
    old: Vec<u8>,
    a: Vec<f32>,
    b: Vec<f32>,
}

impl AtomicLog {
    pub(crate) fn push(
        &mut self,
        cycle: u64,
        (tensor, offset): (u32, u64),
        op: (AtomicKind, ElementType),
        bytes: &[u8],
    ) {
        let from = self.data.len();
        self.data.extend_from_slice(bytes);
        let (kind, dtype) = op;
        self.stores.push(Store { cycle, tensor, offset, from, length: bytes.len(), dtype, kind });
    }

    /// Applies this core's own stores to `tensor`.
    pub(crate) fn settle(&mut self, tensor: u32, gm: &GlobalMemory) {
        if self.stores.iter().any(|store| store.tensor == tensor) {
            for store in self.stores.iter().filter(|store| store.tensor == tensor) {
                apply(store, &self.data, gm, &mut self.room);
            }
            self.stores.retain(|store| store.tensor != tensor);
        }
    }
}

/// Applies the stores of all cores, which are given in the order of their numbers.
pub(crate) fn apply_in_order<'a>(logs: impl Iterator<Item = &'a mut AtomicLog>, gm: &GlobalMemory) {
    let mut logs: Vec<&mut AtomicLog> = logs.collect();
    let mut order: Vec<(u64, usize, usize)> = Vec::new();
    for (core, log) in logs.iter().enumerate() {
        order.extend(log.stores.iter().enumerate().map(|(at, store)| (store.cycle, core, at)));
    }
    order.sort_unstable();
    let mut room = Room::default();
    for (_, core, at) in order {
        apply(&logs[core].stores[at], &logs[core].data, gm, &mut room);
    }
    for log in &mut logs {
        log.stores.clear();
        log.data.clear();
    }
}

fn apply(store: &Store, data: &[u8], gm: &GlobalMemory, room: &mut Room) {
    let new = &data[store.from..store.from + store.length];
    let Room { old, a, b } = room;
    old.resize(store.length, 0);
    gm.read(store.tensor, store.offset, old);
    let size = store.dtype.size();
    if store.dtype.is_float() {
        let count = store.length / size;
        a.resize(count, 0.0);
        b.resize(count, 0.0);
        load_f32(store.dtype, old, a);
        load_f32(store.dtype, new, b);
        for (a, b) in a.iter_mut().zip(b) {
            *a = match store.kind {
                AtomicKind::Add => *a + *b,
                AtomicKind::Max => a.max(*b),
                AtomicKind::Min => a.min(*b),
            };
        }
        store_f32(store.dtype, a, old);
    } else {
        for (old, new) in old.chunks_exact_mut(size).zip(new.chunks_exact(size)) {
            let (a, b) = (read_int(store.dtype, old), read_int(store.dtype, new));
            let value = match store.kind {
                AtomicKind::Add => a.wrapping_add(b),
                AtomicKind::Max => a.max(b),
                AtomicKind::Min => a.min(b),
            };
            write_int(store.dtype, value, old);
        }
    }
    gm.write(store.tensor, store.offset, old);
}

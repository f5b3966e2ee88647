//! One device's memory: its addresses, its capacity and who uses it.

use std::collections::BTreeMap;

use crate::range::RangeSet;

/// Device memory is handed out by the driver in steps of this many bytes; smaller allocations share a step.
pub const BLOCK_STEP: u64 = 2 << 20;
/// Alignment of small allocations (documented for `cudaMalloc`: at least 256; drivers give 512).
const SMALL_STEP: u64 = 512;
/// Allocations of at least this many bytes get steps of their own.
const LARGE: u64 = 1 << 20;
/// Least span of addresses per device.
const SPAN: u64 = 1 << 40;

/// One device's memory.
#[derive(Clone, Debug)]
pub struct Bank {
    base: u64,
    end: u64,
    capacity: u64,
    free: RangeSet,
    large: u64,
    small: u64,
    charges: BTreeMap<&'static str, u64>,
    /// Whether the address range was reserved from the system.
    pub(super) reserved: bool,
}

impl Bank {
    /// A bank of `capacity` bytes at `base`. Its span is four times the capacity where `share` allows, so that
    /// fragmentation of addresses is never what fails (a real driver moves physical pages, not addresses).
    #[must_use]
    pub fn new(base: u64, capacity: u64, share: u64) -> Self {
        let end = base + SPAN.max(capacity.saturating_mul(4).next_power_of_two()).min(share);
        let mut free = RangeSet::new();
        free.insert(base, end);
        Self { base, end, capacity, free, large: 0, small: 0, charges: BTreeMap::new(), reserved: false }
    }

    /// First address.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// First address after it.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Total bytes.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes in use by allocations and charges.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.large + self.small.next_multiple_of(BLOCK_STEP) + self.charges.values().sum::<u64>()
    }

    /// Bytes not in use.
    #[must_use]
    pub fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.used())
    }

    /// Charges by owner, in the order of their names.
    pub fn charges(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.charges.iter().map(|(&owner, &bytes)| (owner, bytes))
    }

    /// Whether an allocation of `bytes` fits.
    #[must_use]
    pub fn fits(&self, bytes: u64) -> bool {
        let Some(size) = bytes.checked_next_multiple_of(step(bytes)) else { return false };
        let growth = if size >= LARGE {
            size
        } else {
            (self.small + size).next_multiple_of(BLOCK_STEP) - self.small.next_multiple_of(BLOCK_STEP)
        };
        growth <= self.free()
    }

    /// Uses capacity without addresses (physical allocations of virtual-memory management). Returns whether it fit.
    pub fn take_physical(&mut self, bytes: u64) -> bool {
        let fits = bytes <= self.free();
        if fits {
            self.large += bytes;
        }
        fits
    }

    /// Gives such capacity back.
    pub fn give_physical(&mut self, bytes: u64) {
        self.large = self.large.saturating_sub(bytes);
    }

    pub(super) fn take(&mut self, bytes: u64) -> Option<u64> {
        let step = step(bytes);
        let size = bytes.next_multiple_of(step);
        let address = self.free.first_fit(size, step)?;
        self.free.remove(address, address + size);
        *self.counter(size) += size;
        Some(address)
    }

    pub(super) fn give(&mut self, address: u64, bytes: u64) {
        let size = bytes.next_multiple_of(step(bytes));
        self.free.insert(address, address + size);
        let counter = self.counter(size);
        *counter = counter.saturating_sub(size);
    }

    pub(super) fn charge(&mut self, owner: &'static str, bytes: i64) -> bool {
        if let Ok(more) = u64::try_from(bytes) {
            if more > self.free() {
                return false;
            }
            *self.charges.entry(owner).or_default() += more;
        } else if let Some(held) = self.charges.get_mut(owner) {
            *held = held.saturating_sub(bytes.unsigned_abs());
        }
        true
    }

    const fn counter(&mut self, size: u64) -> &mut u64 {
        if size >= LARGE { &mut self.large } else { &mut self.small }
    }
}

const fn step(bytes: u64) -> u64 {
    if bytes >= LARGE { BLOCK_STEP } else { SMALL_STEP }
}

//! Device, pinned, managed and registered memory of one process.
//!
//! Each device owns a fixed range of virtual addresses ([`Bank`]), reserved once and backed lazily: memory that is
//! never touched costs nothing, so terabytes can be "allocated". Virtual-memory management (`cuMem*`) has a range of its
//! own ([`virtual_memory`]). Capacity is accounted as the driver does: in steps of 2 MiB, with small allocations sharing
//! such steps, plus charges by owners that are no allocation (context, library workspaces).
//!
//! Content: kernels do nothing, so untouched memory reads zero. What copies wrote is remembered as dirty pages, so that
//! a framework's allocator can be given zeroed memory when it hands a block out again ([`Memory::freshen`]). Which of
//! the bytes mean anything is kept beside that ([`Content`]).

mod bank;
mod block;
mod content;
mod dirty;
pub mod virtual_memory;

pub use bank::{BLOCK_STEP, Bank};
pub use block::{Block, BlockKind};
pub use content::Content;

use std::collections::BTreeMap;

use trompe_base::DeviceIndex;

use self::content::Contents;
use self::dirty::Dirty;
use self::virtual_memory::VirtualMemory;

/// What the bookkeeping needs done to host memory.
pub trait Backing {
    /// Reserves `bytes` of zero-filled, lazily backed, readable and writable memory at exactly `address`.
    /// Returns whether it worked.
    fn reserve_at(&self, address: u64, bytes: u64) -> bool;

    /// Reserves such memory anywhere; `None` when the system refuses.
    fn reserve(&self, bytes: u64) -> Option<u64>;

    /// Whether the program has memory in a whole range.
    fn is_mapped(&self, address: u64, bytes: u64) -> bool;

    /// Gives a reservation back to the system.
    fn release(&self, address: u64, bytes: u64);

    /// Makes whole pages read zero again and gives their memory back; `address` and `bytes` are multiples of a page.
    fn discard(&self, address: u64, bytes: u64);

    /// Writes zeros.
    fn zero(&self, address: u64, bytes: u64);
}

/// Why a memory request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The device has no room.
    #[error("device {device} has {free} bytes free, {requested} were asked for")]
    OutOfMemory {
        /// Device.
        device: DeviceIndex,
        /// Bytes asked for.
        requested: u64,
        /// Bytes free.
        free: u64,
    },
    /// The system refused address space.
    #[error(
        "the system refused {bytes} bytes of address space; check `ulimit -v` and `vm.overcommit_memory`"
    )]
    AddressSpace {
        /// Bytes asked for.
        bytes: u64,
    },
    /// No allocation begins at the address.
    #[error("no allocation at {0:#x}")]
    NotAllocated(u64),
    /// The range is registered or mapped already.
    #[error("memory at {0:#x} is registered already")]
    AlreadyRegistered(u64),
    /// A handle is not live, or an argument makes no sense.
    #[error("invalid argument")]
    Invalid,
}

/// First address of device memory.
pub const DEVICE_BASE: u64 = 0x2000_0000_0000;
/// First address of virtual-memory-management reservations.
pub const VIRTUAL_BASE: u64 = 0x3000_0000_0000;
/// Lowest address that systems give to programs, and the first after those that they give.
const LOWEST: u64 = 1 << 16;
const END: u64 = 1 << 47;
/// First address after them.
pub const VIRTUAL_END: u64 = 0x4000_0000_0000;

/// All memory of the process that the libraries know.
#[derive(Debug)]
pub struct Memory<B> {
    backing: B,
    banks: Vec<Bank>,
    blocks: BTreeMap<u64, Block>,
    dirty: Dirty,
    contents: Contents,
    next_id: u64,
    /// Virtual-memory management.
    pub virtual_memory: VirtualMemory,
}

impl<B: Backing> Memory<B> {
    /// Memory of devices with the given capacities.
    pub fn new(backing: B, capacities: &[u64]) -> Self {
        // All banks lie between the two bases; with many large devices each gets an equal share.
        let share = (VIRTUAL_BASE - DEVICE_BASE) / (capacities.len().max(1) as u64).next_power_of_two();
        let mut next = DEVICE_BASE;
        let banks = capacities
            .iter()
            .map(|&capacity| {
                let bank = Bank::new(next, capacity, share);
                next = bank.end();
                bank
            })
            .collect();
        Self {
            backing,
            banks,
            blocks: BTreeMap::new(),
            dirty: Dirty::default(),
            contents: Contents::default(),
            next_id: 1,
            virtual_memory: VirtualMemory::new(),
        }
    }

    /// The device that `address` belongs to, by range alone: also for addresses that are not allocated.
    #[must_use]
    pub fn device_of(&self, address: u64) -> Option<DeviceIndex> {
        if (VIRTUAL_BASE..VIRTUAL_END).contains(&address) {
            return self.virtual_memory.device_of(address);
        }
        let index = self.banks.partition_point(|bank| bank.end() <= address);
        (index < self.banks.len() && address >= self.banks[index].base()).then_some(DeviceIndex(index as u32))
    }

    /// Allocates device memory.
    ///
    /// # Errors
    /// When the device is full or the system refuses address space.
    pub fn allocate(&mut self, device: DeviceIndex, bytes: u64) -> Result<u64, MemoryError> {
        let bank = self.banks.get_mut(device.index()).ok_or(MemoryError::Invalid)?;
        let out_of_memory = |free| MemoryError::OutOfMemory { device, requested: bytes, free };
        if bytes == 0 {
            return Err(MemoryError::Invalid);
        }
        if !bank.fits(bytes) {
            return Err(out_of_memory(bank.free()));
        }
        if !bank.reserved {
            if !self.backing.reserve_at(bank.base(), bank.end() - bank.base()) {
                return Err(MemoryError::AddressSpace { bytes: bank.end() - bank.base() });
            }
            bank.reserved = true;
        }
        let address = bank.take(bytes).ok_or_else(|| out_of_memory(bank.free()))?;
        self.insert(address, bytes, BlockKind::Device { device });
        Ok(address)
    }

    /// Allocates pinned or managed host memory, backed lazily.
    ///
    /// # Errors
    /// When the system refuses address space.
    pub fn allocate_host(&mut self, bytes: u64, kind: BlockKind) -> Result<u64, MemoryError> {
        let length =
            bytes.max(1).checked_next_multiple_of(4096).ok_or(MemoryError::AddressSpace { bytes })?;
        let address = self.backing.reserve(length).ok_or(MemoryError::AddressSpace { bytes: length })?;
        self.insert(address, bytes.max(1), kind);
        Ok(address)
    }

    /// Notes that the caller's own memory is pinned.
    ///
    /// # Errors
    /// When a part of it is known already.
    pub fn register(&mut self, address: u64, bytes: u64, kind: BlockKind) -> Result<(), MemoryError> {
        if bytes == 0 || address == 0 {
            return Err(MemoryError::Invalid);
        }
        let end = address.checked_add(bytes).ok_or(MemoryError::Invalid)?;
        if address < LOWEST
            || end > END
            || (DEVICE_BASE..VIRTUAL_END).contains(&address)
            || !self.backing.is_mapped(address, bytes)
        {
            return Err(MemoryError::Invalid);
        }
        let overlaps =
            self.blocks.range(..end).next_back().is_some_and(|(&at, block)| at + block.bytes > address);
        if overlaps {
            return Err(MemoryError::AlreadyRegistered(address));
        }
        self.insert(address, bytes, kind);
        Ok(())
    }

    /// Frees or unregisters what begins at `address`, if it is of the kind that `accepts` names.
    ///
    /// # Errors
    /// When nothing such begins there.
    pub fn free(&mut self, address: u64, accepts: fn(&BlockKind) -> bool) -> Result<Block, MemoryError> {
        let block = *self
            .blocks
            .get(&address)
            .filter(|block| accepts(&block.kind))
            .ok_or(MemoryError::NotAllocated(address))?;
        self.blocks.remove(&address);
        match block.kind {
            BlockKind::Device { device } => {
                self.clean(address, block.bytes);
                self.banks[device.index()].give(address, block.bytes);
            }
            BlockKind::Pinned { .. } | BlockKind::Managed { .. } => {
                self.backing.release(address, block.bytes.next_multiple_of(4096));
            }
            BlockKind::Registered { .. } => {}
        }
        Ok(block)
    }

    /// The allocation that contains `address`.
    #[must_use]
    pub fn block_at(&self, address: u64) -> Option<(u64, &Block)> {
        let (&start, block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.bytes).then_some((start, block))
    }

    /// The allocation or mapping of device memory that contains `address`: start, length and a process-wide id.
    #[must_use]
    pub fn device_range(&self, address: u64) -> Option<(u64, u64, u64)> {
        if (VIRTUAL_BASE..VIRTUAL_END).contains(&address) {
            return self.virtual_memory.range_at(address);
        }
        self.block_at(address).map(|(start, block)| (start, block.bytes, block.id))
    }

    /// Whether `bytes` from `address` may be touched: host memory, or device memory that is allocated or reserved.
    #[must_use]
    pub fn is_accessible(&self, address: u64, bytes: u64) -> bool {
        let Some(end) = address.checked_add(bytes) else { return false };
        if (VIRTUAL_BASE..VIRTUAL_END).contains(&address) {
            return self.virtual_memory.is_reserved(address, end);
        }
        if (DEVICE_BASE..VIRTUAL_BASE).contains(&address) {
            return self.block_at(address).is_some_and(|(start, block)| end <= start + block.bytes);
        }
        let lower = address >= LOWEST && end <= DEVICE_BASE;
        lower || (address >= VIRTUAL_END && end <= END)
    }

    /// Whether `bytes` from `address` are memory that this bookkeeping knows to be there: device memory, or host memory
    /// that is pinned, registered or managed.
    #[must_use]
    pub fn is_known(&self, address: u64, bytes: u64) -> bool {
        if (DEVICE_BASE..VIRTUAL_END).contains(&address) {
            return self.is_accessible(address, bytes);
        }
        self.block_at(address).is_some_and(|(start, block)| bytes <= block.bytes - (address - start))
    }

    /// Free and total bytes of a device, as `cudaMemGetInfo` gives them.
    #[must_use]
    pub fn info(&self, device: DeviceIndex) -> Option<(u64, u64)> {
        self.banks.get(device.index()).map(|bank| (bank.free(), bank.capacity()))
    }

    /// The bank of a device.
    #[must_use]
    pub fn bank(&self, device: DeviceIndex) -> Option<&Bank> {
        self.banks.get(device.index())
    }

    /// Takes device memory for an owner that is no allocation; negative gives back.
    ///
    /// # Errors
    /// When the device is full.
    pub fn charge(
        &mut self,
        device: DeviceIndex,
        owner: &'static str,
        bytes: i64,
    ) -> Result<(), MemoryError> {
        let bank = self.banks.get_mut(device.index()).ok_or(MemoryError::Invalid)?;
        let free = bank.free();
        if !bank.charge(owner, bytes) {
            return Err(MemoryError::OutOfMemory { device, requested: bytes.unsigned_abs(), free });
        }
        Ok(())
    }

    /// Notes that a copy or fill wrote to device memory.
    pub fn mark_written(&mut self, address: u64, bytes: u64) {
        self.dirty.insert(address, bytes);
    }

    /// Makes device memory read zero, where something was ever written. Its content is unknown then.
    pub fn freshen(&mut self, address: u64, bytes: u64) {
        self.clean(address, bytes);
    }

    /// How much the content of a range means. Host memory is always what the program made it.
    #[must_use]
    pub fn content(&self, address: u64, bytes: u64) -> Content {
        if (DEVICE_BASE..VIRTUAL_END).contains(&address) {
            self.contents.of(address, bytes)
        } else {
            Content::True
        }
    }

    /// Notes what a range holds after a write.
    pub fn note_content(&mut self, address: u64, bytes: u64, content: Content) {
        if (DEVICE_BASE..VIRTUAL_END).contains(&address) {
            self.contents.write(address, bytes, content);
        }
    }

    /// What really touches host memory.
    pub const fn backing(&self) -> &B {
        &self.backing
    }

    fn clean(&mut self, address: u64, bytes: u64) {
        self.contents.write(address, bytes, Content::Unknown);
        for part in self.dirty.take(address, bytes) {
            if part.whole_pages {
                self.backing.discard(part.address, part.bytes);
            } else {
                self.backing.zero(part.address, part.bytes);
            }
        }
    }

    fn insert(&mut self, address: u64, bytes: u64, kind: BlockKind) {
        let id = self.next_id;
        self.next_id += 1;
        self.blocks.insert(address, Block { bytes, kind, id });
    }
}

#[cfg(test)]
mod tests;

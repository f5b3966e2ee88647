//! Virtual-memory management: address reservations, physical allocations and mappings between them (`cuMem*`).

use std::collections::BTreeMap;

use trompe_base::DeviceIndex;

use super::{Backing, Memory, MemoryError, VIRTUAL_BASE, VIRTUAL_END};
use crate::handle::{HandleTable, Kind};
use crate::range::RangeSet;

/// Granularity of physical allocations and mappings.
pub const GRANULARITY: u64 = 2 << 20;

/// A physical allocation.
#[derive(Clone, Debug)]
pub struct Physical {
    /// Length in bytes.
    pub bytes: u64,
    /// Where it lies; `None` is host memory.
    pub device: Option<DeviceIndex>,
    /// `CUmemAllocationHandleType` bits that it may be exported as.
    pub export_types: u32,
    /// Belongs to another process, so it takes nothing from the device's capacity here.
    pub foreign: bool,
    references: u32,
}

#[derive(Clone, Copy, Debug)]
struct Mapping {
    bytes: u64,
    allocation: u64,
    device: Option<DeviceIndex>,
    id: u64,
}

/// Reservations, allocations and mappings.
#[derive(Debug)]
pub struct VirtualMemory {
    free: RangeSet,
    reserved: BTreeMap<u64, u64>,
    allocations: HandleTable<Physical>,
    mappings: BTreeMap<u64, Mapping>,
    next_id: u64,
}

impl VirtualMemory {
    pub(super) fn new() -> Self {
        let mut free = RangeSet::new();
        free.insert(VIRTUAL_BASE, VIRTUAL_END);
        Self {
            free,
            reserved: BTreeMap::new(),
            allocations: HandleTable::new(Kind::Allocation),
            mappings: BTreeMap::new(),
            next_id: 1 << 32,
        }
    }

    /// A physical allocation by handle.
    #[must_use]
    pub fn allocation(&self, handle: u64) -> Option<&Physical> {
        self.allocations.get(handle).ok()
    }

    /// The handle mapped at `address`.
    #[must_use]
    pub fn mapped_at(&self, address: u64) -> Option<u64> {
        self.mapping(address).map(|(_, mapping)| mapping.allocation)
    }

    pub(super) fn is_reserved(&self, address: u64, end: u64) -> bool {
        self.reserved.range(..=address).next_back().is_some_and(|(&start, &length)| end <= start + length)
    }

    pub(super) fn device_of(&self, address: u64) -> Option<DeviceIndex> {
        self.mapping(address).and_then(|(_, mapping)| mapping.device)
    }

    pub(super) fn range_at(&self, address: u64) -> Option<(u64, u64, u64)> {
        self.mapping(address).map(|(start, mapping)| (start, mapping.bytes, mapping.id))
    }

    fn mapping(&self, address: u64) -> Option<(u64, &Mapping)> {
        let (&start, mapping) = self.mappings.range(..=address).next_back()?;
        (address - start < mapping.bytes).then_some((start, mapping))
    }
}

impl<B: Backing> Memory<B> {
    /// Reserves addresses.
    ///
    /// # Errors
    /// When the system refuses, or the alignment is no power of two.
    pub fn reserve_addresses(&mut self, bytes: u64, alignment: u64) -> Result<u64, MemoryError> {
        if bytes == 0
            || !bytes.is_multiple_of(GRANULARITY)
            || (alignment != 0 && !alignment.is_power_of_two())
        {
            return Err(MemoryError::Invalid);
        }
        let virtual_memory = &mut self.virtual_memory;
        let address = virtual_memory
            .free
            .first_fit(bytes, alignment.max(GRANULARITY))
            .filter(|&address| self.backing.reserve_at(address, bytes))
            .ok_or(MemoryError::AddressSpace { bytes })?;
        virtual_memory.free.remove(address, address + bytes);
        virtual_memory.reserved.insert(address, bytes);
        Ok(address)
    }

    /// Gives reserved addresses back.
    ///
    /// # Errors
    /// When the range was not reserved as such.
    pub fn release_addresses(&mut self, address: u64, bytes: u64) -> Result<(), MemoryError> {
        let virtual_memory = &mut self.virtual_memory;
        if virtual_memory.reserved.get(&address) != Some(&bytes) {
            return Err(MemoryError::NotAllocated(address));
        }
        virtual_memory.reserved.remove(&address);
        virtual_memory.free.insert(address, address + bytes);
        self.dirty.take(address, bytes);
        self.backing.release(address, bytes);
        Ok(())
    }

    /// Makes a physical allocation.
    ///
    /// # Errors
    /// When the device is full or the size is no multiple of the granularity.
    pub fn create_allocation(
        &mut self,
        bytes: u64,
        device: Option<DeviceIndex>,
        export_types: u32,
    ) -> Result<u64, MemoryError> {
        if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            return Err(MemoryError::Invalid);
        }
        if let Some(device) = device {
            let bank = self.banks.get_mut(device.index()).ok_or(MemoryError::Invalid)?;
            let free = bank.free();
            if !bank.take_physical(bytes) {
                return Err(MemoryError::OutOfMemory { device, requested: bytes, free });
            }
        }
        let physical = Physical { bytes, device, export_types, foreign: false, references: 1 };
        Ok(self.virtual_memory.allocations.insert(physical).0)
    }

    /// Takes in an allocation of another process.
    ///
    /// # Errors
    /// When the size is no multiple of the granularity.
    pub fn import_allocation(&mut self, bytes: u64, device: Option<DeviceIndex>) -> Result<u64, MemoryError> {
        if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            return Err(MemoryError::Invalid);
        }
        let physical = Physical { bytes, device, export_types: 0, foreign: true, references: 1 };
        Ok(self.virtual_memory.allocations.insert(physical).0)
    }

    /// Takes one more reference to an allocation.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn retain_allocation(&mut self, handle: u64) -> Result<(), MemoryError> {
        let physical = self.virtual_memory.allocations.get_mut(handle).map_err(|_| MemoryError::Invalid)?;
        physical.references += 1;
        Ok(())
    }

    /// Drops one reference; the last one gives the memory back. Returns the allocation's device and length then.
    ///
    /// # Errors
    /// When the handle is not live.
    pub fn release_allocation(&mut self, handle: u64) -> Result<Option<Physical>, MemoryError> {
        let allocations = &mut self.virtual_memory.allocations;
        let physical = allocations.get_mut(handle).map_err(|_| MemoryError::Invalid)?;
        physical.references -= 1;
        if physical.references > 0 {
            return Ok(None);
        }
        let physical = allocations.remove(handle).map_err(|_| MemoryError::Invalid)?;
        if let Some(device) = physical.device
            && !physical.foreign
        {
            self.banks[device.index()].give_physical(physical.bytes);
        }
        Ok(Some(physical))
    }

    /// Maps an allocation at reserved addresses.
    ///
    /// # Errors
    /// When the range is not reserved or mapped already, or the handle is not live.
    pub fn map(&mut self, address: u64, bytes: u64, handle: u64) -> Result<(), MemoryError> {
        let virtual_memory = &mut self.virtual_memory;
        let end = address.checked_add(bytes).ok_or(MemoryError::Invalid)?;
        let inside = virtual_memory
            .reserved
            .range(..=address)
            .next_back()
            .is_some_and(|(&start, &length)| bytes > 0 && end <= start + length);
        let taken = virtual_memory
            .mappings
            .range(..end)
            .next_back()
            .is_some_and(|(&at, old)| at + old.bytes > address);
        if !inside || taken {
            return Err(MemoryError::Invalid);
        }
        let physical = virtual_memory.allocations.get_mut(handle).map_err(|_| MemoryError::Invalid)?;
        if bytes > physical.bytes {
            return Err(MemoryError::Invalid);
        }
        physical.references += 1;
        let (device, id) = (physical.device, virtual_memory.next_id);
        virtual_memory.next_id += 1;
        virtual_memory.mappings.insert(address, Mapping { bytes, allocation: handle, device, id });
        Ok(())
    }

    /// Takes all mappings out of a range. Returns the allocations that nothing refers to any more, by handle.
    ///
    /// # Errors
    /// When nothing is mapped there, or a mapping lies across its edge.
    pub fn unmap(&mut self, address: u64, bytes: u64) -> Result<Vec<(u64, Physical)>, MemoryError> {
        let end = address.checked_add(bytes).ok_or(MemoryError::Invalid)?;
        let inside: Vec<_> =
            self.virtual_memory.mappings.range(address..end).map(|(&at, mapping)| (at, *mapping)).collect();
        if inside.is_empty() || inside.iter().any(|(at, mapping)| at + mapping.bytes > end) {
            return Err(MemoryError::Invalid);
        }
        self.clean(address, bytes);
        let mut released = Vec::new();
        for (at, mapping) in inside {
            self.virtual_memory.mappings.remove(&at);
            let gone = self.release_allocation(mapping.allocation)?;
            released.extend(gone.map(|physical| (mapping.allocation, physical)));
        }
        Ok(released)
    }

    /// Maps memory of another process: fresh memory of the same size, which takes nothing from the device here.
    ///
    /// # Errors
    /// When the system refuses address space.
    pub fn map_foreign(&mut self, bytes: u64, device: DeviceIndex) -> Result<u64, MemoryError> {
        let length = bytes.max(1).checked_next_multiple_of(GRANULARITY).ok_or(MemoryError::Invalid)?;
        let address = self.reserve_addresses(length, 0)?;
        let allocation = self.import_allocation(length, Some(device))?;
        self.map(address, length, allocation)?;
        self.release_allocation(allocation)?;
        Ok(address)
    }

    /// Undoes [`Memory::map_foreign`].
    ///
    /// # Errors
    /// When no such mapping begins at the address.
    pub fn unmap_foreign(&mut self, address: u64) -> Result<(), MemoryError> {
        let (start, bytes, _) =
            self.virtual_memory.range_at(address).ok_or(MemoryError::NotAllocated(address))?;
        let foreign = self
            .virtual_memory
            .mapped_at(address)
            .and_then(|handle| self.virtual_memory.allocation(handle))
            .is_some_and(|physical| physical.foreign);
        if start != address || !foreign {
            return Err(MemoryError::NotAllocated(address));
        }
        self.unmap(address, bytes)?;
        self.release_addresses(address, bytes)
    }
}

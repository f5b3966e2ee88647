use std::cell::RefCell;

use super::*;

#[derive(Default)]
struct Noted {
    next: RefCell<u64>,
    discarded: RefCell<Vec<(u64, u64)>>,
    zeroed: RefCell<Vec<(u64, u64)>>,
}

impl Backing for Noted {
    fn reserve_at(&self, _: u64, _: u64) -> bool {
        true
    }

    fn reserve(&self, bytes: u64) -> Option<u64> {
        let mut next = self.next.borrow_mut();
        *next += 1 << 30;
        (bytes < 1 << 40).then_some(*next)
    }

    fn is_mapped(&self, _: u64, _: u64) -> bool {
        true
    }

    fn release(&self, _: u64, _: u64) {}

    fn discard(&self, address: u64, bytes: u64) {
        self.discarded.borrow_mut().push((address, bytes));
    }

    fn zero(&self, address: u64, bytes: u64) {
        self.zeroed.borrow_mut().push((address, bytes));
    }
}

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
const D0: DeviceIndex = DeviceIndex(0);
const D1: DeviceIndex = DeviceIndex(1);

fn memory() -> Memory<Noted> {
    Memory::new(Noted::default(), &[80 * GIB, 80 * GIB])
}

fn used(memory: &Memory<Noted>, device: DeviceIndex) -> u64 {
    let (free, total) = memory.info(device).expect("a device");
    total - free
}

#[test]
fn capacity_is_counted_in_driver_steps() {
    let mut memory = memory();
    let small = memory.allocate(D0, 512).expect("fits");
    assert_eq!(used(&memory, D0), 2 * MIB);
    let other = memory.allocate(D0, 1000).expect("fits");
    assert_eq!(used(&memory, D0), 2 * MIB, "small allocations share a step");
    let large = memory.allocate(D0, 20 * MIB + 1).expect("fits");
    assert_eq!(used(&memory, D0), 24 * MIB);
    assert_eq!(used(&memory, D1), 0);
    for address in [small, other, large] {
        memory.free(address, BlockKind::is_freed_as_device).expect("allocated");
    }
    assert_eq!(used(&memory, D0), 0);
}

#[test]
fn a_full_device_says_how_much_is_free() {
    let mut memory = memory();
    memory.charge(D0, "cuda_context", 500 * MIB as i64).expect("fits");
    let error = memory.allocate(D0, 80 * GIB).expect_err("the context is there");
    assert_eq!(
        error,
        MemoryError::OutOfMemory { device: D0, requested: 80 * GIB, free: 80 * GIB - 500 * MIB }
    );
    assert!(memory.allocate(D0, 80 * GIB - 500 * MIB).is_ok());
    assert!(memory.allocate(D0, 1).is_err());
    assert!(memory.allocate(D0, u64::MAX).is_err());
}

#[test]
fn addresses_are_reused_whatever_the_sizes() {
    let mut memory = memory();
    for round in 0..1000 {
        let address = memory.allocate(D1, 79 * GIB - round * 4096).expect("fits");
        assert_eq!(memory.device_of(address), Some(D1));
        assert_eq!(memory.device_of(address + 79 * GIB - round * 4096 - 1), Some(D1));
        memory.free(address, BlockKind::is_freed_as_device).expect("allocated");
    }
}

#[test]
fn freeing_twice_or_in_the_middle_is_an_error() {
    let mut memory = memory();
    let address = memory.allocate(D0, 4 * MIB).expect("fits");
    assert!(memory.free(address + 8, BlockKind::is_freed_as_device).is_err());
    assert!(memory.free(address, BlockKind::is_pinned).is_err());
    assert!(memory.free(address, BlockKind::is_freed_as_device).is_ok());
    assert!(memory.free(address, BlockKind::is_freed_as_device).is_err());
}

#[test]
fn what_was_written_is_zeroed_when_handed_out_again() {
    let mut memory = memory();
    let address = memory.allocate(D0, 4 * MIB).expect("fits");
    memory.freshen(address, 4 * MIB);
    assert!(memory.backing().zeroed.borrow().is_empty(), "nothing was written yet");
    memory.mark_written(address + 100, 8);
    memory.freshen(address, 512);
    assert_eq!(*memory.backing().zeroed.borrow(), [(address, 512)]);
    memory.mark_written(address, 4 * MIB);
    memory.free(address, BlockKind::is_freed_as_device).expect("allocated");
    assert_eq!(*memory.backing().discarded.borrow(), [(address, 4 * MIB)]);
}

#[test]
fn registered_memory_cannot_overlap() {
    let mut memory = memory();
    let kind = BlockKind::Registered { device: D0 };
    memory.register(0x10000, 4096, kind).expect("free");
    assert_eq!(memory.register(0x10fff, 4096, kind), Err(MemoryError::AlreadyRegistered(0x10fff)));
    memory.register(0x11000, 4096, kind).expect("free");
    assert_eq!(memory.block_at(0x10abc).map(|(at, block)| (at, block.bytes)), Some((0x10000, 4096)));
    assert!(memory.free(0x10000, BlockKind::is_registered).is_ok());
    assert!(memory.block_at(0x10abc).is_none());
}

#[test]
fn virtual_memory_counts_physical_allocations_until_the_last_reference() {
    let mut memory = memory();
    let address = memory.reserve_addresses(64 * MIB, 0).expect("addresses");
    let handle = memory.create_allocation(20 * MIB, Some(D1), 0).expect("fits");
    assert_eq!(used(&memory, D1), 20 * MIB);
    memory.map(address, 20 * MIB, handle).expect("reserved");
    assert!(memory.map(address, 20 * MIB, handle).is_err(), "mapped already");
    assert!(memory.map(address + 60 * MIB, 20 * MIB, handle).is_err(), "past the reservation");
    assert_eq!(memory.device_of(address + MIB), Some(D1));
    assert_eq!(memory.device_of(address + 21 * MIB), None);
    assert!(memory.release_allocation(handle).expect("live").is_none());
    assert_eq!(used(&memory, D1), 20 * MIB, "the mapping still refers to it");
    assert_eq!(memory.unmap(address, 20 * MIB).expect("mapped").len(), 1);
    assert_eq!(used(&memory, D1), 0);
    assert!(memory.release_allocation(handle).is_err());
    memory.release_addresses(address, 64 * MIB).expect("reserved");
    assert!(memory.release_addresses(address, 64 * MIB).is_err());
}

#[test]
fn banks_never_reach_into_each_other() {
    for (count, capacity) in [(1, GIB), (8, 80 * GIB), (8, 1 << 40), (16, 1 << 40), (64, 200 * GIB)] {
        let memory = Memory::new(Noted::default(), &vec![capacity; count]);
        let mut last = DEVICE_BASE;
        for index in 0..count {
            let device = DeviceIndex(index as u32);
            let bank = memory.bank(device).expect("a device");
            assert!(bank.base() >= last && bank.end() - bank.base() >= capacity, "{count} of {capacity}");
            assert_eq!(memory.device_of(bank.base()), Some(device));
            assert_eq!(memory.device_of(bank.end() - 1), Some(device));
            last = bank.end();
        }
        assert!(last <= VIRTUAL_BASE, "{count} of {capacity}");
    }
}

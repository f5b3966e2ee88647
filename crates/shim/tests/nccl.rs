//! The life of NCCL communicators, the memory that they take, and reductions of the program's own.

#![expect(unsafe_code, reason = "calls exported C functions")]

mod support;

use support::*;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; 128]);

const INT64: i32 = 4;
const HALF: i32 = 6;
const FLOAT: i32 = 7;
const SUM: i32 = 0;
const INVALID_ARGUMENT: i32 = 4;
const MIB: usize = 1 << 20;

unsafe extern "C" {
    fn ncclGetUniqueId(id: *mut UniqueId) -> i32;
    fn ncclCommInitRank(communicator: *mut u64, size: i32, id: UniqueId, rank: i32) -> i32;
    fn ncclCommInitRankScalable(
        communicator: *mut u64,
        size: i32,
        rank: i32,
        count: i32,
        ids: *const UniqueId,
        config: u64,
    ) -> i32;
    fn ncclCommShrink(
        parent: u64,
        excluded: *const i32,
        count: i32,
        communicator: *mut u64,
        config: u64,
        flags: i32,
    ) -> i32;
    fn ncclCommGrow(
        parent: u64,
        size: i32,
        id: *const UniqueId,
        rank: i32,
        communicator: *mut u64,
        config: u64,
    ) -> i32;
    fn ncclCommCount(communicator: u64, count: *mut i32) -> i32;
    fn ncclCommUserRank(communicator: u64, rank: *mut i32) -> i32;
    fn ncclCommGetAsyncError(communicator: u64, error: *mut i32) -> i32;
    fn ncclCommFinalize(communicator: u64) -> i32;
    fn ncclCommAbort(communicator: u64) -> i32;
    fn ncclCommDestroy(communicator: u64) -> i32;
    fn ncclCommMemStats(communicator: u64, statistic: i32, value: *mut u64) -> i32;
    fn ncclRedOpCreatePreMulSum(
        operator: *mut i32,
        scalar: u64,
        dtype: i32,
        residence: i32,
        communicator: u64,
    ) -> i32;
    fn ncclRedOpDestroy(operator: i32, communicator: u64) -> i32;
    fn ncclAllReduce(
        send: u64,
        receive: u64,
        count: usize,
        dtype: i32,
        operator: i32,
        communicator: u64,
        stream: u64,
    ) -> i32;
    fn ncclSend(send: u64, count: usize, dtype: i32, peer: i32, communicator: u64, stream: u64) -> i32;
    fn ncclCommWindowRegister(
        communicator: u64,
        buffer: u64,
        bytes: usize,
        window: *mut u64,
        flags: i32,
    ) -> i32;
    fn ncclCommWindowDeregister(communicator: u64, window: u64) -> i32;
    fn ncclMemAlloc(address: *mut u64, bytes: usize) -> i32;
    fn ncclMemFree(address: u64) -> i32;
    fn ncclPutSignal() -> i32;
}

/// The tests look at the memory of one device.
static DEVICE: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn made(make: impl FnOnce(*mut u64) -> i32) -> u64 {
    let mut handle = 0;
    assert_eq!(make(&raw mut handle), 0);
    handle
}

fn communicator(size: i32, rank: i32) -> u64 {
    let mut id = UniqueId([0; 128]);
    // SAFETY: a valid place for the answer.
    unsafe {
        assert_eq!(ncclGetUniqueId(&raw mut id), 0);
        made(|out| ncclCommInitRank(out, size, id, rank))
    }
}

fn shape(communicator: u64) -> (i32, i32) {
    let (mut size, mut rank) = (0, 0);
    // SAFETY: valid places for answers.
    unsafe {
        assert_eq!(ncclCommCount(communicator, &raw mut size), 0);
        assert_eq!(ncclCommUserRank(communicator, &raw mut rank), 0);
    }
    (size, rank)
}

fn free_bytes() -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: valid places for answers.
    assert_eq!(unsafe { cudaMemGetInfo(&raw mut free, &raw mut total) }, 0);
    free
}

#[test]
fn communicators_begin_change_and_end() {
    let _one_at_a_time = DEVICE.lock();
    node();
    let ids = [UniqueId([7; 128]), UniqueId([8; 128])];
    // SAFETY: valid places for answers and arrays of the given lengths.
    unsafe {
        let world = made(|out| ncclCommInitRankScalable(out, 8, 5, 2, ids.as_ptr(), 0));
        assert_eq!(shape(world), (8, 5));
        assert_eq!(ncclCommInitRankScalable(&mut 0, 8, 5, 0, ids.as_ptr(), 0), INVALID_ARGUMENT);
        assert_eq!(ncclCommInitRankScalable(&mut 0, 8, 8, 2, ids.as_ptr(), 0), INVALID_ARGUMENT);
        let smaller = made(|out| ncclCommShrink(world, [0, 7].as_ptr(), 2, out, 0, 0));
        assert_eq!(shape(smaller), (6, 4), "ranks close up");
        assert_eq!(ncclCommShrink(world, [5].as_ptr(), 1, &mut 0, 0, 0), INVALID_ARGUMENT);
        let larger = made(|out| ncclCommGrow(world, 16, std::ptr::null(), -1, out, 0));
        assert_eq!(shape(larger), (16, 5), "old members keep their place");
        let newcomer = made(|out| ncclCommGrow(0, 16, ids.as_ptr(), 9, out, 0));
        assert_eq!(shape(newcomer), (16, 9));
        let mut error = 7;
        assert_eq!(ncclCommGetAsyncError(world, &raw mut error), 0);
        assert_eq!(error, 0);
        assert_eq!(ncclCommFinalize(world), 0);
        assert_eq!(shape(world), (8, 5), "finalized is not destroyed");
        assert_eq!(ncclCommDestroy(world), 0);
        assert_eq!(ncclCommAbort(smaller), 0);
        assert_eq!(ncclCommAbort(larger), 0);
        assert_eq!(ncclCommAbort(newcomer), 0);
        for gone in [world, smaller] {
            assert_eq!(ncclCommGetAsyncError(gone, &raw mut error), INVALID_ARGUMENT);
            assert_eq!(ncclCommFinalize(gone), INVALID_ARGUMENT);
            assert_eq!(ncclCommAbort(gone), INVALID_ARGUMENT);
        }
        assert_eq!(ncclCommDestroy(0), 0, "ending nothing is no error");
        assert_eq!(ncclPutSignal(), 5, "what is not emulated has the library's own code");
    }
}

#[test]
fn connections_take_device_memory_until_the_end() {
    let _one_at_a_time = DEVICE.lock();
    node();
    let buffer = made(|out| {
        // SAFETY: `out` points to a local.
        unsafe { cudaMalloc(out, 4096) }
    });
    let before = free_bytes();
    let taken = || (before - free_bytes()) / MIB;
    // SAFETY: a device buffer and live communicators.
    unsafe {
        let world = communicator(8, 3);
        assert_eq!(taken(), 0, "nothing is connected yet");
        assert_eq!(ncclAllReduce(buffer, buffer, 8, FLOAT, SUM, world, 0), 0);
        assert_eq!(taken(), 24 * 12 + 256);
        assert_eq!(ncclAllReduce(buffer, buffer, 8, FLOAT, SUM, world, 0), 0);
        assert_eq!(ncclSend(buffer, 8, FLOAT, 4, world, 0), 0);
        assert_eq!(taken(), 24 * 12 + 256 + 384);
        let mut held = 0;
        assert_eq!(ncclCommMemStats(world, 3, &raw mut held), 0);
        assert_eq!(held as usize / MIB, taken());
        let second = communicator(2, 0);
        assert_eq!(ncclAllReduce(buffer, buffer, 8, FLOAT, SUM, second, 0), 0);
        assert_eq!(taken(), 24 * 12 + 256 + 384 + 24 * 12, "each communicator has its own");
        assert_eq!(ncclCommDestroy(world), 0);
        assert_eq!(ncclCommAbort(second), 0);
        assert_eq!(taken(), 0);
        assert_eq!(cudaFree(buffer), 0);
    }
}

#[test]
fn operators_of_the_program_multiply_before_they_add() {
    let _one_at_a_time = DEVICE.lock();
    node();
    let buffer = made(|out| {
        // SAFETY: `out` points to a local.
        unsafe { cudaMalloc(out, 4096) }
    });
    let host = |bytes: &[u8]| {
        // SAFETY: the buffer has more bytes than any of the values.
        assert_eq!(unsafe { cudaMemcpy(buffer, bytes.as_ptr() as u64, bytes.len(), 1) }, 0);
    };
    let back = |length: usize| {
        let mut bytes = vec![0_u8; length];
        // SAFETY: as above.
        assert_eq!(unsafe { cudaMemcpy(bytes.as_mut_ptr() as u64, buffer, length, 2) }, 0);
        bytes
    };
    // SAFETY: a device buffer, live communicators, and scalars of the types that are said.
    unsafe {
        let world = communicator(4, 0);
        let half = 0.5_f32;
        let mut operator = 0;
        let create = |operator, residence| {
            ncclRedOpCreatePreMulSum(operator, &raw const half as u64, FLOAT, residence, world)
        };
        assert_eq!(create(&raw mut operator, 7), INVALID_ARGUMENT);
        assert_eq!(create(&raw mut operator, 1), 0);
        host(&3.0_f32.to_le_bytes());
        assert_eq!(ncclAllReduce(buffer, buffer, 1, FLOAT, operator, world, 0), 0);
        assert_eq!(back(4), 6.0_f32.to_le_bytes(), "four members give 1.5 each");
        assert_eq!(ncclRedOpDestroy(operator, world), 0);
        assert_eq!(ncclRedOpDestroy(operator, world), INVALID_ARGUMENT);
        assert_eq!(ncclAllReduce(buffer, buffer, 1, FLOAT, operator, world, 0), INVALID_ARGUMENT);
        // 1.5 in half precision, and a whole number.
        host(&0x3e00_u16.to_le_bytes());
        assert_eq!(ncclAllReduce(buffer, buffer, 1, HALF, SUM, world, 0), 0);
        assert_eq!(back(2), 0x4600_u16.to_le_bytes(), "6");
        host(&(1_i64 << 53 | 1).to_le_bytes());
        assert_eq!(ncclAllReduce(buffer, buffer, 1, INT64, SUM, world, 0), 0);
        assert_eq!(back(8), (4 * (1_i64 << 53 | 1)).to_le_bytes());
        assert_eq!(ncclCommDestroy(world), 0);
        assert_eq!(cudaFree(buffer), 0);
    }
}

#[test]
fn windows_and_memory_of_the_library() {
    let _one_at_a_time = DEVICE.lock();
    node();
    // SAFETY: valid places for answers.
    unsafe {
        let world = communicator(2, 1);
        let memory = made(|out| ncclMemAlloc(out, 1 << 20));
        let window = made(|out| ncclCommWindowRegister(world, memory, 1 << 20, out, 0));
        assert_ne!(window, 0);
        assert_eq!(ncclCommWindowDeregister(world, window), 0);
        assert_eq!(ncclMemFree(memory), 0);
        assert_eq!(ncclMemFree(memory), INVALID_ARGUMENT);
        assert_eq!(ncclCommDestroy(world), 0);
    }
}

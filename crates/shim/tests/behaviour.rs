//! Memory, content, graphs and sharing behave as a program expects.

#![expect(unsafe_code, reason = "calls exported C functions")]

mod support;

use std::sync::atomic::{AtomicU32, Ordering};

use support::*;

fn made(make: impl FnOnce(*mut u64) -> i32) -> u64 {
    let mut value = 0;
    assert_eq!(make(&raw mut value), 0);
    value
}

fn read<const N: usize>(address: u64) -> [u8; N] {
    let mut content = [0xee; N];
    // SAFETY: the place has N bytes.
    assert_eq!(unsafe { cudaMemcpy(content.as_mut_ptr() as u64, address, N, 2) }, 0);
    content
}

fn write(address: u64, content: &[u8]) {
    // SAFETY: the place has as many bytes.
    assert_eq!(unsafe { cudaMemcpy(address, content.as_ptr() as u64, content.len(), 1) }, 0);
}

/// Bytes in use on a device; other tests must not allocate on it.
fn used(device: i32) -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: valid places for answers.
    unsafe {
        assert_eq!(cudaSetDevice(device), 0);
        assert_eq!(cudaMemGetInfo(&raw mut free, &raw mut total), 0);
    }
    total - free
}

#[test]
fn small_copies_arrive_and_fresh_memory_reads_zero() {
    node();
    // SAFETY: valid places and live allocations.
    unsafe {
        let a = made(|out| cudaMalloc(out, 1 << 20));
        assert_eq!(read::<4>(a), [0; 4]);
        write(a + 10, &[1, 2, 3, 4]);
        assert_eq!(read::<4>(a + 10), [1, 2, 3, 4]);
        let b = made(|out| cudaMalloc(out, 1 << 20));
        assert_eq!(cudaMemcpyAsync(b, a, 64, 3, 0), 0);
        assert_eq!(read::<4>(b + 10), [1, 2, 3, 4]);
        assert_eq!(cudaMemset(b + 12, 9, 1), 0);
        assert_eq!(read::<4>(b + 10), [1, 2, 9, 4]);
        trompe_alloc_event(0, b, 512, 0);
        assert_eq!(read::<4>(b + 10), [0; 4], "the framework handed the block out again");
        assert_eq!(read::<4>(a + 10), [1, 2, 3, 4]);
        assert_eq!(cudaFree(a), 0);
        let c = made(|out| cudaMalloc(out, 1 << 20));
        assert_eq!(read::<4>(c + 10), [0; 4], "freed memory is zero when it comes back");
    }
}

#[test]
fn the_context_and_allocations_are_charged() {
    node();
    let context = used(5);
    assert!(context > 100 << 20, "{context}");
    // SAFETY: valid places and live allocations.
    unsafe {
        let a = made(|out| cudaMalloc(out, 100 << 20));
        assert_eq!(used(5), context + (100 << 20));
        let b = made(|out| cudaMallocAsync(out, 10 << 20, 0));
        assert_eq!(used(5), context + (110 << 20));
        assert_eq!(cudaFreeAsync(b, 0), 0);
        assert_eq!(cudaFree(a), 0);
    }
    assert_eq!(used(5), context);
}

#[test]
fn physical_memory_is_charged_until_nothing_refers_to_it_and_can_be_shared() {
    const SIZE: usize = 20 << 20;
    node();
    let before = used(6);
    let properties = [1 | 1 << 32, 1 | 6 << 32, 0, 0];
    // SAFETY: valid places and live handles.
    unsafe {
        let handle = made(|out| cuMemCreate(out, SIZE, &properties, 0));
        assert_eq!(used(6), before + SIZE);
        let address = made(|out| cuMemAddressReserve(out, SIZE, 0, 0, 0));
        assert_eq!(cuMemMap(address, SIZE, 0, handle, 0), 0);
        write(address + 100, &[5, 6]);
        assert_eq!(read::<2>(address + 100), [5, 6]);
        let mut descriptor = -1;
        assert_eq!(cuMemExportToShareableHandle(&raw mut descriptor, handle, 1, 0), 0);
        let imported = made(|out| cuMemImportFromShareableHandle(out, descriptor as u64, 1));
        assert_ne!(imported, handle);
        let other = made(|out| cuMemAddressReserve(out, SIZE, 0, 0, 0));
        assert_eq!(cuMemMap(other, SIZE, 0, imported, 0), 0);
        write(other, &[1]);
        assert_eq!(used(6), before + SIZE, "shared memory is charged to its owner only");
        assert_eq!(cuMemRelease(handle), 0);
        assert_eq!(used(6), before + SIZE);
        assert_eq!(cuMemUnmap(address, SIZE), 0);
    }
    assert_eq!(used(6), before);
}

static DESTROYED: AtomicU32 = AtomicU32::new(0);

extern "C" fn destroy(_: *mut i32) {
    DESTROYED.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_graph_repeats_its_small_copies_and_keeps_user_objects() {
    node();
    // SAFETY: valid places and live handles.
    unsafe {
        let stream = made(|out| cudaStreamCreateWithFlags(out, 1));
        let place = made(|out| cudaMalloc(out, 4096));
        let source = made(|out| cudaHostAlloc(out, 4, 0));
        (source as *mut [u8; 4]).write([1, 2, 3, 4]);
        assert_eq!(cudaStreamBeginCapture(stream, 2), 0);
        assert_eq!(cudaMemcpyAsync(place, source, 4, 1, stream), 0);
        assert_eq!(cudaMemsetAsync(place + 4, 7, 2, stream), 0);
        let graph = made(|out| cudaStreamEndCapture(stream, out));
        assert_eq!(read::<6>(place), [0; 6], "nothing ran while it was captured");
        let mut count = 0;
        assert_eq!(cudaGraphGetNodes(graph, std::ptr::null_mut(), &raw mut count), 0);
        assert_eq!(count, 2);
        let object = made(|out| cudaUserObjectCreate(out, std::ptr::null_mut(), destroy, 1, 1));
        assert_eq!(cudaGraphRetainUserObject(graph, object, 1, 1), 0);
        let executable = made(|out| cudaGraphInstantiate(out, graph, 0));
        assert_eq!(cudaGraphDestroy(graph), 0);
        assert_eq!(DESTROYED.load(Ordering::SeqCst), 0);
        assert_eq!(cudaGraphLaunch(executable, stream), 0);
        assert_eq!(read::<6>(place), [1, 2, 3, 4, 7, 7]);
        assert_eq!((cudaFreeHost(source), cudaFree(place)), (0, 0));
        assert_eq!(cudaGraphLaunch(executable, stream), 0, "what is gone is left alone");
        assert_eq!(cudaGraphExecDestroy(executable), 0);
        assert_eq!(DESTROYED.load(Ordering::SeqCst), 1, "the last reference calls the destructor");
        assert_eq!(cudaGraphLaunch(executable, stream), 400);
    }
}

#[test]
fn events_give_a_time_above_zero() {
    node();
    // SAFETY: valid places and live handles.
    unsafe {
        let (a, b) = (made(|out| cudaEventCreate(out)), made(|out| cudaEventCreate(out)));
        assert_eq!(cudaEventQuery(a), 0);
        assert_eq!(cudaEventRecord(a, 0), 0);
        assert_eq!(cudaEventRecord(b, 0), 0);
        assert_eq!(cudaEventSynchronize(b), 0);
        let mut milliseconds = 0.0;
        assert_eq!(cudaEventElapsedTime(&raw mut milliseconds, a, b), 0);
        assert!(milliseconds > 0.0);
    }
}

#[test]
fn runtime_and_driver_agree_on_every_attribute() {
    node();
    for number in 1..149 {
        let (mut runtime, mut driver) = (-7, -8);
        // SAFETY: valid places for answers.
        let codes = unsafe {
            (
                cudaDeviceGetAttribute(&raw mut runtime, number, 3),
                cuDeviceGetAttribute(&raw mut driver, number, 3),
            )
        };
        assert_eq!(codes, (0, 0), "attribute {number}");
        assert_eq!(runtime, driver, "attribute {number}");
    }
}

#[test]
fn driver_functions_are_found_in_their_newest_version() {
    node();
    let mut function = 0;
    let mut status = -1;
    // SAFETY: valid places for answers.
    unsafe {
        let code = cudaGetDriverEntryPointByVersion(
            c"cuMemCreate".as_ptr(),
            &raw mut function,
            12_000,
            0,
            &raw mut status,
        );
        assert_eq!((code, status), (0, 0));
        assert_eq!(function, cuMemCreate as *const () as u64);
        let code =
            cuGetProcAddress_v2(c"cuGetProcAddress".as_ptr(), &raw mut function, 13_000, 0, &raw mut status);
        assert_eq!((code, status), (0, 0));
        assert_eq!(function, cuGetProcAddress_v2 as *const () as u64);
    }
}

#[test]
fn work_is_not_over_before_somebody_waited() {
    const NOT_READY: i32 = 600;
    node();
    let mut milliseconds = 0.0_f32;
    // SAFETY: valid places for answers and device memory of the size that is filled.
    unsafe {
        let stream = made(|out| cudaStreamCreateWithFlags(out, 1));
        let memory = made(|out| cudaMalloc(out, 4096));
        let (before, after) = (made(|out| cudaEventCreate(out)), made(|out| cudaEventCreate(out)));
        assert_eq!(cudaEventRecord(before, stream), 0);
        assert_eq!(cudaEventQuery(before), 0, "nothing was enqueued before it");
        assert_eq!(cudaMemsetAsync(memory, 1, 4096, stream), 0);
        assert_eq!(cudaEventRecord(after, stream), 0);
        assert_eq!(cudaEventQuery(after), NOT_READY);
        assert_eq!(cudaStreamQuery(stream), NOT_READY);
        assert_eq!(cudaEventElapsedTime(&raw mut milliseconds, before, after), NOT_READY);
        assert_eq!(cudaEventSynchronize(after), 0);
        assert_eq!(cudaEventQuery(after), 0);
        assert_eq!(cudaEventElapsedTime(&raw mut milliseconds, before, after), 0);
        assert_eq!(cudaMemsetAsync(memory, 1, 4096, stream), 0);
        assert_eq!(cudaEventQuery(after), 0, "what came later does not count");
        let asked = (0..100).take_while(|_| cudaStreamQuery(stream) == NOT_READY).count();
        assert!((1..100).contains(&asked), "a loop that asks ends after {asked} times");
        assert_eq!(cudaFree(memory), 0);
        assert_eq!(cudaStreamDestroy(stream), 0);
    }
}

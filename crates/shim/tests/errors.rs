//! Wrong calls get the library's own error codes, and nothing else happens.

#![expect(unsafe_code, reason = "calls exported C functions")]

mod support;

use support::*;

/// Codes of `cudaError_t` and `CUresult` (they share their numbers).
const SUCCESS: i32 = 0;
const INVALID_VALUE: i32 = 1;
const OUT_OF_MEMORY: i32 = 2;
const INVALID_CONFIGURATION: i32 = 9;
const INVALID_DEVICE_FUNCTION: i32 = 98;
const INVALID_DEVICE: i32 = 101;
const INVALID_CONTEXT: i32 = 201;
const INVALID_HANDLE: i32 = 400;
const ILLEGAL_STATE: i32 = 401;
const NOT_FOUND: i32 = 500;
const ALREADY_REGISTERED: i32 = 712;
const NOT_REGISTERED: i32 = 713;
const NOT_SUPPORTED: i32 = 801;
const CAPTURE_UNSUPPORTED: i32 = 900;
const CAPTURE_INVALIDATED: i32 = 901;
const CAPTURE_UNMATCHED: i32 = 903;
const CAPTURED_EVENT: i32 = 907;

fn made(make: impl FnOnce(*mut u64) -> i32) -> u64 {
    let mut value = 0;
    assert_eq!(make(&raw mut value), SUCCESS);
    value
}

fn stream() -> u64 {
    // SAFETY: a valid place for the answer.
    made(|out| unsafe { cudaStreamCreateWithFlags(out, 1) })
}

fn event() -> u64 {
    // SAFETY: a valid place for the answer.
    made(|out| unsafe { cudaEventCreate(out) })
}

fn memory(bytes: usize) -> u64 {
    // SAFETY: a valid place for the answer.
    made(|out| unsafe { cudaMalloc(out, bytes) })
}

macro_rules! check {
    ($($name:ident: { $($body:tt)* } => $expect:expr;)*) => {$(
        #[test]
        fn $name() {
            node();
            // SAFETY: each case passes valid places, or what the function must refuse.
            let code = unsafe { $($body)* };
            assert_eq!(code, $expect);
        }
    )*};
}

check! {
    device_past_the_last: { cudaSetDevice(8) } => INVALID_DEVICE;
    device_below_zero: { cudaSetDevice(-1) } => INVALID_DEVICE;
    null_answer: { cudaGetDeviceCount(std::ptr::null_mut()) } => INVALID_VALUE;
    free_of_nothing: { cudaFree(0) } => SUCCESS;
    free_of_a_foreign_address: { cudaFree(0x1234) } => INVALID_VALUE;
    free_in_the_middle: { cudaFree(memory(4096) + 8) } => INVALID_VALUE;
    free_twice: { let a = memory(4096); cudaFree(a); cudaFree(a) } => INVALID_VALUE;
    free_of_host_memory: { cudaFree(made(|out| cudaHostAlloc(out, 64, 0))) } => INVALID_VALUE;
    free_host_twice: { let a = made(|out| cudaHostAlloc(out, 64, 0)); cudaFreeHost(a); cudaFreeHost(a) } => INVALID_VALUE;
    more_than_the_device_has: { let mut a = 0; cudaMalloc(&raw mut a, 1 << 40) } => OUT_OF_MEMORY;
    more_than_addresses: { let mut a = 0; cudaMalloc(&raw mut a, usize::MAX) } => OUT_OF_MEMORY;
    unregister_of_unknown: { cudaHostUnregister(0x5000) } => NOT_REGISTERED;
    register_twice: {
        let b = vec![0_u8; 16384].leak().as_ptr() as u64;
        cudaHostRegister(b, 4096, 0);
        cudaHostRegister(b + 2048, 64, 0)
    } => ALREADY_REGISTERED;
    register_memory_that_is_not_there: { cudaHostRegister(0x70000, 4096, 0) } => INVALID_VALUE;
    copy_to_freed_memory: { let a = memory(4 << 20); cudaFree(a); cudaMemset(a, 1, 64) } => INVALID_VALUE;
    copy_past_the_end: { let a = memory(64); let b = [0u8; 128]; cudaMemcpy(a, b.as_ptr() as u64, 128, 1) } => INVALID_VALUE;
    copy_of_a_strange_kind: { let b = [0u8; 8]; cudaMemcpy(memory(64), b.as_ptr() as u64, 8, 9) } => 21;
    wait_for_an_unknown_stream: { cudaStreamSynchronize(0x1234) } => INVALID_HANDLE;
    wait_for_a_destroyed_stream: { let s = stream(); cudaStreamDestroy(s); cudaStreamSynchronize(s) } => INVALID_HANDLE;
    stream_taken_for_an_event: { cudaEventRecord(stream(), 0) } => INVALID_HANDLE;
    record_a_destroyed_event: { let e = event(); cudaEventDestroy(e); cudaEventRecord(e, 0) } => INVALID_HANDLE;
    time_of_an_unrecorded_event: { let mut t = 0.0; cudaEventElapsedTime(&raw mut t, event(), event()) } => INVALID_HANDLE;
    launch_of_an_unknown_function: {
        cudaLaunchKernel(0x9999, Dim3(1, 1, 1), Dim3(1, 1, 1), std::ptr::null(), 0, 0)
    } => INVALID_DEVICE_FUNCTION;
    launch_of_no_blocks: { launch(Dim3(0, 1, 1), Dim3(32, 1, 1), 0) } => INVALID_CONFIGURATION;
    launch_of_too_many_threads: { launch(Dim3(1, 1, 1), Dim3(1025, 1, 1), 0) } => INVALID_CONFIGURATION;
    launch_of_a_tall_grid: { launch(Dim3(1, 65_536, 1), Dim3(1, 1, 1), 0) } => INVALID_CONFIGURATION;
    launch_with_too_much_shared_memory: { launch(Dim3(1, 1, 1), Dim3(1, 1, 1), 300 << 10) } => INVALID_VALUE;
    launch_that_fits: { launch(Dim3(1, 65_535, 1), Dim3(1024, 1, 1), 200 << 10) } => SUCCESS;
    unknown_context: { cuCtxSetCurrent(0x77) } => INVALID_CONTEXT;
    init_with_flags: { cuInit(1) } => INVALID_VALUE;
    damaged_module: { let mut m = 0; cuModuleLoadData(&raw mut m, b"\x7fELFbroken...................................................................".as_ptr()) } => 200;
    kernel_that_a_module_lacks: {
        let text = b".version 8.0\n.target sm_90\n.entry here() { ret; }\0";
        let module = made(|out| cuModuleLoadData(out, text.as_ptr()));
        let mut function = 0;
        assert_eq!(cuModuleGetFunction(&raw mut function, module, c"here".as_ptr()), SUCCESS);
        cuModuleGetFunction(&raw mut function, module, c"elsewhere".as_ptr())
    } => NOT_FOUND;
    unknown_driver_function: {
        let mut function = 1;
        let code = cuGetProcAddress_v2(c"cuNothing".as_ptr(), &raw mut function, 13_020, 0, std::ptr::null_mut());
        assert_eq!(function, 0);
        code
    } => NOT_FOUND;
    static_runtime: { let mut t = 1; let code = cuGetExportTable(&raw mut t, std::ptr::null()); assert_eq!(t, 0); code } => NOT_SUPPORTED;
    unsupported_function: { cudaGraphExecUpdate() } => NOT_SUPPORTED;
    capture_on_the_default_stream: { cudaStreamBeginCapture(0, 1) } => CAPTURE_UNSUPPORTED;
    capture_twice: { let s = stream(); cudaStreamBeginCapture(s, 1); cudaStreamBeginCapture(s, 1) } => ILLEGAL_STATE;
    end_without_begin: { let mut g = 0; cudaStreamEndCapture(stream(), &raw mut g) } => ILLEGAL_STATE;
    wait_in_a_capture: { let s = stream(); cudaStreamBeginCapture(s, 1); cudaStreamSynchronize(s) } => CAPTURE_UNSUPPORTED;
    end_of_a_broken_capture: {
        let (s, mut g) = (stream(), 0);
        cudaStreamBeginCapture(s, 1);
        cudaStreamQuery(s);
        cudaStreamEndCapture(s, &raw mut g)
    } => CAPTURE_INVALIDATED;
    end_on_another_stream: {
        let (a, b, e, mut g) = (stream(), stream(), event(), 0);
        cudaStreamBeginCapture(a, 1);
        cudaEventRecord(e, a);
        assert_eq!(cudaStreamWaitEvent(b, e, 0), SUCCESS);
        cudaStreamEndCapture(b, &raw mut g)
    } => CAPTURE_UNMATCHED;
    wait_for_a_captured_event: {
        let (s, e) = (stream(), event());
        cudaStreamBeginCapture(s, 1);
        cudaEventRecord(e, s);
        cudaEventSynchronize(e)
    } => CAPTURED_EVENT;
    physical_memory_of_an_odd_size: { let mut h = 0; cuMemCreate(&raw mut h, 100, &properties(0), 0) } => INVALID_VALUE;
    physical_memory_on_no_device: { let mut h = 0; cuMemCreate(&raw mut h, 2 << 20, &properties(99), 0) } => INVALID_DEVICE;
    fabric_handles: { let mut h = 0; cuMemCreate(&raw mut h, 2 << 20, &[1 | 8 << 32, 1, 0, 0], 0) } => NOT_SUPPORTED;
    import_of_no_descriptor: { let mut h = 0; cuMemImportFromShareableHandle(&raw mut h, 9999, 1) } => INVALID_VALUE;
}

/// `CUmemAllocationProp`: pinned, shareable as a file descriptor, on a device.
fn properties(device: u64) -> [u64; 4] {
    [1 | 1 << 32, 1 | device << 32, 0, 0]
}

/// Launches a registered kernel without parameters.
unsafe fn launch(grid: Dim3, block: Dim3, shared: usize) -> i32 {
    // SAFETY: a registered function; a kernel of unknown layout reads no parameters.
    unsafe {
        __cudaRegisterFunction(0, 0x4000, 0, c"kernel".as_ptr(), -1, 0, 0, 0, 0, 0);
        cudaLaunchKernel(0x4000, grid, block, std::ptr::null(), shared, 0)
    }
}

#[test]
fn the_last_error_stays_until_it_is_taken() {
    node();
    // SAFETY: valid places for answers.
    unsafe {
        assert_eq!(cudaFree(0x1234), INVALID_VALUE);
        assert_eq!(cudaDeviceSynchronize(), SUCCESS);
        assert_eq!(cudaPeekAtLastError(), INVALID_VALUE);
        assert_eq!(cudaGetLastError(), INVALID_VALUE);
        assert_eq!(cudaGetLastError(), SUCCESS);
        let other = std::thread::spawn(|| cudaGetLastError());
        assert_eq!(other.join().expect("no panic"), SUCCESS, "each thread has its own");
    }
}

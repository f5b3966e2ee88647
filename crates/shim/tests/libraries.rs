//! What the libraries above the runtime answer: settings read back, sizes, content of collectives, errors.

#![expect(unsafe_code, reason = "calls exported C functions")]

mod support;

use std::ffi::CStr;

use support::*;
use trompe_hardware::{EmulatedNode, resolve};

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UniqueId([u8; 128]);

unsafe extern "C" {
    fn cublasCreate_v2(handle: *mut u64) -> i32;
    fn cublasDestroy_v2(handle: u64) -> i32;
    fn cublasSetMathMode(handle: u64, mode: u32) -> i32;
    fn cublasGetMathMode(handle: u64, mode: *mut u32) -> i32;
    fn cublasSdot_v2(handle: u64, n: i32, x: u64, step_x: i32, y: u64, step_y: i32, result: *mut f32) -> i32;
    fn cublasSdgmm() -> i32;
    fn cudnnCreate(handle: *mut u64) -> i32;
    fn cudnnCreateTensorDescriptor(descriptor: *mut u64) -> i32;
    fn cudnnDestroyTensorDescriptor(descriptor: u64) -> i32;
    fn cudnnSetTensor4dDescriptor(
        tensor: u64,
        format: i32,
        dtype: i32,
        n: i32,
        c: i32,
        h: i32,
        w: i32,
    ) -> i32;
    fn cudnnGetTensorNdDescriptor(
        tensor: u64,
        requested: i32,
        dtype: *mut i32,
        count: *mut i32,
        dimensions: *mut i32,
        strides: *mut i32,
    ) -> i32;
    fn cudnnGetVersion() -> usize;
    fn ncclGetUniqueId(id: *mut UniqueId) -> i32;
    fn ncclCommInitRank(communicator: *mut u64, size: i32, id: UniqueId, rank: i32) -> i32;
    fn ncclCommSplit(parent: u64, color: i32, key: i32, communicator: *mut u64, config: u64) -> i32;
    fn ncclCommCount(communicator: u64, count: *mut i32) -> i32;
    fn ncclCommUserRank(communicator: u64, rank: *mut i32) -> i32;
    fn ncclCommDestroy(communicator: u64) -> i32;
    fn ncclGroupStart() -> i32;
    fn ncclGroupEnd() -> i32;
    fn ncclAllReduce(
        send: u64,
        receive: u64,
        count: usize,
        dtype: i32,
        op: i32,
        communicator: u64,
        stream: u64,
    ) -> i32;
    fn ncclAllGather(
        send: u64,
        receive: u64,
        count: usize,
        dtype: i32,
        communicator: u64,
        stream: u64,
    ) -> i32;
    fn ncclReduceScatter(
        send: u64,
        receive: u64,
        count: usize,
        dtype: i32,
        op: i32,
        communicator: u64,
        stream: u64,
    ) -> i32;
    fn ncclBroadcast(
        send: u64,
        receive: u64,
        count: usize,
        dtype: i32,
        root: i32,
        communicator: u64,
        stream: u64,
    ) -> i32;
    fn ncclSend(send: u64, count: usize, dtype: i32, peer: i32, communicator: u64, stream: u64) -> i32;
    fn ncclRecv(receive: u64, count: usize, dtype: i32, peer: i32, communicator: u64, stream: u64) -> i32;
    fn trompe_split_hint(size: u32, rank: u32, members: *const u32);
    fn nvmlInit_v2() -> i32;
    fn nvmlDeviceGetHandleByIndex_v2(index: u32, device: *mut u64) -> i32;
    fn nvmlDeviceGetHandleByUUID(uuid: *const u8, device: *mut u64) -> i32;
    fn nvmlDeviceGetName(device: u64, text: *mut u8, capacity: u32) -> i32;
    fn nvmlDeviceGetUUID(device: u64, text: *mut u8, capacity: u32) -> i32;
    fn nvmlDeviceGetMemoryInfo(device: u64, information: *mut [u64; 3]) -> i32;
    fn nvmlDeviceGetTemperature(device: u64, sensor: u32, degrees: *mut u32) -> i32;
    fn nvmlDeviceGetNvLinkState(device: u64, link: u32, state: *mut u32) -> i32;
    fn nvrtcCreateProgram(
        program: *mut u64,
        source: *const u8,
        name: *const u8,
        count: i32,
        headers: u64,
        names: u64,
    ) -> i32;
    fn nvrtcAddNameExpression(program: u64, expression: *const u8) -> i32;
    fn nvrtcCompileProgram(program: u64, count: i32, options: u64) -> i32;
    fn nvrtcGetLoweredName(program: u64, expression: *const u8, lowered: *mut *const i8) -> i32;
    fn nvrtcGetCUBINSize(program: u64, bytes: *mut usize) -> i32;
    fn nvrtcGetCUBIN(program: u64, image: *mut u8) -> i32;
    fn nvrtcDestroyProgram(program: *mut u64) -> i32;
    fn cusparseLtStructuredDescriptorInit(
        handle: u64,
        matrix: *mut u8,
        rows: i64,
        columns: i64,
        leading: i64,
        alignment: u32,
        dtype: i32,
        order: i32,
        sparsity: i32,
    ) -> i32;
    fn cusparseLtSpMMACompressedSize2(
        handle: u64,
        matrix: *const u8,
        bytes: *mut usize,
        buffer: *mut usize,
    ) -> i32;
    fn cuptiActivityGetNextRecord(buffer: *mut u8, bytes: usize, record: *mut u64) -> i32;
}

const INVALID_INITIALIZED: i32 = 1;
const INT64: i32 = 4;
const FLOAT: i32 = 7;
const SUM: i32 = 0;
const MAX: i32 = 2;

fn made(make: impl FnOnce(*mut u64) -> i32) -> u64 {
    let mut value = 0;
    assert_eq!(make(&raw mut value), 0);
    value
}

fn text(bytes: &[u8]) -> &str {
    CStr::from_bytes_until_nul(bytes).expect("a zero").to_str().expect("UTF-8")
}

/// Device memory with the given numbers.
fn device(values: &[i64]) -> u64 {
    // SAFETY: a fresh allocation of that size.
    unsafe {
        let address = made(|out| cudaMalloc(out, values.len() * 8));
        assert_eq!(cudaMemcpy(address, values.as_ptr() as u64, values.len() * 8, 1), 0);
        address
    }
}

fn host<const N: usize>(address: u64) -> [i64; N] {
    let mut values = [-1; N];
    // SAFETY: the place has N numbers.
    assert_eq!(unsafe { cudaMemcpy(values.as_mut_ptr() as u64, address, N * 8, 2) }, 0);
    values
}

fn communicator(size: i32, rank: i32) -> u64 {
    let mut id = UniqueId([0; 128]);
    // SAFETY: valid places for answers.
    unsafe {
        assert_eq!(ncclGetUniqueId(&raw mut id), 0);
        made(|out| ncclCommInitRank(out, size, id, rank))
    }
}

#[test]
fn blas_settings_are_read_back_and_dead_handles_are_told() {
    node();
    // SAFETY: valid places and handles, and one dead handle.
    unsafe {
        let handle = made(|out| cublasCreate_v2(out));
        let mut mode = 9;
        assert_eq!(cublasGetMathMode(handle, &raw mut mode), 0);
        assert_eq!(mode, 0);
        assert_eq!(cublasSetMathMode(handle, 3), 0);
        assert_eq!(cublasGetMathMode(handle, &raw mut mode), 0);
        assert_eq!(mode, 3);
        let mut result = 7.0;
        assert_eq!(cublasSdot_v2(handle, 4, 0, 1, 0, 1, &raw mut result), 0);
        assert_eq!(result, 0.0, "kernels compute nothing");
        assert_eq!(cublasDestroy_v2(handle), 0);
        assert_eq!(cublasSetMathMode(handle, 0), INVALID_INITIALIZED);
        assert_eq!(cublasSdgmm(), 15, "what is not emulated is not supported");
    }
}

#[test]
fn a_blas_handle_takes_its_workspace_from_the_device() {
    node();
    // SAFETY: valid places; no other test uses device 7.
    unsafe {
        let free = || {
            let (mut free, mut total) = (0, 0);
            assert_eq!(cudaMemGetInfo(&raw mut free, &raw mut total), 0);
            free
        };
        assert_eq!(cudaSetDevice(7), 0);
        let before = free();
        let handle = made(|out| cublasCreate_v2(out));
        assert_eq!(before - free(), 32 << 20);
        assert_eq!(cublasDestroy_v2(handle), 0);
        assert_eq!(before, free());
    }
}

#[test]
fn tensor_descriptors_are_read_back() {
    node();
    // SAFETY: valid places and handles, and one dead handle.
    unsafe {
        let handle = made(|out| cudnnCreate(out));
        assert_ne!(handle, 0);
        assert_eq!(cudnnGetVersion(), 92_600);
        let check = |format, expect: [i32; 4]| {
            let tensor = made(|out| cudnnCreateTensorDescriptor(out));
            assert_eq!(cudnnSetTensor4dDescriptor(tensor, format, 2, 2, 3, 4, 5), 0);
            let (mut dtype, mut count, mut dimensions, mut strides) = (0, 0, [0; 4], [0; 4]);
            let places = (dimensions.as_mut_ptr(), strides.as_mut_ptr());
            let answer =
                cudnnGetTensorNdDescriptor(tensor, 4, &raw mut dtype, &raw mut count, places.0, places.1);
            assert_eq!((answer, dtype, count, dimensions, strides), (0, 2, 4, [2, 3, 4, 5], expect));
            assert_eq!(cudnnDestroyTensorDescriptor(tensor), 0);
            assert_eq!(cudnnDestroyTensorDescriptor(tensor), 2000);
        };
        check(0, [60, 20, 5, 1]);
        check(1, [60, 1, 15, 3]);
    }
}

#[test]
fn absent_ranks_mirror_this_one() {
    node();
    let group = communicator(4, 1);
    // SAFETY: live allocations and communicators.
    unsafe {
        let (a, b) = (device(&[3, 5, 7, 9]), device(&[0; 16]));
        assert_eq!(ncclAllReduce(a, b, 4, INT64, SUM, group, 0), 0);
        assert_eq!(host(b), [12, 20, 28, 36]);
        assert_eq!(ncclAllReduce(a, b, 4, INT64, MAX, group, 0), 0);
        assert_eq!(host(b), [3, 5, 7, 9]);
        assert_eq!(ncclAllGather(a, b, 2, INT64, group, 0), 0);
        assert_eq!(host(b), [3, 5, 3, 5, 3, 5, 3, 5]);
        assert_eq!(ncclReduceScatter(a, b, 1, INT64, MAX, group, 0), 0);
        assert_eq!(host(b), [5], "the own part");
        assert_eq!(ncclAllReduce(a, b, 4, 99, SUM, group, 0), 4);
        assert_eq!(ncclCommDestroy(group), 0);
        assert_eq!(ncclAllReduce(a, b, 4, INT64, SUM, group, 0), 4);
    }
}

#[test]
fn large_gathers_move_what_is_known() {
    const PART: usize = 1 << 18;
    node();
    let group = communicator(4, 1);
    let check = |from: u64, expect: [i64; 1]| {
        // SAFETY: a fresh allocation of that size.
        let to = unsafe { made(|out| cudaMalloc(out, 4 * PART * 8)) };
        // SAFETY: live allocations of these sizes.
        assert_eq!(unsafe { ncclAllGather(from, to, PART, INT64, group, 0) }, 0);
        for part in 0..4 {
            assert_eq!(host(to + part * PART as u64 * 8), expect, "part {part}");
        }
    };
    check(device(&vec![7; PART]), [7]);
    // SAFETY: an allocation of that size, written as by a kernel whose result is not computed.
    unsafe {
        let left = made(|out| cudaMalloc(out, PART * 8));
        (left as *mut i64).write(7);
        check(left, [0]);
    }
}

#[test]
fn calls_of_a_group_answer_each_other() {
    node();
    let group = communicator(3, 0);
    // SAFETY: live allocations and communicators.
    unsafe {
        // An uneven gather is a group of broadcasts from every rank.
        let (own, first, second) = (device(&[42, 43]), device(&[0; 2]), device(&[0; 2]));
        assert_eq!(ncclGroupStart(), 0);
        assert_eq!(ncclBroadcast(own, own, 2, INT64, 0, group, 0), 0);
        assert_eq!(ncclBroadcast(first, first, 2, INT64, 1, group, 0), 0);
        assert_eq!(ncclBroadcast(second, second, 2, INT64, 2, group, 0), 0);
        assert_eq!(host(first), [0, 0], "nothing happens before the group ends");
        assert_eq!(ncclGroupEnd(), 0);
        assert_eq!((host(first), host(second)), ([42, 43], [42, 43]));

        // A ring: what comes from the one before is what went to the one after.
        let (to, from) = (device(&[7]), device(&[0]));
        assert_eq!(ncclGroupStart(), 0);
        assert_eq!(ncclRecv(from, 1, INT64, 2, group, 0), 0);
        assert_eq!(ncclSend(to, 1, INT64, 1, group, 0), 0);
        assert_eq!(ncclGroupEnd(), 0);
        assert_eq!(host(from), [7]);
        assert_eq!(ncclSend(to, 1, FLOAT, 3, group, 0), 4, "there is no member 3");
        assert_eq!(ncclGroupEnd(), 4, "no group was begun");
    }
}

#[test]
fn a_split_takes_the_hint_of_who_takes_part() {
    node();
    let world = communicator(64, 5);
    let shape = |communicator| {
        let (mut size, mut rank) = (0, 0);
        // SAFETY: valid places for answers.
        unsafe {
            assert_eq!(ncclCommCount(communicator, &raw mut size), 0);
            assert_eq!(ncclCommUserRank(communicator, &raw mut rank), 0);
        }
        (size, rank)
    };
    // SAFETY: valid places for answers.
    unsafe {
        trompe_split_hint(8, 2, std::ptr::null());
        assert_eq!(shape(made(|out| ncclCommSplit(world, 0, 0, out, 0))), (8, 2));
        assert_eq!(shape(made(|out| ncclCommSplit(world, 0, 0, out, 0))), (64, 5), "a hint is used once");
        assert_eq!(made(|out| ncclCommSplit(world, -1, 0, out, 0)), 0, "no colour, no communicator");
    }
}

#[test]
fn management_agrees_with_the_sheet() {
    node();
    let expected = EmulatedNode::new(&resolve("dgx-h100").expect("a built-in name").node);
    // SAFETY: valid places and lengths.
    unsafe {
        assert_eq!(nvmlInit_v2(), 0);
        let device = made(|out| nvmlDeviceGetHandleByIndex_v2(3, out));
        let mut buffer = [0_u8; 96];
        assert_eq!(nvmlDeviceGetName(device, buffer.as_mut_ptr(), 96), 0);
        assert_eq!(text(&buffer), expected.device.marketing_name);
        assert_eq!(nvmlDeviceGetName(device, buffer.as_mut_ptr(), 4), 7, "the buffer is too small");
        assert_eq!(nvmlDeviceGetUUID(device, buffer.as_mut_ptr(), 96), 0);
        assert_eq!(text(&buffer), expected.uuid_text(3));
        assert_eq!(made(|out| nvmlDeviceGetHandleByUUID(buffer.as_ptr(), out)), device);
        let mut memory = [0; 3];
        assert_eq!(nvmlDeviceGetMemoryInfo(device, &raw mut memory), 0);
        assert_eq!(memory[0], expected.device.memory.nvml_total.0);
        assert_eq!(memory[1] + memory[2], memory[0]);
        let mut number = 0;
        assert_eq!(nvmlDeviceGetNvLinkState(device, 17, &raw mut number), 0);
        assert_eq!(nvmlDeviceGetNvLinkState(device, 18, &raw mut number), 3);
        assert_eq!(nvmlDeviceGetTemperature(device, 0, &raw mut number), 3);
        let mut none = 0;
        assert_eq!(nvmlDeviceGetHandleByIndex_v2(8, &raw mut none), 2);
    }
}

#[test]
fn programs_are_taken_and_their_kernels_are_found() {
    node();
    // SAFETY: valid places and C strings.
    unsafe {
        let source = c"template <typename T> __global__ void f(T *x) {}";
        let mut program =
            made(|out| nvrtcCreateProgram(out, source.as_ptr().cast(), c"".as_ptr().cast(), 0, 0, 0));
        let expression = c"f<float>".as_ptr().cast();
        assert_eq!(nvrtcAddNameExpression(program, expression), 0);
        let mut bytes = 0;
        assert_eq!(nvrtcGetCUBINSize(program, &raw mut bytes), 4, "not compiled yet");
        assert_eq!(nvrtcCompileProgram(program, 0, 0), 0);
        let mut lowered = std::ptr::null();
        assert_eq!(nvrtcGetLoweredName(program, expression, &raw mut lowered), 0);
        assert_eq!(nvrtcGetLoweredName(program, c"g".as_ptr().cast(), &raw mut lowered), 10);
        assert_eq!(nvrtcGetCUBINSize(program, &raw mut bytes), 0);
        let mut image = vec![0; bytes];
        assert_eq!(nvrtcGetCUBIN(program, image.as_mut_ptr()), 0);
        let module = made(|out| cuModuleLoadData(out, image.as_ptr()));
        assert_ne!(made(|out| cuModuleGetFunction(out, module, lowered)), 0);
        assert_eq!(nvrtcDestroyProgram(&raw mut program), 0);
        assert_eq!(program, 0);
    }
}

#[test]
fn a_compressed_matrix_is_nine_sixteenths_in_half_precision() {
    node();
    // SAFETY: the library's structs have 1024 bytes.
    unsafe {
        let mut matrix = [0_u64; 128];
        let place = matrix.as_mut_ptr().cast::<u8>();
        assert_eq!(cusparseLtStructuredDescriptorInit(0, place, 64, 32, 32, 16, 2, 0, 0), 0);
        let (mut bytes, mut buffer) = (0, 9);
        assert_eq!(cusparseLtSpMMACompressedSize2(0, place, &raw mut bytes, &raw mut buffer), 0);
        assert_eq!((bytes, buffer), (64 * 32 * 2 * 9 / 16, 0));
    }
}

#[test]
fn profilers_find_no_record() {
    node();
    let (mut buffer, mut record) = ([0; 8], 7);
    // SAFETY: valid places.
    assert_eq!(unsafe { cuptiActivityGetNextRecord(buffer.as_mut_ptr(), 8, &raw mut record) }, 12);
    assert_eq!(record, 0);
}

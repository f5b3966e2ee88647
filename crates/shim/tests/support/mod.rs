//! What the tests of the exported functions share: the node to pretend, and the functions' C types.
//!
//! The library reads its settings once per process, at its first call, so [`node`] comes first in each test.

#![expect(unsafe_code, reason = "calls exported C functions")]
#![allow(dead_code, reason = "each test program uses a part")]

use std::path::Path;
use std::sync::Once;

use trompe_hardware::{EmulatedNode, resolve};
use trompe_shim as _;

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Dim3(pub(crate) u32, pub(crate) u32, pub(crate) u32);

unsafe extern "C" {
    pub(crate) fn cudaGetDeviceCount(count: *mut i32) -> i32;
    pub(crate) fn cudaSetDevice(device: i32) -> i32;
    pub(crate) fn cudaGetDevice(device: *mut i32) -> i32;
    pub(crate) fn cudaGetLastError() -> i32;
    pub(crate) fn cudaPeekAtLastError() -> i32;
    pub(crate) fn cudaDeviceSynchronize() -> i32;
    pub(crate) fn cudaDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) -> i32;
    pub(crate) fn cudaMalloc(address: *mut u64, bytes: usize) -> i32;
    pub(crate) fn cudaFree(address: u64) -> i32;
    pub(crate) fn cudaMallocAsync(address: *mut u64, bytes: usize, stream: u64) -> i32;
    pub(crate) fn cudaFreeAsync(address: u64, stream: u64) -> i32;
    pub(crate) fn cudaMemGetInfo(free: *mut usize, total: *mut usize) -> i32;
    pub(crate) fn cudaHostAlloc(address: *mut u64, bytes: usize, flags: u32) -> i32;
    pub(crate) fn cudaFreeHost(address: u64) -> i32;
    pub(crate) fn cudaHostRegister(address: u64, bytes: usize, flags: u32) -> i32;
    pub(crate) fn cudaHostUnregister(address: u64) -> i32;
    pub(crate) fn cudaMemcpy(to: u64, from: u64, bytes: usize, kind: i32) -> i32;
    pub(crate) fn cudaMemcpyAsync(to: u64, from: u64, bytes: usize, kind: i32, stream: u64) -> i32;
    pub(crate) fn cudaMemset(to: u64, value: i32, bytes: usize) -> i32;
    pub(crate) fn cudaMemsetAsync(to: u64, value: i32, bytes: usize, stream: u64) -> i32;
    pub(crate) fn cudaStreamCreateWithFlags(stream: *mut u64, flags: u32) -> i32;
    pub(crate) fn cudaStreamDestroy(stream: u64) -> i32;
    pub(crate) fn cudaStreamSynchronize(stream: u64) -> i32;
    pub(crate) fn cudaStreamQuery(stream: u64) -> i32;
    pub(crate) fn cudaStreamWaitEvent(stream: u64, event: u64, flags: u32) -> i32;
    pub(crate) fn cudaStreamBeginCapture(stream: u64, mode: i32) -> i32;
    pub(crate) fn cudaStreamEndCapture(stream: u64, graph: *mut u64) -> i32;
    pub(crate) fn cudaStreamIsCapturing(stream: u64, status: *mut i32) -> i32;
    pub(crate) fn cudaGraphInstantiate(executable: *mut u64, graph: u64, flags: u64) -> i32;
    pub(crate) fn cudaGraphLaunch(executable: u64, stream: u64) -> i32;
    pub(crate) fn cudaGraphDestroy(graph: u64) -> i32;
    pub(crate) fn cudaGraphExecDestroy(executable: u64) -> i32;
    pub(crate) fn cudaGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize) -> i32;
    pub(crate) fn cudaGraphExecUpdate() -> i32;
    pub(crate) fn cudaUserObjectCreate(
        object: *mut u64,
        argument: *mut i32,
        destroy: extern "C" fn(*mut i32),
        references: u32,
        flags: u32,
    ) -> i32;
    pub(crate) fn cudaGraphRetainUserObject(graph: u64, object: u64, count: u32, flags: u32) -> i32;
    pub(crate) fn cudaEventCreate(event: *mut u64) -> i32;
    pub(crate) fn cudaEventDestroy(event: u64) -> i32;
    pub(crate) fn cudaEventRecord(event: u64, stream: u64) -> i32;
    pub(crate) fn cudaEventQuery(event: u64) -> i32;
    pub(crate) fn cudaEventSynchronize(event: u64) -> i32;
    pub(crate) fn cudaEventElapsedTime(milliseconds: *mut f32, start: u64, end: u64) -> i32;
    pub(crate) fn cudaLaunchKernel(
        function: u64,
        grid: Dim3,
        block: Dim3,
        parameters: *const u64,
        shared: usize,
        stream: u64,
    ) -> i32;
    pub(crate) fn __cudaRegisterFunction(
        handle: u64,
        host: u64,
        device: u64,
        name: *const i8,
        threads: i32,
        thread: u64,
        block: u64,
        block_dim: u64,
        grid_dim: u64,
        warp: u64,
    );
    pub(crate) fn cudaGetDriverEntryPointByVersion(
        symbol: *const i8,
        function: *mut u64,
        version: u32,
        flags: u64,
        status: *mut i32,
    ) -> i32;
    pub(crate) fn cuInit(flags: u32) -> i32;
    pub(crate) fn cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) -> i32;
    pub(crate) fn cuCtxSetCurrent(context: u64) -> i32;
    pub(crate) fn cuModuleLoadData(module: *mut u64, image: *const u8) -> i32;
    pub(crate) fn cuModuleGetFunction(function: *mut u64, module: u64, name: *const i8) -> i32;
    pub(crate) fn cuGetProcAddress_v2(
        symbol: *const i8,
        function: *mut u64,
        version: i32,
        flags: u64,
        status: *mut i32,
    ) -> i32;
    pub(crate) fn cuGetExportTable(table: *mut u64, id: *const u8) -> i32;
    pub(crate) fn cuMemCreate(handle: *mut u64, bytes: usize, properties: *const [u64; 4], flags: u64)
    -> i32;
    pub(crate) fn cuMemRelease(handle: u64) -> i32;
    pub(crate) fn cuMemAddressReserve(
        address: *mut u64,
        bytes: usize,
        alignment: usize,
        hint: u64,
        flags: u64,
    ) -> i32;
    pub(crate) fn cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, flags: u64) -> i32;
    pub(crate) fn cuMemUnmap(address: u64, bytes: usize) -> i32;
    pub(crate) fn cuMemExportToShareableHandle(
        shareable: *mut i32,
        handle: u64,
        kind: i32,
        flags: u64,
    ) -> i32;
    pub(crate) fn cuMemImportFromShareableHandle(handle: *mut u64, shareable: u64, kind: i32) -> i32;
    pub(crate) fn trompe_alloc_event(action: u8, address: u64, size: u64, stream: u64);
    pub(crate) fn trompe_recording() -> i32;
    pub(crate) fn trompe_op_begin(
        name: *const u8,
        name_len: u32,
        scope: u8,
        sequence: i64,
        forward_thread: u64,
        values: *const u8,
        values_len: u32,
        since: u64,
    );
    pub(crate) fn trompe_op_end(outputs: *const u8, outputs_len: u32, since: u64);
}

/// Pretends an eight-GPU node, without records.
pub(crate) fn node() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // One file for all test processes, put in place whole: they may run at the same time.
        let shared = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let own = tempfile::tempdir_in(shared).expect("a temporary folder");
        let path = shared.join("node.json");
        std::fs::rename(write_node(own.path()), &path).expect("a writable folder");
        // SAFETY: once, before the library is first called; the harness's own threads do not read these variables.
        unsafe {
            std::env::set_var("TROMPE_CONFIG", path);
            std::env::remove_var("TROMPE_TRACE_DIR");
            std::env::set_var("TROMPE_LOG", "0");
        }
    });
}

/// Writes the node's description into a folder and returns the file.
pub(crate) fn write_node(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("node.json");
    let node = EmulatedNode::new(&resolve("dgx-h100").expect("a built-in name").node);
    std::fs::write(&path, node.to_json()).expect("a writable folder");
    path
}

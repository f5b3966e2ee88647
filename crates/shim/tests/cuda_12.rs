//! A program built for CUDA 12 calls the same names with CUDA 12's arguments and structures.

#![expect(unsafe_code, reason = "calls exported C functions")]

mod support;

use std::mem::MaybeUninit;
use std::ptr::null_mut;

use support::*;
use trompe_cuda_abi::runtime::DeviceProperties12;
use trompe_hardware::{EmulatedNode, SoftwareVersions, resolve};

unsafe extern "C" {
    fn cudaPointerGetAttributes(attributes: *mut [u64; 4], address: u64) -> i32;
    fn cudaRuntimeGetVersion(version: *mut i32) -> i32;
    fn cudaGetDeviceProperties_v2(properties: *mut DeviceProperties12, device: i32) -> i32;
    // `(graph, from, to, count)` in CUDA 12.
    fn cudaGraphGetEdges(graph: u64, from: *mut u64, to: *mut u64, count: *mut usize) -> i32;
    fn cudaGraphNodeGetDependencies(node: u64, nodes: *mut u64, count: *mut usize) -> i32;
    fn cudaStreamGetCaptureInfo_v2(
        stream: u64,
        status: *mut i32,
        id: *mut u64,
        graph: *mut u64,
        dependencies: *mut *const u64,
        count: *mut usize,
    ) -> i32;
    fn cudaStreamUpdateCaptureDependencies(stream: u64, nodes: *const u64, count: usize, flags: u32) -> i32;
}

#[test]
fn signatures_and_structures_are_those_of_12() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("node.json");
    let mut node = EmulatedNode::new(&resolve("dgx-h100").expect("a known node").node);
    node.software = SoftwareVersions::built_for("12.4", None, None).expect("an emulated CUDA");
    std::fs::write(&path, node.to_json()).expect("a writable folder");
    // SAFETY: the only test of this program, before the library is first called.
    unsafe { std::env::set_var("TROMPE_CONFIG", path) };
    let mut properties = MaybeUninit::<DeviceProperties12>::zeroed();
    let (mut version, mut stream, mut graph, mut address) = (0, 0, 0, 0);
    // SAFETY: valid places for the answers, of the sizes that the functions write.
    let properties = unsafe {
        assert_eq!(cudaRuntimeGetVersion(&raw mut version), 0);
        assert_eq!(cudaGetDeviceProperties_v2(properties.as_mut_ptr(), 0), 0);
        properties.assume_init()
    };
    assert_eq!(version, 12_040);
    assert_eq!((properties.major, properties.multi_processor_count), (9, 132));
    assert!(properties.clock_rate > 1_000_000, "in kHz: {}", properties.clock_rate);
    assert_eq!(properties.max_threads_per_multi_processor, 2048);

    // 24 bytes; 13 has reserved fields behind them.
    let mut attributes = [u64::MAX; 4];
    // SAFETY: room for what the function writes.
    assert_eq!(unsafe { cudaPointerGetAttributes(&raw mut attributes, 4096) }, 0);
    assert_eq!(attributes[2..], [4096, u64::MAX]);

    // Two operations one after the other, then a third one that waits for the first only.
    let (mut status, mut id, mut captured, mut count) = (0, 0, 0, 0);
    let mut frontier: *const u64 = null_mut();
    // SAFETY: valid places for the answers; the frontier is read before the stream's next call.
    unsafe {
        assert_eq!(cudaMalloc(&raw mut address, 4096), 0);
        assert_eq!(cudaStreamCreateWithFlags(&raw mut stream, 1), 0);
        assert_eq!(cudaStreamBeginCapture(stream, 0), 0);
        assert_eq!(cudaMemsetAsync(address, 0, 64, stream), 0);
        let mut info = || {
            let answer = cudaStreamGetCaptureInfo_v2(
                stream,
                &raw mut status,
                &raw mut id,
                &raw mut captured,
                &raw mut frontier,
                &raw mut count,
            );
            assert_eq!((answer, status, count), (0, 1, 1));
            *frontier
        };
        let first = info();
        assert_eq!(cudaMemsetAsync(address, 0, 64, stream), 0);
        assert_ne!(info(), first);
        assert_eq!(cudaStreamUpdateCaptureDependencies(stream, &raw const first, 1, 1), 0);
        assert_eq!(info(), first);
        assert_eq!(cudaMemsetAsync(address, 0, 64, stream), 0);
        let last = info();
        assert_eq!(cudaStreamEndCapture(stream, &raw mut graph), 0);
        let mut edges = 0;
        assert_eq!(cudaGraphGetEdges(graph, null_mut(), null_mut(), &raw mut edges), 0);
        assert_eq!(edges, 2);
        let (mut before, mut room) = ([0; 4], 4);
        assert_eq!(cudaGraphNodeGetDependencies(last, before.as_mut_ptr(), &raw mut room), 0);
        assert_eq!((before[0], room), (first, 1));
    }
}

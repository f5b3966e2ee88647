//! Memory of made-up runs.

use trompe_base::{Bytes, DeviceIndex};
use trompe_collate::{Options, collate};
use trompe_testkit::{Launch, TraceBuilder};
use trompe_trace::job::{Action, CallClass, JobTrace, Severity};
use trompe_trace::record::Record;

const MIB: u64 = 1 << 20;
const ALLOC: u8 = 0;
const FREE_REQUESTED: u8 = 1;
const FREE_COMPLETED: u8 = 2;
const SEGMENT_ALLOC: u8 = 3;
const OUT_OF_MEMORY: u8 = 8;

fn free(t: &mut TraceBuilder, address: u64, bytes: u64) {
    t.allocator(FREE_REQUESTED, address, bytes).allocator(FREE_COMPLETED, address, bytes);
}

fn driver(t: &mut TraceBuilder, bytes: u64, worked: bool) {
    let api = t.api("cudart/cudaMalloc/emulated");
    let address = if worked { 1 << 40 } else { 0 };
    t.record(&Record::Malloc { api, device: DeviceIndex(0), address, bytes });
}

/// A run with a peak of 30 MiB in two operators, of which the second is freed before the end.
fn run(statistics: Option<&str>) -> JobTrace {
    let mut t = TraceBuilder::default();
    t.meta("node", r#"{"device": {"memory": {"total": 85899345920}}}"#);
    t.record(&Record::Charge { device: DeviceIndex(0), owner: "cuda_context", bytes: 500 << 20 });
    driver(&mut t, 40 * MIB, true);
    t.allocator(SEGMENT_ALLOC, 0, 40 * MIB);
    t.operator("aten::linear", &[], |t| {
        t.operator("aten::empty", &[], |t| {
            t.allocator(ALLOC, 0, 10 * MIB);
            vec![]
        });
        t.launch(Launch::default());
        vec![]
    });
    t.node("AddBackward0", |t| {
        t.operator("aten::mul", &[], |t| {
            t.allocator(ALLOC, 10 * MIB, 20 * MIB - 100);
            t.launch(Launch::default());
            vec![]
        });
    });
    free(&mut t, 10 * MIB, 20 * MIB - 100);
    t.launch(Launch::default());
    if let Some(text) = statistics {
        t.meta("torch.memory_peaks", text);
    }
    collate(&[t.finish()], &Options::default()).unwrap()
}

fn check(statistics: Option<&str>, allocated: u64, reserved: u64, note: Option<&str>) {
    let job = run(statistics);
    let memory = &job.templates[0].memory;
    assert_eq!(memory.peak_allocated, Some(Bytes(allocated)));
    assert_eq!(memory.peak_reserved, Some(Bytes(reserved)));
    let found = job.notes.iter().find(|n| n.text.contains("peak memory"));
    assert_eq!(found.and_then(|n| n.hint.as_deref()), note);
}

#[test]
fn peaks_are_the_framework_s_own_when_it_tells_them() {
    check(None, 30 * MIB, 40 * MIB, None);
    check(
        Some(r#"{"0": {"max_memory_allocated": 31457280, "max_memory_reserved": 41943040}}"#),
        30 * MIB,
        40 * MIB,
        None,
    );
    check(
        Some(r#"{"0": {"max_memory_allocated": 31457792, "max_memory_reserved": 41943040}}"#),
        30 * MIB + 512,
        40 * MIB,
        Some("PyTorch's numbers are reported"),
    );
    check(
        Some(r#"{"0": {"max_memory_allocated": 1024, "max_memory_reserved": 41943040}}"#),
        30 * MIB,
        40 * MIB,
        Some("the program has reset its peak statistics: the peaks of the whole run are reported"),
    );
}

#[test]
fn the_device_counts_charges_and_owners_are_named() {
    let job = run(None);
    let memory = &job.templates[0].memory;
    assert_eq!(memory.capacity, Bytes(80 << 30));
    assert_eq!(memory.peak_total, Bytes(540 * MIB));
    assert_eq!(memory.charges, [("cuda_context".to_owned(), Bytes(500 * MIB))]);
    assert_eq!(
        memory.owners_at_peak,
        [
            ("aten::mul, backward".to_owned(), Bytes(20 * MIB)),
            ("aten::linear, forward".to_owned(), Bytes(10 * MIB))
        ]
    );
    let timeline: Vec<_> = memory.timeline.iter().map(|s| (s.event, s.allocated.0 / MIB)).collect();
    // Events: the driver's allocation, then three launches.
    assert_eq!(timeline, [(1, 10), (2, 30), (3, 10)]);
}

#[test]
fn statistics_stand_alone_where_there_are_no_events() {
    let mut t = TraceBuilder::default();
    t.launch(Launch::default());
    let stats = r#"{"0": {"allocated_bytes.all.peak": 1000, "reserved_bytes.all.peak": 2000}}"#;
    t.meta("torch.memory_stats", stats);
    let memory = collate(&[t.finish()], &Options::default()).unwrap().templates.remove(0).memory;
    assert_eq!((memory.peak_allocated, memory.peak_reserved), (Some(Bytes(1000)), Some(Bytes(2000))));
}

#[test]
fn running_out_of_memory_is_one_event_however_often_the_allocator_tries() {
    let mut t = TraceBuilder::default();
    driver(&mut t, 40 * MIB, true);
    t.launch(Launch::default());
    t.operator("aten::bmm", &[], |t| {
        driver(t, 100 * MIB, false);
        driver(t, 100 * MIB, false);
        t.allocator(OUT_OF_MEMORY, 0, 99 * MIB);
        vec![]
    });
    t.meta("python.exception", "torch.OutOfMemoryError");
    t.meta("python.exception_message", "CUDA out of memory. Tried to allocate 100.00 MiB.\nMore");
    let job = collate(&[t.finish()], &Options::default()).unwrap();
    let failures = &job.templates[0].memory.out_of_memory;
    assert_eq!(failures.len(), 1);
    assert_eq!((failures[0].requested, failures[0].used), (Bytes(100 * MIB), Bytes(40 * MIB)));
    assert_eq!(failures[0].site, "aten::bmm, forward");
    let note = job.notes.iter().find(|n| n.text.contains("OutOfMemoryError")).unwrap();
    assert_eq!(note.severity, Severity::Warning);
    assert!(note.text.ends_with("Tried to allocate 100.00 MiB."), "{}", note.text);
}

#[test]
fn of_several_devices_the_fullest_is_shown() {
    let mut t = TraceBuilder::default();
    let api = t.api("cudart/cudaMalloc/emulated");
    for (device, address, mib) in [(0, 1 << 40, 10), (1, 2 << 40, 30)] {
        t.record(&Record::Malloc { api, device: DeviceIndex(device), address, bytes: mib * MIB });
        t.allocator(SEGMENT_ALLOC, address, mib * MIB);
        t.allocator(ALLOC, address, mib * MIB);
    }
    t.launch(Launch::default());
    let job = collate(&[t.finish()], &Options::default()).unwrap();
    let memory = &job.templates[0].memory;
    assert_eq!((memory.peak_total, memory.peak_allocated), (Bytes(30 * MIB), Some(Bytes(30 * MIB))));
    assert!(job.notes.iter().any(|n| n.text.contains("one process uses 2 devices")), "{:?}", job.notes);
}

#[test]
fn calls_of_stream_ordered_pools_are_a_class_of_their_own() {
    let check = |allocate: &str, release: &str, expect: (CallClass, CallClass)| {
        let mut t = TraceBuilder::default();
        t.launch(Launch::default());
        let (device, address, bytes) = (DeviceIndex(0), 1 << 40, MIB);
        let api = t.api(allocate);
        t.record(&Record::Malloc { api, device, address, bytes });
        let api = t.api(release);
        t.record(&Record::Free { api, device, address, bytes });
        let job = collate(&[t.finish()], &Options::default()).unwrap();
        let events = &job.templates[0].events;
        assert_eq!((events[1].call, events[2].call), expect, "{allocate}");
        // A stream-ordered release does not wait for the device.
        assert_eq!(events[2].action == Action::Host, release != "cudart/cudaFree/emulated", "{release}");
    };
    let (driver, pool) = (CallClass::Memory, CallClass::Pool);
    check("cudart/cudaMalloc/emulated", "cudart/cudaFree/emulated", (driver, driver));
    check("cudart/cudaMallocAsync/emulated", "cudart/cudaFreeAsync/emulated", (pool, pool));
    check("cuda/cuMemAllocFromPoolAsync/emulated", "cuda/cuMemFreeAsync/emulated", (pool, pool));
    check("cuda/cuMemCreate/emulated", "cuda/cuMemRelease/emulated", (driver, driver));
}

#[test]
fn charges_are_those_of_the_peak() {
    let mut t = TraceBuilder::default();
    let mut charge = |owner, bytes| _ = t.record(&Record::Charge { device: DeviceIndex(0), owner, bytes });
    charge("cuda_context", 500 << 20);
    charge("nccl", 700 << 20);
    // The job ends in order, and something small follows.
    charge("nccl", -(700 << 20));
    charge("cublas_workspace", 64 << 20);
    t.launch(Launch::default());
    let job = collate(&[t.finish()], &Options::default()).unwrap();
    let memory = &job.templates[0].memory;
    let charges: Vec<_> =
        memory.charges.iter().map(|(owner, bytes)| (owner.as_str(), bytes.0 / MIB)).collect();
    assert_eq!(charges, [("cuda_context", 500), ("nccl", 700)]);
    assert_eq!(memory.peak_total, Bytes(1200 * MIB));
}

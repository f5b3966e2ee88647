//! What a recorded call costs over the same call unrecorded.
//!
//! `cargo xtask bench shim`, or `cargo bench -p trompe-shim --bench shim -- [--json]`. The library decides once per
//! process whether it records, so the program runs itself twice: without and with a trace folder; the baseline of each
//! row is the same function unrecorded. Processor time is measured, in batches that are long enough to pay for their
//! share of the record file; the least disturbed batch counts, and the median over all is printed beside it.

#![expect(unsafe_code, reason = "calls exported C functions")]

use std::process::Command;

use trompe_hardware::{EmulatedNode, resolve};
// Links the library whose functions are called below.
use trompe_shim as _;

#[repr(C)]
#[derive(Clone, Copy)]
struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

unsafe extern "C" {
    fn cudaGetDevice(device: *mut i32) -> i32;
    fn cudaMalloc(address: *mut u64, bytes: usize) -> i32;
    fn cudaMemcpyAsync(to: u64, from: u64, bytes: usize, kind: i32, stream: u64) -> i32;
    fn cudaEventCreate(event: *mut u64) -> i32;
    fn cudaEventRecord(event: u64, stream: u64) -> i32;
    fn cudaMemAdvise(address: u64, bytes: usize, advice: i32, place: i32, device: i32) -> i32;
    fn __cudaRegisterFunction(
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
    fn __cudaGetKernel(kernel: *mut u64, function: u64) -> i32;
    fn __cudaLaunchKernel(
        kernel: u64,
        grid: Dim3,
        block: Dim3,
        parameters: *const u64,
        shared: usize,
        stream: u64,
    ) -> i32;
}

/// Runs of each kind; they alternate.
const ROUNDS: usize = 4;
/// Batches per function and run.
const BATCHES: usize = 15;
/// Calls per batch: some ten chunks of the record file.
const CALLS: u32 = 40_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.iter().any(|argument| argument == "--measure") {
        measure();
        return;
    }
    let json = arguments.iter().any(|argument| argument == "--json");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("node.json");
    let node = EmulatedNode::new(&resolve("h100").expect("a built-in name").node);
    std::fs::write(&config, node.to_json()).expect("a writable folder");
    let (mut plain, mut recorded) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(run(&config, None));
        let traces = folder.path().join("traces");
        recorded.push(run(&config, Some(&traces)));
        std::fs::remove_dir_all(&traces).expect("the traces can be removed");
    }
    let mut names: Vec<String> = plain[0].iter().map(|(name, _)| name.clone()).collect();
    names.dedup();
    let rows: Vec<(String, [f64; 4])> = names
        .into_iter()
        .map(|name| {
            let (plain, recorded) = (batches(&plain, &name), batches(&recorded, &name));
            let middle = |sorted: &[f64]| sorted[sorted.len() / 2];
            let values = [plain[0], recorded[0], middle(&plain), middle(&recorded)];
            (name, values)
        })
        .collect();
    if json {
        let rows: Vec<String> = rows
            .iter()
            .map(|(name, [plain, recorded, plain_median, recorded_median])| {
                format!(
                    "\"{name}\":{{\"unrecorded_ns\":{plain:.1},\"recorded_ns\":{recorded:.1},\"added_ns\":{:.1},\
                     \"unrecorded_median_ns\":{plain_median:.1},\"recorded_median_ns\":{recorded_median:.1}}}",
                    recorded - plain
                )
            })
            .collect();
        println!("{{{}}}", rows.join(","));
        return;
    }
    println!("{:<18}{:>14}{:>13}{:>9}{:>26}", "function", "unrecorded ns", "recorded ns", "added", "medians");
    for (name, [plain, recorded, plain_median, recorded_median]) in rows {
        let added = recorded - plain;
        let medians = format!("{plain_median:.1} / {recorded_median:.1}");
        println!("{name:<18}{plain:>14.1}{recorded:>13.1}{added:>9.1}{medians:>26}");
    }
}

fn run(config: &std::path::Path, traces: Option<&std::path::Path>) -> Vec<(String, f64)> {
    let mut command = Command::new(std::env::current_exe().expect("the program's own path"));
    command.arg("--measure").env("TROMPE_CONFIG", config).env_remove("TROMPE_TRACE_DIR");
    if let Some(traces) = traces {
        command.env("TROMPE_TRACE_DIR", traces);
    }
    let output = command.output().expect("the program can run itself");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| {
            let (name, value) = line.split_once(' ').expect("a name and a number");
            (name.to_owned(), value.parse().expect("a number"))
        })
        .collect()
}

/// All batches of a function, in ascending order.
fn batches(runs: &[Vec<(String, f64)>], name: &str) -> Vec<f64> {
    let mut values: Vec<f64> =
        runs.iter().flatten().filter(|(found, _)| found == name).map(|(_, value)| *value).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Prints nanoseconds per call for each function.
fn measure() {
    let (mut device, mut address, mut event, mut kernel) = (0, 0, 0, 0);
    let small = [1u8; 8];
    let parameters = [0u64; 4];
    let one = Dim3 { x: 1, y: 1, z: 1 };
    // SAFETY: the functions' own signatures, with valid places for answers.
    unsafe {
        assert_eq!(cudaMalloc(&raw mut address, 4096), 0, "the device is there");
        assert_eq!(cudaEventCreate(&raw mut event), 0);
        __cudaRegisterFunction(0, 64, 0, c"kernel".as_ptr(), -1, 0, 0, 0, 0, 0);
        assert_eq!(__cudaGetKernel(&raw mut kernel, 64), 0);
        let place = &raw mut device;
        time("cudaGetDevice", || cudaGetDevice(place));
        time("accepted", || cudaMemAdvise(address, 4096, 1, 1, 0));
        time("cudaEventRecord", || cudaEventRecord(event, 0));
        time("launch", || __cudaLaunchKernel(kernel, one, one, parameters.as_ptr(), 0, 0));
        time("cudaMemcpyAsync", || cudaMemcpyAsync(address, small.as_ptr() as u64, 8, 1, 0));
    }
}

fn time(name: &str, call: impl Fn() -> i32) {
    for _ in 0..1000 {
        assert_eq!(call(), 0, "{name} works");
    }
    for _ in 0..BATCHES {
        let begin = processor_ns();
        for _ in 0..CALLS {
            std::hint::black_box(call());
        }
        println!("{name} {}", (processor_ns() - begin) as f64 / f64::from(CALLS));
    }
}

/// Processor time of this process in nanoseconds.
fn processor_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

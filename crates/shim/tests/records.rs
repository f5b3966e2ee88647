//! What a process leaves in its record file: whole after a normal end, readable after a kill, none where a child
//! made no call, and no harm where the file cannot be written.
//!
//! The tests run this program again as the job.

#![expect(unsafe_code, reason = "calls exported C functions")]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::*;
use trompe_trace::reader::{Names, WorkerTrace};
use trompe_trace::record::Record;

/// Runs the job named `job`, with records into `traces`.
fn run(job: &str, folder: &Path, traces: &Path) -> Output {
    Command::new(std::env::current_exe().expect("the program's own path"))
        .args(["--exact", "job", "--nocapture", "--test-threads=1"])
        .env("TROMPE_TEST_JOB", job)
        .env("TROMPE_CONFIG", write_node(folder))
        .env("TROMPE_TRACE_DIR", traces)
        .env("TROMPE_LOG", "1")
        .output()
        .expect("the program can run itself")
}

fn traces(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

/// The job: does nothing unless it is run by a test below.
#[test]
#[expect(clippy::disallowed_methods, reason = "told by the test which job to be")]
fn job() {
    let Ok(job) = std::env::var("TROMPE_TEST_JOB") else { return };
    match job.as_str() {
        "normal" => {
            work(10);
            std::thread::spawn(|| work(10)).join().expect("no panic");
        }
        "killed" => {
            work(10);
            // SAFETY: ends this process at once.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        "many" => work(200_000),
        "threads" => {
            for _ in 0..500 {
                std::thread::spawn(|| work(2)).join().expect("no panic");
            }
        }
        "fork" => {
            work(3);
            // SAFETY: the child makes a few calls and leaves without unwinding.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    work(5);
                    libc::_exit(0);
                }
                libc::waitpid(child, std::ptr::null_mut(), 0);
                let quiet = libc::fork();
                if quiet == 0 {
                    let mut device = 0;
                    cudaGetDevice(&raw mut device);
                    libc::_exit(0);
                }
                libc::waitpid(quiet, std::ptr::null_mut(), 0);
            }
            work(3);
        }
        "quiet" => {
            let mut device = 0;
            // SAFETY: a valid place for the answer.
            unsafe { cudaGetDevice(&raw mut device) };
        }
        "small-disk" => {
            // Files may grow to a mebibyte: less than the library asks for.
            let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
            // SAFETY: plain settings of this process.
            unsafe {
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
            }
            work(10);
            println!("the job went on");
        }
        "unwritable" => {
            work(10);
            println!("the job went on");
        }
        other => panic!("no job `{other}`"),
    }
}

/// An operator around `count` event records.
fn work(count: u32) {
    // SAFETY: valid places and live handles.
    unsafe {
        let mut event = 0;
        assert_eq!(cudaEventCreate(&raw mut event), 0);
        let name = b"aten::test";
        trompe_op_begin(name.as_ptr(), 10, 0, -1, 0, std::ptr::null(), 0, 0);
        for _ in 0..count {
            assert_eq!(cudaEventRecord(event, 0), 0);
        }
        trompe_op_end(std::ptr::null(), 0, 0);
    }
}

/// Event records in a file.
fn event_records(trace: &WorkerTrace) -> usize {
    trace.entries().filter(|entry| matches!(entry.record, Record::EventRecord { .. })).count()
}

#[test]
fn a_normal_end_is_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("traces");
    let output = run("normal", folder.path(), &out);
    assert!(output.status.success(), "{output:?}");
    let files = traces(&out);
    assert_eq!(files.len(), 1);
    let trace = WorkerTrace::open(&files[0]).expect("readable");
    let names = Names::collect(&trace);
    assert!(names.ended);
    assert_eq!(event_records(&trace), 20);
    assert!(names.operators.values().any(|name| *name == "aten::test"));
    assert!(names.meta.contains_key("node") && names.meta.contains_key("process.command"));
    let threads: std::collections::BTreeSet<u32> = trace
        .entries()
        .filter(|entry| matches!(entry.record, Record::EventRecord { .. }))
        .map(|entry| entry.thread)
        .collect();
    assert_eq!(threads.len(), 2, "each thread has its own chunk");
    let mut unnamed = Vec::new();
    let mut context = 0;
    for entry in trace.entries() {
        match entry.record {
            Record::EventRecord { api, stream, .. } => {
                if names.apis.get(&u32::from(api)) != Some(&"cudart/cudaEventRecord/emulated")
                    || stream.0 != 0
                {
                    unnamed.push(api);
                }
                assert!(entry.stamp.ticks > 0, "each call has its time");
            }
            Record::Charge { bytes, .. } => context += bytes,
            _ => {}
        }
    }
    assert!(unnamed.is_empty(), "{unnamed:?}");
    assert!(context > 100 << 20, "the context is charged and recorded: {context}");
}

#[test]
fn a_killed_process_leaves_what_it_did() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("traces");
    assert!(!run("killed", folder.path(), &out).status.success());
    let trace = WorkerTrace::open(&traces(&out)[0]).expect("readable");
    assert!(!Names::collect(&trace).ended);
    assert_eq!(event_records(&trace), 10);
}

#[test]
fn many_records_fill_many_chunks() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("traces");
    assert!(run("many", folder.path(), &out).status.success());
    let trace = WorkerTrace::open(&traces(&out)[0]).expect("readable");
    assert_eq!(event_records(&trace), 200_000);
    let sorted = trace.sorted();
    let mut versions = sorted.iter().filter_map(|entry| match entry.record {
        Record::EventRecord { version, .. } => Some(version),
        _ => None,
    });
    assert!((0..200_000).all(|expect| versions.next() == Some(expect)), "in the order of the calls");
}

#[test]
fn many_short_threads_share_chunks() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("traces");
    assert!(run("threads", folder.path(), &out).status.success());
    let file = &traces(&out)[0];
    let trace = WorkerTrace::open(file).expect("readable");
    assert_eq!(event_records(&trace), 1000);
    assert!(Names::collect(&trace).ended);
    let bytes = std::fs::metadata(file).expect("there").len();
    assert!(bytes < 1 << 20, "{bytes} bytes for 500 threads, one after the other");
}

#[test]
fn a_forked_child_writes_a_file_of_its_own() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("traces");
    assert!(run("fork", folder.path(), &out).status.success());
    let files = traces(&out);
    assert_eq!(files.len(), 2, "the parent's and the working child's");
    let mut counts: Vec<usize> = files
        .iter()
        .map(|file| {
            let trace = WorkerTrace::open(file).expect("readable");
            let names = Names::collect(&trace);
            assert!(
                names.apis.values().any(|name| name.contains("cudaEventRecord")),
                "names are announced again"
            );
            event_records(&trace)
        })
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [5, 6]);
}

#[test]
fn a_process_that_only_asks_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("traces");
    assert!(run("quiet", folder.path(), &out).status.success());
    assert_eq!(traces(&out).len(), 0);
}

#[test]
fn where_nothing_can_be_written_the_job_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("traces");
    std::fs::write(&out, "a file, not a folder").expect("a writable folder");
    for (job, traces) in [("unwritable", out), ("small-disk", folder.path().join("other"))] {
        let output = run(job, folder.path(), &traces);
        assert!(output.status.success(), "{output:?}");
        let (said, error) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("the job went on"), "{job}: {said}");
        assert_eq!(error.matches("recording stopped").count(), 1, "{job}: {error}");
    }
}

//! Processes that descend from this one, found in `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use crate::clock::Stopwatch;

/// Sends `signal` to every descendant; parents before children.
pub(crate) fn signal_all(signal: Signal) {
    for pid in all() {
        let _ = kill(pid, signal);
    }
}

/// Ends every descendant: asks first, and insists after three seconds.
pub(crate) fn end_all() {
    const PATIENCE: Duration = Duration::from_secs(3);
    let asked = Stopwatch::start();
    signal_all(Signal::SIGTERM);
    while !all().is_empty() {
        reap();
        if asked.elapsed() > PATIENCE {
            signal_all(Signal::SIGKILL);
        }
        if asked.elapsed() > 2 * PATIENCE {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Takes the exit status of descendants that have ended and are ours.
fn reap() {
    while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(status) if status.pid().is_some()) {}
}

/// Descendants that still run, nearest first.
fn all() -> Vec<Pid> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        let Some((state, parent)) = state_and_parent(pid) else { continue };
        if state != 'Z' {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![std::process::id() as i32];
    let mut next = 0;
    while next < found.len() {
        found.extend(children.get(&found[next]).into_iter().flatten());
        next += 1;
    }
    found.into_iter().skip(1).map(Pid::from_raw).collect()
}

/// State and parent of a process. Its name, in brackets before them, may hold anything, brackets too.
fn state_and_parent(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

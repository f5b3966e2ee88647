//! Workers on this machine: one process for each job slot, on processors of its own, so that trials that run at the
//! same time do not lengthen each other's host times.
//!
//! Each slot is a thread that owns its worker: it hands on an order and waits for the answer. A worker that dies (the
//! system ran out of memory, somebody killed it) is started again and the trial runs once more; a trial that kills its
//! worker twice has failed. A trial that takes longer than its time limit is ended with everything that it started.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use trompe_search::Outcome;
use trompe_search::space::FILE_PREFIX;

use super::files::StudyFiles;
use super::order::{Order, Reply};
use super::{Plan, Pool, SearchError};
use crate::clock::Stopwatch;
use crate::job_log;

/// The pool.
pub(super) struct Local {
    slots: Vec<Slot>,
    answers: Receiver<(usize, Reply)>,
    /// Orders that wait for a slot.
    waiting: VecDeque<Order>,
}

struct Slot {
    orders: Sender<Order>,
    busy: bool,
    /// Names of the traces that the trial under way may be making.
    traces: Vec<String>,
    running: Arc<Mutex<Running>>,
    /// The trial under way and its end.
    deadline: Option<(u32, Stopwatch, f64)>,
}

/// What a slot's worker is at the moment.
#[derive(Debug, Default)]
struct Running {
    group: Option<i32>,
    timed_out: bool,
    /// The pool is going away: nothing is started any more.
    over: bool,
}

/// How a worker is started.
#[derive(Clone, Debug)]
struct Start {
    program: PathBuf,
    folder: PathBuf,
    traces: PathBuf,
    directory: PathBuf,
    cores: Vec<usize>,
}

/// The processors that this process may use.
pub(super) fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return vec![0] };
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)).collect()
}

/// The processors of each slot: an equal part of all, or one that several share when there are more slots.
fn shares(cores: &[usize], slots: usize) -> Vec<Vec<usize>> {
    let each = cores.len() / slots.max(1);
    (0..slots)
        .map(|slot| match each {
            0 => vec![cores[slot % cores.len().max(1)]],
            each => cores[slot * each..(slot + 1) * each].to_vec(),
        })
        .collect()
}

impl Local {
    /// A pool of so many slots. Workers start with their first trial.
    pub(super) fn start(jobs: usize, plan: &Plan, files: &StudyFiles) -> Result<Self, SearchError> {
        let failed = |error: std::io::Error| SearchError::Pool(error.to_string());
        let program = std::env::current_exe().map_err(failed)?;
        let (sender, answers) = channel();
        let mut slots = Vec::new();
        for (number, cores) in shares(&processors(), jobs).into_iter().enumerate() {
            let folder = files.work.join(format!("slot-{number}"));
            std::fs::create_dir_all(&folder).map_err(failed)?;
            let start = Start {
                program: program.clone(),
                folder,
                traces: files.traces.clone(),
                directory: plan.directory.clone(),
                cores,
            };
            let (orders, inbox) = channel();
            let running = Arc::new(Mutex::new(Running::default()));
            let mut thread = Thread { start, running: Arc::clone(&running), worker: None };
            let sender = sender.clone();
            std::thread::spawn(move || thread.serve(number, &inbox, &sender));
            slots.push(Slot { orders, busy: false, traces: Vec::new(), running, deadline: None });
        }
        Ok(Self { slots, answers, waiting: VecDeque::new() })
    }

    /// Hands waiting orders to free slots. One whose trace is being made by another waits until it can take that.
    fn hand_out(&mut self) -> Result<(), SearchError> {
        while let Some(free) = self.slots.iter().position(|slot| !slot.busy) {
            let under_way: Vec<&str> = self
                .slots
                .iter()
                .filter(|slot| slot.busy)
                .flat_map(|slot| slot.traces.iter().map(String::as_str))
                .collect();
            let Some(order) = next_of(&self.waiting, &under_way).and_then(|at| self.waiting.remove(at))
            else {
                break;
            };
            let slot = &mut self.slots[free];
            slot.busy = true;
            slot.traces = order.traces();
            slot.deadline = order.timeout.map(|limit| (order.number, Stopwatch::start(), limit));
            let sent = slot.orders.send(order);
            sent.map_err(|_| SearchError::Pool("a job slot has ended".to_owned()))?;
        }
        Ok(())
    }

    /// Ends workers whose trial takes too long.
    fn end_late(&mut self) {
        for slot in &mut self.slots {
            let late = slot
                .deadline
                .as_ref()
                .is_some_and(|(_, since, limit)| since.elapsed().as_secs_f64() > *limit);
            if late {
                slot.deadline = None;
                let mut running = lock(&slot.running);
                running.timed_out = true;
                end(&mut running);
            }
        }
    }
}

impl Pool for Local {
    fn submit(&mut self, order: Order) -> Result<(), SearchError> {
        self.waiting.push_back(order);
        self.hand_out()
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Reply>, SearchError> {
        match self.answers.recv_timeout(wait) {
            Ok((slot, reply)) => {
                self.slots[slot].busy = false;
                self.slots[slot].deadline = None;
                self.hand_out()?;
                Ok(Some(reply))
            }
            Err(RecvTimeoutError::Timeout) => {
                self.end_late();
                Ok(None)
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(SearchError::Pool("all job slots have ended".to_owned()))
            }
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        for slot in &self.slots {
            let mut running = lock(&slot.running);
            running.over = true;
            end(&mut running);
        }
    }
}

/// The first order that need not wait for a trace that is under way.
fn next_of(waiting: &VecDeque<Order>, under_way: &[&str]) -> Option<usize> {
    waiting.iter().position(|order| !order.traces().iter().any(|trace| under_way.contains(&trace.as_str())))
}

fn lock(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a worker and everything that it has started.
fn end(running: &mut Running) {
    if let Some(group) = running.group.take() {
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
}

/// The thread of a slot.
struct Thread {
    start: Start,
    running: Arc<Mutex<Running>>,
    worker: Option<Worker>,
}

/// Trials after which a worker is replaced, so that nothing that it may leak grows without end.
const MOST_TRIALS: u32 = 150;

/// A worker that has been started.
struct Worker {
    process: Child,
    /// Variables that it was started with.
    environment: BTreeMap<String, String>,
    trials: u32,
    orders: ChildStdin,
    answers: BufReader<std::process::ChildStdout>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.process.id() as i32), Signal::SIGKILL);
        let _ = self.process.wait();
    }
}

impl Thread {
    fn serve(&mut self, number: usize, inbox: &Receiver<Order>, answers: &Sender<(usize, Reply)>) {
        for order in inbox {
            let reply = self.answer(&order);
            if answers.send((number, reply)).is_err() {
                return;
            }
        }
    }

    /// Has a trial run, a second time when its worker dies.
    fn answer(&mut self, order: &Order) -> Reply {
        let mut reason = String::new();
        for _ in 0..2 {
            match self.attempt(order) {
                Ok(reply) => return reply,
                Err(error) => reason = error.to_string(),
            }
            let status = self.worker.as_mut().map(|worker| worker.process.wait());
            self.worker = None;
            let mut running = lock(&self.running);
            running.group = None;
            if std::mem::take(&mut running.timed_out) {
                let limit = order.timeout.unwrap_or_default();
                let lines = self.lines(format!("it was ended after {limit} s, the time limit in [trial]"));
                return Reply { number: order.number, outcome: Outcome::failed(lines), ..Reply::default() };
            }
            if let Some(Ok(status)) = status {
                reason = format!("the process that ran the trial ended ({status})");
            }
        }
        let outcome = Outcome::failed(self.lines(reason));
        Reply { number: order.number, outcome, accident: true, ..Reply::default() }
    }

    fn lines(&self, last: String) -> Vec<String> {
        let mut lines = job_log::last_lines(&self.start.folder.join("log"));
        lines.push(last);
        lines
    }

    fn attempt(&mut self, order: &Order) -> std::io::Result<Reply> {
        let fresh = |worker: &Worker| worker.environment == order.environment && worker.trials < MOST_TRIALS;
        if !self.worker.as_ref().is_some_and(fresh) {
            self.worker = None;
            let worker = self.start.worker(&order.environment)?;
            let mut running = lock(&self.running);
            running.group = Some(worker.process.id() as i32);
            if running.over {
                end(&mut running);
            }
            drop(running);
            self.worker = Some(worker);
        }
        let worker = self.worker.as_mut().ok_or(std::io::ErrorKind::NotConnected)?;
        worker.trials += 1;
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        worker.orders.write_all(&line)?;
        let mut answer = String::new();
        if worker.answers.read_line(&mut answer)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&answer)?)
    }
}

impl Start {
    fn worker(&self, environment: &BTreeMap<String, String>) -> std::io::Result<Worker> {
        let path = self.folder.join("log");
        let files = format!("{}/", self.folder.join("files").display());
        let variables = environment.iter().map(|(name, value)| (name, value.replace(FILE_PREFIX, &files)));
        let log = File::options().create(true).append(true).open(&path)?;
        let mut process = Command::new(&self.program)
            .args(["search", "worker", "--folder"])
            .arg(&self.folder)
            .arg("--log")
            .arg(&path)
            .arg("--traces")
            .arg(&self.traces)
            .current_dir(&self.directory)
            .envs(variables)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()?;
        let mut set = CpuSet::new();
        if self.cores.iter().all(|core| set.set(*core).is_ok()) {
            let _ = sched_setaffinity(Pid::from_raw(process.id() as i32), &set);
        }
        let streams = process.stdin.take().zip(process.stdout.take());
        let (orders, answers) = streams.ok_or(std::io::ErrorKind::BrokenPipe)?;
        let answers = BufReader::new(answers);
        Ok(Worker { process, environment: environment.clone(), trials: 0, orders, answers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_waits_for_the_trace_that_another_one_makes() {
        let order = |place: &str| {
            let trace = Some(place.to_owned()).filter(|place| !place.is_empty());
            Order { trace, ..Order::default() }
        };
        let check = |waiting: &[&str], under_way: &[&str], expect| {
            let waiting: VecDeque<Order> = waiting.iter().map(|place| order(place)).collect();
            let under_way: Vec<String> = under_way.iter().flat_map(|place| order(place).traces()).collect();
            let under_way: Vec<&str> = under_way.iter().map(String::as_str).collect();
            assert_eq!(next_of(&waiting, &under_way), expect);
        };
        check(&["a", "a", "b"], &["a"], Some(2));
        check(&["a", "a"], &["a"], None);
        check(&["a", "b"], &[], Some(0));
        check(&["", "a"], &["a", ""], Some(0));
    }

    #[test]
    fn slots_have_processors_of_their_own_while_there_are_enough() {
        let check = |cores: &[usize], slots, expect: &[&[usize]]| {
            assert_eq!(shares(cores, slots), expect.iter().map(|share| share.to_vec()).collect::<Vec<_>>());
        };
        check(&[0, 1, 2, 3], 2, &[&[0, 1], &[2, 3]]);
        check(&[0, 1, 2], 2, &[&[0], &[1]]);
        check(&[4, 5], 3, &[&[4], &[5], &[4]]);
    }
}

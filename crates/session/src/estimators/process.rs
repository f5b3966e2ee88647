//! Another program as estimator: JSON lines on its standard input and output.
//!
//! One line asks for any number of operations: `{"version": 1, "device": {…the sheet…}, "operations": [{…}, …]}`, where
//! an operation is what `trompe trace show --json` prints for its descriptor. One line answers, in the same order:
//! `{"estimates": [{"seconds": 1.5e-5}, {"seconds": 2e-5, "low": 1.8e-5, "high": 2.4e-5, "note": "…"}, null]}`. `null`
//! (or a wrong number) leaves an operation to physics. All distinct operations of a job are asked at once, and answers
//! are kept, so that a slow program is asked once.
//!
//! A program that dies, falls silent or answers nonsense while a job is priced loses its turn: physics answers from then
//! on, and every such estimate carries a note that says so. At the start the same is an error.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use trompe_estimate::{Basis, Estimate, KernelEstimator, Physics};
use trompe_hardware::{Catalogue, DeviceSheet};
use trompe_trace::descriptor::Descriptor;

use super::probe::probe;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// Version of the protocol.
const VERSION: u32 = 1;

/// Wraps a Python function: reads requests, calls `function(operations, device)`, writes what it returns.
const BRIDGE: &str = include_str!("bridge.py");

/// The command that runs the Python function `function` (`file.py:name` or `module:name`).
pub(super) fn python(interpreter: &Path, function: &str) -> Vec<String> {
    vec![
        interpreter.display().to_string(),
        "-u".to_owned(),
        "-c".to_owned(),
        BRIDGE.to_owned(),
        function.to_owned(),
    ]
}

/// A running program.
pub struct Process {
    family: String,
    state: Mutex<State>,
    physics: Physics,
}

struct State {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    answers: HashMap<(String, Descriptor), Option<Answer>>,
    /// Why it is asked no more.
    failed: Option<String>,
}

#[derive(Serialize)]
struct Request<'a> {
    version: u32,
    device: &'a DeviceSheet,
    operations: &'a [&'a Descriptor],
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    estimates: Vec<Option<Answer>>,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Answer {
    seconds: f64,
    low: Option<f64>,
    high: Option<f64>,
    note: Option<String>,
}

impl Process {
    /// Starts `command` in `folder` and asks it about one operation of its family, twice.
    ///
    /// # Errors
    /// In words, when it cannot be started or does not answer as it must.
    pub fn start(family: &str, command: &[String], folder: &Path) -> Result<Self, String> {
        let name = || format!("`{}` for `family.{family}`", command.first().map_or("", String::as_str));
        let mut prepared = Command::new(&command[0]);
        prepared.args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        if !folder.as_os_str().is_empty() {
            prepared.current_dir(folder);
        }
        let mut child = prepared.spawn().map_err(|error| format!("{} cannot be started: {error}", name()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (sender, receiver) = channel();
        if let Some(output) = output {
            // A thread reads, so that silence can be told from slowness.
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        let state = State { child, input, output: receiver, answers: HashMap::new(), failed: None };
        let process = Self { family: family.to_owned(), state: Mutex::new(state), physics: Physics::new() };
        let probe = probe(family);
        let device = Catalogue::builtin().device("h100-sxm").map_err(|error| error.to_string())?;
        let mut state = process.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = |state: &mut State| {
            state.ask(&[&probe], &device).map_err(|reason| format!("{}: {reason}", name()))
        };
        let (first, second) = (ask(&mut state)?, ask(&mut state)?);
        let seconds = |answers: &[Option<Answer>]| answers[0].as_ref().map(|answer| answer.seconds);
        if seconds(&first) != seconds(&second) {
            return Err(format!("{} gives another answer to the same question", name()));
        }
        drop(state);
        Ok(process)
    }
}

impl State {
    /// Asks for `operations`, in order.
    fn ask(
        &mut self,
        operations: &[&Descriptor],
        device: &DeviceSheet,
    ) -> Result<Vec<Option<Answer>>, String> {
        let request = Request { version: VERSION, device, operations };
        let mut line = serde_json::to_string(&request).map_err(|error| error.to_string())?;
        line.push('\n');
        let input = self.input.as_mut().ok_or("it has no standard input")?;
        if let Err(error) = input.write_all(line.as_bytes()).and_then(|()| input.flush()) {
            return Err(format!("it ended without an answer ({error})"));
        }
        let answer = self.output.recv_timeout(PATIENCE).map_err(|error| match error {
            std::sync::mpsc::RecvTimeoutError::Timeout => format!("no answer in {} s", PATIENCE.as_secs()),
            std::sync::mpsc::RecvTimeoutError::Disconnected => "it ended without an answer".to_owned(),
        })?;
        let response: Response = serde_json::from_str(&answer).map_err(|error| {
            let start: String = answer.chars().take(80).collect();
            format!("its answer is not what the protocol says ({error}): {start}")
        })?;
        if let Some(error) = response.error {
            return Err(error);
        }
        if response.estimates.len() != operations.len() {
            return Err(format!("{} answers to {} questions", response.estimates.len(), operations.len()));
        }
        let wrong = response
            .estimates
            .iter()
            .flatten()
            .find(|answer| !(answer.seconds.is_finite() && answer.seconds > 0.0));
        match wrong {
            Some(answer) => Err(format!("a time of {} s, which is not positive", answer.seconds)),
            None => Ok(response.estimates),
        }
    }
}

impl KernelEstimator for Process {
    fn estimate(&self, operation: &Descriptor, device: &DeviceSheet) -> Estimate {
        self.prepare(&[operation], device);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(answer)) = state.answers.get(&(device.name.clone(), operation.clone())) {
            let spread = [
                answer.low.map_or(0.8, |low| low / answer.seconds),
                answer.high.map_or(1.25, |high| high / answer.seconds),
            ];
            let method = format!("process.{}", self.family);
            let estimate = Estimate::new(answer.seconds, spread, method, Basis::Learned);
            return match &answer.note {
                Some(note) => estimate.noted(note.clone()),
                None => estimate,
            };
        }
        let estimate = self.physics.estimate(operation, device);
        match &state.failed {
            Some(reason) => {
                estimate.noted(format!("the estimator of `family.{}` failed: {reason}", self.family))
            }
            None => estimate,
        }
    }

    fn prepare(&self, operations: &[&Descriptor], device: &DeviceSheet) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failed.is_some() {
            return;
        }
        let mut fresh: Vec<&Descriptor> = Vec::new();
        for operation in operations {
            let known = state.answers.contains_key(&(device.name.clone(), (*operation).clone()));
            if !known && !fresh.contains(operation) {
                fresh.push(operation);
            }
        }
        if fresh.is_empty() {
            return;
        }
        match state.ask(&fresh, device) {
            Ok(answers) => {
                for (operation, answer) in fresh.into_iter().zip(answers) {
                    state.answers.insert((device.name.clone(), operation.clone()), answer);
                }
            }
            Err(reason) => state.failed = Some(reason),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A closed input tells it to end; one that does not listen is ended.
        drop(state.input.take());
        for _ in 0..20 {
            if matches!(state.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = state.child.kill();
        let _ = state.child.wait();
    }
}

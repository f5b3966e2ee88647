//! Workers on a Ray cluster.
//!
//! A Python process (the driver, `ray.py`) connects to the cluster and has each order run as a Ray task, which starts
//! this same program as a worker on whatever node Ray chooses. A task whose node dies is run again by Ray. trompe, the
//! script and its Python must be at the same paths on every node (a shared file system, or the same image).

use std::io::BufRead;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use trompe_search::Outcome;

use super::external::Helper;
use super::files::StudyFiles;
use super::order::{Order, Reply};
use super::{Plan, Pool, SearchError};

/// What runs in the Python process.
const SCRIPT: &str = include_str!("ray.py");

/// See the module.
pub(super) struct Ray {
    helper: Helper,
    messages: Receiver<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Message {
    /// The cluster answers: its nodes and processors.
    Ready,
    /// A trial has ended.
    Reply(Box<Reply>),
    /// A trial could not be run.
    Lost { number: u32, reason: String },
}

impl Ray {
    /// Connects to a cluster.
    pub(super) fn start(address: &str, plan: &Plan, files: &StudyFiles) -> Result<Self, SearchError> {
        let program = std::env::current_exe().map_err(|error| SearchError::Pool(error.to_string()))?;
        let setting = json!({
            "address": address,
            "program": program,
            "work": files.work,
            "traces": files.traces,
            "directory": plan.directory,
        });
        let mut helper = Helper::start("Ray", SCRIPT, &[setting.to_string()], &plan.directory)?;
        let Message::Ready = helper.hear()? else { return Err(helper.wrong("it said something unexpected")) };
        let (sender, messages) = channel();
        let output = helper.take_output();
        std::thread::spawn(move || {
            for line in output.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { helper, messages })
    }
}

impl Pool for Ray {
    fn submit(&mut self, order: Order) -> Result<(), SearchError> {
        self.helper.say(&order)
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Reply>, SearchError> {
        let line = match self.messages.recv_timeout(wait) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => return Err(self.helper.wrong("its driver has ended")),
        };
        match serde_json::from_str(&line) {
            Ok(Message::Reply(reply)) => Ok(Some(*reply)),
            Ok(Message::Lost { number, reason }) => {
                let outcome = Outcome::failed(vec![reason]);
                Ok(Some(Reply { number, outcome, accident: true, ..Reply::default() }))
            }
            Ok(Message::Ready) => Ok(None),
            Err(error) => Err(self.helper.wrong(&format!("`{line}`: {error}"))),
        }
    }
}

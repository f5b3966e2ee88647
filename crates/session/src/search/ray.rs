//! Workers on a Ray cluster.
//!
//! A Python process (the driver, `ray.py`) connects to the cluster and has each order run as a Ray task, which starts
//! this same program as a worker on whatever node Ray chooses. A task whose node dies is run again by Ray. Where it is
//! the node that the driver itself hangs on, Ray ends the driver: another one is started and given the orders that
//! were under way. trompe, the script and its Python must be at the same paths on every node (a shared file system, or
//! the same image).

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::PathBuf;
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
/// Drivers that may be lost one after the other without a trial in between.
const MOST_LOST: u32 = 3;

/// See the module.
pub(super) struct Ray {
    setting: String,
    directory: PathBuf,
    driver: Driver,
    /// Orders without a reply.
    under_way: BTreeMap<u32, Order>,
    lost: u32,
}

struct Driver {
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

impl Driver {
    fn start(setting: &str, directory: &std::path::Path) -> Result<Self, SearchError> {
        let mut helper = Helper::start("Ray", SCRIPT, &[setting.to_owned()], directory)?;
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
        let (setting, directory) = (setting.to_string(), plan.directory.clone());
        let driver = Driver::start(&setting, &directory)?;
        Ok(Self { setting, directory, driver, under_way: BTreeMap::new(), lost: 0 })
    }

    /// The driver has ended: another one gets its orders.
    fn again(&mut self) -> Result<(), SearchError> {
        self.lost += 1;
        if self.lost > MOST_LOST {
            return Err(self.driver.helper.wrong("its driver has ended"));
        }
        self.driver = Driver::start(&self.setting, &self.directory)?;
        self.under_way.values().try_for_each(|order| self.driver.helper.say(order))
    }
}

impl Pool for Ray {
    fn submit(&mut self, order: Order) -> Result<(), SearchError> {
        let said = self.driver.helper.say(&order);
        self.under_way.insert(order.number, order);
        // The pipe of one that has ended is closed.
        said.or_else(|_| self.again())
    }

    fn next(&mut self, wait: Duration) -> Result<Option<Reply>, SearchError> {
        let line = match self.driver.messages.recv_timeout(wait) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => return self.again().map(|()| None),
        };
        let message = serde_json::from_str(&line);
        let reply = match message {
            Ok(Message::Reply(reply)) => *reply,
            Ok(Message::Lost { number, reason }) => {
                let outcome = Outcome::failed(vec![reason]);
                Reply { number, outcome, accident: true, ..Reply::default() }
            }
            Ok(Message::Ready) => return Ok(None),
            Err(error) => return Err(self.driver.helper.wrong(&format!("`{line}`: {error}"))),
        };
        self.lost = 0;
        Ok(self.under_way.remove(&reply.number).map(|_| reply))
    }
}

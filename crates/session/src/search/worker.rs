//! A worker: a process that runs trials one after the other, told by lines of JSON.
//!
//! Orders come on standard input, answers go to standard output. Neither belongs to the jobs that run here: they read
//! nothing and write to the worker's standard error, which its owner has led to a file. The worker's processors and
//! environment are those that its owner gave it.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use super::SearchError;
use super::order::Order;
use super::trial::Bench;
use crate::SessionError;
use crate::run::Kept;

/// Runs trials until standard input ends. `folder` is the worker's own, `traces` one that workers share.
///
/// # Errors
/// When the standard streams cannot be set up, or an order makes no sense.
pub fn work(folder: &Path, log: &Path, traces: &Path) -> Result<(), SessionError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        SessionError::from(SearchError::Pool(format!("{what}: {error}")))
    };
    let own = |stream: std::io::Result<OwnedFd>| stream.map_err(|error| failed("standard streams", &error));
    let orders = own(std::io::stdin().as_fd().try_clone_to_owned())?;
    let answers = own(std::io::stdout().as_fd().try_clone_to_owned())?;
    let nothing = File::open("/dev/null").map_err(|error| failed("/dev/null", &error))?;
    nix::unistd::dup2_stdin(&nothing).map_err(|error| failed("standard input", &error))?;
    nix::unistd::dup2_stdout(std::io::stderr()).map_err(|error| failed("standard output", &error))?;
    let mut answers = File::from(answers);
    let mut bench = Bench {
        folder: folder.to_owned(),
        log: log.to_owned(),
        traces: traces.to_owned(),
        kept: Kept::default(),
        pricer: None,
    };
    for line in BufReader::new(File::from(orders)).lines() {
        let line = line.map_err(|error| failed("orders", &error))?;
        let order: Order = serde_json::from_str(&line).map_err(|error| failed("an order", &error))?;
        let mut answer = serde_json::to_vec(&bench.run(&order)).expect("plain data has a JSON form");
        answer.push(b'\n');
        answers.write_all(&answer).map_err(|error| failed("answers", &error))?;
    }
    Ok(())
}

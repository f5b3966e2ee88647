//! What is said between trompe and the prepared process: one JSON object a line.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Stopwatch;

/// What the ranks will run.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    pub(super) argv: Vec<String>,
    pub(super) options: Vec<String>,
    pub(super) module: bool,
    pub(super) private: Vec<&'static str>,
}

/// A rank to fork.
#[derive(Debug, Serialize)]
pub(super) struct Order<'a> {
    pub(super) fork: Fork<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct Fork<'a> {
    pub(super) environment: BTreeMap<&'a str, String>,
    pub(super) argv: Vec<String>,
    pub(super) core: Option<usize>,
    pub(super) nice: i32,
}

/// What the process says.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Say {
    Ready { seconds: f64, modules: Vec<String> },
    Unfit(String),
    Forked { pid: i32 },
    Ended { pid: i32, status: i32 },
}

#[derive(Debug)]
pub(super) struct Conversation {
    stream: UnixStream,
    heard: Vec<u8>,
}

impl Conversation {
    pub(super) const fn new(stream: UnixStream) -> Self {
        Self { stream, heard: Vec::new() }
    }

    pub(super) fn say(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        self.stream.write_all(&line)
    }

    /// The next line; `None` when there is none within `patience`.
    pub(super) fn hear(&mut self, patience: Duration) -> io::Result<Option<Say>> {
        let began = Stopwatch::start();
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            let left = patience.saturating_sub(began.elapsed());
            // A timeout of zero would mean none.
            self.stream.set_nonblocking(left.is_zero())?;
            if !left.is_zero() {
                self.stream.set_read_timeout(Some(left))?;
            }
            let mut more = [0; 4096];
            let read = self.stream.read(&mut more);
            self.stream.set_nonblocking(false)?;
            match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.heard.extend_from_slice(&more[..length]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if patience.saturating_sub(began.elapsed()).is_zero() {
                        return Ok(None);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn hang_up(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_heard_one_by_one_and_waited_for() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut conversation = Conversation::new(here);
        assert_eq!(conversation.hear(Duration::ZERO).unwrap(), None);
        assert_eq!(conversation.hear(Duration::from_millis(5)).unwrap(), None);
        there.write_all(b"{\"unfit\": \"why\"}\n{\"forked\": {\"pid\": 7}}\n{\"ended\":").unwrap();
        assert_eq!(conversation.hear(Duration::ZERO).unwrap(), Some(Say::Unfit("why".to_owned())));
        assert_eq!(conversation.hear(Duration::from_secs(9)).unwrap(), Some(Say::Forked { pid: 7 }));
        assert_eq!(conversation.hear(Duration::ZERO).unwrap(), None);
        there.write_all(b"{\"pid\": 7, \"status\": 256}}\n").unwrap();
        assert_eq!(conversation.hear(Duration::ZERO).unwrap(), Some(Say::Ended { pid: 7, status: 256 }));
        drop(there);
        assert!(conversation.hear(Duration::from_secs(9)).is_err());
    }
}

//! A Python program that helps, spoken to in lines of JSON.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::SearchError;
use crate::{env, python};

/// A helper that runs.
#[derive(Debug)]
pub(super) struct Helper {
    name: &'static str,
    process: Child,
    input: ChildStdin,
    output: Option<BufReader<ChildStdout>>,
}

impl Helper {
    /// Starts `script` with the first Python on `PATH`, as the job's own commands would find it.
    pub(super) fn start(
        name: &'static str,
        script: &str,
        arguments: &[String],
        directory: &Path,
    ) -> Result<Self, SearchError> {
        let failed = |reason: String| SearchError::Helper { program: name, reason };
        let mut process = Command::new(interpreter())
            .args(["-c", script])
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("its Python cannot be started: {error}")))?;
        let streams = process.stdin.take().zip(process.stdout.take());
        let (input, output) = streams.ok_or_else(|| failed("it has no streams".to_owned()))?;
        Ok(Self { name, process, input, output: Some(BufReader::new(output)) })
    }

    /// Says something.
    pub(super) fn say(&mut self, message: &impl Serialize) -> Result<(), SearchError> {
        let mut line = serde_json::to_vec(message).expect("plain data has a JSON form");
        line.push(b'\n');
        let said = self.input.write_all(&line).and_then(|()| self.input.flush());
        said.map_err(|error| self.wrong(&error.to_string()))
    }

    /// Waits for the next message.
    pub(super) fn hear<T: DeserializeOwned>(&mut self) -> Result<T, SearchError> {
        let mut line = String::new();
        let read = self.output.as_mut().map(|output| output.read_line(&mut line));
        match read {
            Some(Ok(length)) if length > 0 => serde_json::from_str(&line)
                .map_err(|error| self.wrong(&format!("`{}`: {error}", line.trim()))),
            _ => Err(self.wrong("it has ended")),
        }
    }

    /// The stream of messages, for a thread that waits for them.
    pub(super) fn take_output(&mut self) -> Option<BufReader<ChildStdout>> {
        self.output.take()
    }

    /// What is wrong: the last line of its own errors, when it has ended.
    pub(super) fn wrong(&mut self, otherwise: &str) -> SearchError {
        let mut text = String::new();
        let _ = self.process.kill();
        let _ = self.process.wait();
        if let Some(errors) = &mut self.process.stderr {
            let _ = errors.read_to_string(&mut text);
        }
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(otherwise);
        SearchError::Helper { program: self.name, reason: last.trim().to_owned() }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn interpreter() -> PathBuf {
    let path = env::get(env::PATH).unwrap_or_default();
    ["python", "python3"]
        .iter()
        .find_map(|name| python::which(std::ffi::OsStr::new(name), &path))
        .unwrap_or_else(|| PathBuf::from("python3"))
}

//! One process that imports the job's framework once, and the ranks that are forked from it.
//!
//! Importing PyTorch costs seconds and hundreds of MiB in every process. The *zygote* does it once: a Python process
//! with the job's interpreter and environment (`trompe_hook/zygote.py`), which then forks a child for each rank. A
//! child has its own variables, arguments and trace, and runs the script as a process started for it would.
//!
//! What it is not: a pool. Nothing of the user's own code runs before the fork, so ranks are as separate as ever.
//!
//! [`Script::of`] says whether a command can be forked, [`Zygote::start`] prepares the process, [`Zygote::fork`] starts a
//! rank, [`Zygote::ended`] tells which have ended. One zygote serves any number of runs of the same script, each with its
//! own variables.

mod conversation;
mod script;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Pid;

use crate::clock::Stopwatch;
use crate::env;
use crate::launch::Emulation;
use conversation::{Conversation, Fork, Order, Say, Setting};

pub use script::Script;

/// Why ranks are started as processes of their own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotForked(pub String);

/// A prepared process.
#[derive(Debug)]
pub struct Zygote {
    process: Child,
    conversation: Conversation,
    script: Script,
    /// Seconds that the imports took.
    seconds: f64,
    modules: Vec<String>,
    ended: Vec<(Pid, ExitStatus)>,
}

/// A rank to start.
#[derive(Debug)]
pub struct Rank<'a> {
    /// Arguments of the script; the first is the script (or module) itself.
    pub argv: &'a [OsString],
    /// Variables that the prepared process does not have.
    pub variables: Vec<(&'a str, OsString)>,
    /// Processor to run on.
    pub core: Option<usize>,
    /// How much it stands back for others (0 to 19).
    pub nice: i32,
}

/// The longest time that the imports may take.
const IMPORTS: Duration = Duration::from_secs(600);
/// The longest time that a fork may take.
const FORK: Duration = Duration::from_secs(60);

impl Zygote {
    /// Starts the process and waits until it has imported what it can. `common` are variables that all ranks have,
    /// `private` the names of those that differ.
    ///
    /// # Errors
    /// When ranks cannot be forked from it; the text says why.
    pub fn start(
        script: Script,
        emulation: &Emulation,
        common: &[(&'static str, OsString)],
        private: &[&'static str],
    ) -> Result<Self, NotForked> {
        let failed = |error: std::io::Error| NotForked(format!("no process can be prepared: {error}"));
        let name = format!("trompe-{}-{:x}", std::process::id(), number());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).map_err(failed)?)
            .map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let mut command = Command::new(&script.python);
        command.args(&script.options).args(["-m", "trompe_hook.zygote", &name]);
        emulation.apply(&mut command);
        let mut process = command
            .envs(common.iter().map(|(name, value)| (name, value)))
            // It records nothing itself.
            .env_remove(env::TROMPE_TRACE_DIR)
            .stdin(Stdio::inherit())
            .spawn()
            .map_err(failed)?;
        let stream = match accept(&listener, &mut process) {
            Ok(stream) => stream,
            Err(reason) => {
                let _ = process.kill();
                let _ = process.wait();
                return Err(reason);
            }
        };
        let mut zygote = Self {
            process,
            conversation: Conversation::new(stream),
            script,
            seconds: 0.0,
            modules: Vec::new(),
            ended: Vec::new(),
        };
        zygote.prepare(private)?;
        Ok(zygote)
    }

    fn prepare(&mut self, private: &[&'static str]) -> Result<(), NotForked> {
        let texts = |words: &[OsString]| -> Option<Vec<String>> {
            words.iter().map(|word| word.to_str().map(str::to_owned)).collect()
        };
        let (argv, options) = texts(&self.script.argv)
            .zip(texts(&self.script.options))
            .ok_or_else(|| NotForked("the command is not UTF-8".to_owned()))?;
        let setting = Setting { argv, options, module: self.script.module, private: private.to_vec() };
        let gone = |_| NotForked("the prepared process has ended".to_owned());
        self.conversation.say(&setting).map_err(gone)?;
        match self.conversation.hear(IMPORTS).map_err(gone)? {
            Some(Say::Ready { seconds, modules }) => {
                (self.seconds, self.modules) = (seconds, modules);
                Ok(())
            }
            Some(Say::Unfit(reason)) => Err(NotForked(reason)),
            _ => Err(NotForked(format!("the imports take longer than {} s", IMPORTS.as_secs()))),
        }
    }

    /// Seconds that the imports took.
    #[must_use]
    pub const fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Packages that were imported once for all ranks.
    #[must_use]
    pub fn modules(&self) -> &[String] {
        &self.modules
    }

    /// What runs in each rank.
    #[must_use]
    pub const fn script(&self) -> &Script {
        &self.script
    }

    /// The process itself.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_raw(self.process.id() as i32)
    }

    /// Forks a rank.
    ///
    /// # Errors
    /// When the process has ended or does not answer.
    pub fn fork(&mut self, rank: &Rank<'_>) -> std::io::Result<Pid> {
        let lossy = |word: &OsString| word.to_string_lossy().into_owned();
        let environment: BTreeMap<&str, String> =
            rank.variables.iter().map(|(name, value)| (*name, lossy(value))).collect();
        let argv = rank.argv.iter().map(lossy).collect();
        let order = Order { fork: Fork { environment, argv, core: rank.core, nice: rank.nice } };
        self.conversation.say(&order)?;
        loop {
            match self.conversation.hear(FORK)? {
                Some(Say::Forked { pid }) => return Ok(Pid::from_raw(pid)),
                Some(Say::Ended { pid, status }) => self.note(pid, status),
                _ => return Err(std::io::ErrorKind::TimedOut.into()),
            }
        }
    }

    /// The ranks that have ended since the last question.
    pub fn ended(&mut self) -> Vec<(Pid, ExitStatus)> {
        while let Ok(Some(Say::Ended { pid, status })) = self.conversation.hear(Duration::ZERO) {
            self.note(pid, status);
        }
        std::mem::take(&mut self.ended)
    }

    /// Whether the process still lives: without it the ends of its ranks are not told.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    fn note(&mut self, pid: i32, status: i32) {
        self.ended.push((Pid::from_raw(pid), ExitStatus::from_raw(status)));
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        // It ends when nobody talks to it any more; one that is stuck in an import is not waited for.
        self.conversation.hang_up();
        let asked = Stopwatch::start();
        while self.is_alive() {
            if asked.elapsed() > Duration::from_millis(500) {
                let _ = self.process.kill();
                let _ = self.process.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Waits for the process to connect; nobody else of this machine may.
fn accept(listener: &UnixListener, process: &mut Child) -> Result<UnixStream, NotForked> {
    const START: Duration = Duration::from_secs(60);
    let began = Stopwatch::start();
    while began.elapsed() < START {
        if let Ok((stream, _)) = listener.accept() {
            let peer = getsockopt(&stream, PeerCredentials);
            if peer.is_ok_and(|peer| peer.uid() == nix::unistd::getuid().as_raw()) {
                let _ = stream.set_nonblocking(false);
                return Ok(stream);
            }
        }
        if let Ok(Some(status)) = process.try_wait() {
            return Err(NotForked(format!("the prepared process ended at once ({status})")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Err(NotForked("the prepared process does not answer".to_owned()))
}

/// A number that is used once in this process.
fn number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

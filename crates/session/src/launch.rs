//! Running the user's command with the emulated libraries in its environment.
//!
//! The command has the user's own standard streams and stays in the terminal's foreground group. A signal from the
//! terminal (`Ctrl-C`) reaches it without us; one sent to trompe alone is passed on. A second `Ctrl-C` ends the
//! job's processes for good. In every case trompe itself goes on and reports what was recorded.
//!
//! Ranks are forked from a prepared process where there is one ([`crate::zygote`]). Several ranks are each kept on one
//! processor, so that the host times that they record are not those of a program that is moved about.

mod group;
mod interruptions;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use trompe_base::Rank;

use crate::clock::Stopwatch;
use crate::install::Libraries;
use crate::zygote::Zygote;
use crate::{Routing, SessionError, descendants, env};
use group::Group;
use interruptions::Interruptions;

/// Everything that the job's processes are told through their environment.
#[derive(Clone, Debug)]
pub struct Emulation {
    /// The emulated libraries.
    pub libraries: Libraries,
    /// Folder of the Python hook.
    pub hook: PathBuf,
    /// Folder with programs that answer for the pretended node (`nvidia-smi`).
    pub programs: Option<PathBuf>,
    /// JSON file of the pretended node.
    pub config: PathBuf,
    /// Folder for the worker traces; `None`: nothing is recorded.
    pub traces: Option<PathBuf>,
    /// Kernel database.
    pub kernel_db: Option<PathBuf>,
    /// Whether framework operators are recorded.
    pub record_operators: bool,
    /// What a launcher set for its ranks beside what it was started with.
    pub launcher: LauncherSettings,
    /// How choices in values that nobody computes are made up.
    pub routing: Option<Routing>,
}

/// What a launcher that was met on the way set for its ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LauncherSettings {
    /// Variables; they count more than those of the emulation, which they were made from.
    pub variables: Vec<(String, OsString)>,
    /// Working directory.
    pub directory: Option<PathBuf>,
}

impl Emulation {
    /// Gives a command everything that is the same for all processes.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.envs(self.variables());
        command.envs(self.launcher.variables.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.launcher.directory {
            command.current_dir(directory);
        }
    }

    /// The variables to set, in order of name.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let in_front = |name, first: &Path| (name, env::prepend(first.as_os_str(), env::get(name)));
        let mut variables = vec![
            in_front(env::LD_LIBRARY_PATH, &self.libraries.folder),
            in_front(env::LD_PRELOAD, &self.libraries.preloaded),
            in_front(env::PYTHONPATH, &self.hook),
            (env::TROMPE_CONFIG, self.config.clone().into()),
            (env::TROMPE_RECORD_OPS, OsString::from(if self.record_operators { "1" } else { "0" })),
        ];
        variables.extend(self.routing.map(|routing| (env::TROMPE_ROUTING, routing.to_string().into())));
        variables.extend(self.programs.as_deref().map(|folder| in_front(env::PATH, folder)));
        variables.extend(self.traces.clone().map(|path| (env::TROMPE_TRACE_DIR, path.into())));
        variables.extend(self.kernel_db.clone().map(|path| (env::TROMPE_KERNEL_DB, path.into())));
        variables.sort();
        variables
    }
}

/// A process to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Its program.
    pub program: PathBuf,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
    /// Its own variables, beside those of the emulation.
    pub variables: Vec<(&'static str, OsString)>,
    /// Its rank in a distributed job.
    pub rank: Option<Rank>,
    /// It only checks what another rank does, and stands back for the others.
    pub checks: bool,
}

/// Whoever looks at the ranks while they run.
pub trait Watch {
    /// Looks; `running` are the ranks that run.
    fn look(&mut self, running: &[Rank]) -> Wish;

    /// A rank has ended, well or not, or was stopped.
    fn gone(&mut self, rank: Rank);
}

/// What a [`Watch`] wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Nothing.
    #[default]
    GoOn,
    /// These ranks to be stopped; that is no failure of theirs.
    Stop(Vec<Rank>),
    /// All of them to be stopped.
    StopAll,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status; of a distributed job that of the first rank that failed.
    pub status: ExitStatus,
    /// The rank that failed first; the others were stopped.
    pub failed: Option<Rank>,
    /// The user (or somebody else) stopped it with this signal.
    pub interrupted_by: Option<i32>,
    /// Whoever watched wanted all of them stopped.
    pub stopped: bool,
    /// How long it ran.
    pub took: Duration,
}

impl Ended {
    /// The exit code as a shell would give it: 128 plus the signal for a process ended by one.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }
}

/// Runs `workers` at the same time to their ends under `emulation`. When one fails, the others are ended.
///
/// # Errors
/// When one cannot be started.
pub fn run(
    workers: &[Worker],
    emulation: &Emulation,
    zygote: Option<&mut Zygote>,
    watch: &mut dyn Watch,
) -> Result<Ended, SessionError> {
    // Descendants whose parents end are then ours, so that they can be found and ended.
    let _ = nix::sys::prctl::set_child_subreaper(true);
    let signals = SignalsInfo::<WithOrigin>::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2]);
    let mut signals = signals.map_err(|source| SessionError::BadLaunch { reason: source.to_string() })?;
    let started = Stopwatch::start();
    let zygote_free = zygote.is_none();
    let group = Group::start(workers, emulation, zygote)?;
    let pids = group.pids();
    let seen = Arc::new(Interruptions::default());
    std::thread::spawn({
        let seen = Arc::clone(&seen);
        move || {
            for origin in &mut signals {
                // From the kernel on behalf of the terminal: the whole foreground group has it already.
                let ours_alone = origin.process.is_some();
                seen.handle(origin.signal, ours_alone, &pids);
            }
        }
    });
    let outcome = group.wait(watch);
    let interrupted_by = if outcome.stopped { None } else { seen.reason(outcome.status) };
    // What a stopped command has started is of no use either.
    if interrupted_by.is_some() || outcome.stopped && zygote_free {
        descendants::end_all();
    }
    seen.over.store(true, Ordering::Relaxed);
    let group::Outcome { status, failed, stopped } = outcome;
    Ok(Ended { status, failed, interrupted_by, stopped, took: started.elapsed() })
}

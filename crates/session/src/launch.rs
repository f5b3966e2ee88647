//! Running the user's command with the emulated libraries in its environment.
//!
//! The command has the user's own standard streams and stays in the terminal's foreground group. A signal from the
//! terminal (`Ctrl-C`) reaches it without us; one sent to trompe alone is passed on. A second `Ctrl-C` ends the
//! job's processes for good. In every case trompe itself goes on and reports what was recorded.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use trompe_base::Rank;

use crate::clock::Stopwatch;
use crate::install::Libraries;
use crate::{SessionError, descendants, env};

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
}

impl Emulation {
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
pub fn run(workers: &[Worker], emulation: &Emulation) -> Result<Ended, SessionError> {
    let cannot = |worker: &Worker, reason: String| SessionError::Command {
        command: worker.program.display().to_string(),
        reason,
    };
    // Descendants whose parents end are then ours, so that they can be found and ended.
    let _ = nix::sys::prctl::set_child_subreaper(true);
    let signals = SignalsInfo::<WithOrigin>::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2]);
    let mut signals = signals.map_err(|source| SessionError::BadLaunch { reason: source.to_string() })?;
    let started = Stopwatch::start();
    let mut children = Vec::new();
    for worker in workers {
        let child = Command::new(&worker.program)
            .args(&worker.arguments)
            .envs(emulation.variables())
            .envs(worker.variables.iter().map(|(name, value)| (name, value)))
            .spawn();
        match child {
            Ok(child) => children.push((worker.rank, child)),
            Err(error) => {
                end(&mut children);
                return Err(cannot(worker, error.to_string()));
            }
        }
    }
    let pids: Vec<Pid> = children.iter().map(|(_, child)| Pid::from_raw(child.id() as i32)).collect();
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
    let (status, failed) = wait(&mut children).map_err(|source| SessionError::BadLaunch {
        reason: format!("a rank cannot be waited for: {source}"),
    })?;
    let interrupted_by = seen.reason(status);
    if interrupted_by.is_some() {
        descendants::end_all();
    }
    seen.over.store(true, Ordering::Relaxed);
    Ok(Ended { status, failed, interrupted_by, took: started.elapsed() })
}

type Children = Vec<(Option<Rank>, Child)>;

/// Waits until all have ended; the first that fails has the others ended.
fn wait(children: &mut Children) -> std::io::Result<(ExitStatus, Option<Rank>)> {
    const GLANCE: Duration = Duration::from_millis(10);
    if let [(_, child)] = children.as_mut_slice() {
        let status = child.wait()?;
        let rank = children[0].0.filter(|_| !status.success());
        return Ok((status, rank));
    }
    let mut last = ExitStatus::default();
    loop {
        let mut failed = None;
        children.retain_mut(|(rank, child)| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) if status.success() => {
                last = status;
                false
            }
            Ok(Some(status)) => {
                failed.get_or_insert((status, *rank));
                false
            }
            Err(_) => false,
        });
        if let Some((status, rank)) = failed {
            end(children);
            return Ok((status, rank));
        }
        if children.is_empty() {
            return Ok((last, None));
        }
        std::thread::sleep(GLANCE);
    }
}

/// Ends ranks that have lost another one: asks first, and insists after ten seconds.
fn end(children: &mut Children) {
    const PATIENCE: Duration = Duration::from_secs(10);
    let asked = Stopwatch::start();
    for (_, child) in children.iter() {
        let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM);
    }
    while !children.is_empty() {
        children.retain_mut(|(_, child)| matches!(child.try_wait(), Ok(None)));
        if asked.elapsed() > PATIENCE {
            for (_, child) in children.iter_mut() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Signals that arrived while the command ran.
#[derive(Debug, Default)]
struct Interruptions {
    /// The command and its descendants have ended: from now on signals mean trompe alone.
    over: AtomicBool,
    first: AtomicU32,
    count: AtomicU32,
}

impl Interruptions {
    fn handle(&self, number: i32, pass_on: bool, children: &[Pid]) {
        let signal = Signal::try_from(number).ok();
        if self.over.load(Ordering::Relaxed) {
            let _ = signal_hook::low_level::emulate_default_handler(number);
            return;
        }
        if matches!(number, SIGUSR1 | SIGUSR2) {
            if pass_on {
                pass(children, signal);
            }
            return;
        }
        let _ = self.first.compare_exchange(0, number as u32, Ordering::Relaxed, Ordering::Relaxed);
        if self.count.fetch_add(1, Ordering::Relaxed) > 0 {
            descendants::signal_all(Signal::SIGKILL);
        } else if pass_on {
            pass(children, signal);
        }
    }

    fn first(&self) -> Option<i32> {
        Some(self.first.load(Ordering::Relaxed) as i32).filter(|number| *number != 0)
    }

    /// The signal that stopped a command which has ended with `status`.
    ///
    /// A signal to the whole group may end the command before our own copy of it is handled, so a command that ended
    /// badly is given a moment.
    fn reason(&self, status: ExitStatus) -> Option<i32> {
        const MOMENT: Duration = Duration::from_millis(5);
        const MOMENTS: u32 = 20;
        for _ in 0..MOMENTS {
            if status.success() || self.first().is_some() {
                break;
            }
            std::thread::sleep(MOMENT);
        }
        self.first().or_else(|| status.signal().filter(|signal| [SIGHUP, SIGINT, SIGTERM].contains(signal)))
    }
}

fn pass(children: &[Pid], signal: Option<Signal>) {
    for child in children {
        let _ = kill(*child, signal);
    }
}

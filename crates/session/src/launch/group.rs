//! The processes of a run while they run: started by themselves or forked from a prepared one, waited for, ended.

use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::os::unix::process::ExitStatusExt;
use trompe_base::Rank;

use super::{Emulation, Watch, Wish, Worker};
use crate::clock::Stopwatch;
use crate::zygote::{self, Script, Zygote};
use crate::{SessionError, env};

/// How often ends are looked for.
const GLANCE: Duration = Duration::from_millis(10);
/// How often the watch looks.
const LOOK: Duration = Duration::from_millis(250);

/// The processes that have not ended.
#[derive(Debug)]
pub(super) struct Group<'z> {
    members: Vec<Member>,
    zygote: Option<&'z mut Zygote>,
}

#[derive(Debug)]
struct Member {
    rank: Option<Rank>,
    process: Process,
}

#[derive(Debug)]
enum Process {
    Own(Child),
    Forked(Pid, Option<ExitStatus>),
}

/// How it all ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// Of the first that failed, or of the last.
    pub(super) status: ExitStatus,
    /// The rank that failed first.
    pub(super) failed: Option<Rank>,
    /// The watch wanted an end.
    pub(super) stopped: bool,
}

impl Member {
    fn pid(&self) -> Pid {
        match &self.process {
            Process::Own(child) => Pid::from_raw(child.id() as i32),
            Process::Forked(pid, _) => *pid,
        }
    }

    /// The status of a process that has ended.
    fn status(&mut self) -> Option<ExitStatus> {
        match &mut self.process {
            Process::Own(child) => match child.try_wait() {
                Ok(status) => status,
                // Somebody else has taken it.
                Err(_) => Some(ExitStatus::default()),
            },
            Process::Forked(_, status) => *status,
        }
    }
}

impl<'z> Group<'z> {
    /// Starts all of them.
    pub(super) fn start(
        workers: &[Worker],
        emulation: &Emulation,
        zygote: Option<&'z mut Zygote>,
    ) -> Result<Self, SessionError> {
        let cores = if workers.len() > 1 { processors() } else { Vec::new() };
        let mut group = Self { members: Vec::with_capacity(workers.len()), zygote };
        for (index, worker) in workers.iter().enumerate() {
            let core = (!cores.is_empty()).then(|| cores[index % cores.len()]);
            let started = match &mut group.zygote {
                Some(zygote) => fork(worker, emulation, zygote, core),
                None => spawn(worker, emulation, core),
            };
            match started {
                Ok(process) => group.members.push(Member { rank: worker.rank, process }),
                Err(error) => {
                    group.end();
                    return Err(SessionError::Command {
                        command: worker.program.display().to_string(),
                        reason: error.to_string(),
                    });
                }
            }
        }
        Ok(group)
    }

    pub(super) fn pids(&self) -> Vec<Pid> {
        self.members.iter().map(Member::pid).collect()
    }

    /// Waits until all have ended; the first that fails has the others ended.
    pub(super) fn wait(mut self, watch: &mut dyn Watch) -> Outcome {
        let mut last = ExitStatus::default();
        let mut looked = Stopwatch::start();
        loop {
            self.hear();
            let mut failed = None;
            self.members.retain_mut(|member| {
                let Some(status) = member.status() else { return true };
                if let Some(rank) = member.rank {
                    watch.gone(rank);
                }
                if status.success() {
                    last = status;
                } else {
                    failed.get_or_insert((status, member.rank));
                }
                false
            });
            if let Some((status, failed)) = failed {
                self.end();
                return Outcome { status, failed, stopped: false };
            }
            if self.members.is_empty() {
                return Outcome { status: last, failed: None, stopped: false };
            }
            if looked.elapsed() > LOOK {
                let running: Vec<Rank> = self.members.iter().filter_map(|member| member.rank).collect();
                match watch.look(&running) {
                    Wish::GoOn => {}
                    Wish::Stop(ranks) => self.stop(&ranks, watch),
                    Wish::StopAll => {
                        for member in &self.members {
                            let _ = kill(member.pid(), Signal::SIGKILL);
                        }
                        self.end();
                        return Outcome { status: last, failed: None, stopped: true };
                    }
                }
                looked = Stopwatch::start();
            }
            std::thread::sleep(GLANCE);
        }
    }

    /// Takes note of forked processes that have ended.
    fn hear(&mut self) {
        let Some(zygote) = &mut self.zygote else { return };
        for (pid, status) in zygote.ended() {
            for member in &mut self.members {
                if let Process::Forked(own, place) = &mut member.process
                    && *own == pid
                {
                    *place = Some(status);
                }
            }
        }
        if !zygote.is_alive() {
            // Its children are ours then.
            for member in &mut self.members {
                if let Process::Forked(pid, place @ None) = &mut member.process {
                    *place = orphan_status(*pid);
                }
            }
        }
    }

    /// Ends some ranks at once.
    fn stop(&mut self, ranks: &[Rank], watch: &mut dyn Watch) {
        let wanted = |member: &Member| member.rank.is_some_and(|rank| ranks.contains(&rank));
        for member in self.members.iter().filter(|member| wanted(member)) {
            let _ = kill(member.pid(), Signal::SIGKILL);
        }
        while self.members.iter().any(wanted) {
            self.hear();
            self.members.retain_mut(|member| !wanted(member) || member.status().is_none());
            std::thread::sleep(Duration::from_millis(1));
        }
        for rank in ranks {
            watch.gone(*rank);
        }
    }

    /// Ends ranks that have lost another one: asks first, and insists after ten seconds.
    fn end(&mut self) {
        const PATIENCE: Duration = Duration::from_secs(10);
        let asked = Stopwatch::start();
        for member in &self.members {
            let _ = kill(member.pid(), Signal::SIGTERM);
        }
        let mut insisted = false;
        while !self.members.is_empty() {
            self.hear();
            self.members.retain_mut(|member| member.status().is_none());
            if asked.elapsed() > PATIENCE && !insisted {
                insisted = true;
                for member in &self.members {
                    let _ = kill(member.pid(), Signal::SIGKILL);
                }
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn spawn(worker: &Worker, emulation: &Emulation, core: Option<usize>) -> std::io::Result<Process> {
    let mut command = Command::new(&worker.program);
    command.args(&worker.arguments);
    emulation.apply(&mut command);
    let child = command.envs(worker.variables.iter().map(|(name, value)| (name, value))).spawn()?;
    let mut set = CpuSet::new();
    if let Some(core) = core
        && set.set(core).is_ok()
    {
        let _ = sched_setaffinity(Pid::from_raw(child.id() as i32), &set);
    }
    Ok(Process::Own(child))
}

fn fork(
    worker: &Worker,
    emulation: &Emulation,
    zygote: &mut Zygote,
    core: Option<usize>,
) -> std::io::Result<Process> {
    /// How much ranks that only check stand back: a little, since the others wait for what they say.
    const ASIDE: i32 = 2;
    let script = Script::of(&worker.program, &worker.arguments).map_err(std::io::Error::other)?;
    let traces = emulation.traces.clone().map(|path| (env::TROMPE_TRACE_DIR, path.into()));
    let rank = zygote::Rank {
        argv: &script.argv,
        variables: worker.variables.iter().cloned().chain(traces).collect(),
        core,
        nice: if worker.checks { ASIDE } else { 0 },
    };
    Ok(Process::Forked(zygote.fork(&rank)?, None))
}

/// The processors that this process may use.
fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false)).collect()
}

/// The status of a child that another process started.
fn orphan_status(pid: Pid) -> Option<ExitStatus> {
    match waitpid(pid, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::Exited(_, code)) => Some(ExitStatus::from_raw(code << 8)),
        Ok(WaitStatus::Signaled(_, signal, _)) => Some(ExitStatus::from_raw(signal as i32)),
        Ok(_) => None,
        // It cannot be asked any more: taken as killed.
        Err(_) => Some(ExitStatus::from_raw(Signal::SIGKILL as i32)),
    }
}

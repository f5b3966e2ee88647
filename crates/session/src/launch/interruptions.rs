//! Signals to trompe while a command runs.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

use crate::descendants;

/// Signals that arrived while the command ran.
#[derive(Debug, Default)]
pub(super) struct Interruptions {
    /// The command and its descendants have ended: from now on signals mean trompe alone.
    pub(super) over: AtomicBool,
    first: AtomicU32,
    count: AtomicU32,
}

impl Interruptions {
    pub(super) fn handle(&self, number: i32, pass_on: bool, children: &[Pid]) {
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
    pub(super) fn reason(&self, status: ExitStatus) -> Option<i32> {
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

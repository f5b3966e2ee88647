//! Lines on the job's standard error: few, one each, and never a reason to fail.

#![expect(unsafe_code, reason = "writes to a file descriptor that may be closed")]

use crate::environment;

/// How much is said; `TROMPE_LOG`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Something that the user should act on.
    Warning = 1,
    /// What was set up.
    Info = 2,
    /// Every call.
    Trace = 3,
}

/// Whether lines of `level` are wanted.
pub(crate) fn enabled(level: Level) -> bool {
    environment::get().log >= level as u8
}

/// Writes one line, if lines of `level` are wanted.
pub(crate) fn say(level: Level, text: &str) {
    if !enabled(level) {
        return;
    }
    let line = format!("trompe: {text}\n");
    // SAFETY: the buffer is valid for its length; a closed descriptor is an ignored error (unlike `eprintln!`).
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

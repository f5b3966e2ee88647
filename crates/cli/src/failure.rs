//! How errors look: one line that says what is the case, one that says what to do.

use std::process::ExitCode;

use trompe_session::SessionError;

use crate::terminal;

/// The exit code of what the user must mend before anything runs.
pub(crate) const MISUSE: u8 = 2;

/// Prints an error with its hint and returns the exit code.
pub(crate) fn show(error: &anyhow::Error) -> ExitCode {
    print(error);
    ExitCode::from(MISUSE)
}

/// Prints an error with its hint.
pub(crate) fn print(error: &anyhow::Error) {
    let hint = error.downcast_ref::<SessionError>().and_then(SessionError::hint);
    let (red, bold, end) =
        if terminal::error_colors() { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    eprintln!("{red}error:{end} {}", text(error));
    if let Some(hint) = hint {
        eprintln!("{bold}hint:{end} {hint}");
    }
}

/// The error and its causes, without a cause that the text before it states already.
fn text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: anyhow::Error, expect: &str) {
        assert_eq!(text(&error), expect);
    }

    #[test]
    fn causes_are_said_once() {
        let cause = || anyhow::anyhow!("not a directory");
        check(cause(), "not a directory");
        check(cause().context("cannot write"), "cannot write: not a directory");
        check(cause().context("cannot write: not a directory"), "cannot write: not a directory");
    }
}

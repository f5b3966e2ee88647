//! What the terminal can show.

use std::io::IsTerminal;

use trompe_report::Style;
use trompe_session::env;

/// How the report is laid out on standard output.
pub(crate) fn style() -> Style {
    let terminal = std::io::stdout().is_terminal();
    let width = if terminal { console_width() } else { None };
    Style { color: terminal && colors(), width: width.unwrap_or(Style::default().width) }
}

/// Whether messages on standard error may have colours.
pub(crate) fn error_colors() -> bool {
    std::io::stderr().is_terminal() && colors()
}

/// The convention of <https://no-color.org>: any value that is not empty switches colours off.
fn colors() -> bool {
    env::path(env::NO_COLOR).is_none() && env::get(env::TERM).is_none_or(|term| term != "dumb")
}

fn console_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)).filter(|width| *width > 0)
}

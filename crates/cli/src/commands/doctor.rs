//! `trompe doctor`.

use std::process::ExitCode;

use trompe_session::doctor::{self, Finding, Status};

use crate::arguments::DoctorArguments;
use crate::{commands, terminal};

pub(crate) fn run(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let color = terminal::style().color;
    let mut worst = Status::Good;
    let mut result = Ok(());
    doctor::examine(arguments.python.as_deref(), |finding| {
        worst = worst.max(finding.status);
        if result.is_ok() {
            result = commands::print(&line(&finding, color));
        }
    });
    result?;
    let summary = match worst {
        Status::Good => "\neverything that a run needs is there\n",
        Status::Warning => "\na run works; see the warnings above\n",
        Status::Bad => "\na run does not work yet; see above how to mend it\n",
    };
    commands::print(summary)?;
    Ok(if worst == Status::Bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn line(finding: &Finding, color: bool) -> String {
    let (word, ink) = match finding.status {
        Status::Good => ("ok  ", "\x1b[32m"),
        Status::Warning => ("warn", "\x1b[33m"),
        Status::Bad => ("FAIL", "\x1b[31m"),
    };
    let word = if color { format!("{ink}{word}\x1b[0m") } else { word.to_owned() };
    let mut text = format!("{word}  {:<16} {}\n", finding.what, finding.found);
    if let Some(hint) = &finding.hint {
        text.push_str(&format!("      {:<16} → {hint}\n", ""));
    }
    text
}

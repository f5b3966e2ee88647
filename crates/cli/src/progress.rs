//! Progress on standard error: a spinner on a terminal, plain lines otherwise, nothing while the job owns the terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use trompe_session::{Progress, Stage};

/// Shows progress on standard error.
#[derive(Debug)]
pub(crate) struct Shown {
    terminal: bool,
    spinner: Option<ProgressBar>,
}

impl Shown {
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), spinner: None }
    }

    /// Takes the spinner away.
    pub(crate) fn clear(&mut self) {
        if let Some(spinner) = self.spinner.take() {
            spinner.finish_and_clear();
        }
    }
}

impl Progress for Shown {
    fn stage(&mut self, stage: Stage) {
        self.clear();
        if stage == Stage::Running {
            return;
        }
        if !self.terminal {
            // Only what may take long: a log needs no line for what is over at once.
            if stage == Stage::KernelDatabase {
                eprintln!("trompe: {} …", stage.text());
            }
            return;
        }
        let spinner = ProgressBar::new_spinner().with_message(stage.text());
        let style =
            ProgressStyle::with_template("{spinner} {msg}").unwrap_or(ProgressStyle::default_spinner());
        spinner.set_style(style);
        spinner.enable_steady_tick(Duration::from_millis(100));
        self.spinner = Some(spinner);
    }

    fn note(&mut self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| eprintln!("trompe: {text}")),
            None => eprintln!("trompe: {text}"),
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.clear();
    }
}

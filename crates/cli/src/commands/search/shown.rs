//! Progress of a search on standard error: one line that is kept up to date on a terminal, a line now and then otherwise.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use trompe_session::search::{SearchProgress, State};

/// Seconds between two lines when standard error is no terminal.
const APART: f64 = 30.0;

/// Shows progress.
#[derive(Debug)]
pub(super) struct Shown {
    bar: Option<ProgressBar>,
    /// Seconds of the study at the last line, and the best then.
    last: Option<(f64, Option<f64>)>,
}

impl Shown {
    pub(super) fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            bar.set_style(style.unwrap_or(ProgressStyle::default_spinner()));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, last: None }
    }

    pub(super) fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl SearchProgress for Shown {
    fn state(&mut self, state: &State) {
        let text = line(state);
        if let Some(bar) = &self.bar {
            bar.set_message(text);
            return;
        }
        let best = state.best.as_ref().map(|(seconds, _)| *seconds);
        let due = self.last.is_none_or(|(at, before)| state.seconds >= at + APART || best != before);
        if due && state.done > 0 {
            self.last = Some((state.seconds, best));
            eprintln!("trompe: {text}");
        }
    }

    fn note(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("trompe: {text}")),
            None => eprintln!("trompe: {text}"),
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Done, pruned, cached, best so far, time left.
fn line(state: &State) -> String {
    let mut parts = vec![format!("{} of {} points", state.done, state.points)];
    let mut count = |number: u32, name: &str| {
        if number > 0 {
            parts.push(format!("{number} {name}"));
        }
    };
    count(state.executed, "run");
    count(state.pruned, "pruned");
    count(state.cached, "cached");
    count(state.out_of_memory, "out of memory");
    count(state.failed, "failed");
    let mut text = parts.join(", ");
    if let Some((seconds, point)) = &state.best {
        text.push_str(&format!(" · best {} ({point})", duration(*seconds)));
    }
    text.push_str(&format!(" · {}", duration(state.seconds)));
    if let Some(left) = state.seconds_left {
        text.push_str(&format!(", {} left", duration(left)));
    }
    text
}

/// A time in a few characters.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.2} s"),
        s if s < 3600.0 => format!("{:.0}m{:02.0}s", (s / 60.0).floor(), s % 60.0),
        s => format!("{:.0}h{:02.0}m", (s / 3600.0).floor(), (s % 3600.0) / 60.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_matters() {
        let state = State {
            done: 30,
            executed: 20,
            pruned: 10,
            points: 100,
            best: Some((1.5, "tp=4".into())),
            seconds: 65.0,
            seconds_left: Some(0.5),
            ..State::default()
        };
        assert_eq!(
            line(&state),
            "30 of 100 points, 20 run, 10 pruned · best 1.50 s (tp=4) · 1m05s, 500.0 ms left"
        );
    }
}

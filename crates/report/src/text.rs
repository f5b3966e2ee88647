//! The report as terminal text: the answer first, then where time and memory go, then what to be careful about.

mod kernels;
pub(crate) mod paper;
mod path;
mod summary;
mod trust;

use trompe_results::Report;

use self::paper::Paper;

/// How the text may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether colours may be used; without them the text has no escape sequence at all.
    pub color: bool,
    /// Columns of the terminal. Lines are kept within it, down to [`Style::NARROWEST`].
    pub width: usize,
}

impl Style {
    /// The fewest columns that the text is laid out for.
    pub const NARROWEST: usize = 60;
    /// The most columns that the text uses: longer lines are hard to read.
    pub const WIDEST: usize = 120;
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, width: 100 }
    }
}

/// The report for a terminal, ending in a line break.
#[must_use]
pub fn text(report: &Report, style: Style) -> String {
    let mut paper = Paper::new(style);
    summary::write(&mut paper, report);
    kernels::write_breakdown(&mut paper, report);
    path::write(&mut paper, report);
    path::write_ranks(&mut paper, report);
    kernels::write_largest(&mut paper, report);
    trust::write(&mut paper, report);
    paper.finish()
}

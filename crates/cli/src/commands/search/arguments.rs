//! The command line of `trompe search`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use trompe_session::estimators::Clock;
use trompe_session::search::Choice;

use crate::arguments::{EstimatorArguments, ExistingArguments};

const EXAMPLES: &str = "\
Examples:
  trompe search space.toml --cluster dgx-h100:4
  trompe search space.toml --cluster dgx-a100 --strategy cma --budget 300 --seed 7
  trompe search space.toml --cluster dgx-h100:4 --budget 10m --jobs 4
  trompe search space.toml --cluster dgx-h100:4 --resume
  trompe search apply --best
  trompe search spaces megatron > space.toml

docs/search.md describes the space file. The exit code is 0 when some configuration fits, 1 when none does.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct SearchArguments {
    #[command(subcommand)]
    pub(super) action: Option<Action>,
    #[command(flatten)]
    pub(super) study: StudyArguments,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Print the exact command of the best trial of a study, or of another one.
    Apply(ApplyArguments),
    /// List the ready spaces, or print one.
    Spaces {
        /// The one to print.
        name: Option<String>,
    },
    /// Answer questions about a study in lines of JSON (what `trompe.search` in Python speaks to).
    #[command(hide = true)]
    Serve(Box<StudyArguments>),
    /// Run trials that are given in lines of JSON.
    #[command(hide = true)]
    Worker(WorkerArguments),
}

#[derive(Debug, Args)]
pub(super) struct StudyArguments {
    /// The space file.
    #[arg(value_name = "SPACE")]
    pub(super) space: Option<PathBuf>,
    /// Device, node or cluster to pretend, as for `trompe run`.
    #[arg(long, value_name = "SPEC")]
    pub(super) cluster: Option<String>,
    /// Who chooses the points: auto, cma, oneplusone, pso, twopointsde, random, grid, or an optimizer of nevergrad as in
    /// nevergrad:CMA.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub(super) strategy: Choice,
    /// When to stop: so many trials (300), or a time (90s, 10m, 2h); after every point otherwise.
    #[arg(long, value_name = "N|TIME")]
    pub(super) budget: Option<Limit>,
    /// Trials that run at the same time, each on processors of its own; one for each processor when not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) jobs: Option<u16>,
    /// Seed: the same one chooses the same points.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// Folder of the study.
    #[arg(long, value_name = "DIR", default_value = "trompe-search")]
    pub(super) out: PathBuf,
    /// Go on with the study in DIR.
    #[arg(long, conflicts_with = "restart")]
    pub(super) resume: bool,
    /// Begin anew though there is a study in DIR; its journal is kept as study.journal.old.
    #[arg(long)]
    pub(super) restart: bool,
    /// Run trials on the Ray cluster at this address (`auto`: the one of this machine).
    #[arg(long, value_name = "ADDRESS")]
    pub(super) ray: Option<String>,
    /// Run every point that is chosen: no pruning rules, no early stops.
    #[arg(long)]
    pub(super) no_prune: bool,
    /// At the end, run so many of the trials near the best that pruning rules had made needless: rules are nearly true,
    /// and among the best that may decide.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(super) verify: u16,
    /// Neither use results of earlier studies nor keep these.
    #[arg(long)]
    pub(super) no_cache: bool,
    #[command(flatten)]
    pub(super) estimators: EstimatorArguments,
    /// Share of the highest clock that the GPU sustains, as for `trompe run`.
    #[arg(long, value_name = "SHARE", default_value = "sheet", help_heading = "Kernel times")]
    pub(super) clock: Clock,
    /// What `trompe calibrate` learned, as for `trompe run`.
    #[arg(long, value_name = "DIR", default_value = "own", hide_default_value = true)]
    pub(super) calibration: trompe_session::calibration::CalibrationChoice,
    #[command(flatten)]
    pub(super) existing: ExistingArguments,
}

#[derive(Debug, Args)]
pub(super) struct ApplyArguments {
    /// Folder of the study.
    #[arg(value_name = "DIR", default_value = "trompe-search")]
    pub(super) out: PathBuf,
    /// The best trial (also when nothing is given).
    #[arg(long, conflicts_with = "trial")]
    pub(super) best: bool,
    /// The trial with this number.
    #[arg(long, value_name = "N")]
    pub(super) trial: Option<u32>,
    /// Where its configuration files go (default: files/ in DIR).
    #[arg(long, value_name = "DIR")]
    pub(super) files: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct WorkerArguments {
    #[arg(long)]
    pub(super) folder: PathBuf,
    #[arg(long)]
    pub(super) log: PathBuf,
    #[arg(long)]
    pub(super) traces: PathBuf,
}

/// A budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit {
    Trials(u32),
    Seconds(f64),
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("`{text}` is no budget; write a number of trials (300) or a time (90s, 10m, 2h)");
        let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        match units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor))) {
            None => text.parse().ok().filter(|n| *n > 0).map(Self::Trials).ok_or_else(bad),
            Some((number, factor)) => match number.parse::<f64>() {
                Ok(number) if number.is_finite() && number > 0.0 => Ok(Self::Seconds(number * factor)),
                _ => Err(bad()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_trials_or_times() {
        assert_eq!("300".parse(), Ok(Limit::Trials(300)));
        assert_eq!("90s".parse(), Ok(Limit::Seconds(90.0)));
        assert_eq!("1.5h".parse(), Ok(Limit::Seconds(5400.0)));
        for text in ["", "0", "-1", "m", "10x", "-2m"] {
            assert!(text.parse::<Limit>().unwrap_err().contains("no budget"), "{text}");
        }
    }
}

//! `trompe validate`: predictions against measurements.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use trompe_session::HostChoice;
use trompe_session::estimators::{Clock, EstimatorChoice};
use trompe_session::validate::{self, Group, Request, RunsRequest};

use crate::arguments::EstimatorArguments;
use crate::commands::{self, validate_runs};
use crate::progress::Shown;

const EXAMPLES: &str = "\
Examples:
  trompe validate --kernels gemm.csv.gz attention.csv.gz --html errors.html
  trompe validate --collectives collectives.csv.gz --limit 2000 --seed 7 --json
  trompe validate --make-environment
  trompe validate --runs e2e_dev.csv --goldens goldens_dev.jsonl --limit 40 --html errors.html
Whole runs are emulated with PyTorch and Megatron-Core; their traces are kept, so that a second comparison takes minutes.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ValidateArguments {
    /// Tables of kernel measurements: CSV, plain or gzip.
    #[arg(long, value_name = "FILE", num_args = 1.., required_unless_present_any = ["collectives", "runs", "goldens", "make_environment"])]
    kernels: Vec<PathBuf>,
    /// A table of collective measurements.
    #[arg(long, value_name = "FILE")]
    collectives: Option<PathBuf>,
    #[command(flatten)]
    whole: WholeArguments,
    /// Compare a random sample of so many rows per file; of whole runs, every kind of row takes its turn.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Seed of the sample.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Sheet (.toml) of a GPU that the tables name and trompe does not know.
    #[arg(long = "sheet", value_name = "FILE")]
    sheets: Vec<PathBuf>,
    #[command(flatten)]
    estimators: EstimatorArguments,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
    /// Write a page with tables and plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Whole training runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Whole runs")]
struct WholeArguments {
    /// A table of training runs with their step times: CSV, plain or gzip.
    #[arg(long, value_name = "FILE")]
    runs: Option<PathBuf>,
    /// Records of Megatron-LM's continuous integration, whose peak memories are compared: JSON lines.
    #[arg(long, value_name = "FILE")]
    goldens: Option<PathBuf>,
    /// Only rows whose source contains TEXT.
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    /// The interpreter that has PyTorch and Megatron-Core; when not given, the one of `--make-environment`, else python3.
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// Make that environment in the cache, from the package index (about 560 MB); the base is `--python` or python3.
    #[arg(long)]
    make_environment: bool,
    /// Folder of the traces of emulated jobs, kept by configuration; in the cache when not given.
    #[arg(long, value_name = "DIR")]
    kept: Option<PathBuf>,
    /// Emulate nothing: compare the rows whose traces are kept.
    #[arg(long)]
    kept_only: bool,
    /// How the host program's time passes, as in `trompe run`; a time per launch is fitted besides, on other rows.
    #[arg(long, value_name = "MODEL", default_value = "measured")]
    host: HostChoice,
    /// Share of the highest clock that the GPU sustains, as in `trompe run`: for example 0.9, or `sheet`.
    #[arg(long, value_name = "SHARE", default_value = "sheet")]
    clock: Clock,
    /// Seconds after which the emulation of one job is given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 900.0)]
    time_limit: f64,
}

pub(crate) fn run(arguments: &ValidateArguments) -> anyhow::Result<ExitCode> {
    let whole = &arguments.whole;
    let mut progress = Shown::new();
    if whole.make_environment {
        let python = validate::make_environment(whole.python.as_deref(), &mut progress)?;
        eprintln!("note: {} can run the jobs of `trompe validate --runs`", python.display());
        if whole.runs.is_none() && whole.goldens.is_none() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let request = Request {
        kernels: arguments.kernels.clone(),
        collectives: arguments.collectives.clone(),
        limit: arguments.limit,
        seed: arguments.seed,
        sheets: arguments.sheets.clone(),
        estimators: EstimatorChoice { clock: whole.clock, ..arguments.estimators.clone().into() },
        whole: RunsRequest {
            runs: whole.runs.clone(),
            goldens: whole.goldens.clone(),
            source: whole.source.clone(),
            python: whole.python.clone().filter(|_| !whole.make_environment),
            kept: whole.kept.clone(),
            kept_only: whole.kept_only,
            host: whole.host.clone(),
            time_limit: whole.time_limit,
        },
    };
    let validation = validate::validate(&request, &mut progress)?;
    if let Some(path) = &arguments.html {
        trompe_session::estimate::save(path, validate::page(&validation).as_bytes())?;
        eprintln!("note: wrote {}", path.display());
    }
    if arguments.json {
        commands::print(&format!("{}\n", serde_json::to_string_pretty(&validation)?))?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in &validation.left_out {
        eprintln!("note: {line}");
    }
    let mut text = String::new();
    if !validation.kernels.is_empty() {
        text.push_str(&errors_table(&validation.kernels));
        text.push_str(&worst(&validation.kernels));
    }
    if !validation.collectives.is_empty() {
        text.push_str(&format!("\n{}", errors_table(&validation.collectives)));
        text.push_str(&worst(&validation.collectives));
    }
    if let Some(runs) = &validation.runs {
        text.push_str(&validate_runs::text(runs));
    }
    if !validation.summary.is_empty() {
        text.push_str(&format!(
            "\nfamilies by device, all groups together\n{}",
            rows_table(&validation.summary)
        ));
    }
    commands::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Errors by group, as a table.
pub(crate) fn errors_table(groups: &[Group]) -> String {
    rows_table(groups)
        + "\nErrors are |prediction / measurement − 1|. known: the shape occurs among training rows. inside: \
           measurements within\nthe interval, meant to be 80 %. noise: mean difference of another measurement of the \
           same operation. physics,\nroofline: median error of these alone.\n"
}

fn rows_table(groups: &[Group]) -> String {
    let mut text = format!(
        "{:<14} {:<28} {:<16} {:<16} {:>5} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8} {:>8}\n",
        "family",
        "what",
        "device",
        "source",
        "known",
        "rows",
        "median",
        "mean",
        "p90",
        "bias",
        "inside",
        "noise",
        "physics",
        "roofline"
    );
    let percent =
        |share: f64| if share.is_finite() { format!("{:.1}%", share * 100.0) } else { "–".to_owned() };
    for group in groups {
        let known = match group.shape_in_train {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        text.push_str(&format!(
            "{:<14} {:<28} {:<16} {:<16} {known:>5} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8} {:>8}\n",
            group.family,
            group.label,
            group.gpu,
            group.source,
            group.rows,
            percent(group.median),
            percent(group.mean),
            percent(group.p90),
            format!("{:+.1}%", group.bias * 100.0),
            percent(group.inside),
            group.noise.map_or_else(|| "–".to_owned(), percent),
            percent(group.physics_median),
            percent(group.roofline_median),
        ));
    }
    text
}

/// The worst rows of the groups with the largest errors.
fn worst(groups: &[Group]) -> String {
    let mut order: Vec<&Group> = groups.iter().filter(|group| group.rows >= 20).collect();
    if order.is_empty() {
        return String::new();
    }
    order.sort_by(|a, b| b.p90.total_cmp(&a.p90));
    let mut text =
        String::from("\nworst rows of the groups that are furthest off (all of them with --json)\n");
    for group in order.iter().take(4) {
        text.push_str(&format!("  {} {}, {}, {}\n", group.family, group.label, group.gpu, group.source));
        for row in &group.worst {
            text.push_str(&format!(
                "    line {:<7} {:>10.2} us predicted {:>10.2} us ({:+.0} %)  {}: {}\n",
                row.line,
                row.measured_us,
                row.predicted_us,
                row.error * 100.0,
                row.operation,
                row.reason
            ));
        }
    }
    text
}

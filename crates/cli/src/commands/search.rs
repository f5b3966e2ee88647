//! `trompe search`.

mod arguments;
mod shown;

use std::process::ExitCode;

use trompe_session::estimators::EstimatorChoice;
use trompe_session::search::{self, Budget, Earlier, Request, Searched};

use crate::commands;
use crate::terminal;
pub(crate) use arguments::SearchArguments;
use arguments::{Action, ApplyArguments, StudyArguments, WorkerArguments};
use shown::Shown;

pub(crate) fn run(arguments: SearchArguments) -> anyhow::Result<ExitCode> {
    match arguments.action {
        None => study(arguments.study),
        Some(Action::Apply(arguments)) => apply(&arguments),
        Some(Action::Spaces { name }) => spaces(name.as_deref()),
        Some(Action::Worker(arguments)) => worker(&arguments),
        Some(Action::Serve(arguments)) => {
            let request = request(*arguments)?;
            search::serve(&request, std::io::stdin().lock(), std::io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn request(arguments: StudyArguments) -> anyhow::Result<Request> {
    let space = arguments
        .space
        .ok_or_else(|| anyhow::anyhow!("there is no space file; `trompe search space.toml`"))?;
    let budget = match arguments.budget {
        None => Budget::default(),
        Some(arguments::Limit::Trials(trials)) => Budget { trials: Some(trials), seconds: None },
        Some(arguments::Limit::Seconds(seconds)) => Budget { trials: None, seconds: Some(seconds) },
    };
    Ok(Request {
        space,
        cluster: arguments.cluster,
        estimators: EstimatorChoice {
            clock: arguments.clock,
            calibration: arguments.calibration.folder(),
            ..arguments.estimators.into()
        },
        strategy: arguments.strategy,
        budget,
        jobs: arguments.jobs.map(usize::from),
        seed: arguments.seed,
        out: arguments.out,
        existing: arguments.existing.into(),
        earlier: match (arguments.resume, arguments.restart) {
            (true, _) => Earlier::Resume,
            (_, true) => Earlier::Restart,
            _ => Earlier::Refuse,
        },
        ray: arguments.ray,
        prune: !arguments.no_prune,
        verify: arguments.verify.into(),
        memo: !arguments.no_cache,
    })
}

fn study(arguments: StudyArguments) -> anyhow::Result<ExitCode> {
    let request = request(arguments)?;
    let mut progress = Shown::new();
    let Searched { study, files, interrupted } = search::search(&request, &mut progress)?;
    progress.clear();
    let mut text = format!("\n{}\n", trompe_report::study_text(&study, terminal::style()));
    for path in [&files.html, &files.json, &files.csv, &files.parquet] {
        text.push_str(&format!("{}\n", commands::nearby(path).display()));
    }
    let out = commands::nearby(&request.out).display();
    if interrupted {
        text.push_str(&format!("\nIt was interrupted; go on with --resume --out {out}\n"));
    } else if !study.ranking.is_empty() {
        text.push_str(&format!("\ntrompe search apply --best {out}\n"));
    }
    commands::print(&text)?;
    Ok(match (interrupted, study.ranking.is_empty()) {
        (true, _) => ExitCode::from(130),
        (false, true) => ExitCode::from(1),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn apply(arguments: &ApplyArguments) -> anyhow::Result<ExitCode> {
    let files = arguments.files.clone().unwrap_or_else(|| arguments.out.join("files"));
    let applied = search::apply(&arguments.out, arguments.trial, &files)?;
    for path in &applied.written {
        eprintln!("trompe: wrote {}", commands::nearby(path).display());
    }
    commands::print(&applied.script)?;
    Ok(ExitCode::SUCCESS)
}

fn spaces(name: Option<&str>) -> anyhow::Result<ExitCode> {
    let text = match name {
        None => {
            let lines = search::SPACES.iter().map(|(name, text)| {
                let about = text.lines().next().unwrap_or_default().trim_start_matches("# ");
                format!("{name:<14} {about}\n")
            });
            let list: String = lines.collect();
            format!("{list}\nPrint one with `trompe search spaces NAME > space.toml` and adapt it.\n")
        }
        Some(name) => {
            let found = search::SPACES.iter().find(|(own, _)| *own == name);
            let names: Vec<&str> = search::SPACES.iter().map(|(name, _)| *name).collect();
            let (_, text) = found.ok_or_else(|| {
                anyhow::anyhow!("there is no ready space `{name}`; choose from {}", names.join(", "))
            })?;
            (*text).to_owned()
        }
    };
    commands::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn worker(arguments: &WorkerArguments) -> anyhow::Result<ExitCode> {
    search::work(&arguments.folder, &arguments.log, &arguments.traces)?;
    Ok(ExitCode::SUCCESS)
}

//! `trompe run`.

use std::process::ExitCode;

use trompe_session::SessionError;
use trompe_session::run::{self, Request};

use crate::arguments::RunArguments;
use crate::progress::Shown;
use crate::{commands, failure};

pub(crate) fn run(arguments: RunArguments) -> anyhow::Result<ExitCode> {
    let request = Request {
        choices: (&arguments.model).into(),
        estimators: arguments.estimators.into(),
        command: arguments.command,
        cluster: arguments.cluster,
        sheet: None,
        out: arguments.out,
        existing: arguments.existing.into(),
        steps: arguments.steps,
        record_operators: !arguments.no_record_ops,
        ranks: arguments.ranks,
        verify: arguments.verify,
        routing: arguments.routing,
        prefork: !arguments.no_prefork,
    };
    let mut progress = Shown::new();
    let finished = match arguments.samples {
        0 | 1 => run::run(&request, &mut progress)?,
        count => run::samples(&request, count, &mut progress)?,
    };
    progress.clear();
    if let Some(prediction) = &finished.prediction {
        let written = finished.problems.is_empty().then_some(&finished.layout);
        commands::show(prediction, written)?;
    }
    let mut code = finished.exit_code;
    let kept = finished.prediction.is_none() && finished.layout.job_trace.is_file();
    for problem in finished.problems {
        // The job went well, but not its report. That there is nothing to report is no failure.
        if code == 0 && !matches!(problem, SessionError::NothingRecorded) {
            code = 1;
        }
        failure::print(&problem.into());
    }
    if kept {
        let trace = finished.layout.job_trace.display();
        eprintln!("what was recorded is kept: `trompe trace show {trace}` prints it");
    }
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

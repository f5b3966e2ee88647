//! A family of runs: the same job with other choices in values that nobody computes, and how its step time is spread.

use trompe_hardware::ClusterSheet;
use trompe_results::{Family, Note, Sample, Severity};

use super::{Finished, Request, run};
use crate::output::{Existing, Layout};
use crate::{Choices, HostChoice, Progress, Routing, SessionError, estimators, simulate};

/// Runs the job `count` times with different seeds. The first run is the one that is reported; the others lie in
/// `samples/` beside it, and the first's report tells how the step times of all are spread.
///
/// # Errors
/// What is wrong before a command starts, or why a sample cannot be simulated.
pub fn samples(request: &Request, count: u64, progress: &mut dyn Progress) -> Result<Finished, SessionError> {
    let routing = request.routing.filter(Routing::is_drawn).unwrap_or(Routing::UNIFORM);
    let mut first = run(&Request { routing: Some(routing), ..request.clone() }, progress)?;
    let folder = first.layout.report_json.with_file_name("samples");
    let mut found = Vec::new();
    found.extend(sample(request, &first, routing, "report.html".to_owned())?);
    for number in 1..count {
        if first.exit_code != 0 || first.interrupted_by.is_some() {
            break;
        }
        progress.note(&format!("sample {} of {count}", number + 1));
        let own = routing.sample(number);
        let out = folder.join(number.to_string());
        let again = Request { routing: Some(own), out, existing: Existing::Force, ..request.clone() };
        let finished = run(&again, progress)?;
        first.exit_code = finished.exit_code;
        first.interrupted_by = finished.interrupted_by;
        found.extend(sample(request, &finished, own, format!("samples/{number}/report.html"))?);
    }
    if found.len() < 2 {
        return Ok(first);
    }
    if let Some(prediction) = &mut first.prediction {
        let report = &mut prediction.report;
        let missing = count.saturating_sub(found.len() as u64);
        report.notes.extend((missing > 0).then(|| incomplete(missing, count)));
        report.family = Some(Family::of(routing.to_string(), found));
        simulate::write(&first.layout, prediction)?;
    }
    Ok(first)
}

/// The sample that a run is; `None` without a step time.
fn sample(
    request: &Request,
    finished: &Finished,
    routing: Routing,
    report: String,
) -> Result<Option<Sample>, SessionError> {
    let Some(prediction) = &finished.prediction else { return Ok(None) };
    let (Some(step), Some(cluster)) = (&prediction.report.step_time, cluster(&finished.layout)) else {
        return Ok(None);
    };
    let seconds_without_host = if request.choices.host == HostChoice::Off {
        step.seconds
    } else {
        let job = crate::traces::open_job(&finished.layout.job_trace)?;
        let choices = Choices { host: HostChoice::Off, explain: false, ..request.choices.clone() };
        let without = estimators::predict(&job, &cluster, &choices, &request.estimators)?;
        without.report.step_time.map_or(0.0, |step| step.seconds)
    };
    Ok(Some(Sample {
        routing: routing.to_string(),
        seconds: step.seconds,
        seconds_without_host,
        peak_allocated_bytes: prediction.report.memory.peak_allocated_bytes,
        report,
    }))
}

/// The cluster that a run was simulated on.
fn cluster(layout: &Layout) -> Option<ClusterSheet> {
    serde_json::from_slice(&std::fs::read(&layout.cluster).ok()?).ok()
}

/// That some runs are missing.
fn incomplete(missing: u64, count: u64) -> Note {
    Note {
        severity: Severity::Warning,
        code: "samples".to_owned(),
        text: format!("{missing} of {count} samples ended early or had no step, and are left out."),
        action: Some("look at the messages above".to_owned()),
    }
}

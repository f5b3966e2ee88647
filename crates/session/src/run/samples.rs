//! A family of runs: the same job with other choices in values that nobody computes, and how its step time is spread.

use trompe_results::{Note, Severity};

use super::{Finished, Request, run};
use crate::output::Existing;
use crate::{Progress, Routing, SessionError, simulate};

/// Runs the job `count` times with different seeds. The first run is the one that is reported; the others lie in
/// `samples/` beside it, and a note of the report says how the step times are spread.
///
/// # Errors
/// What is wrong before a command starts.
pub fn samples(request: &Request, count: u64, progress: &mut dyn Progress) -> Result<Finished, SessionError> {
    let routing = request.routing.filter(Routing::is_drawn).unwrap_or(Routing::UNIFORM);
    let mut first = run(&Request { routing: Some(routing), ..request.clone() }, progress)?;
    let mut steps: Vec<f64> = step_of(&first).into_iter().collect();
    let folder = first.layout.report_json.with_file_name("samples");
    for number in 1..count {
        if first.exit_code != 0 {
            break;
        }
        let sample = Request {
            routing: Some(routing.sample(number)),
            out: folder.join(number.to_string()),
            existing: Existing::Force,
            ..request.clone()
        };
        progress.note(&format!("sample {} of {count}", number + 1));
        let finished = run(&sample, progress)?;
        if finished.exit_code != 0 {
            first.exit_code = finished.exit_code;
        }
        steps.extend(step_of(&finished));
    }
    if let (Some(prediction), true) = (&mut first.prediction, steps.len() > 1) {
        prediction.report.notes.push(spread(&mut steps, routing));
        let cluster =
            std::fs::read(&first.layout.cluster).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(cluster) = cluster {
            simulate::write(&first.layout, prediction, &cluster)?;
        }
    }
    Ok(first)
}

fn step_of(finished: &Finished) -> Option<f64> {
    Some(finished.prediction.as_ref()?.report.step_time.as_ref()?.seconds)
}

/// The note about the step times of all samples.
fn spread(steps: &mut [f64], routing: Routing) -> Note {
    steps.sort_by(f64::total_cmp);
    let at = |share: f64| steps[((steps.len() - 1) as f64 * share).round() as usize] * 1e3;
    let mean = steps.iter().sum::<f64>() / steps.len() as f64 * 1e3;
    Note {
        severity: Severity::Info,
        code: "samples".to_owned(),
        text: format!(
            "Step times of {} runs with choices drawn by `{routing}` and the seeds after it: {:.2} to {:.2} ms, median \
             {:.2} ms, mean {mean:.2} ms, a tenth above {:.2} ms.",
            steps.len(),
            at(0.0),
            at(1.0),
            at(0.5),
            at(0.9),
        ),
        action: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_told() {
        let mut steps = [0.004, 0.002, 0.003];
        let note = spread(&mut steps, Routing::UNIFORM);
        assert!(
            note.text.contains("3 runs") && note.text.contains("2.00 to 4.00 ms, median 3.00 ms"),
            "{}",
            note.text
        );
    }
}

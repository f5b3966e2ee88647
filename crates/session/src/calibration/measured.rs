//! `trompe calibrate --measured TIME -- COMMAND`: one step time of a real run gives the factor on the host's time.
//!
//! The job runs under emulation as with `trompe run`. Its step time grows with the factor, so the factor that gives the
//! measured time is found by bisection, replaying the one trace. What the host cannot explain is said: a job that takes
//! longer than measured even with a host that takes no time is bound by its device, and the factor stays as it was.

use std::path::PathBuf;

use trompe_trace::job::JobTrace;

use super::HOSTS;
use super::hosts::{HostFactor, Hosts};
use crate::estimators::Pricer;
use crate::run;
use crate::{Choices, HostChoice, Progress, RunFacts, SessionError, clock, predict_with, simulate};

/// What to fit to.
#[derive(Clone, Debug)]
pub struct HostRequest {
    /// The job, as for `trompe run`; its output folder, host choice and calibration are not used.
    pub run: run::Request,
    /// The measured step in seconds.
    pub seconds: f64,
    /// The calibration's folder.
    pub out: PathBuf,
}

/// What came of it.
#[derive(Debug)]
pub struct HostFit {
    /// Step times predicted without the factor, with a host that takes no time, and with the factor.
    pub predicted: [f64; 3],
    /// The factor; `None` when the host cannot explain the measured time.
    pub factor: Option<HostFactor>,
    /// Whether it was added to the calibration.
    pub kept: bool,
    /// What was known for the same machines before.
    pub before: Option<HostFactor>,
    /// The file that was written.
    pub written: PathBuf,
}

/// Factors beyond are no host's.
const MOST: f64 = 64.0;

/// Runs the job, finds the factor and adds it to the calibration.
///
/// # Errors
/// When the job cannot be run or predicted, or nothing can be written.
pub fn fit_host(request: &HostRequest, progress: &mut dyn Progress) -> Result<HostFit, SessionError> {
    // Kernels and collectives as they are known by now; the host as recorded.
    let folder = Some(request.out.clone()).filter(|folder| folder.is_dir());
    let scratch = tempfile::tempdir().map_err(|error| SessionError::writing(&std::env::temp_dir(), error))?;
    let mut order = request.run.clone();
    order.out = scratch.path().join("run");
    order.choices.host = HostChoice::Scale(1.0);
    order.estimators.calibration = folder;
    let mut finished = run::run(&order, progress)?;
    let Some(prediction) = &finished.prediction else {
        let stopped = finished.problems.pop().unwrap_or(SessionError::NothingRecorded);
        return Err(stopped);
    };
    let step = |seconds: Option<f64>| {
        seconds.ok_or_else(|| SessionError::Simulation {
            reason: "it has no complete step to compare with the measured one; let it run at least three, or name them \
                     with `--steps`"
                .to_owned(),
        })
    };
    let plain = step(prediction.report.step_time.as_ref().map(|time| time.seconds))?;
    let (job, cluster) = simulate::trace_and_cluster(&finished.layout.job_trace, Some(&order.cluster))?;
    let pricer = Pricer::of(&order.estimators)?;
    let predicted = |factor: f64| -> Result<f64, SessionError> {
        let choices =
            Choices { host: HostChoice::Scale(factor), explain: false, repeat: 1, ..order.choices.clone() };
        let prediction = predict_with(&job, &cluster, &choices, &pricer.on(&cluster))?;
        step(prediction.report.step_time.map(|time| time.seconds))
    };
    let free = predicted(0.0)?;
    let solved = solve(request.seconds, (free, plain), predicted)?;
    let written = request.out.join(HOSTS);
    let mut fit =
        HostFit { predicted: [plain, free, plain], factor: None, kept: false, before: None, written };
    let Some((factor, reached)) = solved else { return Ok(fit) };
    fit.predicted[2] = reached;
    let found = HostFactor {
        node: cluster.node.name.clone(),
        host: cluster.node.host.name.clone(),
        recorded_on: processor(&job),
        factor: four_digits(factor),
        measured_seconds: request.seconds,
        predicted_seconds: (plain * 1e9).round() / 1e9,
        job: order.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
        date: clock::today(),
    };
    if !PLAUSIBLE.contains(&factor) {
        fit.factor = Some(found);
        return Ok(fit);
    }
    std::fs::create_dir_all(&request.out).map_err(|error| SessionError::writing(&request.out, error))?;
    let mut hosts = Hosts::read(&fit.written)?;
    fit.before = hosts.put(found.clone());
    hosts.write(&fit.written)?;
    fit.kept = true;
    fit.factor = Some(found);
    Ok(fit)
}

/// Factors that are kept: no two processors that train models are further apart.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 0.2..=5.0;

/// To four digits that count.
fn four_digits(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn processor(job: &JobTrace) -> String {
    RunFacts::of(&job.facts).processor.unwrap_or_default()
}

/// The factor at which `predicted` is `wanted`, and what it is there; `None` when no factor gives it. `known` is what it is
/// at 0 and at 1.
fn solve(
    wanted: f64,
    (free, plain): (f64, f64),
    predicted: impl Fn(f64) -> Result<f64, SessionError>,
) -> Result<Option<(f64, f64)>, SessionError> {
    const CLOSE: f64 = 1e-3;
    if wanted <= free * (1.0 + CLOSE) {
        return Ok(None);
    }
    let (mut low, mut high) = (0.0, 1.0);
    let mut reached = plain;
    while reached < wanted {
        low = high;
        high *= 2.0;
        if high > MOST {
            return Ok(None);
        }
        reached = predicted(high)?;
    }
    let mut middle = high;
    for _ in 0..24 {
        if (reached / wanted - 1.0).abs() < CLOSE {
            break;
        }
        middle = (low + high) / 2.0;
        reached = predicted(middle)?;
        if reached < wanted { low = middle } else { high = middle }
    }
    Ok(Some((middle, reached)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job of 100 ms on the device and 30 ms of host time that show beyond it.
    fn check(wanted: f64, expect: Option<f64>) {
        let predicted = |factor: f64| f64::max(0.1, 0.08 + 0.03 * factor);
        let found = solve(wanted, (predicted(0.0), predicted(1.0)), |factor| Ok(predicted(factor))).unwrap();
        let close = |(found, expect): (f64, f64)| (found / expect - 1.0).abs() < 0.02;
        let agree =
            found.map(|(factor, _)| factor).zip(expect).map_or(found.is_none() && expect.is_none(), close);
        assert!(agree, "{wanted}: {found:?}");
    }

    #[test]
    fn the_factor_gives_the_measured_time_or_there_is_none() {
        check(0.11, Some(1.0));
        check(0.14, Some(2.0));
        check(0.105, Some(0.83));
        check(0.1, None);
        check(0.05, None);
        check(100.0, None);
    }

    #[test]
    fn hosts_replace_what_was_known_of_the_same_machines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(HOSTS);
        let factor = |node: &str, factor: f64| HostFactor {
            node: node.to_owned(),
            host: "xeon".to_owned(),
            recorded_on: "cpu".to_owned(),
            factor,
            measured_seconds: 0.2,
            predicted_seconds: 0.1,
            job: "x".to_owned(),
            date: "2026-11-30".to_owned(),
        };
        let mut hosts = Hosts::default();
        assert_eq!(hosts.put(factor("b", 1.0)), None);
        assert_eq!(hosts.put(factor("a", 2.0)), None);
        assert_eq!(hosts.put(factor("b", 3.0)), Some(factor("b", 1.0)));
        hosts.write(&path).unwrap();
        let read = Hosts::read(&path).unwrap();
        assert_eq!(read, hosts);
        let find = |processor, node, host| read.find(processor, (node, host)).map(|host| host.factor);
        assert_eq!(find(Some("cpu"), "b", "generic"), Some(3.0));
        assert_eq!(find(Some("cpu"), "c", "xeon"), Some(2.0), "another node of the same hosts");
        assert_eq!(find(Some("cpu"), "c", "generic"), None);
        assert_eq!((find(Some("other"), "b", "xeon"), find(None, "b", "xeon")), (None, None));
        std::fs::write(&path, "[[host]]\nnode = 3\n").unwrap();
        assert!(Hosts::read(&path).unwrap_err().to_string().contains(HOSTS));
        assert!(crate::calibration::Calibration::read(&folder.path().join("none")).is_err());
    }
}

//! What the user must know before trusting a number.

use trompe_results::{Method, Note, Report, Severity, StepRule};
use trompe_trace::job::{self, JobTrace};

use trompe_hardware::ClusterSheet;

use super::Choices;
use crate::calibration::{Calibration, MEASURED};
use crate::host_model::{Host, HostChoice};
use crate::run_facts::RunFacts;

/// Writes the notes, most severe first.
pub(super) fn write(
    report: &mut Report,
    job: &JobTrace,
    run: &RunFacts,
    (choices, modelled, oracle): (&Choices, Option<&Host>, bool),
) {
    let mut notes: Vec<Note> = job.notes.iter().map(of_trace).collect();
    notes.extend(run.notes.iter().cloned());
    notes.extend(other_device(report, run));
    notes.extend(no_steps(report));
    notes.extend(fallback(report));
    notes.extend(oracle.then(|| predicted_still(report)).flatten());
    notes.extend(survived(job, report));
    notes.extend(host(report, choices));
    notes.extend(named_host(modelled));
    notes.extend(npu(report, job));
    notes.extend(shims(job));
    // The sort is stable: within a severity the order above stays.
    notes.sort_by_key(|note| note.severity);
    notes.dedup();
    report.notes = notes;
}

/// What the user's own measurements decided.
pub(super) fn calibration(
    report: &mut Report,
    run: &RunFacts,
    cluster: &ClusterSheet,
    calibration: Option<&Calibration>,
) {
    let Some(calibration) = calibration else { return };
    let seconds = |kernel: &trompe_results::Kernel| kernel.seconds;
    let all: f64 = report.kernels.iter().map(seconds).sum();
    let from = |kernel: &&trompe_results::Kernel| {
        kernel.note.as_deref().is_some_and(|note| note.starts_with(MEASURED))
    };
    let own: f64 = report.kernels.iter().filter(from).map(seconds).sum();
    let mut sources: Vec<&str> =
        report.kernels.iter().filter(from).filter_map(|k| k.note.as_deref()).collect();
    sources = sources.iter().flat_map(|note| note[MEASURED.len()..].split(", ")).collect();
    sources.sort_unstable();
    sources.dedup();
    let mut texts = Vec::new();
    if own > 0.0 && all > 0.0 {
        let share = own / all * 100.0;
        texts.push(format!("{share:.1} % of the kernel time was measured, from {}", sources.join(", ")));
    } else if !calibration.rows().is_empty() {
        texts.push(format!(
            "none of its {} measured kernels occurs in this job on this GPU",
            calibration.rows().len()
        ));
    }
    if let Some(host) =
        calibration.host(run.processor.as_deref(), cluster).filter(|host| report.host.scale == host.factor)
    {
        texts.push(format!(
            "host times are taken {} times, found from a step of {:.4} s of `{}` ({})",
            host.factor, host.measured_seconds, host.job, host.date
        ));
    }
    if calibration.network(cluster).is_some() {
        texts.push("collectives are priced with constants fitted to your own logs".to_owned());
    }
    if !texts.is_empty() {
        let text = format!("Your calibration was used: {}.", texts.join("; "));
        let action = Some("`--calibration off` predicts without it".to_owned());
        report.notes.push(note(Severity::Info, "calibration", text, action));
        report.notes.sort_by_key(|note| note.severity);
    }
}

fn note(severity: Severity, code: &str, text: String, action: Option<String>) -> Note {
    Note { severity, code: code.to_owned(), text, action }
}

fn of_trace(found: &job::Note) -> Note {
    let severity = match found.severity {
        job::Severity::Info => Severity::Info,
        job::Severity::Warning => Severity::Warning,
        job::Severity::Error => Severity::Error,
    };
    note(severity, "trace", found.text.clone(), found.hint.clone())
}

/// Which kernels run is decided while the job runs, for the device that it sees.
fn other_device(report: &Report, run: &RunFacts) -> Option<Note> {
    if run.device.is_empty() || run.device == report.device.sheet {
        return None;
    }
    let (major, minor) = run.capability;
    Some(note(
        Severity::Warning,
        "other-device",
        format!(
            "The trace was recorded for `{}` (compute capability {major}.{minor}): frameworks choose kernels, data \
             types and workspaces for the device that they see, which on `{}` may be others.",
            run.device, report.device.sheet
        ),
        Some(format!("run the job again with `--cluster {}`", report.device.sheet)),
    ))
}

/// That the whole run was taken as one step is a note of the trace itself.
fn no_steps(report: &Report) -> Option<Note> {
    if report.step_time.is_some() || report.steps.rule == StepRule::WholeRun && report.steps.seen > 0 {
        return None;
    }
    let action = "let the job run at least three steps, or name the steps with `--steps`".to_owned();
    let text = "No complete step was seen, so there is no step time.".to_owned();
    Some(note(Severity::Warning, "no-steps", text, Some(action)))
}

fn fallback(report: &Report) -> Option<Note> {
    let unknown = &report.coverage.unknown_kernels;
    let seconds: f64 = unknown.iter().map(|kernel| kernel.seconds).sum();
    let all: f64 = report.coverage.methods.iter().map(|method| method.seconds).sum();
    if unknown.is_empty() || all <= 0.0 {
        return None;
    }
    let share = seconds / all;
    // Less is lost in the intervals of the others, and the report lists them anyway.
    if share < 0.02 {
        return None;
    }
    let launches: u64 = unknown.iter().map(|kernel| kernel.count).sum();
    let kernels =
        if unknown.len() == 1 { "1 kernel".to_owned() } else { format!("{} kernels", unknown.len()) };
    Some(note(
        Severity::Warning,
        "unknown-kernels",
        format!(
            "{kernels} ({launches} launches a step, {:.1} % of the kernel time) of no known family, charged by a \
             rule of thumb.",
            share * 100.0
        ),
        Some("`report.json` lists them under `coverage.unknown_kernels`, each with its rule".to_owned()),
    ))
}

/// Share of the kernel time that kept its prediction although a measured trace was given (`--oracle`).
fn predicted_still(report: &Report) -> Option<Note> {
    let seconds = |measured: bool| -> f64 {
        let methods = report.coverage.methods.iter();
        methods.filter(|row| (row.method == Method::Measured) == measured).map(|row| row.seconds).sum()
    };
    let share = seconds(false) / (seconds(false) + seconds(true));
    if !share.is_finite() {
        return None;
    }
    // From here on what is left of the error is mostly the predictions' again.
    let severity = if share > 0.1 { Severity::Warning } else { Severity::Info };
    Some(note(
        severity,
        "oracle",
        format!(
            "{:.1} % of the kernel time is not in the measured trace and kept its prediction: operations are found by their \
             shapes, by name, grid and block, or by their place among those of their kind in a step.",
            share * 100.0
        ),
        (share > 0.1).then(|| {
            "take the trace of this very job (same batch, GPU and PyTorch) with `record_shapes=True`"
                .to_owned()
        }),
    ))
}

/// Failed allocations after which the job went on.
fn survived(job: &JobTrace, report: &Report) -> Option<Note> {
    let failures: usize = job.templates.iter().map(|template| template.memory.out_of_memory.len()).sum();
    let fits = report.verdict.status == trompe_results::VerdictStatus::Fits;
    (failures > 0 && fits).then(|| {
        note(
            Severity::Warning,
            "allocation-retries",
            format!(
                "The allocator ran out of device memory {failures} times and went on after it had given cached \
                 memory back; on a real device that costs milliseconds each time."
            ),
            Some("reduce the memory need, or set PYTORCH_ALLOC_CONF=expandable_segments:True".to_owned()),
        )
    })
}

/// What nobody has measured of NPUs.
fn npu(report: &Report, job: &JobTrace) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(profile) = job.facts.get(crate::npu::PROFILE) {
        let text = format!(
            "NPU kernels were simulated cycle by cycle with profile `{profile}`; no kernel was compared with a board here."
        );
        let action = "pass `--npu-profile mine.toml` with rates that you have measured".to_owned();
        notes.push(note(Severity::Info, "npu-profile", text, Some(action)));
    }
    if !job.communicators.is_empty() && report.cluster.interconnect.contains("HCCS") {
        let text = "Collectives over HCCS are priced at what NCCL makes of NVLink without switches; HCCL was not measured.";
        notes.push(note(Severity::Warning, "hccs", text.to_owned(), None));
    }
    notes
}

/// Modules that are not installed here and for which light ones stood in.
fn shims(job: &JobTrace) -> Option<Note> {
    let names = job.facts.keys().filter_map(|key| key.strip_prefix("stand-in."));
    let mut names: Vec<&str> =
        names.map(|name| if name == "amp_C" { "apex (amp_C)" } else { name }).collect();
    names.dedup();
    if names.is_empty() {
        return None;
    }
    let text = format!(
        "Not installed here: {}. A light module stood in, with the same allocations and PyTorch's own kernels for the same \
         work; where the real one fuses more, it is faster.",
        names.join(", ")
    );
    let action = "install it, or set TROMPE_SHIMS=off to see what the job does without".to_owned();
    Some(note(Severity::Warning, "shims", text, Some(action)))
}

/// How a named host's factor was found.
fn named_host(host: Option<&Host>) -> Option<Note> {
    let host = host?;
    let (factor, reason) = (host.factor?, host.reason.as_ref()?);
    let text = format!("Recorded host times are taken {factor:.2} times: {reason}.");
    Some(note(Severity::Info, "named-host", text, None))
}

fn host(report: &Report, choices: &Choices) -> Option<Note> {
    if choices.host != HostChoice::Measured || report.step_time.is_none() {
        return None;
    }
    let machine = report.host.recorded_on.as_deref().unwrap_or("this machine's processor");
    let share = report.device_use.as_ref().map_or(0.0, |usage| usage.host_bound_share);
    let severity = if share > 0.25 { Severity::Warning } else { Severity::Info };
    Some(note(
        severity,
        "host-time",
        format!(
            "Host time was recorded on {machine}; the real host may be faster or slower ({:.0} % of the step waits \
             for the host).",
            share * 100.0
        ),
        Some("pass `--host NAME` with the real host's sheet (or `--host scale=FACTOR` when you know how they compare)".to_owned()),
    ))
}

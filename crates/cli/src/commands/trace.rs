//! `trompe trace`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use trompe_session::predict::export;
use trompe_session::traces::{self, JobStats, Line, Tally, Trace, WorkerStats};

use crate::arguments::{ExportArguments, ImportArguments, ShowArguments, StatsArguments, TraceCommand};
use crate::commands;

pub(crate) fn run(command: &TraceCommand) -> anyhow::Result<ExitCode> {
    match command {
        TraceCommand::Show(arguments) => show(arguments),
        TraceCommand::Stats(arguments) => stats(arguments),
        TraceCommand::Export(arguments) => export(arguments),
        TraceCommand::Import(arguments) => import(arguments),
    }
}

fn show(arguments: &ShowArguments) -> anyhow::Result<ExitCode> {
    let mut files = traces::files(&arguments.path)?;
    if files.len() > 1 {
        // A folder: what its processes recorded; the job trace only when it is all there is.
        files.retain(|path| path.extension().is_some_and(|end| end == "trompe"));
    }
    let kind = arguments.kind.as_deref();
    let mut left = arguments.limit.unwrap_or(usize::MAX);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for path in &files {
        if left == 0 {
            break;
        }
        if files.len() > 1 {
            writeln!(out, "== {}", path.display()).or_else(gone)?;
        }
        let mut failed = None;
        let mut put = |text: std::fmt::Arguments<'_>| {
            failed = out.write_fmt(text).and_then(|()| out.write_all(b"\n")).err();
            left -= 1;
            failed.is_none() && left > 0
        };
        match traces::open(path)? {
            Trace::Worker(trace) => {
                if let Some(kind) = kind.filter(|kind| !traces::KINDS.contains(kind)) {
                    bail!("there is no kind `{kind}`; the kinds are {}", traces::KINDS.join(", "));
                }
                traces::worker_lines(&trace, kind, |line| put(format_args!("{}", Row(line))));
            }
            Trace::Job(job) => traces::job_lines(&job, kind, |line| put(format_args!("{line}"))),
        }
        failed.map_or(Ok(()), Err).or_else(gone)?;
    }
    out.flush().or_else(gone)?;
    Ok(ExitCode::SUCCESS)
}

/// A reader that has gone away (`| head`) is no error.
fn gone(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

struct Row<'a>(&'a Line);

impl std::fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Line { at_us, took_us, thread, depth, kind, text } = self.0;
        let indent = 2 * depth.min(&20);
        write!(f, "{at_us:>14.3} {took_us:>10.3}  {thread:>7}  {kind:<12} {:indent$}{text}", "")
    }
}

fn stats(arguments: &StatsArguments) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    for path in traces::files(&arguments.path)? {
        text.push_str(&format!("== {}\n", path.display()));
        match traces::open(&path)? {
            Trace::Worker(trace) => worker(&mut text, &traces::worker_stats(&trace), arguments.limit),
            Trace::Job(job) => job_text(&mut text, &traces::job_stats(&job), arguments.limit),
        }
    }
    commands::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn export(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let exported = export::chakra(&export::Request {
        trace: arguments.trace.clone(),
        cluster: arguments.cluster.clone(),
        choices: (&arguments.model).into(),
        estimators: arguments.estimators.clone().into(),
        out: arguments.chakra.clone(),
    })?;
    commands::print(&format!(
        "{} traces: {}.RANK.et\n{}\n",
        exported.ranks,
        exported.prefix.display(),
        exported.groups.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn import(arguments: &ImportArguments) -> anyhow::Result<ExitCode> {
    let imported = traces::import::import(&traces::import::Request {
        files: arguments.files.clone(),
        groups: arguments.groups.clone(),
        cluster: arguments.cluster.clone(),
        out: arguments.out.clone(),
    })?;
    let traces::import::Imported { ranks, templates, events, operations } = imported;
    commands::print(&format!(
        "{ranks} ranks, {templates} of them distinct; the first has {events} events and {operations} distinct operations\n{}\n",
        commands::nearby(&arguments.out).display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn worker(text: &mut String, stats: &WorkerStats, limit: usize) {
    let ending =
        if stats.ended { "ended in an orderly way" } else { "no end mark: it was killed or still runs" };
    let lost = if stats.dropped > 0 { format!(", {} records lost", stats.dropped) } else { String::new() };
    text.push_str(&format!(
        "process {}, {} records in {}, {} threads, {:.3} s; {ending}{lost}\n",
        stats.pid, stats.records, stats.bytes, stats.threads, stats.seconds
    ));
    table(text, "records by kind", &stats.kinds, limit, true);
    table(text, "recorded calls", &stats.functions, limit, true);
    table(text, "all calls", &stats.counts, limit, false);
    table(text, "kernels by launches", &stats.kernels, limit, false);
    facts(text, &stats.facts, limit);
}

fn job_text(text: &mut String, stats: &JobStats, limit: usize) {
    let (ranks, emulated) = stats.ranks;
    let (steps, warmup) = stats.steps;
    text.push_str(&format!(
        "{ranks} ranks ({emulated} ran), {} templates, {} communicators; first template: {} events, {} distinct \
         operations, {steps} steps of which {warmup} are warm-up\n",
        stats.templates, stats.communicators, stats.events, stats.operations
    ));
    table(text, "launches by family", &stats.families, limit, false);
    facts(text, &stats.facts, limit);
}

fn table(text: &mut String, title: &str, rows: &[Tally], limit: usize, times: bool) {
    if rows.is_empty() {
        return;
    }
    text.push_str(&format!("\n  {title}\n"));
    for row in rows.iter().take(limit) {
        let time = if times { format!("{:>12.1} us ", row.micros) } else { String::new() };
        text.push_str(&format!("  {:>10} {time} {}\n", row.count, cut(&row.name, 120)));
    }
    if rows.len() > limit {
        text.push_str(&format!("  {:>10}  more\n", rows.len() - limit));
    }
}

fn facts(text: &mut String, facts: &std::collections::BTreeMap<String, String>, limit: usize) {
    if facts.is_empty() {
        return;
    }
    text.push_str("\n  facts\n");
    for (key, value) in facts.iter().take(limit) {
        text.push_str(&format!("  {key} = {}\n", cut(value, 100)));
    }
    if facts.len() > limit {
        text.push_str(&format!("  and {} more\n", facts.len() - limit));
    }
}

fn cut(text: &str, width: usize) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(width).collect();
    if text.chars().nth(width).is_some() { line + "…" } else { line }
}

//! `trompe calibrate` with traces and tables: measurements in, the user's table out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trompe_estimate::Stack;
use trompe_estimate::bundle::Bundle;
use trompe_estimate::forest::Combination;
use trompe_hardware::DeviceSheet;
use trompe_interop::kineto;
use trompe_measure::sources::Sources;
use trompe_measure::train;

use super::evaluate::{self, Check};
use super::rows::{self, Row, Sheets};
use super::table::{self, Disagreement, Origin};
use super::{Calibration, KERNELS, MODEL, Observed, Skipped, observe};
use crate::{SessionError, clock, disk};

/// Events of a trace that are kept: 2 GiB at most. A step has tens of thousands.
const MOST_EVENTS: u64 = 6_000_000;

/// What to learn from.
#[derive(Clone, Debug)]
pub struct Request {
    /// Traces of PyTorch's profiler, plain or gzip.
    pub traces: Vec<PathBuf>,
    /// Tables of measurements: those of `docs/estimators.md`, or another calibration's.
    pub tables: Vec<PathBuf>,
    /// Traces that are only compared with.
    pub checks: Vec<PathBuf>,
    /// The device that was measured, when its own name is known to no sheet or wrong.
    pub gpu: Option<String>,
    /// The calibration's folder.
    pub out: PathBuf,
}

/// What came of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// The file.
    pub path: PathBuf,
    /// The device by its own name, and by its sheet's.
    pub gpu: [String; 2],
    /// Steps that the profiler marked.
    pub steps: usize,
    /// Operations: known in full, and by name and grid only.
    pub operations: [usize; 2],
    /// Their time in seconds.
    pub seconds: [f64; 2],
    /// What was not used.
    pub skipped: Skipped,
    /// Times shorter than the device can be, and the first of them.
    pub impossible: (usize, String),
    /// Events beyond what is kept in memory.
    pub left: u64,
    /// What the times were divided by, because their unit was another than the format's.
    pub unit: f64,
    /// Rows of a table that were left out, with reasons.
    pub left_out: Vec<String>,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Kernels {
    /// By file.
    pub files: Vec<Learned>,
    /// Comparisons with what was held out.
    pub checks: Vec<Check>,
    /// What sources disagree about.
    pub disagreements: Vec<Disagreement>,
    /// Rows of the table: all, and those that are new.
    pub rows: [usize; 2],
    /// Families whose built-in models were corrected: rows, mean error on groups of shapes left out before and after.
    pub corrected: Vec<(String, usize, [f64; 2])>,
    /// The files that were written.
    pub written: Vec<PathBuf>,
}

/// One trace, read.
struct Measured {
    learned: Learned,
    device: Arc<DeviceSheet>,
    source: String,
    observed: Vec<Observed>,
}

/// Reads traces and tables and adds them to the calibration.
///
/// # Errors
/// When a file cannot be used or the calibration cannot be written.
pub fn kernels(request: &Request) -> Result<Kernels, SessionError> {
    std::fs::create_dir_all(&request.out).map_err(|error| SessionError::writing(&request.out, error))?;
    let table = request.out.join(KERNELS);
    let (old, date) = (rows::read(&table)?, clock::today());
    let (sources, plain) = (Sources::builtin(), Stack::builtin());
    let mut found = Kernels::default();
    let read = |path: &PathBuf| measured(path, request.gpu.as_deref(), &sources, &plain);
    let mut traces = request.traces.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let checks = request.checks.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let (mut new, mut without) = (Vec::new(), Vec::new());
    // A later run has to find the sheet as well.
    let own_sheet = match request.gpu.as_deref() {
        Some(file) if file.ends_with(".toml") => {
            let path =
                std::path::absolute(file).map_err(|error| SessionError::reading(Path::new(file), error))?;
            Some(path.display().to_string())
        }
        _ => None,
    };
    for one in &mut traces {
        let gpu = own_sheet.as_ref().unwrap_or(&one.device.name);
        let origin = Origin { device: &one.device, gpu, source: &one.source, date: &date };
        let rows = table::rows(one.observed.iter(), origin);
        one.learned.left_out.extend(table::contradicting(&rows));
        new.extend(rows);
        let last = last_step(&one.observed);
        without.extend(table::rows(one.observed.iter().filter(|o| last.is_none() || o.step != last), origin));
    }
    for path in &request.tables {
        let (rows, learned) = tabled(path, &sources, &plain, &date)?;
        new.extend(rows.iter().cloned());
        without.extend(rows);
        found.files.push(learned);
    }
    // A source that is read again replaces what it said before.
    let again: BTreeSet<(&str, &str)> =
        new.iter().map(|row| (row.source.as_str(), row.gpu.as_str())).collect();
    let kept = old.iter().filter(|row| !again.contains(&(row.source.as_str(), row.gpu.as_str())));
    let kept: Vec<Row> = kept.cloned().collect();
    let steps: Vec<_> = traces.iter().filter_map(|one| Some((one, last_step(&one.observed)?))).collect();
    if !steps.is_empty() {
        let seen = [kept.clone(), without].concat();
        let (calibration, corrected) = with(seen, &date)?;
        for (one, last) in steps {
            let held: Vec<&Observed> = one.observed.iter().filter(|o| o.step == Some(last)).collect();
            let what = format!("step {last} of {}, not learned from", one.source);
            found.checks.push(evaluate::check(&what, &held, &one.device, &calibration, (&plain, &corrected)));
        }
    }
    let all = [kept, new].concat();
    let seen: BTreeSet<String> = old.iter().map(told).collect();
    found.rows = [all.len(), all.iter().filter(|row| !seen.contains(&told(row))).count()];
    found.disagreements = table::disagreements(&all);
    let bundle = learn(&all, &date, Some(&mut found.corrected))?;
    if !checks.is_empty() {
        let corrected = Stack::builtin().with_bundle(Bundle { table: Default::default(), ..bundle.clone() });
        let calibration = Calibration::of_rows(all.clone())?;
        for one in &checks {
            let held: Vec<&Observed> = one.observed.iter().collect();
            found.checks.push(evaluate::check(
                &one.source,
                &held,
                &one.device,
                &calibration,
                (&plain, &corrected),
            ));
        }
    }
    if !request.traces.is_empty() || !request.tables.is_empty() {
        rows::write(&table, &all)?;
        let model = request.out.join(MODEL);
        disk::write(&model, &bundle.to_bytes())?;
        found.written = vec![table, model];
    }
    found.files.splice(0..0, traces.into_iter().chain(checks).map(|one| one.learned));
    Ok(found)
}

/// The calibration of `rows` and the built-in models corrected by them.
fn with(rows: Vec<Row>, date: &str) -> Result<(Calibration, Stack), SessionError> {
    let bundle = learn(&rows, date, None)?;
    let stack = Stack::builtin().with_bundle(Bundle { table: Default::default(), ..bundle });
    Ok((Calibration::of_rows(rows)?, stack))
}

/// Models that correct the built-in ones, where that helps on shapes left out, and the rows as exact measurements.
fn learn(
    rows: &[Row],
    date: &str,
    told: Option<&mut Vec<(String, usize, [f64; 2])>>,
) -> Result<Bundle, SessionError> {
    let samples = table::samples(rows, &mut Sheets::default())?;
    let options = train::Options {
        name: "calibration".to_owned(),
        date: date.to_owned(),
        combination: Combination::Sum,
        replace: false,
        family: None,
    };
    let outcome = train::learn(&samples, &Sources::builtin(), &options)
        .map_err(|error| SessionError::NothingToLearn { reason: error.to_string() })?;
    let mut bundle = outcome.bundle;
    let better = |learning: &&train::Learning| learning.errors.is_some_and(|[before, after]| after < before);
    let better: Vec<_> = outcome.learned.iter().filter(better).collect();
    bundle.models.retain(|model| better.iter().any(|learning| learning.family == model.family()));
    if let Some(told) = told {
        let rows = better.iter().filter_map(|l| Some((l.family.name().to_owned(), l.rows, l.errors?)));
        told.extend(rows);
    }
    Ok(bundle)
}

/// The last step that the profiler marked, where there is another to learn from.
fn last_step(observed: &[Observed]) -> Option<u64> {
    let last = observed.iter().filter_map(|one| one.step).max()?;
    observed.iter().any(|one| one.step.is_some_and(|step| step < last)).then_some(last)
}

/// A row as text without the day, to tell whether it says something new.
fn told(row: &Row) -> String {
    format!("{:?}", Row { date: String::new(), ..row.clone() })
}

fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn measured(
    path: &Path,
    gpu: Option<&str>,
    sources: &Sources,
    plain: &Stack,
) -> Result<Measured, SessionError> {
    let bad = |reason: String| SessionError::BadMeasurement { path: path.to_owned(), reason };
    let trace = kineto::read_most(path, MOST_EVENTS).map_err(|error| match error {
        kineto::KinetoError::File { source, .. } => bad(source.to_string()),
        error => bad(error.to_string()),
    })?;
    let own = trace.gpus.first().map(|gpu| gpu.name.clone()).unwrap_or_default();
    let device = device(gpu, &own, sources).map_err(bad)?;
    let (mut observed, skipped) = observe(&trace);
    if observed.is_empty() {
        return Err(bad("it holds no kernel with a time; was `ProfilerActivity.CUDA` on?".to_owned()));
    }
    let unit = table::unit(observed.iter(), &device, plain);
    observed.iter_mut().for_each(|one| one.seconds /= unit);
    let mut impossible = (0, String::new());
    observed.retain(|one| {
        let keep = !table::is_impossible(one, &device);
        if !keep {
            if impossible.0 == 0 {
                let what = trompe_measure::errors::describe(&one.descriptor);
                impossible.1 = format!("{what} in {:.2} us", one.seconds * 1e6);
            }
            impossible.0 += 1;
        }
        keep
    });
    let part = |exact: bool| {
        let part = observed.iter().filter(|one| one.exact == exact);
        part.fold((0, 0.0), |(count, sum), one| (count + 1, sum + one.seconds))
    };
    let ((full, full_seconds), (named, named_seconds)) = (part(true), part(false));
    let learned = Learned {
        path: path.to_owned(),
        gpu: [own, device.name.clone()],
        steps: trace.steps().len(),
        operations: [full, named],
        seconds: [full_seconds, named_seconds],
        skipped,
        impossible,
        left: trace.left,
        unit,
        left_out: Vec::new(),
    };
    Ok(Measured { learned, device, source: name_of(path), observed })
}

/// The sheet of the device that was measured: the one that the user names, else the one that knows its own name.
fn device(gpu: Option<&str>, own: &str, sources: &Sources) -> Result<Arc<DeviceSheet>, String> {
    match gpu {
        Some(file) if file.ends_with(".toml") => {
            trompe_hardware::resolve(file).map(|cluster| Arc::new(cluster.device().clone())).map_err(|e| e.to_string())
        }
        Some(gpu) => sources.device(gpu).ok_or_else(|| format!("no sheet knows the GPU `{gpu}`")),
        None if own.is_empty() => Err("it does not say which GPU it was taken on; name it with `--gpu`".to_owned()),
        None => sources.device(own).ok_or_else(|| {
            format!("no sheet knows its GPU, `{own}`; name the nearest of `trompe gpus` with `--gpu`, or a sheet of your own")
        }),
    }
}

/// The rows of a table of measurements, or of another calibration's.
fn tabled(
    path: &Path,
    sources: &Sources,
    plain: &Stack,
    date: &str,
) -> Result<(Vec<Row>, Learned), SessionError> {
    let mut learned = Learned { path: path.to_owned(), unit: 1.0, ..Learned::default() };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(trompe_measure::open(path)?);
    let headers = reader.headers().map_err(|error| trompe_measure::unreadable(path, &error))?;
    if rows::COLUMNS.iter().all(|column| headers.iter().any(|header| header == *column)) {
        let rows = rows::read(path)?;
        learned.operations[0] = rows.len();
        return Ok((rows, learned));
    }
    let read = trompe_measure::read(path, sources)?;
    for (reason, (count, line)) in &read.left.reasons {
        learned.left_out.push(format!("{count} rows left out (first: line {line}): {reason}"));
    }
    let single =
        read.samples.into_iter().filter(|sample| sample.operations.len() == 1 && sample.split != "dev");
    let mut by_device = std::collections::BTreeMap::<String, (Arc<DeviceSheet>, Vec<Observed>)>::new();
    for sample in single {
        let seconds = sample.kernel_seconds();
        let device = Arc::clone(&sample.device);
        let (_, list) = by_device.entry(device.name.clone()).or_insert_with(|| (device, Vec::new()));
        let Some(descriptor) = sample.operations.into_iter().next() else { continue };
        let kernel = trompe_measure::errors::describe(&descriptor);
        list.push(Observed {
            kernel,
            launch: None,
            descriptor,
            exact: true,
            class: String::new(),
            seconds,
            step: None,
        });
    }
    let (source, mut rows) = (name_of(path), Vec::new());
    for (device, mut observed) in by_device.into_values() {
        let unit = table::unit(observed.iter(), &device, plain);
        if unit != 1.0 {
            let (factor, is) =
                if unit > 1.0 { ("1000 times", "nanoseconds") } else { ("a thousandth of", "milliseconds") };
            let reason = format!(
                "its times on {} are about {factor} what can be: `time_us` is microseconds, these look like {is}",
                device.name
            );
            return Err(SessionError::BadMeasurement { path: path.to_owned(), reason });
        }
        let before = observed.len();
        observed.retain(|one| !table::is_impossible(one, &device));
        learned.impossible.0 += before - observed.len();
        learned.operations[0] += observed.len();
        learned.seconds[0] += observed.iter().map(|one| one.seconds).sum::<f64>();
        let origin = Origin { device: &device, gpu: &device.name, source: &source, date };
        rows.extend(table::rows(observed.iter(), origin));
    }
    learned.left_out.extend(table::contradicting(&rows));
    if rows.is_empty() {
        let reason = "no row is a single operation of the `train` split (or of none)".to_owned();
        return Err(SessionError::BadMeasurement { path: path.to_owned(), reason });
    }
    Ok((rows, learned))
}

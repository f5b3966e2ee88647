//! `trompe calibrate`: learn from what was measured.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use trompe_session::calibration::{self, Check, Errors, HostFit, HostRequest, Kernels, Learned, Request};
use trompe_session::network::fit;
use trompe_session::output::Existing;
use trompe_session::{RankChoice, StepChoice, run};

use crate::commands;
use crate::progress::Shown;

const EXAMPLES: &str = "\
Examples:
  trompe calibrate --kineto rank0.json.gz rank1.json.gz           # kernels of a job on a real GPU
  trompe calibrate --csv sweep.csv                                # of `trompe profile`, or a table of your own
  trompe calibrate --nccl-tests all_reduce.log --cluster dgx-h100:2
  trompe calibrate --cluster a100-sxm --measured 0.372s -- python train.py
  trompe calibrate --check held-out.json.gz                       # errors without and with it; learns nothing

What is learned is used by `run`, `simulate` and `search` from then on (`--calibration off` does without), and the report
says where it was. One measured step time (`--measured`) is the one number that is worth most: it fits the speed of your
cluster's host processors.";

/// Learn from measurements: kernels, collectives, the speed of your hosts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CalibrateArguments {
    /// Traces of PyTorch's profiler from a real GPU, one rank or many, plain or gzip; best with `record_shapes=True`.
    #[arg(long, value_name = "TRACE", num_args = 1..)]
    kineto: Vec<PathBuf>,
    /// Tables of measurements (docs/estimators.md), or kernels.csv of another calibration.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    csv: Vec<PathBuf>,
    /// Logs of nccl-tests, measured on `--cluster`.
    #[arg(long, value_name = "LOG", num_args = 1.., requires = "cluster")]
    nccl_tests: Vec<PathBuf>,
    /// Traces to compare with, without learning from them.
    #[arg(long, value_name = "TRACE", num_args = 1..)]
    check: Vec<PathBuf>,
    /// Step time of the command on the real cluster, as in 0.372s or 372ms.
    #[arg(long, value_name = "TIME", value_parser = seconds, requires = "command")]
    measured: Option<f64>,
    /// The GPU that traces were taken on, when no sheet knows its own name: a name of `trompe gpus` or a .toml file.
    #[arg(long, value_name = "GPU")]
    gpu: Option<String>,
    /// The cluster of `--nccl-tests` and `--measured`.
    #[arg(long, value_name = "SPEC")]
    cluster: Option<String>,
    /// Folder of the calibration; your own one, which is used without being named, when not given.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Where the steps of the command are, as for `trompe run`.
    #[arg(long, value_name = "STEPS", default_value = "auto", hide_default_value = true)]
    steps: StepChoice,
    /// The command that `--measured` is the step time of.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND",
        requires = "measured"
    )]
    command: Vec<OsString>,
}

fn seconds(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 4] = [("ms", 1e-3), ("us", 1e-6), ("min", 60.0), ("s", 1.0)];
    let unit = UNITS.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = unit.ok_or("write it with its unit, as in 0.372s or 372ms")?;
    match number.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value * factor),
        _ => Err("it must be a positive time, as in 0.372s or 372ms".to_owned()),
    }
}

pub(crate) fn run(arguments: CalibrateArguments) -> anyhow::Result<ExitCode> {
    let out = match arguments.out.clone().or_else(calibration::own_folder) {
        Some(out) => out,
        None => anyhow::bail!("neither HOME nor XDG_DATA_HOME is set; name a folder with `--out DIR`"),
    };
    let mut done = false;
    if !(arguments.kineto.is_empty() && arguments.csv.is_empty() && arguments.check.is_empty()) {
        let found = calibration::kernels(&Request {
            traces: arguments.kineto.clone(),
            tables: arguments.csv.clone(),
            checks: arguments.check.clone(),
            gpu: arguments.gpu.clone(),
            out: out.clone(),
        })?;
        commands::print(&kernels(&found))?;
        done = true;
    }
    if !arguments.nccl_tests.is_empty() {
        collectives(&arguments, &out)?;
        done = true;
    }
    if let Some(seconds) = arguments.measured {
        return host(arguments, seconds, out);
    }
    if !done {
        anyhow::bail!(
            "nothing to learn from; give `--kineto TRACE`, `--csv FILE`, `--nccl-tests LOG`, or `--measured TIME -- COMMAND`"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn collectives(arguments: &CalibrateArguments, out: &Path) -> anyhow::Result<()> {
    let cluster = arguments.cluster.clone().unwrap_or_default();
    let file = calibration::network_file_of(out, &cluster)?;
    std::fs::create_dir_all(out)?;
    let request = fit::Request {
        logs: arguments.nccl_tests.clone(),
        cluster,
        hints: fit::Hints::default(),
        network: None,
        out: file,
    };
    let fitted = fit::fit(&request)?;
    commands::print(&format!(
        "{}\n{}\n",
        commands::network::scores(&fitted),
        commands::nearby(&request.out).display()
    ))
}

fn host(arguments: CalibrateArguments, seconds: f64, out: PathBuf) -> anyhow::Result<ExitCode> {
    let request = HostRequest {
        run: run::Request {
            command: arguments.command,
            cluster: arguments.cluster.unwrap_or_else(|| "h100-sxm".to_owned()),
            sheet: None,
            out: PathBuf::new(),
            existing: Existing::Replace,
            choices: trompe_session::Choices::default(),
            estimators: trompe_session::estimators::EstimatorChoice::default(),
            steps: arguments.steps,
            record_operators: true,
            ranks: RankChoice::Auto,
            verify: 2,
            routing: None,
            prefork: true,
        },
        seconds,
        out,
    };
    let mut progress = Shown::new();
    let fit = calibration::fit_host(&request, &mut progress)?;
    progress.clear();
    commands::print(&host_text(&fit, seconds))?;
    Ok(if fit.kept { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn host_text(fit: &HostFit, seconds: f64) -> String {
    let [plain, free, reached] = fit.predicted;
    let Some(factor) = &fit.factor else {
        let why = if seconds <= free * 1.001 {
            format!(
                "Even a host that takes no time gives {free:.4} s, so the step is bound by the GPU or the network and says \
                 nothing about the host. Calibrate kernels first (`--kineto`), or use a smaller batch."
            )
        } else {
            "No factor up to 64 gives it: the job waits for something that trompe does not see (data, storage), or the \
             steps are not those that were measured."
                .to_owned()
        };
        return format!("measured {seconds:.4} s, predicted {plain:.4} s: no factor was found.\n{why}\n");
    };
    let mut text = format!(
        "measured {seconds:.4} s; predicted {plain:.4} s before ({:+.1} %), {reached:.4} s with host times taken {} times\n",
        (plain / seconds - 1.0) * 100.0,
        factor.factor
    );
    text.push_str(&format!("for hosts of `{}` and times recorded on {}\n", factor.node, factor.recorded_on));
    if !fit.kept {
        text.push_str(&format!(
            "Not kept, because no processor is so much {} than another. Is it the right GPU, batch and PyTorch, and was the \
             measured job not waiting for its data? `--host scale={}` predicts with it all the same.\n",
            if factor.factor > 1.0 { "slower" } else { "faster" },
            factor.factor
        ));
        return text;
    }
    if let Some(before) = &fit.before {
        text.push_str(&format!("in place of {}, from `{}` ({})\n", before.factor, before.job, before.date));
    }
    text.push_str(&format!("{}\n", fit.written.display()));
    text
}

pub(super) fn kernels(found: &Kernels) -> String {
    let mut text = String::new();
    for file in &found.files {
        text.push_str(&learned(file));
    }
    for check in &found.checks {
        text.push_str(&checked(check));
    }
    if !found.disagreements.is_empty() {
        text.push_str(&format!(
            "\n{} operations of different times in different sources; the middle one of all counts, their range is the \
             interval; furthest apart:\n",
            found.disagreements.len()
        ));
        for d in found.disagreements.iter().take(5) {
            text.push_str(&format!(
                "  {} on {}: {:.2} us in {}, {:.2} us in {}\n",
                d.what, d.gpu, d.times_us[0], d.sources[0], d.times_us[1], d.sources[1]
            ));
        }
    }
    for (family, rows, [before, after]) in &found.corrected {
        text.push_str(&format!(
            "\n{family}: built-in model corrected from {rows} operations; mean error on shapes left out {:.1} %, before {:.1} %",
            after * 100.0,
            before * 100.0
        ));
    }
    if !found.written.is_empty() {
        text.push_str(&format!(
            "\n{} measured operations, {} of them new or changed\n",
            found.rows[0], found.rows[1]
        ));
        found
            .written
            .iter()
            .for_each(|path| text.push_str(&format!("{}\n", commands::nearby(path).display())));
    }
    text
}

fn learned(file: &Learned) -> String {
    let Learned { gpu: [own, sheet], operations: [full, named], seconds: [full_s, named_s], .. } = file;
    let mut text = format!("{}", file.path.display());
    if !sheet.is_empty() {
        let own = if own.is_empty() { "a GPU without a name" } else { own };
        text.push_str(&format!(": {own} as `{sheet}`, {} marked steps", file.steps));
    }
    let all = full_s + named_s;
    let share = |part: f64| if all > 0.0 { part / all * 100.0 } else { 0.0 };
    text.push_str(&format!("\n  {full} operations known in full ({:.1} % of the time)", share(*full_s)));
    if *named > 0 {
        text.push_str(&format!(", {named} by name and grid only ({:.1} %)", share(*named_s)));
    }
    text.push('\n');
    let skipped = &file.skipped;
    for (count, what) in [
        (
            skipped.collectives,
            "kernels of collectives left out (their time is waiting, too; use --nccl-tests)",
        ),
        (skipped.without_time, "left out: their duration is not positive"),
        (skipped.without_size, "copies or fills left out: their size was not recorded"),
        (skipped.stray, "helper kernels of a library left out: the call that they help was not seen"),
        (file.left, "events passed over: the trace has more than are kept in memory"),
    ] {
        if count > 0 {
            text.push_str(&format!("  {count} {what}\n"));
        }
    }
    if file.impossible.0 > 0 {
        text.push_str(&format!("  {} left out: shorter than the GPU can be", file.impossible.0));
        text.push_str(&if file.impossible.1.is_empty() {
            "\n".to_owned()
        } else {
            format!(" ({})\n", file.impossible.1)
        });
    }
    if file.unit != 1.0 {
        let is = if file.unit > 1.0 { "nanoseconds" } else { "milliseconds" };
        text.push_str(&format!("  its durations are {is}, not microseconds: taken as such\n"));
    }
    file.left_out.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    if *full_s < 0.5 * all {
        text.push_str("  most of the time has no shapes: take the trace with `record_shapes=True`\n");
    }
    text
}

fn checked(check: &Check) -> String {
    let mut text =
        format!("\nCompared with {}: {:.1} % of the time known exactly", check.what, check.known * 100.0);
    if check.unknown > 0.0 {
        text.push_str(&format!("; {:.1} % has no shapes and is not compared", check.unknown * 100.0));
    }
    text.push_str(&format!(
        "\n{:<15} {:>9} {:>10} {:>19} {:>23}\n{:<15} {:>9} {:>10} {:>9} {:>9} {:>11} {:>11}\n",
        "",
        "",
        "measured",
        "error of the sum",
        "median error of one",
        "family",
        "launches",
        "ms",
        "before",
        "after",
        "before",
        "after"
    ));
    for Errors { family, count, seconds, sum, median } in &check.errors {
        text.push_str(&format!(
            "{family:<15} {count:>9} {:>10.2} {:>+7.1} % {:>+7.1} % {:>9.1} % {:>9.1} %\n",
            seconds * 1e3,
            sum[0] * 100.0,
            sum[1] * 100.0,
            median[0] * 100.0,
            median[1] * 100.0
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_unit() {
        let check = |text: &str, expect: Option<f64>| {
            assert_eq!(seconds(text).ok().map(|s| (s * 1e6).round()), expect.map(|s| s * 1e6), "{text}");
        };
        check("0.372s", Some(0.372));
        check("372ms", Some(0.372));
        check("1.5min", Some(90.0));
        check("800us", Some(0.0008));
        check("0.372", None);
        check("-1s", None);
        check("s", None);
    }
}

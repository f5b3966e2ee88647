//! `trompe estimate`: kernel times without a job.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use trompe_session::estimate::{self, Data, FitRequest, Split};

use crate::arguments::EstimatorArguments;
use crate::commands;
use crate::commands::validate::errors_table;

#[derive(Debug, Args)]
pub(crate) struct EstimateArguments {
    #[command(subcommand)]
    command: EstimateCommand,
}

#[derive(Debug, Subcommand)]
enum EstimateCommand {
    /// Explain the time of one operation: which model answered and why, what it saw, what moved its answer.
    Explain(ExplainArguments),
    /// Predict every row of a table of operations; writes the table with the predictions.
    Predict(PredictArguments),
    /// Show the errors of predictions on tables of measurements.
    Eval(EvalArguments),
    /// Learn from tables of measurements; the model is used with `--model FILE`.
    Fit(FitArguments),
    /// Show where a model file comes from and how good it is.
    Card(CardArguments),
    /// Write tables of features for a trainer outside (tools/train).
    Features(FeaturesArguments),
    /// Make a model file of trees that were trained outside.
    Pack(PackArguments),
}

#[derive(Debug, Args)]
struct DataArguments {
    /// Tables of measurements: CSV, plain or gzip.
    #[arg(required = true, value_name = "DATA")]
    files: Vec<PathBuf>,
    /// Sheet (.toml) of a GPU that the tables name and trompe does not know; may be given several times.
    #[arg(long = "sheet", value_name = "FILE")]
    sheets: Vec<PathBuf>,
}

impl From<DataArguments> for Data {
    fn from(arguments: DataArguments) -> Self {
        Self { files: arguments.files, sheets: arguments.sheets }
    }
}

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  trompe estimate explain --gpu h100 m=8192 n=4096 k=4096 dtype=bfloat16
  trompe estimate explain --gpu a100-80 batch=4 heads=32 kv_heads=8 seq_q=4096 seq_kv=4096 head_dim=128 causal=1 dtype=bfloat16
  trompe estimate explain --gpu h100 op=layer_norm rows=8192 cols=4096 bytes_moved=134217728 dtype=bfloat16";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
struct ExplainArguments {
    /// The GPU: a name of `trompe gpus`, or as tables call it.
    #[arg(long, value_name = "GPU")]
    gpu: String,
    /// The operation, in the columns of a table of measurements.
    #[arg(required = true, value_name = "COLUMN=VALUE", value_parser = pair)]
    columns: Vec<(String, String)>,
    /// Tables among which to look for the nearest measurements.
    #[arg(long = "data", value_name = "DATA")]
    files: Vec<PathBuf>,
    /// Sheet (.toml) of a GPU that trompe does not know.
    #[arg(long = "sheet", value_name = "FILE")]
    sheets: Vec<PathBuf>,
    #[command(flatten)]
    estimators: EstimatorArguments,
    /// Print as JSON, with all features.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PredictArguments {
    /// Table of operations: the columns of a table of measurements, with or without times.
    #[arg(value_name = "TABLE")]
    table: PathBuf,
    /// The table to write; standard output when not given.
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Sheet (.toml) of a GPU that trompe does not know.
    #[arg(long = "sheet", value_name = "FILE")]
    sheets: Vec<PathBuf>,
    #[command(flatten)]
    estimators: EstimatorArguments,
}

/// Rows that are compared.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum SplitArgument {
    /// Rows that nothing was learned from.
    Dev,
    /// Rows that the built-in models were trained on.
    Train,
    /// All rows.
    All,
}

impl From<SplitArgument> for Split {
    fn from(split: SplitArgument) -> Self {
        match split {
            SplitArgument::Dev => Self::Dev,
            SplitArgument::Train => Self::Train,
            SplitArgument::All => Self::All,
        }
    }
}

#[derive(Debug, Args)]
struct EvalArguments {
    #[command(flatten)]
    data: DataArguments,
    #[command(flatten)]
    estimators: EstimatorArguments,
    /// Which rows.
    #[arg(long, value_enum, default_value = "dev")]
    split: SplitArgument,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct FitArguments {
    #[command(flatten)]
    data: DataArguments,
    /// The file to write.
    #[arg(short, long, value_name = "MODEL")]
    out: PathBuf,
    /// What the model is called in reports; the file's name when not given.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only this family: gemm, attention, convolution or streaming.
    #[arg(long, value_name = "FAMILY", value_parser = family)]
    family: Option<trompe_session::estimate::Family>,
    /// Replace the built-in models of the families that the tables hold, instead of correcting them.
    #[arg(long)]
    replace: bool,
    /// A random forest instead of gradient boosting.
    #[arg(long)]
    forest: bool,
}

#[derive(Debug, Args)]
struct CardArguments {
    /// A model file; the built-in models when not given.
    #[arg(value_name = "MODEL")]
    model: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct FeaturesArguments {
    #[command(flatten)]
    data: DataArguments,
    /// The folder to write FAMILY.csv and licences.json to.
    #[arg(short, long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct PackArguments {
    /// Trees as tools/train writes them (.json).
    #[arg(value_name = "TREES")]
    trees: PathBuf,
    /// The table of features that they were trained on.
    #[arg(value_name = "FEATURES")]
    features: PathBuf,
    /// The file to write.
    #[arg(short, long, value_name = "MODEL")]
    out: PathBuf,
}

pub(crate) fn run(arguments: EstimateArguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        EstimateCommand::Explain(arguments) => explain(arguments)?,
        EstimateCommand::Predict(arguments) => predict(arguments)?,
        EstimateCommand::Eval(arguments) => eval(arguments)?,
        EstimateCommand::Fit(arguments) => fit(arguments)?,
        EstimateCommand::Card(arguments) => commands::print(&estimate::card(arguments.model.as_deref())?)?,
        EstimateCommand::Features(arguments) => {
            let (counts, left_out) = estimate::write_tables(&arguments.data.into(), &arguments.out)?;
            left_out.iter().for_each(|line| eprintln!("note: {line}"));
            let lines = counts.iter().map(|(family, rows)| format!("{:<12} {rows} rows\n", family.name()));
            commands::print(&lines.collect::<String>())?;
        }
        EstimateCommand::Pack(arguments) => {
            let model = estimate::pack(&arguments.trees, &arguments.features, &arguments.out)?;
            let (trees, nodes, cells) = model.size();
            let bytes = std::fs::metadata(&arguments.out).map_or(0, |data| data.len());
            commands::print(&format!(
                "{}: {trees} trees, {nodes} nodes, {cells} cells of shapes, {:.0} KiB\n",
                arguments.out.display(),
                bytes as f64 / 1024.0
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(arguments: ExplainArguments) -> anyhow::Result<()> {
    let operation = estimate::Operation {
        gpu: arguments.gpu,
        columns: arguments.columns,
        sheets: arguments.sheets.clone(),
    };
    let data = Data { files: arguments.files, sheets: arguments.sheets };
    let explained = estimate::explain(&operation, &data, &arguments.estimators.into())?;
    if arguments.json {
        return commands::print(&format!("{}\n", serde_json::to_string_pretty(&explained)?));
    }
    let e = &explained.estimate;
    let mut text = format!("{} on {}\n\n", explained.operation, explained.device);
    text.push_str(&format!("  estimate   {}   (8 of 10 between {} and {})\n", e.time, e.low, e.high));
    text.push_str(&format!("  method     {} ({}): {}\n", e.method, e.basis.name(), explained.why));
    text.push_str(&format!("  physics    {}   {}\n", explained.physics.time, explained.physics.method));
    text.push_str(&format!("  roofline   {}\n", explained.roofline));
    if let Some(note) = &e.note {
        text.push_str(&format!("  note       {note}\n"));
    }
    if !explained.contributions.is_empty() {
        text.push_str("\n  what moved it (factor on the physics time)\n");
        for (name, share) in &explained.contributions {
            let value = explained.features.iter().find(|(feature, _)| feature == name);
            let value = value.map_or(String::new(), |(_, value)| format!(" = {value:.2}"));
            text.push_str(&format!("    {:>6.3}  {name}{value}\n", share.exp()));
        }
    }
    if !explained.neighbours.is_empty() {
        text.push_str("\n  nearest measurements on this device\n");
        for (what, time, distance) in &explained.neighbours {
            text.push_str(&format!("    {time:>10}  {what}, {distance:.1} doublings away\n"));
        }
    }
    if !explained.model.is_empty() {
        text.push_str(&format!("\n  model: {}\n", explained.model.join("\n         ")));
    }
    commands::print(&text)
}

fn predict(arguments: PredictArguments) -> anyhow::Result<()> {
    let data = Data { files: Vec::new(), sheets: arguments.sheets };
    let predicted = estimate::predict(&arguments.table, &data, &arguments.estimators.into())?;
    for line in &predicted.without {
        eprintln!("note: {line}");
    }
    match arguments.out {
        Some(out) => {
            estimate::save(&out, &predicted.csv)?;
            commands::print(&format!("{}: {} rows with predictions\n", out.display(), predicted.rows))
        }
        None => commands::print(&String::from_utf8_lossy(&predicted.csv)),
    }
}

fn eval(arguments: EvalArguments) -> anyhow::Result<()> {
    let split = arguments.split.into();
    let (read, groups) = estimate::evaluate(&arguments.data.into(), &arguments.estimators.into(), split)?;
    if arguments.json {
        return commands::print(&format!("{}\n", serde_json::to_string_pretty(&groups)?));
    }
    let samples = read.files.iter().flat_map(|file| &file.samples);
    let compared = samples.filter(|sample| split.takes(sample));
    for line in read.left_out().into_iter().chain(estimate::contradicting(compared)) {
        eprintln!("note: {line}");
    }
    commands::print(&errors_table(&groups))
}

fn fit(arguments: FitArguments) -> anyhow::Result<()> {
    let out = arguments.out.clone();
    let fitted = estimate::fit(&FitRequest {
        data: arguments.data.into(),
        out: arguments.out,
        name: arguments.name,
        forest: arguments.forest,
        replace: arguments.replace,
        family: arguments.family,
    })?;
    for line in &fitted.left_out {
        eprintln!("note: {line}");
    }
    if fitted.held_out > 0 {
        eprintln!("note: {} rows of the `dev` split were left alone", fitted.held_out);
    }
    if !fitted.contradictions.is_empty() {
        eprintln!(
            "warning: {} operations were measured several times with times that differ by more than {:.0} %; the \
             table answers with their median:",
            fitted.contradictions.len(),
            (estimate::CONTRADICTION - 1.0) * 100.0
        );
        for c in fitted.contradictions.iter().take(5) {
            eprintln!(
                "  {} on {}: {:.2} us (line {}) and {:.2} us (line {})",
                c.what,
                c.gpu,
                c.seconds[0] * 1e6,
                c.lines[0],
                c.seconds[1] * 1e6,
                c.lines[1]
            );
        }
    }
    let mut text = String::new();
    for learning in &fitted.learned {
        let name = learning.family.name();
        text.push_str(&match learning.errors {
            Some([before, after]) => format!(
                "{name:<12} {} rows; mean error on groups of shapes left out {:.1} %, before {:.1} %\n",
                learning.rows,
                after * 100.0,
                before * 100.0
            ),
            None => {
                format!("{name:<12} {} rows, too few for a model: exact measurements only\n", learning.rows)
            }
        });
    }
    text.push_str(&format!(
        "{}: {} operations known exactly, {:.0} KiB; use it with `--model {}`\n",
        out.display(),
        fitted.exact,
        fitted.bytes as f64 / 1024.0,
        out.display()
    ));
    commands::print(&text)
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write COLUMN=VALUE, for example m=4096".to_owned()),
    }
}

fn family(text: &str) -> Result<trompe_session::estimate::Family, String> {
    let all = trompe_session::estimate::Family::ALL;
    all.into_iter().find(|family| family.name() == text).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|family| family.name()).collect();
        format!("the families are {}", names.join(", "))
    })
}

//! Which estimators price a job: the built-in ones, a user's models, and for any family a table, a model file, a Python
//! function or another program.
//!
//! The file is TOML:
//!
//! ```toml
//! models = ["mine.model"]                 # asked first, everywhere; made by `trompe estimate fit`
//!
//! [family.gemm]
//! table = "gemm.csv"                      # exact measurements; what is not in it falls to the built-in models
//!
//! [family.attention]
//! model = "attention.model"               # replaces the built-in model
//!
//! [family.softmax]
//! python = "mine.py:softmax"              # a function that takes a list of requests
//! interpreter = "python3"
//!
//! [family.normalization]
//! command = ["./estimate", "--norms"]     # a program that speaks JSON lines
//! ```
//!
//! Paths are relative to the file. Every estimator that is loaded is first asked a few questions whose answers show
//! whether it keeps the contract (positive finite times, the same answer twice).

mod oracle;
mod probe;
mod process;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trompe_estimate::bundle::Bundle;
use trompe_estimate::features::Family;
use trompe_estimate::table::Table;
use trompe_estimate::{Cached, KernelEstimator, Stack};
use trompe_hardware::ClusterSheet;
use trompe_measure::sources::Sources;
use trompe_trace::job::JobTrace;

use crate::calibration::Calibration;
use crate::{Choices, Prediction, SessionError, predict_with};

pub use oracle::{Oracle, Placed};
pub use process::Process;

/// What a user chose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EstimatorChoice {
    /// The TOML file.
    pub config: Option<PathBuf>,
    /// Model files, asked before the built-in models.
    pub models: Vec<PathBuf>,
    /// Physics alone, no built-in model.
    pub physics: bool,
    /// Profiler traces of the same job on a real GPU, whose times replace predictions.
    pub oracle: Vec<PathBuf>,
    /// Share of the highest clock that the GPU sustains under the load of a whole job.
    pub clock: Clock,
    /// The folder of what the user measured (`trompe calibrate`).
    pub calibration: Option<PathBuf>,
}

/// A share of the highest clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clock {
    /// What the GPU's sheet states; all of it where it states nothing.
    #[default]
    Sheet,
    /// So many thousandths: choices can be compared.
    Thousandths(u32),
}

impl Clock {
    /// The share on a device.
    #[must_use]
    pub fn share(self, device: &trompe_hardware::DeviceSheet) -> f64 {
        match self {
            Self::Sheet => device.compute.sustained_clock.unwrap_or(1.0),
            Self::Thousandths(share) => f64::from(share) / 1000.0,
        }
    }
}

impl std::str::FromStr for Clock {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            _ if text == "sheet" => Ok(Self::Sheet),
            Ok(share) if (0.3..=1.0).contains(&share) => {
                Ok(Self::Thousandths((share * 1000.0).round() as u32))
            }
            _ => Err("it must be a share between 0.3 and 1, for example 0.9, or `sheet`".to_owned()),
        }
    }
}

/// What prices the kernels of a job.
pub struct KernelPricing<'a> {
    /// Predicts.
    pub estimator: &'a dyn KernelEstimator,
    /// Measured times, before any prediction.
    pub oracle: Option<&'a Oracle>,
    /// What the user measured, before any prediction.
    pub calibration: Option<&'a Calibration>,
    /// Share of the highest clock that the device sustains: predictions that arithmetic bounds take so much longer.
    pub clock: f64,
}

impl<'a> KernelPricing<'a> {
    /// Predictions at the highest clock.
    #[must_use]
    pub fn of(estimator: &'a dyn KernelEstimator) -> Self {
        Self { estimator, oracle: None, calibration: None, clock: 1.0 }
    }
}

/// Names of all families, as configuration files use them.
pub const FAMILIES: [&str; 18] = [
    "gemm",
    "convolution",
    "attention",
    "normalization",
    "softmax",
    "cross_entropy",
    "elementwise",
    "reduction",
    "embedding",
    "indexing",
    "optimizer",
    "sort",
    "stencil",
    "rnn",
    "triton",
    "copy",
    "set",
    "other",
];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    models: Vec<PathBuf>,
    #[serde(default)]
    physics: bool,
    #[serde(default)]
    family: BTreeMap<String, Replacement>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    table: Option<PathBuf>,
    model: Option<PathBuf>,
    python: Option<String>,
    interpreter: Option<PathBuf>,
    command: Option<Vec<String>>,
}

/// The estimator that a job is priced with.
///
/// # Errors
/// When a file cannot be used or an estimator does not keep the contract.
pub fn estimator(choice: &EstimatorChoice) -> Result<Cached<Stack>, SessionError> {
    Ok(Cached::new(stack(choice)?))
}

/// Everything that prices kernels, ready for any number of jobs and clusters.
pub(crate) struct Pricer {
    estimator: Cached<Stack>,
    oracle: Option<Oracle>,
    calibration: Option<Calibration>,
    clock: Clock,
}

impl Pricer {
    /// Reads and starts what `choice` names.
    pub(crate) fn of(choice: &EstimatorChoice) -> Result<Self, SessionError> {
        let oracle = if choice.oracle.is_empty() { None } else { Some(Oracle::read(&choice.oracle)?) };
        let calibration = choice.calibration.as_deref().map(Calibration::read).transpose()?;
        Ok(Self { estimator: estimator(choice)?, oracle, calibration, clock: choice.clock })
    }

    /// What predicts.
    pub(crate) fn stack(&self) -> &Cached<Stack> {
        &self.estimator
    }

    /// How kernels are priced on a cluster.
    pub(crate) fn on(&self, cluster: &ClusterSheet) -> KernelPricing<'_> {
        KernelPricing {
            estimator: &self.estimator,
            oracle: self.oracle.as_ref(),
            calibration: self.calibration.as_ref(),
            clock: self.clock.share(cluster.device()),
        }
    }
}

/// Predicts a job with the kernels priced as `choice` says.
///
/// # Errors
/// When an estimator cannot be used, the trace contradicts itself or the job would hang.
pub fn predict(
    job: &JobTrace,
    cluster: &ClusterSheet,
    choices: &Choices,
    choice: &EstimatorChoice,
) -> Result<Prediction, SessionError> {
    predict_with(job, cluster, choices, &Pricer::of(choice)?.on(cluster))
}

/// The files that decide what estimators answer: the description, models, tables, and programs that lie beside it.
pub(crate) fn files(choice: &EstimatorChoice) -> Result<Vec<PathBuf>, SessionError> {
    let mut files: Vec<PathBuf> = choice.models.iter().chain(&choice.oracle).cloned().collect();
    files.extend(choice.calibration.iter().flat_map(|folder| Calibration::files(folder)));
    if let Some(path) = &choice.config {
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let config = read(path)?;
        files.push(path.clone());
        files.extend(config.models.iter().map(|model| folder.join(model)));
        for family in config.family.into_values() {
            files.extend(family.table.into_iter().chain(family.model).map(|file| folder.join(file)));
            let module = family.python.as_deref().and_then(|text| text.split(':').next().map(str::to_owned));
            let words = family.command.into_iter().flatten().chain(module);
            files.extend(words.map(|word| folder.join(word)).filter(|path| path.is_file()));
        }
    }
    Ok(files)
}

/// The same with access to its parts.
pub(crate) fn stack(choice: &EstimatorChoice) -> Result<Stack, SessionError> {
    let mut models = Vec::new();
    let mut physics = choice.physics;
    let mut families = BTreeMap::new();
    let mut folder = PathBuf::new();
    if let Some(path) = &choice.config {
        let config = read(path)?;
        folder = path.parent().map(Path::to_owned).unwrap_or_default();
        models.extend(config.models.into_iter().map(|model| folder.join(model)));
        physics |= config.physics;
        families = config.family;
    }
    models.extend(choice.models.iter().cloned());
    let mut stack = if physics { Stack::physics() } else { Stack::builtin() };
    if let Some(folder) = &choice.calibration
        && let Some(bundle) = Calibration::bundle(folder)?
    {
        stack = stack.with_bundle(bundle);
    }
    for path in models {
        stack = stack.with_bundle(bundle(&path)?);
    }
    for (family, replacement) in families {
        let config = choice.config.as_deref().unwrap_or(Path::new(""));
        stack = replaced(stack, &family, replacement, config, &folder)?;
    }
    Ok(stack)
}

fn read(path: &Path) -> Result<Config, SessionError> {
    let text = std::fs::read_to_string(path).map_err(|error| SessionError::reading(path, error))?;
    let bad = |reason: String| SessionError::Estimators { path: path.to_owned(), reason };
    let config: Config =
        toml::from_str(&text).map_err(|error| bad(error.to_string().trim_end().to_owned()))?;
    for (family, replacement) in &config.family {
        if !FAMILIES.contains(&family.as_str()) {
            return Err(bad(format!(
                "there is no family `{family}`; the families are {}",
                FAMILIES.join(", ")
            )));
        }
        let given = [
            replacement.table.is_some(),
            replacement.model.is_some(),
            replacement.python.is_some(),
            replacement.command.is_some(),
        ];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(bad(format!(
                "`family.{family}` needs exactly one of `table`, `model`, `python`, `command`"
            )));
        }
    }
    Ok(config)
}

/// Reads a model file or what `trompe estimate fit` wrote.
pub(crate) fn bundle(path: &Path) -> Result<Bundle, SessionError> {
    let bytes = std::fs::read(path).map_err(|error| SessionError::reading(path, error))?;
    Bundle::from_bytes(&bytes)
        .map_err(|error| SessionError::BadModel { path: path.to_owned(), reason: error.to_string() })
}

fn replaced(
    stack: Stack,
    family: &str,
    replacement: Replacement,
    config: &Path,
    folder: &Path,
) -> Result<Stack, SessionError> {
    if let Some(path) = replacement.table {
        return Ok(stack.with_table(table(&folder.join(path), family)?));
    }
    if let Some(path) = replacement.model {
        let mut bundle = bundle(&folder.join(path))?;
        bundle.replaces =
            Family::ALL.into_iter().filter(|f| bundle.models.iter().any(|m| m.family() == *f)).collect();
        return Ok(stack.with_bundle(bundle));
    }
    let command = match (replacement.python, replacement.command) {
        (Some(function), _) => {
            let interpreter = replacement.interpreter.unwrap_or_else(|| PathBuf::from("python3"));
            process::python(&interpreter, &function)
        }
        (None, Some(command)) if !command.is_empty() => command,
        _ => {
            let reason = format!("`family.{family}`: the command is empty");
            return Err(SessionError::Estimators { path: config.to_owned(), reason });
        }
    };
    let process = Process::start(family, &command, folder)
        .map_err(|reason| SessionError::Estimators { path: config.to_owned(), reason })?;
    Ok(stack.with_family(family, Arc::new(process)))
}

/// The exact measurements of one family in a table.
fn table(path: &Path, family: &str) -> Result<Table, SessionError> {
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut table = Table::new(&name);
    for sample in trompe_measure::read(path, &Sources::builtin())?.samples {
        if let [operation] = sample.operations.as_slice()
            && operation.family() == family
        {
            table.add(operation, &sample.device, sample.kernel_seconds());
        }
    }
    if table.is_empty() {
        let reason = format!("it holds no measurement of the family `{family}`");
        return Err(trompe_measure::MeasureError::Empty { path: path.to_owned(), reason }.into());
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("estimators.toml");
        std::fs::write(&path, text).unwrap();
        let choice = EstimatorChoice { config: Some(path), ..EstimatorChoice::default() };
        let error = stack(&choice).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }

    #[test]
    fn mistakes_in_the_file_are_named() {
        check("modles = []", "unknown field `modles`");
        check("[family.gem]\ntable = \"x.csv\"", "there is no family `gem`");
        check("[family.gemm]\ntable = \"x.csv\"\nmodel = \"y\"", "exactly one of");
        check("[family.gemm]\ntable = \"x.csv\"", "cannot read");
        check("models = [\"none.model\"]", "cannot read");
        check("[family.gemm]\ncommand = []", "the command is empty");
        check("[family.gemm]\ncommand = [\"/no/such/program\"]", "cannot be started");
        check("[family.gemm]\ncommand = [\"false\"]", "ended without an answer");
        check("[family.gemm]\ncommand = [\"sh\", \"-c\", \"while read l; do echo oops; done\"]", "oops");
    }

    #[test]
    fn a_table_answers_for_its_own_operations_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let rows = "gpu,dtype,m,n,k,time_us\nH100-SXM5-80GB,bfloat16,128,256,512,77\n";
        std::fs::write(folder.path().join("mine.csv"), rows).unwrap();
        let path = folder.path().join("estimators.toml");
        std::fs::write(&path, "[family.gemm]\ntable = \"mine.csv\"\n").unwrap();
        let choice = EstimatorChoice { config: Some(path), ..EstimatorChoice::default() };
        let stack = stack(&choice).unwrap();
        let measured = trompe_measure::read(&folder.path().join("mine.csv"), &Sources::builtin()).unwrap();
        let sample = &measured.samples[0];
        let estimate = stack.under(&sample.operations[0], &sample.device, &sample.conditions);
        assert_eq!(estimate.method, "measured.mine");
        assert!((estimate.time.as_secs_f64() - 77e-6).abs() < 1e-9);
    }

    /// Puts a configuration through the contract of estimators.
    #[track_caller]
    fn keeps_the_contract(toml: &str, files: &[(&str, &str)]) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let path = folder.path().join("estimators.toml");
        std::fs::write(&path, toml).unwrap();
        let choice = EstimatorChoice { config: Some(path), ..EstimatorChoice::default() };
        trompe_testkit::estimators::check_contract(&estimator(&choice).unwrap());
    }

    const PYTHON: &str = "\
def softmax(operations, device):
    print(len(operations), 'operations')  # not part of the answer
    return [1e-6 + operation['softmax']['rows'] * 1e-9 for operation in operations]
";

    #[test]
    fn a_python_function_keeps_the_contract() {
        let toml = "[family.softmax]\npython = \"mine.py:softmax\"\n";
        keeps_the_contract(toml, &[("mine.py", PYTHON)]);
    }

    #[test]
    fn a_program_keeps_the_contract_also_when_it_dies() {
        let program = |last: &str| {
            format!(
                "import json, sys\nfor n, line in enumerate(sys.stdin):\n    if n == {last}: sys.exit(3)\n    \
                 count = len(json.loads(line)['operations'])\n    \
                 print(json.dumps({{'estimates': [{{'seconds': 2e-6, 'note': 'x'}}] * count}}), flush=True)\n"
            )
        };
        let toml = "[family.sort]\ncommand = [\"python3\", \"mine.py\"]\n";
        keeps_the_contract(toml, &[("mine.py", &program("-1"))]);
        check_note(&program("2"), "failed: it ended without an answer");
    }

    /// The note of an estimate after the program failed.
    #[track_caller]
    fn check_note(program: &str, expect: &str) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.py"), program).unwrap();
        let command = ["python3".to_owned(), "mine.py".to_owned()];
        let process = Process::start("sort", &command, folder.path()).unwrap();
        let device = &trompe_testkit::estimators::devices()[0];
        let estimate = process.estimate(&trompe_testkit::estimators::families(2)[0], device);
        assert!(estimate.note.as_deref().unwrap_or_default().contains(expect), "{estimate:?}");
    }

    #[test]
    fn a_python_function_that_fails_is_an_error_that_says_why() {
        let check_function = |text: &str, expect: &str| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("mine.py"), text).unwrap();
            let path = folder.path().join("estimators.toml");
            std::fs::write(&path, "[family.sort]\npython = \"mine.py:sort\"\n").unwrap();
            let choice = EstimatorChoice { config: Some(path), ..EstimatorChoice::default() };
            let error = stack(&choice).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check_function("def other(a, b): pass", "has no attribute 'sort'");
        check_function("def sort(operations, device): return 1 / 0", "ZeroDivisionError");
        check_function("def sort(operations, device): return [0.0]", "not positive");
        check_function("def sort(operations, device): return []", "0 answers to 1 questions");
    }
}

//! What can go wrong before, during and after a run, each with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use trompe_hardware::HardwareError;

/// An error of the session. `Display` says what is the case, [`SessionError::hint`] what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No such cluster.
    #[error(transparent)]
    Hardware(#[from] HardwareError),
    /// A search cannot begin or go on.
    #[error(transparent)]
    Search(#[from] crate::search::SearchError),
    /// An NPU kernel or one of its files is wrong; the text says what to do.
    #[error("{0}")]
    Npu(String),
    /// A log, a file of constants or a program that times collectives is wrong; the text says what to do.
    #[error("{0}")]
    Network(String),
    /// A job was to run on devices that run no CUDA.
    #[error("`{device}` is an NPU and runs no CUDA program")]
    NoCuda {
        /// The device.
        device: String,
    },
    /// The command cannot be started.
    #[error("cannot run `{command}`: {reason}")]
    Command {
        /// The program.
        command: String,
        /// What is wrong.
        reason: String,
    },
    /// The arguments of a launcher make no sense.
    #[error("cannot start the ranks of the job: {reason}")]
    BadLaunch {
        /// What is wrong.
        reason: String,
    },
    /// The cluster has too few devices for the job.
    #[error(
        "the job has {size} ranks, {per_node} per node, but the cluster `{cluster}` has {devices} devices, \
         {devices_per_node} per node"
    )]
    WorldTooLarge {
        /// Ranks of the job.
        size: u32,
        /// Ranks per node.
        per_node: u32,
        /// The cluster as the user named it.
        cluster: String,
        /// Devices of the cluster.
        devices: u32,
        /// Devices of a node.
        devices_per_node: u32,
    },
    /// A rank that was chosen does not exist.
    #[error("there is no rank {rank}: the job has {size} ranks, numbered from 0")]
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// Ranks of the job.
        size: u32,
    },
    /// Ranks were chosen for a command that has none.
    #[error("the command starts one process, so `--ranks` has nothing to choose from")]
    NoRanks,
    /// The store cannot be started.
    #[error("cannot start the store through which the ranks find each other: {source}")]
    NoStore {
        /// Why.
        source: io::Error,
    },
    /// There is no Python interpreter.
    #[error("no Python interpreter found for `{command}`: {reason}")]
    NoPython {
        /// The program of the command.
        command: String,
        /// Where it was looked for.
        reason: String,
    },
    /// The interpreter does not answer.
    #[error("`{}` does not work as a Python interpreter: {reason}", python.display())]
    BadPython {
        /// The interpreter.
        python: PathBuf,
        /// What it did.
        reason: String,
    },
    /// PyTorch is not installed.
    #[error("PyTorch is not installed for `{}`", python.display())]
    NoTorch {
        /// The interpreter.
        python: PathBuf,
    },
    /// PyTorch has no CUDA in it.
    #[error("PyTorch {version} of `{}` is a build without CUDA: its jobs never use a GPU", python.display())]
    TorchWithoutCuda {
        /// The interpreter.
        python: PathBuf,
        /// PyTorch's version.
        version: String,
    },
    /// PyTorch was built for another CUDA.
    #[error(
        "PyTorch {version} of `{}` is built for CUDA {found}; this trompe emulates CUDA 12 and 13",
        python.display()
    )]
    OtherCuda {
        /// The interpreter.
        python: PathBuf,
        /// PyTorch's version.
        version: String,
        /// CUDA that it was built for.
        found: String,
    },
    /// The emulated libraries are not installed.
    #[error("the libraries that stand in for CUDA's were not found in {}", list(looked_in))]
    NoLibraries {
        /// The folders that were looked at.
        looked_in: Vec<PathBuf>,
    },
    /// The output folder belongs to somebody else.
    #[error("the output folder `{}` exists and was not made by trompe", path.display())]
    ForeignOutput {
        /// The folder.
        path: PathBuf,
    },
    /// The output path is a file.
    #[error("the output folder `{}` is not a folder", path.display())]
    OutputIsFile {
        /// The path.
        path: PathBuf,
    },
    /// Another run writes there.
    #[error("another trompe is writing to `{}`", path.display())]
    OutputBusy {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing can be written there.
    #[error("cannot write to `{}`: {source}", path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No room.
    #[error("No space left on the disk of `{}`: {free_mib} MiB are free", path.display())]
    DiskFull {
        /// The file or folder.
        path: PathBuf,
        /// Free space in MiB.
        free_mib: u64,
    },
    /// Nothing can be read there.
    #[error("cannot read `{}`: {source}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder without a kept trace.
    #[error("`{}` holds no trace of a job: {reason}", path.display())]
    NoTrace {
        /// The folder or file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// A file of an output folder cannot be understood.
    #[error("`{}` cannot be understood: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the reader stumbled over.
        reason: String,
    },
    /// A file of another version.
    #[error("`{}` was written by another version of trompe: {reason}", path.display())]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Both versions.
        reason: String,
    },
    /// The job did nothing that could be predicted.
    #[error("the command made no CUDA call, so there is nothing to predict")]
    NothingRecorded,
    /// The command failed before it did anything that could be predicted.
    #[error(
        "the command ended with exit code {exit_code} before its first CUDA call, so there is nothing to predict"
    )]
    FailedEarly {
        /// Its exit code.
        exit_code: i32,
    },
    /// The ranks do not agree about what they do together.
    #[error("the ranks of the job disagree, so it cannot be simulated: {told}")]
    RanksDisagree {
        /// The first disagreements, with ranks, call numbers and lines of the program.
        told: String,
        /// What it means on the cluster.
        meaning: String,
    },
    /// A table of measurements cannot be used.
    #[error(transparent)]
    Measurements(#[from] trompe_measure::MeasureError),
    /// A model file cannot be used.
    #[error("the model file `{}` cannot be used: {reason}", path.display())]
    BadModel {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The description of estimators is wrong, or one of them does not do what it must.
    #[error("estimators of `{}`: {reason}", path.display())]
    Estimators {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A profiler trace cannot be used in place of predictions.
    #[error("`{}` cannot be used in place of predictions: {reason}", path.display())]
    BadOracle {
        /// The trace.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file of measurements cannot be learned from.
    #[error("`{}` cannot be learned from: {reason}", path.display())]
    BadMeasurement {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A calibration cannot be used.
    #[error("the calibration `{}` cannot be used: {reason}", path.display())]
    Calibration {
        /// Its folder or file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// No sheet knows a GPU of a calibration.
    #[error("no sheet knows the GPU `{gpu}` of the calibration")]
    UnknownGpu {
        /// The GPU.
        gpu: String,
    },
    /// An operation was not stated in full.
    #[error("the operation is not stated in full: {reason}")]
    BadOperation {
        /// What is missing.
        reason: String,
    },
    /// No row is left to compare with.
    #[error("there is nothing to compare: {reason}")]
    NothingToCompare {
        /// Why.
        reason: String,
    },
    /// No interpreter can run the jobs of a validation.
    #[error("whole runs are emulated with PyTorch and Megatron-Core, which are not there: {reason}")]
    NoValidationEnvironment {
        /// Why.
        reason: String,
    },
    /// Nothing can be learned from the rows.
    #[error("nothing can be learned from these rows: {reason}")]
    NothingToLearn {
        /// Why.
        reason: String,
    },
    /// The job cannot be simulated.
    #[error("the job cannot be simulated: {reason}")]
    Simulation {
        /// Why.
        reason: String,
    },
}

impl SessionError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        const WHEEL: &str = "install a CUDA build of PyTorch: `python -m pip install torch` on Linux x86-64 \
             (no GPU is needed; `--no-deps` leaves out the NVIDIA packages, which are not needed either)";
        Some(match self {
            Self::Npu(_) | Self::Network(_) => return None,
            Self::Search(error) => return error.hint(),
            Self::NoCuda { .. } => {
                "choose a GPU of `trompe gpus`; kernels for NPUs are simulated by `trompe npu`, jobs \
                 made of them by `trompe npu job`"
                    .to_owned()
            }
            Self::Measurements(trompe_measure::MeasureError::Empty { reason, .. })
                if reason.contains("GPU") =>
            {
                "`trompe gpus` lists the GPUs that are known; give your own with `--sheet FILE.toml`"
                    .to_owned()
            }
            Self::Measurements(trompe_measure::MeasureError::Unreadable { .. }) => {
                "a table is CSV, plain or gzip; if it was copied or downloaded, fetch it again".to_owned()
            }
            Self::NothingToCompare { .. } => {
                "errors count only on rows that nothing was learned from (split `dev`, or no `split`), on GPUs that `trompe gpus` \
                 lists"
                    .to_owned()
            }
            Self::NoValidationEnvironment { .. } => {
                "`trompe validate --make-environment` makes one in the cache (PyTorch and Megatron-Core from the package \
                 index, about 560 MB, no NVIDIA package); or name an interpreter that has both with `--python`"
                    .to_owned()
            }
            Self::Measurements(_) => "the columns of each kind of table are in docs/estimators.md, of whole runs in docs/validation.md".to_owned(),
            Self::BadModel { .. } => {
                "model files are made by `trompe estimate fit DATA.csv -o FILE`".to_owned()
            }
            Self::Estimators { .. } => "docs/estimators.md describes the file and the protocol".to_owned(),
            Self::BadOracle { .. } => {
                "take the trace with `torch.profiler.profile(record_shapes=True)` and `export_chrome_trace`"
                    .to_owned()
            }
            Self::BadMeasurement { .. } => {
                "docs/estimators.md says what traces and tables have to hold".to_owned()
            }
            Self::Calibration { .. } => {
                "make it anew with `trompe calibrate`, or go on without it: `--calibration off`".to_owned()
            }
            Self::UnknownGpu { .. } => {
                "`trompe gpus` lists those that are known; a sheet of your own is a .toml file".to_owned()
            }
            Self::BadOperation { .. } => {
                "for example `trompe estimate explain --gpu h100 m=8192 n=4096 k=4096 dtype=bfloat16`"
                    .to_owned()
            }
            Self::NothingToLearn { .. } => {
                "a family needs at least 40 rows of the `train` split (or of none) for a model".to_owned()
            }
            Self::Hardware(_) => "`trompe gpus` lists devices and nodes; a `.toml` file works too".to_owned(),
            Self::Command { .. } => {
                "write the command as you would without trompe, after `--`: `trompe run -- python train.py`"
                    .to_owned()
            }
            Self::NoPython { .. } => {
                "activate the environment of the job first, or give the interpreter's path: \
                 `trompe run -- /path/to/python train.py`"
                    .to_owned()
            }
            Self::BadLaunch { .. } => "write the launcher and its arguments as on the cluster: \
                 `trompe run --cluster dgx-h100:4 -- torchrun --nproc-per-node 8 train.py`"
                .to_owned(),
            Self::WorldTooLarge { size, devices_per_node, cluster, .. } => {
                let name = cluster.split(':').next().unwrap_or(cluster);
                format!(
                    "choose a cluster with at least {size} devices (`--cluster {name}:NODES`), or start fewer \
                     ranks (at most {devices_per_node} on a node)"
                )
            }
            Self::NoSuchRank { .. } => "choose ranks that exist, or `--ranks auto`".to_owned(),
            Self::NoRanks => {
                "start the job with a launcher (`torchrun --nproc-per-node 8 train.py`), or set RANK and \
                 WORLD_SIZE"
                    .to_owned()
            }
            Self::NoStore { .. } => "a free TCP port on 127.0.0.1 is needed".to_owned(),
            Self::BadPython { .. } => "`trompe doctor --python PATH` shows what it answers".to_owned(),
            Self::NoTorch { .. } => format!("activate the environment of the job, or {WHEEL}"),
            Self::TorchWithoutCuda { .. } => WHEEL.to_owned(),
            Self::OtherCuda { .. } => WHEEL.to_owned(),
            Self::NoLibraries { .. } => {
                "keep the folder `trompe-lib` beside the program `trompe` (`cargo xtask dist` makes it), \
                 or set TROMPE_LIB to it"
                    .to_owned()
            }
            Self::ForeignOutput { path } => format!(
                "write somewhere else with `--out {}-2`, or use the folder anyway with `--force` \
                 (files of other names stay)",
                path.display()
            ),
            Self::OutputIsFile { .. } | Self::OutputBusy { .. } => {
                "write somewhere else with `--out DIR`".to_owned()
            }
            Self::Unwritable { .. } => {
                "check owner and permissions, or write somewhere else with `--out DIR`".to_owned()
            }
            Self::DiskFull { .. } => {
                "free some space, or write to another disk with `--out DIR` (a trace takes about 1 MiB per \
                 training step and process)"
                    .to_owned()
            }
            Self::NoTrace { .. } => {
                "give the `--out` folder of a `trompe run`, or a `.trompe` or `job.trace` file in it"
                    .to_owned()
            }
            Self::Damaged { .. } | Self::OtherVersion { .. } => {
                "run the job again with `trompe run`".to_owned()
            }
            Self::NothingRecorded => {
                "does the script move its model to `cuda`? `trompe doctor` checks the installation".to_owned()
            }
            Self::RanksDisagree { meaning, .. } => meaning.clone(),
            Self::FailedEarly { .. } => "the command's own message is above".to_owned(),
            Self::Unreadable { .. } | Self::Simulation { .. } => return None,
        })
    }

    /// An error of writing `path`: a full disk is told from other reasons.
    #[must_use]
    pub fn writing(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { path: path.to_owned(), free_mib: crate::disk::free_mib(path).unwrap_or(0) }
            }
            _ => Self::Unwritable { path: path.to_owned(), source },
        }
    }

    /// An error of reading `path`.
    #[must_use]
    pub fn reading(path: &Path, source: io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), source }
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
    paths.join(", ")
}

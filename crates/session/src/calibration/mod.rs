//! What a user has measured, and how it is used: `trompe calibrate`.
//!
//! A calibration is a folder: `kernels.csv` holds measured kernels (a row per operation, GPU and source), `kernels.model`
//! what was learned from them (it corrects the built-in models where shapes were not measured), `hosts.toml` the one factor
//! on the host's time per recording machine and simulated host, and `network-CLUSTER.toml` constants of collectives. All
//! are text but the model, which is made anew from the table each time.
//!
//! A kernel of a job is looked up by what it computes (GPU and descriptor), then by name, grid and block, where all
//! measurements of that agree; what is in neither goes to the estimators as without a calibration.
//!
//! What it is not: it never changes a prediction silently. The report says which share of the kernel time was measured and
//! from which source, and which factor the host's time was given.

mod command;
mod evaluate;
mod hosts;
mod measured;
mod observe;
mod rows;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use trompe_estimate::bundle::Bundle;
use trompe_estimate::table::key;
use trompe_estimate::{Basis, Estimate};
use trompe_hardware::{ClusterSheet, DeviceSheet};
use trompe_trace::job::Operation;

use crate::{SessionError, env};

pub use command::{Kernels, Learned, Request, kernels};
pub use evaluate::{Check, Errors};
pub use hosts::{HostFactor, Hosts};
pub use measured::{HostFit, HostRequest, fit_host};
pub use observe::Skipped;
pub use rows::Row;

pub(crate) use observe::{Observed, base, observe};

/// How the notes of measured kernels begin.
pub(crate) const MEASURED: &str = "measured, from ";

/// Names of the files of a calibration.
const KERNELS: &str = "kernels.csv";
const MODEL: &str = "kernels.model";
const HOSTS: &str = "hosts.toml";

/// Repeats of a measurement differ by so much anyway; the interval of a single one.
const REPEAT: f64 = 0.05;

/// Largest over smallest time up to which measurements of one name, grid and block count as those of one operation.
const ONE_OPERATION: f64 = 1.5;

/// The folder where a user's calibration is kept when no other is named: `$XDG_DATA_HOME/trompe/calibration`, else
/// `$HOME/.local/share/trompe/calibration`.
#[must_use]
pub fn own_folder() -> Option<PathBuf> {
    let base = env::path(env::XDG_DATA_HOME)
        .or_else(|| env::path(env::HOME).map(|home| home.join(".local/share")))?;
    Some(base.join("trompe/calibration"))
}

/// The user's calibration (`--calibration`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CalibrationChoice {
    /// That of the user's folder, when there is one.
    #[default]
    Own,
    /// None.
    Off,
    /// That of a folder.
    Folder(PathBuf),
}

impl std::str::FromStr for CalibrationChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "own" => Self::Own,
            "off" => Self::Off,
            "" => return Err("name a folder, or write `own` or `off`".to_owned()),
            folder => Self::Folder(folder.into()),
        })
    }
}

impl CalibrationChoice {
    /// The folder, when there is something in it.
    #[must_use]
    pub fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Off => None,
            Self::Folder(folder) => Some(folder.clone()),
            Self::Own => own_folder().filter(|folder| {
                folder.join(KERNELS).is_file() || folder.join(HOSTS).is_file() || has_network(folder)
            }),
        }
    }
}

fn has_network(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("network-"))
}

/// Where the constants of a cluster's collectives are kept.
#[must_use]
pub fn network_file(folder: &Path, cluster: &str) -> PathBuf {
    let plain: String = cluster
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' })
        .collect();
    folder.join(format!("network-{plain}.toml"))
}

/// The same for the cluster that a name or file means.
///
/// # Errors
/// When there is no such cluster.
pub fn network_file_of(folder: &Path, cluster: &str) -> Result<PathBuf, SessionError> {
    Ok(network_file(folder, &trompe_hardware::resolve(cluster)?.node.name))
}

/// Name, grid and block of a kernel on a device.
type Identity = (String, String, [u32; 3], [u32; 3]);

/// Grid and block of a launch.
pub(crate) type Geometry = ([u32; 3], [u32; 3]);

/// A calibration, ready for any number of jobs and clusters.
#[derive(Debug, Default)]
pub struct Calibration {
    folder: PathBuf,
    rows: Vec<Row>,
    /// Rows by what they measured.
    by_operation: BTreeMap<u64, Vec<usize>>,
    by_identity: BTreeMap<Identity, Vec<usize>>,
    hosts: Hosts,
}

impl Calibration {
    /// Reads the calibration in `folder`.
    ///
    /// # Errors
    /// When there is none, or a file of it is damaged.
    pub fn read(folder: &Path) -> Result<Self, SessionError> {
        if !folder.is_dir() {
            let reason = "there is no such folder; `trompe calibrate --out FOLDER` makes one".to_owned();
            return Err(SessionError::Calibration { path: folder.to_owned(), reason });
        }
        let rows = rows::read(&folder.join(KERNELS))?;
        let hosts = Hosts::read(&folder.join(HOSTS))?;
        Ok(Self { folder: folder.to_owned(), hosts, ..Self::of_rows(rows)? })
    }

    /// A calibration of nothing but `rows`.
    pub(crate) fn of_rows(rows: Vec<Row>) -> Result<Self, SessionError> {
        let mut sheets = rows::Sheets::default();
        let mut found = Self::default();
        for (at, row) in rows.iter().enumerate() {
            let device = sheets.get(&row.gpu)?;
            if let Some(operation) = &row.operation {
                found.by_operation.entry(key(operation, &device)).or_default().push(at);
            }
            if let (Some(grid), Some(block)) = (row.grid, row.block) {
                let identity = (device.name.clone(), row.kernel.clone(), grid, block);
                found.by_identity.entry(identity).or_default().push(at);
            }
        }
        Ok(Self { rows, ..found })
    }

    /// The measured kernels.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// What was learned from them; `None` when that was too little.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn bundle(folder: &Path) -> Result<Option<Bundle>, SessionError> {
        let path = folder.join(MODEL);
        if !path.is_file() {
            return Ok(None);
        }
        let bundle = crate::estimators::bundle(&path)?;
        // The rows are asked here, with their sources.
        Ok(Some(Bundle { table: Default::default(), ..bundle }))
    }

    /// The constants of a cluster's collectives, when they were measured.
    #[must_use]
    pub fn network(&self, cluster: &ClusterSheet) -> Option<PathBuf> {
        let path = network_file(&self.folder, &cluster.node.name);
        (!self.folder.as_os_str().is_empty() && path.is_file()).then_some(path)
    }

    /// The factor on times recorded on `processor` that makes them those of the hosts of `cluster`.
    #[must_use]
    pub fn host(&self, processor: Option<&str>, cluster: &ClusterSheet) -> Option<&HostFactor> {
        self.hosts.find(processor, (&cluster.node.name, &cluster.node.host.name))
    }

    /// The files that it is made of, those that are there.
    pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        files.sort();
        files
    }

    /// The measured time of `operation`, with its source as note.
    #[must_use]
    pub fn estimate(&self, operation: &Operation, device: &DeviceSheet) -> Option<Estimate> {
        let launch = operation.launch.map(|launch| (launch.grid, launch.block));
        self.find(&operation.descriptor, (&operation.short_name, launch), device)
    }

    pub(crate) fn find(
        &self,
        descriptor: &trompe_trace::descriptor::Descriptor,
        (name, launch): (&str, Option<Geometry>),
        device: &DeviceSheet,
    ) -> Option<Estimate> {
        let exact = self.by_operation.get(&key(descriptor, device)).map(|rows| self.of(rows));
        let named = || {
            let (grid, block) = launch?;
            let rows = self.by_identity.get(&(device.name.clone(), name.to_owned(), grid, block))?;
            let times = || rows.iter().map(|row| self.rows[*row].time_us);
            let (least, most) = (times().reduce(f64::min)?, times().reduce(f64::max)?);
            (most <= least * ONE_OPERATION).then(|| self.of(rows))
        };
        exact.or_else(named)
    }

    fn of(&self, rows: &[usize]) -> Estimate {
        let rows = || rows.iter().map(|row| &self.rows[*row]);
        // The middle of the sources' medians; each source counts as often as it measured, up to a hundred times.
        let mut times: Vec<(f64, u64)> = rows().map(|row| (row.time_us, row.count.clamp(1, 100))).collect();
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let half = times.iter().map(|(_, count)| count).sum::<u64>().div_ceil(2);
        let mut seen = 0;
        let middle = times.iter().find(|(_, count)| {
            seen += count;
            seen >= half
        });
        let median = middle.map_or(1.0, |(time, _)| *time);
        let low = rows().map(|row| row.low_us).fold(median, f64::min);
        let high = rows().map(|row| row.high_us).fold(median, f64::max);
        let sources: BTreeSet<&str> = rows().map(|row| row.source.as_str()).collect();
        let sources: Vec<&str> = sources.into_iter().collect();
        let spread = [(low / median).min(1.0 - REPEAT), (high / median).max(1.0 + REPEAT)];
        Estimate::new(median * 1e-6, spread, "measured.calibration", Basis::Measured)
            .at(Some(0.0))
            .noted(format!("{MEASURED}{}", sources.join(", ")))
    }
}

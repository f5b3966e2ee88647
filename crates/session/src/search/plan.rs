//! What a study knows before its first trial: the space, the clusters it names, the feasible points, the estimators, and
//! who chooses points.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trompe_search::encoding::Encoding;
use trompe_search::space::MachineFacts;
use trompe_search::strategy::{self, Choice, Setting, Strategy};
use trompe_search::{Feasible, Machines, Space};

use super::{SearchError, digest, measure, nevergrad};
use crate::estimators::{self, EstimatorChoice};
use crate::{SessionError, disk};

/// A space with everything that is known before a trial runs.
pub(crate) struct Plan {
    pub(crate) space: Arc<Space>,
    pub(crate) machines: Machines,
    pub(crate) feasible: Arc<Feasible>,
    /// Folder that the space file lies in.
    pub(crate) directory: PathBuf,
    /// What trials depend on beside their point.
    pub(crate) grounds: digest::Grounds,
    /// What prices kernels.
    pub(crate) estimators: EstimatorChoice,
}

/// Reads and checks a space.
pub(crate) fn plan(
    space_file: &Path,
    cluster: Option<&str>,
    choice: &EstimatorChoice,
) -> Result<Plan, SessionError> {
    let text = disk::read_text(space_file)?;
    let space = Space::read(&text).map_err(SearchError::Space)?;
    let machines =
        Machines::look_up(&space, cluster, || SessionError::from(SearchError::NoCluster), machine_facts)?;
    let feasible = Feasible::of(&space, &machines).map_err(SearchError::Empty)?;
    let absolute =
        std::path::absolute(space_file).map_err(|source| SessionError::reading(space_file, source))?;
    let folder = absolute.parent().unwrap_or(Path::new("/")).to_owned();
    let directory = match &space.job.directory {
        Some(directory) => folder.join(directory),
        None => folder.clone(),
    };
    if !directory.is_dir() {
        return Err(SearchError::NoDirectory { directory }.into());
    }
    measure::check(&space, &machines)?;
    let estimators = usable(choice)?;
    let grounds = digest::Grounds::of(&space, &folder, &directory, &estimators)?;
    Ok(Plan {
        space: Arc::new(space),
        machines,
        feasible: Arc::new(feasible),
        directory,
        grounds,
        estimators,
    })
}

/// The estimators with absolute paths, as workers run elsewhere, after a trial of whether they work.
fn usable(choice: &EstimatorChoice) -> Result<EstimatorChoice, SessionError> {
    if *choice == EstimatorChoice::default() {
        return Ok(EstimatorChoice::default());
    }
    let whole =
        |path: &PathBuf| std::path::absolute(path).map_err(|source| SessionError::reading(path, source));
    let all = |paths: &[PathBuf]| paths.iter().map(whole).collect::<Result<Vec<_>, _>>();
    let choice = EstimatorChoice {
        config: choice.config.as_ref().map(whole).transpose()?,
        models: all(&choice.models)?,
        oracle: all(&choice.oracle)?,
        calibration: choice.calibration.as_ref().map(whole).transpose()?,
        ..choice.clone()
    };
    estimators::Pricer::of(&choice)?;
    Ok(choice)
}

fn machine_facts(cluster: &str) -> Result<MachineFacts, SessionError> {
    let sheet = trompe_hardware::resolve(cluster)?;
    Ok(MachineFacts {
        cluster: cluster.to_owned(),
        gpu: sheet.device().name.clone(),
        gpus: sheet.device_count(),
        gpus_per_node: sheet.node.device_count,
        nodes: sheet.node_count,
        memory_bytes: sheet.device().memory.total.0,
    })
}

/// Makes the strategy, of this program or of nevergrad.
pub(crate) fn strategy(
    choice: &Choice,
    plan: &Plan,
    seed: u64,
    width: usize,
) -> Result<Box<dyn Strategy>, SearchError> {
    let encoding = Encoding::of(&plan.space);
    if let Choice::Nevergrad(name) = choice {
        let dimensions = encoding.dimensions();
        return Ok(Box::new(nevergrad::Nevergrad::start(name, dimensions, seed, width, &plan.directory)?));
    }
    let setting = Setting { encoding, feasible: Arc::clone(&plan.feasible), seed };
    let made = strategy::make(choice, &plan.space, &setting);
    Ok(made.expect("every strategy but nevergrad's is made there"))
}

//! Where the times of collectives come from: the built-in constants, a file of the user's own, or ASTRA-sim (`--network`).

mod astra;
pub mod explain;
pub mod fit;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use trompe_cluster::{CollectiveModel, Network};
use trompe_hardware::ClusterSheet;
use trompe_network::{Constants, Fabric, NetworkModel};

use crate::{SessionError, disk};

/// The user's choice (`--network`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkSource {
    /// A file that `trompe network fit` wrote.
    Constants(PathBuf),
    /// The analytical back end of ASTRA-sim: its program.
    AstraSim(PathBuf),
}

/// A `--network` value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no source of collective times; give a file of `trompe network fit`, or `astra-sim=PROGRAM`"
)]
pub struct BadNetworkSource {
    /// What was written.
    pub text: String,
}

impl FromStr for NetworkSource {
    type Err = BadNetworkSource;

    fn from_str(text: &str) -> Result<Self, BadNetworkSource> {
        match text.split_once('=') {
            Some(("astra-sim", program)) if !program.is_empty() => Ok(Self::AstraSim(program.into())),
            None if !text.is_empty() => Ok(Self::Constants(text.into())),
            _ => Err(BadNetworkSource { text: text.to_owned() }),
        }
    }
}

impl std::fmt::Display for NetworkSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Constants(path) => write!(f, "{}", path.display()),
            Self::AstraSim(program) => write!(f, "astra-sim={}", program.display()),
        }
    }
}

/// What prices a job's collectives.
pub(crate) enum Collectives {
    /// The own model.
    Own(Network),
    /// ASTRA-sim.
    AstraSim(astra::AstraSim),
}

impl Collectives {
    /// The model of a cluster from its source.
    pub(crate) fn of(cluster: &ClusterSheet, source: Option<&NetworkSource>) -> Result<Self, SessionError> {
        Ok(match source {
            None => Self::Own(Network::of_cluster(cluster)),
            Some(NetworkSource::Constants(path)) => {
                let model = NetworkModel::with_constants(Fabric::from_cluster(cluster), constants(path)?);
                Self::Own(Network::new(model))
            }
            Some(NetworkSource::AstraSim(program)) => Self::AstraSim(astra::AstraSim::new(program, cluster)?),
        })
    }

    /// The model.
    pub(crate) fn model(&self) -> &dyn CollectiveModel {
        match self {
            Self::Own(network) => network,
            Self::AstraSim(program) => program,
        }
    }

    /// What went wrong while it was asked.
    pub(crate) fn check(&self) -> Result<(), SessionError> {
        match self {
            Self::Own(_) => Ok(()),
            Self::AstraSim(program) => program.check(),
        }
    }
}

/// The constants in a file.
fn constants(path: &Path) -> Result<Constants, SessionError> {
    Constants::parse(&disk::read_text(path)?)
        .map_err(|error| SessionError::Network(format!("`{}`: {error}", path.display())))
}

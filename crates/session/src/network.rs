//! Where the times of collectives come from: the built-in constants, a file of the user's own, or ASTRA-sim; and which links
//! they run over: the sheet's, or those that another tool printed (`--network`).

mod astra;
pub mod explain;
pub mod fit;
mod topology;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use trompe_cluster::{CollectiveModel, Network};
use trompe_hardware::ClusterSheet;
use trompe_network::{Constants, Fabric, NetworkModel};

use crate::{SessionError, disk};

/// The user's choice (`--network`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkSource {
    /// A file with the links, when they are not the sheet's.
    pub topology: Option<PathBuf>,
    /// Where the times come from.
    pub times: Times,
}

/// Where the times come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Times {
    /// The own model with the built-in constants.
    #[default]
    BuiltIn,
    /// The own model with those of a file that `trompe network fit` wrote.
    Constants(PathBuf),
    /// The analytical back end of ASTRA-sim: its program.
    AstraSim(PathBuf),
}

/// A `--network` value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no network; give a file of `trompe network fit`, `astra-sim=PROGRAM`, `topology=FILE`, or two with a comma \
     between"
)]
pub struct BadNetworkSource {
    /// What was written.
    pub text: String,
}

impl FromStr for NetworkSource {
    type Err = BadNetworkSource;

    fn from_str(text: &str) -> Result<Self, BadNetworkSource> {
        let bad = || BadNetworkSource { text: text.to_owned() };
        let mut found = Self::default();
        for part in text.split(',') {
            match part.split_once('=') {
                Some(("topology", file)) if !file.is_empty() && found.topology.is_none() => {
                    found.topology = Some(file.into());
                }
                Some(("astra-sim", program)) if !program.is_empty() && found.times == Times::BuiltIn => {
                    found.times = Times::AstraSim(program.into());
                }
                None if !part.is_empty() && found.times == Times::BuiltIn => {
                    found.times = Times::Constants(part.into());
                }
                _ => return Err(bad()),
            }
        }
        Ok(found)
    }
}

impl std::fmt::Display for NetworkSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let topology = self.topology.iter().map(|file| format!("topology={}", file.display()));
        let times = match &self.times {
            Times::BuiltIn => None,
            Times::Constants(path) => Some(path.display().to_string()),
            Times::AstraSim(program) => Some(format!("astra-sim={}", program.display())),
        };
        write!(f, "{}", topology.chain(times).collect::<Vec<_>>().join(","))
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
        match source.map(|source| (&source.topology, &source.times)) {
            Some((None, Times::AstraSim(program))) => {
                Ok(Self::AstraSim(astra::AstraSim::new(program, cluster)?))
            }
            Some((Some(_), Times::AstraSim(_))) => Err(SessionError::Network(
                "ASTRA-sim is given the links of the cluster's sheet; leave `topology=` or `astra-sim=` out"
                    .to_owned(),
            )),
            _ => Ok(Self::Own(Network::new(model(cluster, source)?))),
        }
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

/// The own model of a cluster with the user's links and constants.
fn model(cluster: &ClusterSheet, source: Option<&NetworkSource>) -> Result<NetworkModel, SessionError> {
    let fabric = fabric(cluster, source)?;
    Ok(match source.map(|source| &source.times) {
        Some(Times::Constants(path)) => NetworkModel::with_constants(fabric, constants(path)?),
        _ => NetworkModel::new(fabric),
    })
}

/// The links of a cluster.
fn fabric(cluster: &ClusterSheet, source: Option<&NetworkSource>) -> Result<Fabric, SessionError> {
    match source.and_then(|source| source.topology.as_ref()) {
        Some(file) => topology::fabric(cluster, file),
        None => Ok(Fabric::from_cluster(cluster)),
    }
}

/// The constants in a file.
fn constants(path: &Path) -> Result<Constants, SessionError> {
    Constants::parse(&disk::read_text(path)?)
        .map_err(|error| SessionError::Network(format!("`{}`: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_and_written() {
        let check = |text: &str, expect: Option<(Option<&str>, Times)>| {
            let found = text.parse::<NetworkSource>().ok();
            assert_eq!(found.as_ref().map(ToString::to_string).as_deref(), expect.as_ref().map(|_| text));
            let expect =
                expect.map(|(topology, times)| NetworkSource { topology: topology.map(Into::into), times });
            assert_eq!(found, expect, "{text}");
        };
        check("mine.toml", Some((None, Times::Constants("mine.toml".into()))));
        check("astra-sim=bin/x", Some((None, Times::AstraSim("bin/x".into()))));
        check("topology=t.txt", Some((Some("t.txt"), Times::BuiltIn)));
        check("topology=t.txt,mine.toml", Some((Some("t.txt"), Times::Constants("mine.toml".into()))));
        for bad in ["", "x=y", "topology=", "a.toml,b.toml", "topology=a,topology=b", "mine.toml,"] {
            check(bad, None);
        }
    }
}

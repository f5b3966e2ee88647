//! Chance and slow machines, as users write them.
//!
//! `--jitter kernel=0.02,host=0.1,link=0.05` (or `on`), `--straggler rank=37,gpu=0.8`, a node by `node=3`, or a TOML
//! file with a table `[[straggler]]` for each.

use std::str::FromStr;

use serde::Deserialize;
use trompe_base::Rank;
use trompe_cluster::{Jitter, Straggler};
use trompe_hardware::ClusterSheet;

use crate::{SessionError, disk};

/// What `--jitter on` means: assumed. Repeats of one kernel on one device differ by about two per cent, repeats of large
/// collectives by half to a few per cent (both are the noise floors of the public measurements that the estimators are
/// fitted to), host times by about ten (fidelity of recorded gaps between equal steps).
const USUAL: Jitter = Jitter { kernel: 0.02, host: 0.1, link: 0.03 };

/// A `--jitter` value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct JitterChoice(pub Jitter);

/// A value that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {reason}")]
pub struct BadVariation {
    /// What was written.
    pub text: String,
    /// What is wrong with it, and what to write.
    pub reason: String,
}

impl FromStr for JitterChoice {
    type Err = BadVariation;

    fn from_str(text: &str) -> Result<Self, BadVariation> {
        match text {
            "on" => return Ok(Self(USUAL)),
            "off" => return Ok(Self::default()),
            _ => {}
        }
        let mut jitter = Jitter::default();
        for (name, value) in pairs(text)? {
            let place = match name {
                "kernel" => &mut jitter.kernel,
                "host" => &mut jitter.host,
                "link" => &mut jitter.link,
                _ => return Err(bad(text, format!("`{name}` does not vary; write kernel, host or link"))),
            };
            if !(0.0..=2.0).contains(&value) {
                return Err(bad(
                    text,
                    format!("a spread of {value} is not between 0 and 2 (0.05 is five per cent)"),
                ));
            }
            *place = value;
        }
        Ok(Self(jitter))
    }
}

/// One `--straggler`.
#[derive(Clone, Debug, PartialEq)]
pub enum StragglerChoice {
    /// Given on the command line or in a file.
    Of(StragglerSpec),
    /// A TOML file.
    File(std::path::PathBuf),
}

/// Whose machine is slow, and how fast its parts are; 1 is what the sheets say.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StragglerSpec {
    /// A rank …
    pub rank: Option<u32>,
    /// … or all ranks of a node.
    pub node: Option<u32>,
    /// Speed of the device.
    #[serde(default = "one")]
    pub gpu: f64,
    /// Speed of the host.
    #[serde(default = "one")]
    pub host: f64,
    /// Speed of the network adapter.
    #[serde(default = "one")]
    pub nic: f64,
}

const fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    straggler: Vec<StragglerSpec>,
}

impl FromStr for StragglerChoice {
    type Err = BadVariation;

    fn from_str(text: &str) -> Result<Self, BadVariation> {
        if text.ends_with(".toml") {
            return Ok(Self::File(text.into()));
        }
        let mut spec = StragglerSpec { rank: None, node: None, gpu: 1.0, host: 1.0, nic: 1.0 };
        for (name, value) in pairs(text)? {
            match name {
                "rank" | "node" if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) => {
                    *(if name == "rank" { &mut spec.rank } else { &mut spec.node }) = Some(value as u32);
                }
                "gpu" => spec.gpu = value,
                "host" => spec.host = value,
                "nic" => spec.nic = value,
                _ => {
                    let reason = "write rank=N or node=N, and speeds as in gpu=0.8, host=0.5, nic=0.5";
                    return Err(bad(text, reason.to_owned()));
                }
            }
        }
        spec.check().map_err(|reason| bad(text, reason))?;
        Ok(Self::Of(spec))
    }
}

impl StragglerSpec {
    fn check(&self) -> Result<(), String> {
        if self.rank.is_some() == self.node.is_some() {
            return Err("say either which rank (rank=37) or which node (node=4) is slow".to_owned());
        }
        match [self.gpu, self.host, self.nic].into_iter().find(|speed| !(1e-3..=1e3).contains(speed)) {
            Some(speed) => {
                Err(format!("a speed of {speed} is not between 0.001 and 1000 (1 is what the sheet says)"))
            }
            None => Ok(()),
        }
    }
}

/// The stragglers of a job of `ranks` ranks on `cluster`.
///
/// # Errors
/// A file that cannot be read, or a rank that does not exist.
pub fn stragglers(
    choices: &[StragglerChoice],
    cluster: &ClusterSheet,
    ranks: usize,
) -> Result<Vec<Straggler>, SessionError> {
    let mut specs = Vec::new();
    for choice in choices {
        match choice {
            StragglerChoice::Of(spec) => specs.push(*spec),
            StragglerChoice::File(path) => {
                let damaged = |reason: String| SessionError::Damaged { path: path.clone(), reason };
                let file: File =
                    toml::from_str(&disk::read_text(path)?).map_err(|error| damaged(error.to_string()))?;
                for spec in &file.straggler {
                    spec.check().map_err(damaged)?;
                }
                specs.extend(file.straggler);
            }
        }
    }
    let per_node = cluster.node.device_count.max(1);
    let mut found = Vec::new();
    for spec in specs {
        let wanted = match (spec.rank, spec.node) {
            (Some(rank), _) => rank..rank.saturating_add(1),
            (None, node) => {
                let first = node.unwrap_or(0).saturating_mul(per_node);
                first..first.saturating_add(per_node).min((ranks as u32).max(first.saturating_add(1)))
            }
        };
        if wanted.end as usize > ranks {
            let reason =
                format!("rank {} shall be slow, but the job has ranks 0 to {}", wanted.start, ranks - 1);
            return Err(SessionError::Simulation { reason });
        }
        let Straggler { gpu, host, nic, .. } =
            Straggler { rank: Rank(0), gpu: spec.gpu, host: spec.host, nic: spec.nic };
        found.extend(wanted.map(|rank| Straggler { rank: Rank(rank), gpu, host, nic }));
    }
    Ok(found)
}

fn pairs(text: &str) -> Result<Vec<(&str, f64)>, BadVariation> {
    let pair = |part| {
        let (name, value): (&str, &str) = str::split_once(part, '=')?;
        Some((name.trim(), value.trim().parse::<f64>().ok().filter(|value| value.is_finite())?))
    };
    let all: Option<Vec<_>> = text.split(',').map(pair).collect();
    all.ok_or_else(|| bad(text, "write NAME=NUMBER, separated by commas".to_owned()))
}

fn bad(text: &str, reason: String) -> BadVariation {
    BadVariation { text: text.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_read_as_written() {
        let check = |text: &str, kernel, host, link| {
            assert_eq!(text.parse(), Ok(JitterChoice(Jitter { kernel, host, link })), "{text}");
        };
        check("off", 0.0, 0.0, 0.0);
        check("on", 0.02, 0.1, 0.03);
        check("kernel=0.05", 0.05, 0.0, 0.0);
        check("link=0.1, host=0.2", 0.0, 0.2, 0.1);
        for text in ["fast", "kernel", "kernel=x", "kernel=-1", "disk=0.1", "kernel=9"] {
            assert!(text.parse::<JitterChoice>().is_err(), "{text}");
        }
    }

    #[test]
    fn stragglers_are_read_as_written() {
        let cluster = trompe_hardware::resolve("dgx-h100:2").unwrap();
        let check = |text: &str, ranks: &[u32], gpu: f64| {
            let choice: StragglerChoice = text.parse().unwrap();
            let found = stragglers(&[choice], &cluster, 16).unwrap();
            assert_eq!(found.iter().map(|slow| slow.rank.0).collect::<Vec<_>>(), ranks, "{text}");
            assert!(found.iter().all(|slow| slow.gpu == gpu), "{text}");
        };
        check("rank=3,gpu=0.8", &[3], 0.8);
        check("node=1,gpu=0.5,nic=0.25", &[8, 9, 10, 11, 12, 13, 14, 15], 0.5);
        check("rank=0,host=0.5", &[0], 1.0);
        for text in ["rank=3.5,gpu=1", "gpu=0.8", "rank=1,node=2", "rank=1,gpu=0", "rank=1,disk=2", "x"] {
            assert!(text.parse::<StragglerChoice>().is_err(), "{text}");
        }
        let error = stragglers(&["rank=16,gpu=0.5".parse().unwrap()], &cluster, 16).unwrap_err();
        assert!(error.to_string().contains("ranks 0 to 15"), "{error}");
    }

    #[test]
    fn stragglers_may_stand_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slow.toml");
        std::fs::write(&path, "[[straggler]]\nrank = 2\ngpu = 0.9\n[[straggler]]\nnode = 0\nnic = 0.5\n")
            .unwrap();
        let cluster = trompe_hardware::resolve("dgx-h100").unwrap();
        let read =
            |path: &std::path::Path| stragglers(&[StragglerChoice::File(path.to_owned())], &cluster, 8);
        assert_eq!(read(&path).unwrap().len(), 9);
        std::fs::write(&path, "[[straggler]]\ngpu = 0.9\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("which rank"));
    }
}

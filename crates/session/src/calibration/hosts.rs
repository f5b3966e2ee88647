//! The one factor on the host's time, per recording machine and simulated node.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{SessionError, disk};

/// How much longer (or shorter) a host takes than the recording machine, found from one measured step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFactor {
    /// The node whose hosts it is for.
    pub node: String,
    /// The sheet of those hosts: nodes with the same ones take the factor, too, unless it says nothing (`generic`).
    pub host: String,
    /// The processor that host times were recorded on.
    pub recorded_on: String,
    /// Factor on recorded host times.
    pub factor: f64,
    /// The step that it was found from, in seconds: measured, and predicted without the factor.
    pub measured_seconds: f64,
    /// The same predicted without the factor.
    pub predicted_seconds: f64,
    /// The job.
    pub job: String,
    /// The day.
    pub date: String,
}

/// All factors of a calibration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    #[serde(default)]
    host: Vec<HostFactor>,
}

impl Hosts {
    /// Reads the file at `path`; one that is not there holds none.
    pub(super) fn read(path: &Path) -> Result<Self, SessionError> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let damaged = |reason: String| SessionError::Calibration { path: path.to_owned(), reason };
        let found: Self =
            toml::from_str(&disk::read_text(path)?).map_err(|error| damaged(error.to_string()))?;
        match found.host.iter().find(|host| !(host.factor.is_finite() && host.factor >= 0.0)) {
            Some(host) => Err(damaged(format!("`{}` is no factor", host.factor))),
            None => Ok(found),
        }
    }

    /// The factor for times recorded on `processor` and the hosts of a node: its own, else that of a node whose hosts have
    /// the same sheet.
    #[must_use]
    pub fn find(&self, processor: Option<&str>, (node, host): (&str, &str)) -> Option<&HostFactor> {
        let processor = processor.unwrap_or_default();
        let known = || self.host.iter().filter(|factor| factor.recorded_on == processor);
        let same_host = || known().find(|factor| factor.host == host && host != "generic");
        known().find(|factor| factor.node == node).or_else(same_host)
    }

    /// Puts a factor in place of what was known for the same machines, which is given back.
    pub(super) fn put(&mut self, factor: HostFactor) -> Option<HostFactor> {
        let same = |host: &HostFactor| host.node == factor.node && host.recorded_on == factor.recorded_on;
        let old = self.host.iter().position(same).map(|at| self.host.remove(at));
        self.host.push(factor);
        self.host.sort_by(|a, b| (&a.node, &a.recorded_on).cmp(&(&b.node, &b.recorded_on)));
        old
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), SessionError> {
        let text = toml::to_string_pretty(self).expect("plain data has a TOML form");
        let head = "# Factors on recorded host times, written by `trompe calibrate --measured`.\n\n";
        disk::write(path, format!("{head}{text}").as_bytes())
    }
}

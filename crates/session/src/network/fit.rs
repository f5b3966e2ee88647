//! `trompe network fit`: constants from nccl-tests logs.

use std::io::Read;
use std::path::{Path, PathBuf};

use trompe_hardware::resolve;
pub use trompe_network::readers::Hints;
use trompe_network::readers::{Measured, read_nccl_tests};
use trompe_network::{Constants, Score, profile};

use crate::{SessionError, disk};

/// What to fit.
#[derive(Clone, Debug)]
pub struct Request {
    /// The logs.
    pub logs: Vec<PathBuf>,
    /// The cluster that they were measured on.
    pub cluster: String,
    /// What the logs do not say.
    pub hints: Hints,
    /// Links of the user's own.
    pub network: Option<super::NetworkSource>,
    /// Where the constants go.
    pub out: PathBuf,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Measured times that were read.
    pub rows: usize,
    /// Errors before and after.
    pub scores: Vec<Score>,
}

/// Reads logs, fits constants and writes them.
///
/// # Errors
/// When a log cannot be read or does not fit the cluster.
pub fn fit(request: &Request) -> Result<Fitted, SessionError> {
    let cluster = resolve(&request.cluster)?;
    let fabric = super::fabric(&cluster, request.network.as_ref())?;
    let mut rows = Vec::new();
    for path in &request.logs {
        rows.extend(read(path, &request.hints)?);
    }
    let profile = profile(&rows, &fabric, &Constants::builtin())
        .map_err(|error| SessionError::Network(error.to_string()))?;
    disk::write(&request.out, profile.constants.to_toml().as_bytes())?;
    Ok(Fitted { rows: rows.len(), scores: profile.scores })
}

/// The rows of one log, plain or gzip.
fn read(path: &Path, hints: &Hints) -> Result<Vec<Measured>, SessionError> {
    let bytes = std::fs::read(path).map_err(|source| SessionError::reading(path, source))?;
    let bad = |reason: String| SessionError::Network(format!("`{}`: {reason}", path.display()));
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut plain = Vec::new();
        let decoded = flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain);
        decoded.map_err(|error| bad(format!("its compression is damaged: {error}")))?;
        plain
    } else {
        bytes
    };
    let text = String::from_utf8_lossy(&bytes);
    // A file's name often says what the text does not.
    let mut hints = hints.clone();
    let named = read_nccl_tests(&text, &hints);
    if matches!(named, Err(trompe_network::readers::LogError::NoOperation)) && hints.operation.is_none() {
        hints.operation = path.file_name().map(|name| name.to_string_lossy().into_owned());
        return read_nccl_tests(&text, &hints).map_err(|error| bad(error.to_string()));
    }
    named.map_err(|error| bad(error.to_string()))
}

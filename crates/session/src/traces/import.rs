//! Chakra execution traces of other tools, made into a job trace.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use trompe_hardware::resolve;
use trompe_interop::chakra::{self, Graph};

use crate::{RunFacts, SessionError, disk, simulate};

/// What to import.
#[derive(Clone, Debug)]
pub struct Request {
    /// One trace per rank, in order of rank; or a folder with `NAME.RANK.et`.
    pub files: Vec<PathBuf>,
    /// Members of groups by name (`comm_group.json`); the one beside the traces when not given.
    pub groups: Option<PathBuf>,
    /// The cluster that the job trace names as its own.
    pub cluster: String,
    /// The job trace.
    pub out: PathBuf,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Ranks.
    pub ranks: usize,
    /// Distinct ones.
    pub templates: usize,
    /// Host events of the first.
    pub events: usize,
    /// Distinct operations of the first.
    pub operations: usize,
}

/// Reads traces and writes a job trace.
///
/// # Errors
/// When a file is no such trace, or the traces contradict each other.
pub fn import(request: &Request) -> Result<Imported, SessionError> {
    let cluster = resolve(&request.cluster)?;
    let files = files(&request.files)?;
    let mut groups = BTreeMap::new();
    let beside = files.first().and_then(|file| file.parent()).map(|folder| folder.join("comm_group.json"));
    if let Some(path) = request.groups.clone().or(beside.filter(|path| path.is_file())) {
        let text = disk::read_text(&path)?;
        let read: BTreeMap<String, Vec<u32>> = serde_json::from_str(&text)
            .map_err(|error| bad(&path, format!("is no list of members by group: {error}")))?;
        groups.extend(read);
    }
    let mut graphs = Vec::new();
    for path in &files {
        let (graph, stated) = read(path)?;
        for (name, members) in stated {
            groups.entry(name).or_insert(members);
        }
        graphs.push(graph);
    }
    let mut job =
        chakra::import(&graphs, &groups).map_err(|error| SessionError::Network(error.to_string()))?;
    let device = cluster.device();
    let facts = RunFacts {
        command: request.files.iter().map(|file| file.display().to_string()).collect(),
        exit_code: Some(0),
        cluster: request.cluster.clone(),
        device: device.name.clone(),
        ..RunFacts::default()
    };
    facts.store(&mut job);
    simulate::save(&job, &request.out)?;
    let first = &job.templates[0];
    Ok(Imported {
        ranks: job.ranks.len(),
        templates: job.templates.len(),
        events: first.events.len(),
        operations: first.operations.len(),
    })
}

fn bad(path: &Path, reason: String) -> SessionError {
    SessionError::Network(format!("`{}` {reason}", path.display()))
}

/// The files themselves, or those of a folder in order of rank.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, SessionError> {
    let [folder] = paths else { return Ok(paths.to_vec()) };
    if !folder.is_dir() {
        return Ok(paths.to_vec());
    }
    let unreadable = |source| SessionError::reading(folder, source);
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let rank = name.strip_suffix(".et").and_then(|stem| stem.rsplit('.').next()?.parse::<u32>().ok());
        if let Some(rank) = rank
            && let Some(other) = found.insert(rank, path.clone())
        {
            return Err(bad(
                &path,
                format!("and `{}` are both of rank {rank}; name the files instead", other.display()),
            ));
        }
    }
    if found.is_empty() {
        return Err(bad(folder, "holds no trace `NAME.RANK.et`; name the files instead".to_owned()));
    }
    Ok(found.into_values().collect())
}

fn read(path: &Path) -> Result<(Graph, BTreeMap<String, Vec<u32>>), SessionError> {
    let bytes = std::fs::read(path).map_err(|source| SessionError::reading(path, source))?;
    let mut plain = Vec::new();
    let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
        let decoded = flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain);
        decoded
            .map_err(|error| bad(path, format!("is damaged gzip: {error}; copy it again in binary mode")))?;
        plain
    } else {
        bytes
    };
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{')
        && let Ok(text) = std::str::from_utf8(&bytes)
    {
        return chakra::read_json(text).map_err(|error| bad(path, error.to_string()));
    }
    let (_, nodes) = chakra::read(&bytes[..]).map_err(|error| bad(path, error.to_string()))?;
    Ok((Graph { nodes, ..Graph::default() }, BTreeMap::new()))
}

//! `deepspeed`'s arguments (`deepspeed/launcher/runner.py`), as far as they decide what runs where.

use std::ffi::OsString;
use std::path::Path;

use trompe_hardware::ClusterSheet;

use super::{Launcher, WorkerCommand, World, name_of};
use crate::SessionError;
use crate::python::is_python;

/// Options without a value.
const FLAGS: [&str; 9] = [
    "--module",
    "--no-python",
    "--no-local-rank",
    "--no-ssh",
    "--no-ssh-check",
    "--force-multi",
    "--elastic-training",
    "--bind-cores-to-rank",
    "--quick-start",
];

/// The job that `command` starts; `None` when it is not this launcher.
///
/// # Errors
/// When the arguments make no sense.
pub(super) fn read(command: &[OsString], cluster: &ClusterSheet) -> Result<Option<World>, SessionError> {
    let Some(arguments) = recognise(command) else { return Ok(None) };
    let bad = |reason: String| SessionError::BadLaunch { reason };
    let (mut nodes, mut per_node, mut hostfile) = (None, None, None);
    let (mut module, mut no_python, mut no_local_rank) = (false, false, false);
    let mut at = 0;
    while let Some(word) =
        arguments.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with('-'))
    {
        at += 1;
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let name = name.replace('_', "-");
        match name.as_str() {
            "--module" => module = true,
            "--no-python" => no_python = true,
            "--no-local-rank" => no_local_rank = true,
            _ => {}
        }
        if FLAGS.contains(&name.as_str()) {
            continue;
        }
        let value = match value {
            Some(value) => value.to_owned(),
            None => {
                let next = arguments.get(at).and_then(|word| word.to_str());
                at += 1;
                next.ok_or_else(|| bad(format!("`{word}` of deepspeed has no value")))?.to_owned()
            }
        };
        match name.as_str() {
            "--num-nodes" => nodes = number(&name, &value)?,
            "--num-gpus" | "--num-accelerators" => per_node = number(&name, &value)?,
            "-H" | "--hostfile" => hostfile = Some(value),
            "-i" | "--include" | "-e" | "--exclude" => {
                return Err(bad(format!("`{word}` of deepspeed names machines, and there are none")));
            }
            _ => {}
        }
    }
    let script = arguments.get(at..).unwrap_or_default();
    if script.is_empty() {
        return Err(bad("deepspeed is not told which script to run".to_owned()));
    }
    let listed = hostfile.as_deref().and_then(|path| slots(Path::new(path)));
    let nodes = nodes.or(listed.map(|(nodes, _)| nodes)).unwrap_or(cluster.node_count);
    let per_node = per_node.or(listed.map(|(_, slots)| slots)).unwrap_or(cluster.node.device_count);
    let worker = match no_python {
        true => WorkerCommand::Program(script.to_vec()),
        false => {
            let front = ["-u"].into_iter().chain(module.then_some("-m")).map(OsString::from);
            WorkerCommand::Python(front.chain(script.iter().cloned()).collect())
        }
    };
    let size = nodes.checked_mul(per_node).ok_or_else(|| bad(format!("{nodes} × {per_node} ranks")))?;
    let launcher = Launcher::DeepSpeed { local_rank_argument: !no_local_rank };
    Ok(Some(World { size, per_node, worker, launcher, own_rank: None }))
}

/// The launcher's arguments.
fn recognise(command: &[OsString]) -> Option<&[OsString]> {
    let first = command.first()?;
    if matches!(name_of(first), "deepspeed" | "ds") {
        return Some(&command[1..]);
    }
    let second = command.get(1).filter(|_| is_python(first))?;
    let named = matches!(name_of(second), "deepspeed" | "ds");
    let module = second == "-m" && command.get(2).is_some_and(|module| module == "deepspeed.launcher.runner");
    if named { Some(&command[2..]) } else { module.then(|| &command[3..]) }
}

/// Nodes and devices of a node in a file with a line `name slots=N` for each node.
fn slots(path: &Path) -> Option<(u32, u32)> {
    let text = std::fs::read_to_string(path).ok()?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let slots: Vec<u32> = lines.filter_map(|line| line.split_once("slots=")?.1.trim().parse().ok()).collect();
    Some((slots.len() as u32, *slots.first()?))
}

fn number(option: &str, text: &str) -> Result<Option<u32>, SessionError> {
    match text.parse::<i64>() {
        // Not given, as the launcher says it.
        Ok(-1) => Ok(None),
        Ok(number) if number > 0 => Ok(u32::try_from(number).ok()),
        _ => Err(SessionError::BadLaunch {
            reason: format!("`{option} {text}` is no number of nodes or devices"),
        }),
    }
}

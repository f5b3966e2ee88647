//! `torchrun`'s arguments (`torch/distributed/run.py`), as far as they decide what runs where.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use trompe_hardware::ClusterSheet;

use super::{Launcher, WorkerCommand, World, name_of};
use crate::SessionError;
use crate::python::is_python;

/// Options without a value; every other option has one.
const FLAGS: [&str; 6] =
    ["--standalone", "--module", "--no-python", "--run-path", "--virtual-local-rank", "--use-env"];

/// Options whose effect is missing without the launcher, and which change what is printed or started.
const UNUSED: [&str; 1] = ["--run-path"];

/// The job that `command` starts; `None` when it is not this launcher.
///
/// # Errors
/// When the arguments make no sense.
pub(super) fn read(command: &[OsString], cluster: &ClusterSheet) -> Result<Option<World>, SessionError> {
    let Some((launcher, arguments)) = recognise(command) else { return Ok(None) };
    let bad = |reason: String| SessionError::BadLaunch { reason };
    let mut options = Options::default();
    let mut at = 0;
    while let Some(word) =
        arguments.get(at).and_then(|word| word.to_str()).filter(|word| word.starts_with('-'))
    {
        at += 1;
        if word == "--" {
            break;
        }
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let name = match name {
            "-m" => "--module".to_owned(),
            "-r" => "--redirects".to_owned(),
            "-t" => "--tee".to_owned(),
            name => name.replace('_', "-"),
        };
        if UNUSED.contains(&name.as_str()) {
            return Err(bad(format!("`{name}` of torchrun is not supported")));
        }
        if FLAGS.contains(&name.as_str()) {
            options.flag(&name);
            continue;
        }
        let value = match value {
            Some(value) => value.to_owned(),
            None => {
                let next = arguments.get(at).and_then(|word| word.to_str());
                at += 1;
                next.ok_or_else(|| bad(format!("`{name}` of torchrun has no value")))?.to_owned()
            }
        };
        options.set(&name, &value)?;
    }
    let script = &arguments[at.min(arguments.len())..];
    if script.is_empty() {
        return Err(bad("torchrun is not told which script to run".to_owned()));
    }
    let worker = match (options.no_python, options.module) {
        (true, _) => WorkerCommand::Program(script.to_vec()),
        (false, module) => {
            let front = ["-u"].into_iter().chain(module.then_some("-m")).map(OsString::from);
            WorkerCommand::Python(front.chain(script.iter().cloned()).collect())
        }
    };
    let per_node = match options.per_node.as_deref() {
        None => 1,
        Some("gpu" | "auto") => cluster.node.device_count,
        Some(number) => positive("--nproc-per-node", number)?,
    };
    let nodes = match (options.standalone, options.nodes.as_deref()) {
        (true, _) => 1,
        (false, None) => cluster.node_count,
        // An elastic range: as many as there can be.
        (false, Some(range)) => positive("--nnodes", range.rsplit(':').next().unwrap_or(range))?,
    };
    let size = nodes.checked_mul(per_node).ok_or_else(|| bad(format!("{nodes} × {per_node} ranks")))?;
    let local_rank_argument = launcher == Name::Launch && !options.use_environment;
    let launcher = Launcher::Torchrun { local_rank_argument };
    Ok(Some(World { size, per_node, worker, launcher, own_rank: None }))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Run,
    Launch,
}

/// The launcher's arguments.
fn recognise(command: &[OsString]) -> Option<(Name, &[OsString])> {
    let first = command.first()?;
    if name_of(first) == "torchrun" {
        return Some((Name::Run, &command[1..]));
    }
    if !is_python(first) {
        return None;
    }
    let at = command
        .iter()
        .position(|word| word == "-m" || !word.as_bytes().starts_with(b"-") && word != first)?;
    match command.get(at + 1)?.to_str()? {
        _ if command[at] != "-m" => {
            // `python /path/to/torchrun …`
            (name_of(&command[at]) == "torchrun").then(|| (Name::Run, &command[at + 1..]))
        }
        "torch.distributed.run" => Some((Name::Run, &command[at + 2..])),
        "torch.distributed.launch" => Some((Name::Launch, &command[at + 2..])),
        _ => None,
    }
}

#[derive(Debug, Default)]
struct Options {
    nodes: Option<String>,
    per_node: Option<String>,
    standalone: bool,
    module: bool,
    no_python: bool,
    use_environment: bool,
}

impl Options {
    fn flag(&mut self, name: &str) {
        match name {
            "--standalone" => self.standalone = true,
            "--module" => self.module = true,
            "--no-python" => self.no_python = true,
            "--use-env" => self.use_environment = true,
            _ => {}
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), SessionError> {
        match name {
            "--nnodes" => self.nodes = Some(value.to_owned()),
            "--nproc-per-node" => self.per_node = Some(value.to_owned()),
            // Where the ranks meet, and how they are watched: trompe's own business.
            "--rdzv-backend"
            | "--rdzv-endpoint"
            | "--rdzv-id"
            | "--rdzv-conf"
            | "--max-restarts"
            | "--monitor-interval"
            | "--start-method"
            | "--event-log-handler"
            | "--role"
            | "--log-dir"
            | "--redirects"
            | "--tee"
            | "--log-line-prefix-template"
            | "--local-ranks-filter"
            | "--duplicate-stdout-filters"
            | "--duplicate-stderr-filters"
            | "--node-rank"
            | "--master-addr"
            | "--master-port"
            | "--local-addr"
            | "--logs-specs"
            | "--numa-binding"
            | "--signals-to-handle"
            | "--shutdown-timeout" => {}
            _ => {
                return Err(SessionError::BadLaunch { reason: format!("torchrun has no option `{name}`") });
            }
        }
        Ok(())
    }
}

/// Reads a number of nodes or processes.
fn positive(option: &str, text: &str) -> Result<u32, SessionError> {
    text.trim().parse().ok().filter(|number| *number > 0).ok_or_else(|| SessionError::BadLaunch {
        reason: format!("`{option} {text}` is no number of processes or nodes"),
    })
}

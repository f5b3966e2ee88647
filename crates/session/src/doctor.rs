//! What a run needs, what of it was found, and how to mend what is missing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use trompe_fatbin::{KernelDb, extract};
use trompe_hardware::{ClusterSheet, EmulatedNode, resolve};

use crate::launch::Emulation;
use crate::python::{self, PythonEnvironment, Torch, which};
use crate::{SessionError, cache, disk, env, hook, install, kernels, machine};

/// How a finding is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// As it should be.
    Good,
    /// A run works, with less to say or more slowly.
    Warning,
    /// A run does not work.
    Bad,
}

/// One line of the examination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub what: &'static str,
    /// How it is.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// How to mend it.
    pub hint: Option<String>,
}

impl Finding {
    fn good(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, status: Status::Good, found: found.into(), hint: None }
    }

    fn warning(what: &'static str, found: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what, status: Status::Warning, found: found.into(), hint: Some(hint.into()) }
    }

    fn bad(what: &'static str, error: &SessionError) -> Self {
        Self { what, status: Status::Bad, found: error.to_string(), hint: error.hint() }
    }
}

/// Looks at everything that a run with `python` (else the first one on `PATH`) needs, and calls `each` with every
/// finding as soon as it is known. The last ones take seconds.
pub fn examine(python: Option<&Path>, mut each: impl FnMut(Finding)) {
    let processor = machine::processor().unwrap_or_else(|| "unnamed".to_owned());
    each(Finding::good("processor", processor));
    each(Finding::good("system", machine::system().unwrap_or_else(|| std::env::consts::OS.to_owned())));
    let libraries = install::find();
    each(match &libraries {
        Ok(found) => Finding::good("libraries", libraries_text(found)),
        Err(error) => Finding::bad("libraries", error),
    });
    let cache = cache::open();
    each(match &cache {
        Ok(cache) => match &cache.instead_of {
            None => Finding::good("cache", cache.folder.display().to_string()),
            Some((wanted, reason)) => Finding::warning(
                "cache",
                format!("{} (not `{}`: {reason})", cache.folder.display(), wanted.display()),
                "set XDG_CACHE_HOME to a folder that can be written to",
            ),
        },
        Err(error) => Finding::bad("cache", error),
    });
    each(temporary());
    let environment = interpreter(python);
    match &environment {
        Ok(environment) => of_python(environment, &mut each),
        Err(error) => each(Finding::bad("python", error)),
    }
    each(compiler());
    let (Ok(libraries), Ok(cache), Ok(environment)) = (libraries, cache, environment) else { return };
    let Ok(torch) = environment.check() else { return };
    each(kernel_db(torch, &cache.folder));
    each(trial(&environment, libraries, &cache.folder));
}

fn libraries_text(libraries: &install::Libraries) -> String {
    let entries = std::fs::read_dir(&libraries.folder).into_iter().flatten().flatten();
    let count = entries.filter(|entry| entry.file_name().to_string_lossy().contains(".so.")).count();
    format!("{}, standing in for {count} libraries", libraries.folder.display())
}

fn interpreter(python: Option<&Path>) -> Result<PythonEnvironment, SessionError> {
    let path = env::get(env::PATH).unwrap_or_default();
    let found = match python {
        Some(python) => which(python.as_os_str(), &path),
        None => ["python", "python3"].iter().find_map(|name| which(OsStr::new(name), &path)),
    };
    let name = python.map_or("python".to_owned(), |python| python.display().to_string());
    let found = found.ok_or_else(|| SessionError::NoPython {
        command: name.clone(),
        reason: format!("there is no program `{name}`"),
    })?;
    python::probe(&found)
}

fn of_python(environment: &PythonEnvironment, each: &mut impl FnMut(Finding)) {
    let executable = environment.executable.display();
    each(Finding::good("python", format!("{executable}, version {}", environment.version)));
    each(match environment.check() {
        Ok(torch) => Finding::good(
            "pytorch",
            format!("{} for CUDA {}", torch.version, torch.cuda.as_deref().unwrap_or("?")),
        ),
        Err(error) => Finding::bad("pytorch", &error),
    });
    for advice in environment.advice() {
        each(Finding::warning("nvidia packages", advice.text, advice.hint.unwrap_or_default()));
    }
    each(match (&environment.triton, environment.headers) {
        (Some(version), true) => Finding::good("triton", format!("{version}, and the headers of Python")),
        (Some(version), false) => Finding::warning(
            "triton",
            format!("{version}, but the headers of Python are missing: `torch.compile` will fail"),
            "install them (Debian and Ubuntu: `apt install python3-dev`)",
        ),
        (None, _) => Finding::warning(
            "triton",
            "not installed: jobs that use `torch.compile` will fail",
            "`python -m pip install triton` when the job needs it",
        ),
    });
}

/// The compiler with which the Python hook builds the observer.
fn compiler() -> Finding {
    let path = env::get(env::PATH).unwrap_or_default();
    let chosen = env::get(env::CXX).filter(|value| !value.is_empty());
    let names =
        chosen.iter().map(std::ffi::OsString::as_os_str).chain(["c++", "g++", "clang++"].map(OsStr::new));
    match names.filter_map(|name| which(name, &path)).next() {
        Some(found) => Finding::good("compiler", found.display().to_string()),
        None => Finding::warning(
            "compiler",
            "no C++ compiler: operator names and shapes are not recorded",
            "install g++ (Debian and Ubuntu: `apt install g++`)",
        ),
    }
}

/// Shared memory for data loader workers, and room for the trace.
fn temporary() -> Finding {
    let here = disk::free_mib(Path::new(".")).unwrap_or(0);
    let shared = disk::free_mib(Path::new("/dev/shm")).unwrap_or(0);
    let found = format!("{here} MiB free here, {shared} MiB in /dev/shm");
    if here < 1024 {
        Finding::warning("disk", found, "a trace takes about 1 MiB per step and process")
    } else if shared < 64 {
        Finding::warning(
            "disk",
            found,
            "data loader workers need shared memory (in a container: `--shm-size=1g`)",
        )
    } else {
        Finding::good("disk", found)
    }
}

fn kernel_db(torch: &Torch, cache: &Path) -> Finding {
    let Ok(cluster) = default_cluster() else {
        return Finding::good("kernel database", "not looked for");
    };
    let arch = kernels::architecture(cluster.device());
    let libraries = kernels::libraries(&torch.folder).unwrap_or_default();
    let found = extract::key(&libraries, arch).map(|key| kernels::file(cache, arch, key));
    match found {
        Ok(path) => match KernelDb::load(&path) {
            Ok(db) => Finding::good("kernel database", format!("{} kernels for {arch}", db.len())),
            Err(_) => {
                Finding::good("kernel database", format!("none for {arch} yet; the first run builds it"))
            }
        },
        Err(error) => Finding::warning("kernel database", error.to_string(), "is this PyTorch complete?"),
    }
}

fn default_cluster() -> Result<ClusterSheet, SessionError> {
    Ok(resolve("h100-sxm")?)
}

/// PyTorch, started as a run would start it.
fn trial(python: &PythonEnvironment, libraries: install::Libraries, cache: &Path) -> Finding {
    const WHAT: &str = "emulation";
    const SCRIPT: &str = "import torch; torch.ones(4, device='cuda').sum().item(); \
                          print('trompe:' + torch.cuda.get_device_name())";
    match try_emulation(python, libraries, cache, SCRIPT) {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            match text.lines().find_map(|line| line.strip_prefix("trompe:")) {
                Some(name) => Finding::good(WHAT, format!("PyTorch sees one {name}")),
                None => Finding {
                    what: WHAT,
                    status: Status::Bad,
                    found: format!(
                        "PyTorch did not start under the emulation ({}): {}",
                        output.status,
                        errors.lines().last().unwrap_or("nothing on stderr")
                    ),
                    hint: Some(
                        "a static Python, or a system that ignores LD_PRELOAD, cannot be used; otherwise set \
                         TROMPE_LOG=2 and run it again"
                            .to_owned(),
                    ),
                },
            }
        }
        Err(error) => Finding::bad(WHAT, &error),
    }
}

fn try_emulation(
    environment: &PythonEnvironment,
    libraries: install::Libraries,
    cache: &Path,
    script: &str,
) -> Result<std::process::Output, SessionError> {
    let config: PathBuf = cache.join(format!("doctor-{}.json", std::process::id()));
    let cluster = default_cluster()?;
    let mut node = EmulatedNode::new(&cluster.node);
    if let Some(software) = environment.torch.as_ref().and_then(Torch::software) {
        node.software = software;
    }
    disk::write(&config, node.to_json().as_bytes())?;
    let emulation = Emulation {
        libraries,
        hook: hook::unpack(cache)?,
        programs: None,
        config: config.clone(),
        traces: None,
        kernel_db: None,
        record_operators: false,
        launcher: crate::launch::LauncherSettings::default(),
        routing: None,
    };
    let python = &environment.executable;
    let output = Command::new(python)
        .args(["-c", script])
        .envs(emulation.variables())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| SessionError::BadPython { python: python.clone(), reason: error.to_string() });
    let _ = std::fs::remove_file(config);
    output
}

//! The kernel database of a PyTorch installation, built once and kept in the cache.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use trompe_fatbin::{KernelDb, SmArch, extract};
use trompe_hardware::DeviceSheet;
use trompe_results::Severity;

use crate::python::Advice;
use crate::{Progress, Stage};

/// The architecture number of a device: 90 for compute capability 9.0.
#[must_use]
pub const fn architecture(device: &DeviceSheet) -> SmArch {
    SmArch(device.compute.capability_major * 10 + device.compute.capability_minor)
}

/// A kernel database, and what the user should know about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provided {
    /// The file; `None` when there is none, without which a job still runs.
    pub path: Option<PathBuf>,
    /// What the user should know.
    pub advice: Option<Advice>,
}

/// The database of the PyTorch in `torch` for `arch`, built into `cache` when it is not there yet.
pub fn provide(torch: &Path, arch: SmArch, cache: &Path, progress: &mut dyn Progress) -> Provided {
    match build(torch, arch, cache, progress) {
        Ok(path) => {
            let advice = foreign_mark(&path).exists().then(|| foreign(torch, arch));
            Provided { path: Some(path), advice }
        }
        Err(reason) => Provided { path: None, advice: Some(missing(torch, &reason)) },
    }
}

fn build(torch: &Path, arch: SmArch, cache: &Path, progress: &mut dyn Progress) -> Result<PathBuf, String> {
    let libraries = libraries(torch).map_err(|error| error.to_string())?;
    let key = extract::key(&libraries, arch).map_err(|error| error.to_string())?;
    let path = file(cache, arch, key);
    if KernelDb::load(&path).is_ok() {
        return Ok(path);
    }
    progress.stage(Stage::KernelDatabase);
    let stats = extract::build_file(&libraries, arch, &path).map_err(|error| error.to_string())?;
    if stats.kernels == 0 {
        return Err("they hold no device code".to_owned());
    }
    if 2 * stats.foreign > stats.cubins {
        fs::write(foreign_mark(&path), b"").map_err(|error| error.to_string())?;
    }
    Ok(path)
}

/// The file that says that most code of a database is for other architectures.
fn foreign_mark(path: &Path) -> PathBuf {
    path.with_extension("foreign")
}

fn missing(torch: &Path, reason: &str) -> Advice {
    Advice {
        severity: Severity::Warning,
        code: "no-kernel-database",
        text: format!(
            "the kernels of PyTorch in `{}` could not be read ({reason}): element counts of its own kernels come \
             from operator shapes only",
            torch.display()
        ),
        hint: Some("`trompe doctor` checks the installation".to_owned()),
    }
}

fn foreign(torch: &Path, arch: SmArch) -> Advice {
    Advice {
        severity: Severity::Warning,
        code: "no-kernel-image",
        text: format!(
            "PyTorch in `{}` has no code for {arch}: on such a device it would stop with `no kernel image is \
             available`; the prediction goes on as if it had",
            torch.display()
        ),
        hint: Some("use a build of PyTorch that supports the device".to_owned()),
    }
}

/// Where the database of the libraries with this key lies.
pub(crate) fn file(cache: &Path, arch: SmArch, key: u128) -> PathBuf {
    cache.join(format!("kernels-{arch}-{key:032x}.db"))
}

/// The shared libraries of a PyTorch installation, in order of name.
pub(crate) fn libraries(torch: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(torch.join("lib"))? {
        let path = entry?.path();
        if path.extension() == Some(OsStr::new("so")) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

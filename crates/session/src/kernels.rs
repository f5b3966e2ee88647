//! The kernel database of a PyTorch installation, built once and kept in the cache.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use trompe_fatbin::{KernelDb, SmArch, extract};
use trompe_hardware::DeviceSheet;

use crate::python::Advice;
use crate::{Progress, Stage};

/// The architecture number of a device: 90 for compute capability 9.0.
#[must_use]
pub const fn architecture(device: &DeviceSheet) -> SmArch {
    SmArch(device.compute.capability_major * 10 + device.compute.capability_minor)
}

/// The database of the PyTorch in `torch` for `arch`, built into `cache` when it is not there yet. Without one a job
/// still runs, so what goes wrong is advice.
///
/// # Errors
/// What to tell the user when there is no database.
pub fn provide(
    torch: &Path,
    arch: SmArch,
    cache: &Path,
    progress: &mut dyn Progress,
) -> Result<PathBuf, Advice> {
    let failed = |reason: String| Advice {
        code: "no-kernel-database",
        text: format!(
            "the kernels of PyTorch in `{}` could not be read ({reason}): element counts of its own kernels \
             come from operator shapes only",
            torch.display()
        ),
        hint: Some("`trompe doctor` checks the installation".to_owned()),
    };
    let libraries = libraries(torch).map_err(|error| failed(error.to_string()))?;
    let key = extract::key(&libraries, arch).map_err(|error| failed(error.to_string()))?;
    let path = file(cache, arch, key);
    if KernelDb::load(&path).is_ok() {
        return Ok(path);
    }
    progress.stage(Stage::KernelDatabase);
    let stats = extract::build_file(&libraries, arch, &path).map_err(|error| failed(error.to_string()))?;
    if stats.kernels == 0 {
        return Err(failed("they hold no device code".to_owned()));
    }
    Ok(path)
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

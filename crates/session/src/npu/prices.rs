//! The kernels of a job trace on the simulator: each distinct program runs once, timing-only.
//!
//! The profile is a fact of the trace, so that a trace alone says how it is priced.

use std::collections::{BTreeMap, BTreeSet};

use trompe_hardware::ClusterSheet;
use trompe_npu::estimator::KernelTimes;
use trompe_npu::{Device, Profile, Program};
use trompe_trace::descriptor::Descriptor;
use trompe_trace::job::{JobTrace, Operation};

use super::{files, refused};
use crate::SessionError;

/// The fact that names the profile.
pub(crate) const PROFILE: &str = "npu.profile";
/// The fact that holds the text of a profile that the user wrote.
const PROFILE_SHEET: &str = "npu.profile_sheet";

/// The cores of the cluster's devices.
pub(super) fn device(cluster: &ClusterSheet) -> Result<Device, SessionError> {
    let sheet = cluster.device();
    let name = sheet.npu.as_ref().ok_or_else(|| {
        refused(format!(
            "the job's kernels are programs for an NPU, and `{}` is none; simulate it on an NPU, as in \
             `--cluster atlas-800t-a2`",
            sheet.name
        ))
    })?;
    Device::named(name).map_err(refused)
}

/// Makes a trace's kernels be priced by the profile called `name`, or by the one in that file.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn set_profile(job: &mut JobTrace, name: &str) -> Result<(), SessionError> {
    job.facts.remove(PROFILE_SHEET);
    if files::is_file(name) {
        job.facts.insert(PROFILE_SHEET.to_owned(), files::read_named(name)?);
    }
    job.facts.insert(PROFILE.to_owned(), name.to_owned());
    Ok(())
}

/// The profile that the facts of a trace name.
fn profile(facts: &BTreeMap<String, String>, device: &Device) -> Result<Profile, SessionError> {
    let name = facts.get(PROFILE).map_or("calibrated", String::as_str);
    let profile = match facts.get(PROFILE_SHEET) {
        Some(text) => Profile::from_toml(name, text),
        None => Profile::named(name, device),
    };
    profile.map_err(refused)
}

/// The simulator for the programs of `job` on `cluster`, with every program's time known; `None` for a job without any.
///
/// # Errors
/// When the device and the job are not for each other, or a program does not run.
pub(crate) fn of_job(job: &JobTrace, cluster: &ClusterSheet) -> Result<Option<KernelTimes>, SessionError> {
    let operations = || job.templates.iter().flat_map(|template| &template.operations);
    let programs: BTreeSet<(&str, &str)> = operations()
        .filter_map(|operation| Some((program(operation)?, operation.short_name.as_str())))
        .collect();
    if programs.is_empty() {
        return match &cluster.device().npu {
            Some(_) if operations().next().is_some() => Err(refused(format!(
                "the trace holds CUDA kernels and `{}` is an NPU; simulate it on a GPU (`trompe gpus`)",
                cluster.device().name
            ))),
            _ => Ok(None),
        };
    }
    let device = device(cluster)?;
    let profile = profile(&job.facts, &device)?;
    let times = KernelTimes::new(device, profile);
    let programs: Vec<_> = programs.into_iter().collect();
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let part = |programs: &[(&str, &str)]| -> Result<(), SessionError> {
        for (text, name) in programs {
            let failed = |error: &dyn std::fmt::Display| refused(format!("kernel `{name}`: {error}"));
            let program = Program::from_json(text).map_err(|error| failed(&error))?;
            times.cycles(&program).map_err(|error| failed(&error))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = programs
            .chunks(programs.len().div_ceil(threads))
            .map(|programs| scope.spawn(|| part(programs)))
            .collect();
        // The first error in the order of the programs.
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("a kernel's simulation does not panic"))
    })?;
    Ok(Some(times))
}

fn program(operation: &Operation) -> Option<&str> {
    match &operation.descriptor {
        Descriptor::NpuKernel(kernel) => Some(&kernel.program),
        _ => None,
    }
}

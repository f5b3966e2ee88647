//! Job traces of validation jobs: emulated once, kept by configuration.
//!
//! The name of a kept trace is made of everything that the emulation depends on: scripts, arguments, what the job sees
//! of the machine, the versions of the frameworks, the version of trompe. Prices are not among it: a change of an
//! estimator needs no new emulation. The job runs under another process of this program, with its output in a log, so
//! that nothing it does disturbs the comparison.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::Serialize;
use siphasher::sip128::{Hasher128, SipHasher13};
use trompe_hardware::{NodeSheet, resolve};
use trompe_trace::job::JobTrace;

use super::environment::Environment;
use super::jobs::Job;
use crate::clock::Stopwatch;
use crate::{SessionError, disk, job_log, traces};

/// Emulates validation jobs.
#[derive(Debug)]
pub(super) struct Emulator {
    /// Where traces are kept.
    pub(super) folder: PathBuf,
    /// Where the scripts lie.
    pub(super) scripts: PathBuf,
    /// The interpreter and what it has.
    pub(super) environment: Environment,
    /// Whether nothing is emulated: traces that are not kept are missing.
    pub(super) kept_only: bool,
    /// Seconds after which a job is given up.
    pub(super) limit: f64,
}

/// What is written beside a kept trace.
#[derive(Serialize)]
struct Kept<'a> {
    trompe_version: &'a str,
    software: &'a str,
    cluster: &'a str,
    ranks: &'a str,
    command: &'a [String],
    seconds: f64,
    exit_code: Option<i32>,
}

impl Emulator {
    /// The trace of `job` with `count` micro batches.
    ///
    /// # Errors
    /// In words, when there is none.
    pub(super) fn trace(
        &self,
        job: &Job,
        count: u64,
        progress: &mut dyn FnMut(&str),
    ) -> Result<JobTrace, String> {
        let arguments = job.with_micro_batches(count);
        let node = resolve(&job.cluster).map_err(|error| error.to_string())?.node;
        let name = self.name(job, &arguments, &seen(&node));
        let path = self.folder.join(format!("{name}.trace"));
        if !path.is_file() {
            if self.kept_only {
                let line = arguments.join(" ");
                progress(&format!("no trace {name} of {} {line} on {}", job.script, job.cluster));
                return Err("its trace is not kept, and `--kept-only` emulates nothing".to_owned());
            }
            progress(&format!("emulating {} {} on {}", job.script, arguments.join(" "), job.cluster));
            let (seconds, exit_code) = self.emulate(job, &arguments, &path)?;
            let kept = Kept {
                trompe_version: env!("CARGO_PKG_VERSION"),
                software: &self.environment.of(job.engine),
                cluster: &job.cluster,
                ranks: &job.ranks,
                command: &arguments,
                seconds,
                exit_code,
            };
            let text = serde_json::to_vec_pretty(&kept).expect("plain data has a JSON form");
            disk::write(&path.with_extension("json"), &text).map_err(|error| error.to_string())?;
        }
        traces::open_job(&path).map_err(|error| error.to_string())
    }

    /// A name for everything that the emulation depends on.
    fn name(&self, job: &Job, arguments: &[String], node: &str) -> String {
        let mut hasher = SipHasher13::new();
        for file in files(job.script) {
            hasher.write(&fs::read(self.scripts.join(file)).unwrap_or_default());
        }
        let (script, version) = (job.script.as_bytes(), env!("CARGO_PKG_VERSION").as_bytes());
        let place = format!("{} {} {}", job.cluster, job.per_node, job.ranks);
        let software = self.environment.of(job.engine);
        for part in [script, place.as_bytes(), node.as_bytes(), software.as_bytes(), version]
            .into_iter()
            .chain(arguments.iter().map(String::as_bytes))
        {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        let name = job.script.trim_end_matches(".py");
        format!("{name}-{:016x}", hasher.finish128().h1)
    }

    /// Runs the job and moves its trace to `path`.
    fn emulate(&self, job: &Job, arguments: &[String], path: &Path) -> Result<(f64, Option<i32>), String> {
        let told = |error: std::io::Error| error.to_string();
        fs::create_dir_all(&self.folder).map_err(told)?;
        let out = path.with_extension("out");
        let log = path.with_extension("log");
        let mut command = Command::new(std::env::current_exe().map_err(told)?);
        command.args([
            "run",
            "--cluster",
            &job.cluster,
            "--ranks",
            &job.ranks,
            "--verify",
            "0",
            "--force",
            "--out",
        ]);
        command.arg(&out).arg("--").arg(&self.environment.python).args(["-m", "torch.distributed.run"]);
        command.args(["--nproc-per-node", &job.per_node.to_string()]);
        command.arg(self.scripts.join(job.script)).args(arguments.iter().map(OsString::from));
        let output = File::create(&log).map_err(told)?;
        command.stdin(Stdio::null()).stdout(output.try_clone().map_err(told)?).stderr(output);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let watch = Stopwatch::start();
        let mut child = command.spawn().map_err(told)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(told)? {
                break status;
            }
            if watch.elapsed().as_secs_f64() > self.limit {
                let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
                let _ = child.wait();
                let _ = fs::remove_dir_all(&out);
                return Err(format!("its emulation took longer than {} s", self.limit));
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        };
        let seconds = watch.elapsed().as_secs_f64();
        let trace = out.join("job.trace");
        if !trace.is_file() {
            let said = job_log::telling_line(&log);
            return Err(format!("its emulation failed: {said} (log: {})", log.display()));
        }
        fs::rename(&trace, path).map_err(told)?;
        let _ = fs::remove_dir_all(&out);
        Ok((seconds, status.code()))
    }
}

/// What a job can see of a node: rates and prices are not among it.
fn seen(node: &NodeSheet) -> String {
    let device = &node.device;
    format!(
        "{} {}.{} {} SM {} B context {} B",
        device.name,
        device.compute.capability_major,
        device.compute.capability_minor,
        device.compute.sm_count,
        device.memory.total.0,
        device.runtime.context.0
    )
}

/// The files that `script` is made of.
fn files(script: &'static str) -> Vec<&'static str> {
    let others: &[&str] = if script.starts_with("megatron") {
        &[
            "megatron_gpt.py",
            "megatron_lm/arguments.py",
            "megatron_lm/configs.py",
            "megatron_lm/fused.py",
            "megatron_lm/layers.py",
            "megatron_lm/newer.py",
        ]
    } else {
        &["common.py"]
    };
    [&[script], others].concat()
}

/// The folder of kept traces: `asked`, else one in the user's cache.
pub(super) fn folder(asked: Option<&Path>) -> Result<PathBuf, SessionError> {
    match asked {
        Some(folder) => Ok(folder.to_owned()),
        None => Ok(crate::cache::open()?.folder.join("validate")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_trace_has_the_name_of_its_configuration() {
        let emulator = |software: &str| Emulator {
            folder: PathBuf::from("x"),
            scripts: PathBuf::from("jobs-1"),
            environment: Environment {
                python: PathBuf::from("python3"),
                software: software.to_owned(),
                engine: None,
            },
            kept_only: true,
            limit: 1.0,
        };
        let job = Job {
            script: "a.py",
            arguments: vec!["--x".to_owned()],
            cluster: "a100-sxm4-80:8x1".to_owned(),
            simulated: None,
            per_node: 8,
            ranks: "auto".to_owned(),
            micro_batches: 4,
            counts: vec![4],
            engine: false,
            sequences: 8,
            assumed: Vec::new(),
            stages: 1,
            shorter: Vec::new(),
        };
        let name =
            |software: &str, count: u64| emulator(software).name(&job, &job.with_micro_batches(count), "{}");
        assert_eq!(name("torch 2", 4), name("torch 2", 4));
        assert_ne!(name("torch 2", 4), name("torch 3", 4));
        assert_ne!(name("torch 2", 4), name("torch 2", 5));
        assert!(name("torch 2", 4).starts_with("a-"));
    }
}

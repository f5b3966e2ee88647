//! Which Python the job will use, and whether its PyTorch can run under the emulation.
//!
//! The interpreter is looked for as the system will: by the command's own path, by the `#!` line of a console script,
//! by an argument of a wrapper (`env`, `timeout`, `numactl`), or, for a shell script, on `PATH`. In the last case it
//! is a guess and what is wrong with it is advice, not an error. The interpreter is then asked about itself; PyTorch
//! is not imported (that takes seconds).

mod command;
mod probe;

use std::path::PathBuf;

use serde::Deserialize;
use trompe_hardware::SoftwareVersions;
use trompe_results::Severity;

pub(crate) use command::is_python;
pub use command::{Found, How, find, which};
pub use probe::probe;

use crate::SessionError;

/// What an interpreter said about itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PythonEnvironment {
    /// The interpreter.
    pub executable: PathBuf,
    /// Version of Python.
    pub version: String,
    /// Whether the headers for compiling extensions are there (Triton needs them).
    pub headers: bool,
    /// PyTorch, when it is installed.
    pub torch: Option<Torch>,
    /// Version of Triton.
    pub triton: Option<String>,
    /// NVIDIA's own library packages, sorted.
    pub nvidia: Vec<String>,
}

/// An installation of PyTorch.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Torch {
    /// Its version.
    pub version: String,
    /// The CUDA version it was built for; `None` for a build without CUDA.
    pub cuda: Option<String>,
    /// Whether it was built for AMD's ROCm.
    pub hip: Option<String>,
    /// The cuDNN that its wheel asks for.
    #[serde(default)]
    pub cudnn: Option<String>,
    /// The NCCL that its wheel asks for.
    #[serde(default)]
    pub nccl: Option<String>,
    /// Folder of the package.
    pub folder: PathBuf,
}

impl Torch {
    /// The versions of CUDA's libraries that it was built for; `None` when they are not emulated.
    #[must_use]
    pub fn software(&self) -> Option<SoftwareVersions> {
        SoftwareVersions::built_for(self.cuda.as_deref()?, self.cudnn.as_deref(), self.nccl.as_deref())
    }
}

/// Something that is not wrong but that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// How much it matters.
    pub severity: Severity,
    /// A stable name.
    pub code: &'static str,
    /// What is the case.
    pub text: String,
    /// What to do.
    pub hint: Option<String>,
}

impl PythonEnvironment {
    /// Whether a job of this environment can run under the emulation.
    ///
    /// # Errors
    /// No PyTorch, PyTorch without CUDA, PyTorch for another CUDA.
    pub fn check(&self) -> Result<&Torch, SessionError> {
        let python = || self.executable.clone();
        let torch = self.torch.as_ref().ok_or_else(|| SessionError::NoTorch { python: python() })?;
        let version = torch.version.clone();
        let Some(cuda) = &torch.cuda else {
            return Err(SessionError::TorchWithoutCuda { python: python(), version });
        };
        if torch.software().is_none() {
            return Err(SessionError::OtherCuda { python: python(), version, found: cuda.clone() });
        }
        Ok(torch)
    }

    /// What the user should know about an environment that can be used.
    #[must_use]
    pub fn advice(&self) -> Vec<Advice> {
        let mut advice = Vec::new();
        if !self.nvidia.is_empty() {
            advice.push(Advice {
                severity: Severity::Info,
                code: "nvidia-packages",
                text: format!(
                    "{} NVIDIA packages are installed beside PyTorch ({}, …); trompe's libraries take \
                     precedence over them, which costs some memory and start-up time",
                    self.nvidia.len(),
                    self.nvidia[0]
                ),
                hint: Some(
                    "an environment made with `pip install --no-deps torch` does without them".to_owned(),
                ),
            });
        }
        advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(cuda: Option<&str>) -> PythonEnvironment {
        PythonEnvironment {
            executable: "/v/bin/python".into(),
            version: "3.11.7".to_owned(),
            headers: true,
            torch: Some(Torch {
                version: "2.15.0".to_owned(),
                cuda: cuda.map(str::to_owned),
                hip: None,
                cudnn: None,
                nccl: None,
                folder: "/v/torch".into(),
            }),
            triton: None,
            nvidia: Vec::new(),
        }
    }

    #[track_caller]
    fn check(environment: &PythonEnvironment, expect: &str) {
        let error = environment.check().unwrap_err();
        assert!(error.to_string().contains(expect), "{error}");
        assert!(error.hint().is_some());
    }

    #[test]
    fn unusable_environments_are_named() {
        check(&PythonEnvironment { torch: None, ..environment(None) }, "PyTorch is not installed");
        check(&environment(None), "build without CUDA");
        check(&environment(Some("11.8")), "built for CUDA 11.8; this trompe emulates CUDA 12 and 13");
        environment(Some("12.8")).check().unwrap();
        environment(Some("13.2")).check().unwrap();
    }

    #[test]
    fn nvidia_packages_are_advice() {
        let with =
            PythonEnvironment { nvidia: vec!["nvidia-cublas".to_owned()], ..environment(Some("13.2")) };
        assert_eq!(with.advice()[0].code, "nvidia-packages");
        assert!(environment(Some("13.2")).advice().is_empty());
    }
}

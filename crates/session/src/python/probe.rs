//! Asking an interpreter about itself.

use std::path::Path;
use std::process::{Command, Stdio};

use super::PythonEnvironment;
use crate::{SessionError, env};

const SCRIPT: &str = include_str!("probe.py");

/// Asks `python` about itself and its packages; takes a tenth of a second.
///
/// # Errors
/// When it cannot be started, fails, or answers something else than our script prints.
pub fn probe(python: &Path) -> Result<PythonEnvironment, SessionError> {
    let bad = |reason: String| SessionError::BadPython { python: python.to_owned(), reason };
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .env_remove(env::LD_PRELOAD)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| bad(format!("it cannot be started: {error}")))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let last = errors.lines().last().unwrap_or("nothing on stderr");
        return Err(bad(format!("it ended with {}: {last}", output.status)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let answer = text.lines().rev().find_map(|line| line.strip_prefix("trompe:"));
    let answer = answer.ok_or_else(|| bad("it did not answer".to_owned()))?;
    serde_json::from_str(answer).map_err(|error| bad(format!("its answer makes no sense: {error}")))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[track_caller]
    fn check(script: &str, expect: Result<&str, &str>) {
        let folder = tempfile::tempdir().unwrap();
        let python = folder.path().join("python");
        fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        match (probe(&python), expect) {
            (Ok(found), Ok(version)) => assert_eq!(found.version, version),
            (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{error}"),
            (found, expect) => panic!("{found:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn answers_and_failures() {
        let answer =
            r#"{"executable":"/p","version":"3.9.1","headers":true,"torch":null,"triton":null,"nvidia":[]}"#;
        check(&format!("echo noise; echo 'trompe:{answer}'"), Ok("3.9.1"));
        check("echo hello", Err("it did not answer"));
        check("echo boom >&2; exit 3", Err("boom"));
        check("echo 'trompe:{}'", Err("makes no sense"));
    }

    fn real() -> Option<std::path::PathBuf> {
        super::super::which("python3".as_ref(), &env::get(env::PATH).unwrap_or_default())
    }

    #[test]
    fn a_real_interpreter_answers_when_there_is_one() {
        let Some(python) = real() else { return };
        let found = probe(&python).unwrap();
        assert!(found.version.starts_with("3."), "{found:?}");
    }

    #[test]
    fn only_packages_with_libraries_are_named() {
        let Some(real) = real() else { return };
        let folder = tempfile::tempdir().unwrap();
        for (name, record) in [
            ("nvidia_nccl_cu13-2.30.dist-info", Some("nvidia/nccl/lib/libnccl.so.2,sha256=x,1\n")),
            ("nvidia_cublas-13.1.dist-info", Some("nvidia/cu13/lib/libcublas.so,,\n")),
            ("nvidia_cudnn_frontend-1.3.dist-info", Some("include/cudnn_frontend.h,,\n")),
            ("nvidia_curand-10.4.dist-info", None),
        ] {
            fs::create_dir(folder.path().join(name)).unwrap();
            if let Some(record) = record {
                fs::write(folder.path().join(name).join("RECORD"), record).unwrap();
            }
        }
        let python = folder.path().join("python");
        let site = folder.path().display();
        fs::write(&python, format!("#!/bin/sh\nPYTHONPATH='{site}' exec {} \"$@\"\n", real.display()))
            .unwrap();
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
        let mut found = probe(&python).unwrap().nvidia;
        found.retain(|name| {
            ["nvidia-nccl-cu13", "nvidia-cublas", "nvidia-cudnn-frontend", "nvidia-curand"]
                .contains(&name.as_str())
        });
        assert_eq!(found, ["nvidia-cublas", "nvidia-nccl-cu13"]);
    }
}

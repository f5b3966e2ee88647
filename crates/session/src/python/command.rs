//! From a command line to the Python interpreter that it will start.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::SessionError;

/// The interpreter of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The program of the command, resolved.
    pub program: PathBuf,
    /// The interpreter.
    pub python: PathBuf,
    /// How it was found.
    pub how: How,
}

/// How an interpreter was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The command names it, directly, in a `#!` line or as an argument of a wrapper.
    Named,
    /// The command is another program; this is the Python in its arguments, or the first one on `PATH`.
    Guessed,
}

/// Finds the interpreter that `command` will start, given the value of `PATH`.
///
/// # Errors
/// When the command's program cannot be started, or no Python is found.
pub fn find(command: &[OsString], path: &OsStr) -> Result<Found, SessionError> {
    let Some(name) = command.first() else {
        return Err(SessionError::Command {
            command: String::new(),
            reason: "there is no command".to_owned(),
        });
    };
    let program = resolve(name, path)?;
    if is_python(name) {
        return Ok(Found { python: program.clone(), program, how: How::Named });
    }
    if let Some(python) = shebang(&program, path) {
        return Ok(Found { program, python, how: How::Named });
    }
    let named = command[1..].iter().filter(|argument| is_python(argument));
    if let Some(python) = named.filter_map(|argument| which(argument, path)).next() {
        let how = if is_wrapper(name) { How::Named } else { How::Guessed };
        return Ok(Found { program, python, how });
    }
    let guess = ["python", "python3"].iter().find_map(|name| which(OsStr::new(name), path));
    match guess {
        Some(python) => Ok(Found { program, python, how: How::Guessed }),
        None => Err(SessionError::NoPython {
            command: name.to_string_lossy().into_owned(),
            reason: "neither `python` nor `python3` is on PATH".to_owned(),
        }),
    }
}

/// The program `name` as the system finds it: a path as it is, a bare name on `path`.
#[must_use]
pub fn which(name: &OsStr, path: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    path.as_bytes()
        .split(|byte| *byte == b':')
        .map(|folder| Path::new(OsStr::from_bytes(if folder.is_empty() { b"." } else { folder })).join(name))
        .find(|candidate| is_program(candidate))
}

fn resolve(name: &OsStr, path: &OsStr) -> Result<PathBuf, SessionError> {
    if let Some(found) = which(name, path) {
        return Ok(found);
    }
    let text = name.to_string_lossy().into_owned();
    let file = Path::new(name);
    let reason = if file.is_dir() {
        "it is a folder"
    } else if file.exists() && text.ends_with(".py") {
        "it is a Python script, not a program; put `python` in front of it"
    } else if file.exists() {
        "it is not executable"
    } else if text.contains('/') {
        "there is no such file"
    } else {
        "there is no program of this name on PATH"
    };
    Err(SessionError::Command { command: text, reason: reason.to_owned() })
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Whether the last part of `path` is `python`, `python3`, `python3.11`, …
pub(crate) fn is_python(path: &OsStr) -> bool {
    let name = Path::new(path).file_name().and_then(OsStr::to_str).unwrap_or_default();
    name.strip_prefix("python")
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// Whether a program starts the command in its arguments as it stands, in the same environment. Others (`uv run`,
/// `conda run`) look for the interpreter in their own ways.
fn is_wrapper(name: &OsStr) -> bool {
    const WRAPPERS: [&str; 12] = [
        "chrt", "env", "ionice", "nice", "nohup", "numactl", "setsid", "stdbuf", "taskset", "time",
        "timeout", "xargs",
    ];
    Path::new(name).file_name().and_then(OsStr::to_str).is_some_and(|name| WRAPPERS.contains(&name))
}

/// The interpreter in the `#!` line of a console script; also in the second line that pip writes when the
/// interpreter's path is too long for the first (`'''exec' /path/python "$0" "$@"`).
fn shebang(program: &Path, path: &OsStr) -> Option<PathBuf> {
    let mut head = Vec::new();
    std::fs::File::open(program).ok()?.take(4096).read_to_end(&mut head).ok()?;
    let text = String::from_utf8_lossy(head.strip_prefix(b"#!")?).into_owned();
    let mut lines = text.lines();
    let words = lines.next()?.split_whitespace().chain(
        lines.next().and_then(|line| line.strip_prefix("'''exec' ")).unwrap_or_default().split_whitespace(),
    );
    // `env -S name=value python3 -u`: the first word that is a Python counts.
    let word = words.map(|word| word.trim_matches('"')).find(|word| is_python(OsStr::new(word)))?;
    which(OsStr::new(word), path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A folder with the given files, all executable but those ending in `.py`.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            let mode = if name.ends_with(".py") { 0o644 } else { 0o755 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        folder
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], command: &[&str], expect: Result<(&str, How), &str>) {
        let folder = folder(files);
        let root = folder.path().to_str().unwrap();
        let command: Vec<OsString> = command.iter().map(|word| word.replace("ROOT", root).into()).collect();
        match (find(&command, folder.path().as_os_str()), expect) {
            (Ok(found), Ok((python, how))) => {
                assert_eq!((found.python, found.how), (folder.path().join(python), how));
            }
            (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{error}"),
            (found, expect) => panic!("{found:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn the_command_is_python() {
        check(&[("python3", "")], &["python3", "x.py"], Ok(("python3", How::Named)));
        check(&[("python3.11", "")], &["ROOT/python3.11", "x.py"], Ok(("python3.11", How::Named)));
    }

    #[test]
    fn the_command_is_a_console_script() {
        let files = [("python", ""), ("python3", ""), ("torchrun", "#!ROOT/python3\nimport sys\n")];
        check(&files[..2], &["torchrun"], Err("no program of this name"));
        check(
            &[("python3", ""), ("tool", "#!/usr/bin/env -S python3 -u\n")],
            &["tool"],
            Ok(("python3", How::Named)),
        );
        check(
            &[("python9", ""), ("tool", "#!/bin/sh\n'''exec' python9 \"$0\" \"$@\"\n' '''\n")],
            &["tool"],
            Ok(("python9", How::Named)),
        );
    }

    #[test]
    fn the_command_is_a_wrapper_or_a_shell_script() {
        let files = [
            ("python", ""),
            ("mypython3.11", ""),
            ("python3", ""),
            ("timeout", ""),
            ("job.sh", "#!/bin/sh\n"),
        ];
        check(&files, &["timeout", "9", "python3", "x.py"], Ok(("python3", How::Named)));
        check(&files, &["ROOT/job.sh", "python3"], Ok(("python3", How::Guessed)));
        check(&files, &["ROOT/job.sh"], Ok(("python", How::Guessed)));
        check(&files[3..], &["ROOT/job.sh"], Err("neither `python` nor `python3`"));
    }

    #[test]
    fn what_cannot_be_started_is_named() {
        check(&[("train.py", "")], &["ROOT/train.py"], Err("put `python` in front"));
        check(&[], &["ROOT/train"], Err("no such file"));
        check(&[], &["ROOT"], Err("it is a folder"));
        check(&[], &[], Err("there is no command"));
    }
}

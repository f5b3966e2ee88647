//! What a job wrote last: the lines that say why it failed.
//!
//! The last words of a program are often not its own. Interpreters complain about objects that are left, launchers sum
//! up, libraries print where they were. So what is known to be noise is left out, and where the last lines hold no
//! message of an exception, those that lead to the last one before them are shown.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Lines of a failed job that are kept.
const LAST_LINES: usize = 12;
/// Bytes of the end of a log that are looked at.
const LAST_BYTES: u64 = 64 << 10;

/// The lines of a log that say best why the job failed.
pub(crate) fn last_lines(path: &Path) -> Vec<String> {
    telling(&tail(path))
}

/// The line of a log that says best why the job failed, at most 200 characters of it.
pub(crate) fn telling_line(path: &Path) -> String {
    let lines = tail(path);
    let telling =
        lines.iter().rfind(|line| is_message(line) || line.contains("error:") || line.contains("trompe:"));
    let line = telling.or(lines.last()).map_or("no output", |line| line.trim());
    line.chars().take(200).collect()
}

/// The end of a text file in lines, without control characters, empty lines and noise.
pub(crate) fn tail(path: &Path) -> Vec<String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let clean = |line: &str| -> String { line.chars().filter(|letter| !letter.is_control()).collect() };
    let lines = text.lines().map(|line| clean(line.trim_end()));
    lines.filter(|line| !line.trim().is_empty() && !is_noise(line)).collect()
}

/// Whether a line says nothing about why a program ended.
fn is_noise(line: &str) -> bool {
    let line = line.trim_start();
    // What nanobind says of a module whose objects outlive the interpreter, as Triton's do after any exception.
    let leaks = line.starts_with("nanobind: ")
        || line.starts_with("- leaked ")
        || line.starts_with("- ... skipped remainder")
        || line.contains("nanobind.readthedocs.io");
    // The stack of C++ and PyTorch's reminder to close process groups.
    let frames = line.starts_with("frame #") || line.contains("destroy_process_group() was not called");
    // Frames that libraries draw around a traceback.
    let drawn = !line.chars().any(char::is_alphanumeric);
    leaks || frames || drawn
}

/// The last lines, or those up to the last message of an exception when it lies further back.
fn telling(lines: &[String]) -> Vec<String> {
    let window = |end: usize| lines[end.saturating_sub(LAST_LINES)..end].to_vec();
    let last = lines.iter().rposition(|line| is_message(line)).map_or(0, |at| at + 1);
    if last == 0 || last + LAST_LINES > lines.len() { window(lines.len()) } else { window(last) }
}

/// Whether a line is the end of a traceback: `module.KindError: what happened`, after a launcher's `[rank0]: `.
fn is_message(line: &str) -> bool {
    let line = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map_or(line, |(_, rest)| rest);
    let name = line.split(':').next().unwrap_or_default();
    let is_name = !name.is_empty()
        && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '.');
    is_name && ["Error", "Exception", "Interrupt", "Exit"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_clean() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        assert!(last_lines(&path).is_empty());
        fs::write(&path, format!("{}\n\x1b[31mred\n\n", "line\n".repeat(19000))).unwrap();
        let lines = last_lines(&path);
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (LAST_LINES, Some("[31mred")));
    }

    #[test]
    fn the_telling_line_of_a_log_is_found() {
        let check = |log: &str, expect: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            fs::write(&path, log).unwrap();
            assert_eq!(telling_line(&path), expect);
        };
        let log = "step 1\nTraceback (most recent call last):\n  File \"x\"\nValueError: no heads\n\nbye\n";
        check(log, "ValueError: no heads");
        check("a.py: error: no such file\n0 done\n", "a.py: error: no such file");
        check("hello\n", "hello");
        check("", "no output");
    }

    #[test]
    fn noise_hides_no_exception() {
        let check = |text: &str, last: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            fs::write(&path, text).unwrap();
            assert_eq!(last_lines(&path).last().map(String::as_str), Some(last), "{text}");
        };
        let leaks = " - leaked function \"get_int32\"\n".repeat(40);
        check(
            &format!(
                "[rank0]: RuntimeError: no\nnanobind: leaked 9 functions!\n{leaks} - ... skipped remainder\n"
            ),
            "[rank0]: RuntimeError: no",
        );
        check(&format!("ValueError: no\n{}", "bye\n".repeat(40)), "ValueError: no");
        check("ValueError: no\nand so it ended\n", "and so it ended");
        check("ValueError: no\n╰──────╯\n", "ValueError: no");
        check(&"Error while looking: nothing\n".repeat(20), "Error while looking: nothing");
    }
}

//! Whether a command is a Python script or module that can be run in a prepared interpreter.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::NotForked;

/// A script or module under an interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The interpreter.
    pub python: PathBuf,
    /// Its own options (`-u`, `-X dev`).
    pub options: Vec<OsString>,
    /// `-m`: the first argument is a module's name, not a file.
    pub module: bool,
    /// The script or module and its arguments.
    pub argv: Vec<OsString>,
}

impl Script {
    /// Takes the arguments of an interpreter apart.
    ///
    /// # Errors
    /// When they name no script or module.
    pub fn of(python: &Path, arguments: &[OsString]) -> Result<Self, NotForked> {
        let no = |reason: &str| Err(NotForked(reason.to_owned()));
        let mut options = Vec::new();
        let mut at = 0;
        let mut module = false;
        while let Some(word) = arguments.get(at) {
            let text = word.to_string_lossy();
            if !text.starts_with('-') || text == "-" {
                break;
            }
            at += 1;
            // `-W error` and `-X dev` are two words, `-Werror` is one.
            if matches!(&*text, "-W" | "-X" | "--check-hash-based-pycs") {
                options.extend([word.clone()].into_iter().chain(arguments.get(at).cloned()));
                at += 1;
                continue;
            }
            if text.starts_with("--") || text.starts_with("-W") || text.starts_with("-X") {
                options.push(word.clone());
                continue;
            }
            let letters = &text[1..];
            if letters.contains('c') {
                return no("the program is given on the command line (`python -c`)");
            }
            if letters.contains(['i', 'V', 'h', '?']) {
                return no("the interpreter is interactive");
            }
            if letters.contains(['E', 'I']) {
                return no("the interpreter ignores the environment (`-E`, `-I`)");
            }
            if let Some((before, after)) = letters.split_once('m') {
                if !after.is_empty() {
                    return no("the module's name is written together with `-m`");
                }
                options.extend((!before.is_empty()).then(|| OsString::from(format!("-{before}"))));
                module = true;
                break;
            }
            options.push(word.clone());
        }
        let argv = arguments.get(at..).unwrap_or_default().to_vec();
        match argv.first() {
            Some(script) if script != "-" => Ok(Self { python: python.to_owned(), options, module, argv }),
            _ => no("the program comes from standard input"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, expect: Result<(&str, bool, &str), &str>) {
        let arguments: Vec<OsString> = arguments.split_whitespace().map(OsString::from).collect();
        let found = Script::of(Path::new("python"), &arguments);
        let join = |words: &[OsString]| words.join(" ".as_ref()).into_string().unwrap();
        match (found, expect) {
            (Ok(found), Ok((options, module, argv))) => {
                let found = (join(&found.options), found.module, join(&found.argv));
                assert_eq!(found, (options.to_owned(), module, argv.to_owned()));
            }
            (Err(error), Err(text)) => assert!(error.0.contains(text), "{error}"),
            (found, expect) => panic!("{found:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn commands_are_taken_apart() {
        check("train.py --lr 1", Ok(("", false, "train.py --lr 1")));
        check("-u train.py -c x", Ok(("-u", false, "train.py -c x")));
        check(
            "-u -X dev -Werror -W ignore -m pkg.train -m",
            Ok(("-u -X dev -Werror -W ignore", true, "pkg.train -m")),
        );
        check("-um pkg", Ok(("-u", true, "pkg")));
        check("-c pass", Err("`python -c`"));
        check("-uc pass", Err("`python -c`"));
        check("-i x.py", Err("interactive"));
        check("-I x.py", Err("ignores"));
        check("-", Err("standard input"));
        check("", Err("standard input"));
        check("-m", Err("standard input"));
    }
}

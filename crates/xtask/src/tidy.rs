//! `cargo xtask tidy`: the rules of ARCHITECTURE.md and STYLE.md that a program can check.
//!
//! Each rule is one function from the [`Tree`] to findings; adding a rule is adding a function to [`RULES`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::arrows::ALLOWED;

/// Longest allowed source file in lines (STYLE.md, 2).
const HARD_CAP: usize = 800;

/// What the rules look at.
struct Tree {
    root: PathBuf,
    /// Tracked text files, relative to the root, with their content.
    files: BTreeMap<PathBuf, String>,
    /// Crate folder name -> crate folder names that it depends on (not for tests alone).
    arrows: BTreeMap<String, BTreeSet<String>>,
}

type Rule = fn(&Tree) -> Vec<String>;

const RULES: &[(&str, Rule)] = &[
    ("crate arrows", crate_arrows),
    ("every crate inherits the workspace's lints", inherited_lints),
    ("files within the hard cap", file_sizes),
    ("every Rust file says what it is", essays),
    ("unsafe only where it is allowed", unsafe_places),
    ("`cluster` and the models know no CUDA name", no_cuda_names),
    ("no unfinished code", unfinished),
    ("no machine's path or registry host", foreign_paths),
];

/// Runs every rule and fails with all findings.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree::load(root)?;
    let mut found = Vec::new();
    for (name, rule) in RULES {
        found.extend(rule(&tree).into_iter().map(|finding| format!("{name}: {finding}")));
    }
    if found.is_empty() {
        println!("tidy: {} rules hold over {} files", RULES.len(), tree.files.len());
        return Ok(());
    }
    for finding in &found {
        eprintln!("tidy: {finding}");
    }
    bail!("{} tidy findings", found.len())
}

impl Tree {
    fn load(root: &Path) -> Result<Self> {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("cannot run git")?;
        let mut files = BTreeMap::new();
        for name in listed.stdout.split(|&b| b == 0).filter(|name| !name.is_empty()) {
            let path = PathBuf::from(String::from_utf8_lossy(name).into_owned());
            // Binary fixtures and files deleted in the working tree are no text to check.
            if let Ok(text) = std::fs::read_to_string(root.join(&path)) {
                files.insert(path, text);
            }
        }
        let metadata = cargo_metadata::MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("cannot read the workspace's metadata")?;
        let mut arrows = BTreeMap::new();
        for package in &metadata.packages {
            let uses = package
                .dependencies
                .iter()
                .filter(|d| d.kind != cargo_metadata::DependencyKind::Development)
                .filter_map(|d| d.name.strip_prefix("trompe-").map(str::to_owned));
            let name = package.name.strip_prefix("trompe-").unwrap_or(&package.name).to_owned();
            arrows.insert(name, uses.collect());
        }
        Ok(Self { root: root.to_owned(), files, arrows })
    }

    fn rust_files(&self) -> impl Iterator<Item = (&PathBuf, &String)> {
        self.files.iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "rs"))
    }

    /// The crate folder that a file is in.
    fn crate_of(path: &Path) -> Option<&str> {
        let mut parts = path.iter().filter_map(|part| part.to_str());
        (parts.next() == Some("crates")).then(|| parts.next()).flatten()
    }
}

fn crate_arrows(tree: &Tree) -> Vec<String> {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut found = Vec::new();
    for (name, uses) in &tree.arrows {
        let Some(may) = allowed.get(name.as_str()) else {
            found.push(format!("crate `{name}` has no row in crates/xtask/src/arrows.rs"));
            continue;
        };
        for used in uses.iter().filter(|used| !may.contains(&used.as_str())) {
            found.push(format!("`{name}` must not use `{used}`"));
        }
    }
    found
}

fn inherited_lints(tree: &Tree) -> Vec<String> {
    let manifests = tree.files.iter().filter(|(path, _)| {
        path.file_name().is_some_and(|n| n == "Cargo.toml") && Tree::crate_of(path).is_some()
    });
    manifests
        .filter(|(_, text)| !text.contains("[lints]\nworkspace = true"))
        .map(|(path, _)| format!("{} lacks `[lints] workspace = true`", path.display()))
        .collect()
}

fn file_sizes(tree: &Tree) -> Vec<String> {
    let code = |path: &Path| {
        path.extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| matches!(e, "rs" | "py" | "js" | "css" | "cpp"))
    };
    tree.files
        .iter()
        .filter(|(path, _)| code(path) && !path.iter().any(|part| part == "generated"))
        .filter_map(|(path, text)| {
            let lines = text.lines().count();
            (lines > HARD_CAP)
                .then(|| format!("{} has {lines} lines; which two rooms is it?", path.display()))
        })
        .collect()
}

fn essays(tree: &Tree) -> Vec<String> {
    // A module's own tests in a file `tests.rs` beside it need no introduction.
    tree.rust_files()
        .filter(|(path, _)| path.file_name().is_none_or(|name| name != "tests.rs"))
        .filter(|(_, text)| !text.lines().any(|line| line.starts_with("//!")))
        .map(|(path, _)| format!("{} has no `//!` essay", path.display()))
        .collect()
}

fn unsafe_places(tree: &Tree) -> Vec<String> {
    const MAY: [&str; 3] = ["shim", "cuda-abi", "python"];
    // Spelled in two halves so that this file does not find itself.
    let words = [concat!("allow(unsafe", "_code"), concat!("expect(unsafe", "_code")];
    tree.rust_files()
        .filter(|(path, _)| !Tree::crate_of(path).is_some_and(|name| MAY.contains(&name)))
        .filter(|(_, text)| words.iter().any(|word| text.contains(word)))
        .map(|(path, _)| format!("{} lifts the ban on `unsafe`", path.display()))
        .collect()
}

fn no_cuda_names(tree: &Tree) -> Vec<String> {
    const BLIND: [&str; 5] = ["engine", "cluster", "network", "estimate", "search"];
    let names = ["cudaMalloc", "cudaLaunch", "cuLaunch", "cublasGemm", "cudnnBackend", "ncclAll"];
    let mut found = Vec::new();
    for (path, text) in tree.rust_files() {
        if !Tree::crate_of(path).is_some_and(|name| BLIND.contains(&name)) {
            continue;
        }
        for name in names.iter().filter(|name| text.contains(**name)) {
            found.push(format!("{} names `{name}`", path.display()));
        }
    }
    found
}

fn unfinished(tree: &Tree) -> Vec<String> {
    let words = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!(")];
    tree.rust_files()
        .filter(|(_, text)| words.iter().any(|word| text.contains(word)))
        .map(|(path, _)| format!("{} is unfinished", path.display()))
        .collect()
}

fn foreign_paths(tree: &Tree) -> Vec<String> {
    let words = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("index", "-url"),
        concat!("files.python", "hosted"),
        concat!("static.crates", ".io"),
    ];
    let mut found = Vec::new();
    for (path, text) in &tree.files {
        if path.extension().is_some_and(|e| e == "lock") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}", tree.root.join(path).display(), number + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of one file.
    fn tree(path: &str, text: &str) -> Tree {
        let files = BTreeMap::from([(PathBuf::from(path), text.to_owned())]);
        Tree { root: PathBuf::new(), files, arrows: BTreeMap::new() }
    }

    #[test]
    fn rules_find_what_they_are_for_and_leave_the_rest() {
        let check = |rule: Rule, path: &str, text: &str, findings: usize| {
            assert_eq!(rule(&tree(path, text)).len(), findings, "{path}: {text}");
        };
        check(essays, "crates/a/src/lib.rs", "//! x\nfn f() {}", 0);
        check(essays, "crates/a/src/lib.rs", "fn f() {}", 1);
        check(no_cuda_names, "crates/cluster/src/a.rs", "cudaMalloc", 1);
        check(no_cuda_names, "crates/shim/src/a.rs", "cudaMalloc", 0);
        let lift = concat!("#![allow(unsafe", "_code)]");
        check(unsafe_places, "crates/trace/src/a.rs", lift, 1);
        check(unsafe_places, "crates/shim/src/a.rs", lift, 0);
        check(file_sizes, "a.py", &"x\n".repeat(HARD_CAP + 1), 1);
        check(file_sizes, "generated/a.py", &"x\n".repeat(HARD_CAP + 1), 0);
        check(inherited_lints, "crates/a/Cargo.toml", "[package]", 1);
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_found() {
        let mut tree = tree("x", "");
        tree.arrows.insert("engine".into(), BTreeSet::from(["trace".into()]));
        assert_eq!(crate_arrows(&tree), ["`engine` must not use `trace`"]);
        tree.arrows.insert("unheard-of".into(), BTreeSet::new());
        assert_eq!(crate_arrows(&tree).len(), 2);
    }
}

//! Every environment variable that trompe reads or sets, in one place.
//!
//! Code of this crate asks here and nowhere else; `docs/environment.md` is [`documentation`], and a test keeps the two
//! equal. The preloaded library and the Python hook read their own variables in the job's process; those are
//! listed as well, since this crate sets them.

use std::ffi::OsString;
use std::path::PathBuf;

/// One variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Who sets it.
    pub set_by: SetBy,
    /// What it does.
    pub meaning: &'static str,
}

/// Who is meant to set a [`Variable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// The user, to change what trompe does.
    User,
    /// `trompe run`, for the processes of the job.
    Trompe,
    /// Both: what the user set is kept and added to.
    Both,
}

macro_rules! registry {
    ($($(#[$doc:meta])* $ident:ident = $name:literal, $by:ident, $meaning:literal;)*) => {
        $($(#[$doc])* pub const $ident: &str = $name;)*
        /// All variables, in order of name.
        pub const REGISTRY: &[Variable] =
            &[$(Variable { name: $name, set_by: SetBy::$by, meaning: $meaning }),*];
    };
}

registry! {
    /// Devices that the job may see, as on real hardware.
    CUDA_VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES", User,
        "devices of the emulated node that the job may see, as on real hardware";
    /// C++ compiler.
    CXX = "CXX", User, "the C++ compiler that builds the observer; else `c++`, `g++` or `clang++`";
    /// Home folder; used for the cache when `XDG_CACHE_HOME` is not set.
    HOME = "HOME", User,
        "the cache is `$HOME/.cache/trompe` when `XDG_CACHE_HOME` is not set, and your calibration is in `$HOME/.local/share/trompe` when `XDG_DATA_HOME` is not set";
    /// Search path of the dynamic linker.
    LD_LIBRARY_PATH = "LD_LIBRARY_PATH", Both, "trompe puts the folder of its CUDA libraries in front";
    /// Libraries loaded before all others.
    LD_PRELOAD = "LD_PRELOAD", Both, "trompe puts its preloaded library in front";
    /// Rank in the node.
    LOCAL_RANK = "LOCAL_RANK", Both, "a rank's place in its node, as `torchrun` sets it";
    /// Ranks per node.
    LOCAL_WORLD_SIZE = "LOCAL_WORLD_SIZE", Both, "ranks of a node, as `torchrun` sets it";
    /// Bytes of NCCL's queues.
    NCCL_BUFFSIZE = "NCCL_BUFFSIZE", User, "bytes of NCCL's queues, as on real hardware: what they take is charged";
    /// NVLink SHARP.
    NCCL_NVLS_ENABLE = "NCCL_NVLS_ENABLE", User, "`0`: NCCL takes no memory for NVLink SHARP, as on real hardware";
    /// Colours off.
    NO_COLOR = "NO_COLOR", User, "any value: no colours";
    /// Threads of a process.
    OMP_NUM_THREADS = "OMP_NUM_THREADS", Both,
        "processor threads per rank; 1 when several ranks share a node and you did not set it, as with `torchrun`";
    /// Search path of programs.
    PATH = "PATH", Both, "where the command is looked for; trompe puts a folder with its `nvidia-smi` in front";
    /// Search path of Python modules.
    PYTHONPATH = "PYTHONPATH", Both, "trompe puts the folder of its Python hook in front";
    /// Rank of the process.
    RANK = "RANK", Both,
        "together with `WORLD_SIZE`, for a command without a launcher: it is this rank of a distributed job";
    /// Kind of terminal.
    TERM = "TERM", User, "`dumb`: no colours";
    /// Folder of messages.
    TROMPE_BOARD = "TROMPE_BOARD", Trompe,
        "folder through which the ranks that run exchange small contents of collectives";
    /// Pretended node.
    TROMPE_CONFIG = "TROMPE_CONFIG", Trompe, "JSON file that describes the pretended node to the preloaded library";
    /// Kernel database.
    TROMPE_KERNEL_DB = "TROMPE_KERNEL_DB", Trompe,
        "file with the parameter layouts of the framework's own kernels; absent: none are known";
    /// Folder for what launchers ask for.
    TROMPE_LAUNCH = "TROMPE_LAUNCH", Trompe,
        "folder in which a launcher that the command starts says which ranks it would have started";
    /// Library folder.
    TROMPE_LIB = "TROMPE_LIB", User,
        "folder with the libraries that stand in for CUDA's, instead of `trompe-lib` beside the program";
    /// Verbosity of the preloaded library.
    TROMPE_LOG = "TROMPE_LOG", User,
        "how much the preloaded library says on stderr: 0 errors, 1 warnings (default), 2 notes, 3 every call";
    /// Recording on a real GPU.
    TROMPE_PROFILE = "TROMPE_PROFILE", Trompe,
        "what `trompe profile -- COMMAND` tells the processes that it starts: which steps to record, and where to (JSON)";
    /// Rank of the process.
    TROMPE_RANK = "TROMPE_RANK", Trompe, "the rank that a process of a distributed job is";
    /// Ranks that exist.
    TROMPE_RANKS = "TROMPE_RANKS", Trompe,
        "the ranks of a distributed job that run, with commas between; the others are answered for";
    /// Whether operators are recorded.
    TROMPE_RECORD_OPS = "TROMPE_RECORD_OPS", Trompe,
        "`0`: framework operators and their shapes are not recorded (`--no-record-ops`)";
    /// Policy for choices in unknown values.
    TROMPE_ROUTING = "TROMPE_ROUTING", Both,
        "how choices in values that nobody computes are made up (`--routing`): balanced, uniform, zipf:S or dirichlet:A";
    /// Light modules for fused ones that are not installed.
    TROMPE_SHIMS = "TROMPE_SHIMS", User,
        "`off`: no light modules stand in for flash-attn, Apex and TransformerEngine where these are not installed; `on`: also where the script has another way without them";
    /// Ranks that a script starts together.
    TROMPE_SPAWNED = "TROMPE_SPAWNED", Trompe,
        "how many processes `torch.multiprocessing` started together; set by the Python hook for those processes";
    /// Address of the store.
    TROMPE_STORE = "TROMPE_STORE", Trompe, "address of the store through which the ranks find each other";
    /// Folder of the worker traces.
    TROMPE_TRACE_DIR = "TROMPE_TRACE_DIR", Trompe,
        "folder into which each process of the job writes its trace; absent: nothing is recorded";
    /// Ranks of the job.
    TROMPE_WORLD_SIZE = "TROMPE_WORLD_SIZE", Trompe, "number of ranks of a distributed job";
    /// Ranks of the job.
    WORLD_SIZE = "WORLD_SIZE", Both, "number of ranks of a distributed job; see `RANK`";
    /// Base of the cache folder.
    XDG_CACHE_HOME = "XDG_CACHE_HOME", User, "the cache is `$XDG_CACHE_HOME/trompe`";
    /// Base of the folder for what the user measured.
    XDG_DATA_HOME = "XDG_DATA_HOME", User, "your calibration is in `$XDG_DATA_HOME/trompe/calibration`";
}

/// The registry as a page.
#[must_use]
pub fn documentation() -> String {
    let mut page = String::from(
        "# Environment variables\n\n\
         This page is written from the registry in `crates/session/src/env.rs`.\n\n\
         | variable | set by | meaning |\n|---|---|---|\n",
    );
    for Variable { name, set_by, meaning } in REGISTRY {
        let by = match set_by {
            SetBy::User => "you",
            SetBy::Trompe => "`trompe run`",
            SetBy::Both => "both",
        };
        page.push_str(&format!("| `{name}` | {by} | {meaning} |\n"));
    }
    page
}

/// The value of a variable; `None` when it is unset.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the registry through which the environment is read")]
pub fn get(name: &str) -> Option<OsString> {
    debug_assert!(REGISTRY.iter().any(|variable| variable.name == name), "`{name}` is not in the registry");
    std::env::var_os(name)
}

/// The value of a variable as a path; `None` when it is unset or empty.
#[must_use]
pub fn path(name: &str) -> Option<PathBuf> {
    get(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `first` in front of a list of paths separated by colons, as `PATH` and its kin are.
#[must_use]
pub fn prepend(first: &std::ffi::OsStr, rest: Option<OsString>) -> OsString {
    let mut list = first.to_owned();
    if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
        list.push(":");
        list.push(rest);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_sorted_and_without_doubles() {
        assert!(REGISTRY.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn the_documentation_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/environment.md");
        let page = documentation();
        assert!(
            std::fs::read_to_string(path).is_ok_and(|found| found == page),
            "write this to {path}:\n{page}"
        );
    }

    #[test]
    fn prepending_keeps_what_was_there() {
        let check = |rest: Option<&str>, expect: &str| {
            assert_eq!(prepend("a".as_ref(), rest.map(OsString::from)), OsString::from(expect));
        };
        check(None, "a");
        check(Some(""), "a");
        check(Some("b:c"), "a:b:c");
    }
}

//! The environment variables that the library reads, once, at the first CUDA call; a rank that was forked from a prepared
//! process reads them again ([`forget`]).

use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The library's settings.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// `TROMPE_CONFIG`: JSON file of the node to pretend.
    pub(crate) config: Option<PathBuf>,
    /// `TROMPE_TRACE_DIR`: folder for worker traces; absent: nothing is recorded.
    pub(crate) trace_dir: Option<PathBuf>,
    /// `TROMPE_KERNEL_DB`: kernel database of the framework's fat binaries.
    pub(crate) kernel_db: Option<PathBuf>,
    /// `TROMPE_LOG`: 0 silent, 1 warnings (default), 2 information, 3 every call.
    pub(crate) log: u8,
}

/// The settings.
#[inline]
pub(crate) fn get() -> &'static Environment {
    let read = READ.load(Ordering::Acquire);
    // SAFETY: only leaked boxes are ever stored.
    #[expect(unsafe_code, reason = "a leaked box behind an atomic pointer")]
    match unsafe { read.as_ref() } {
        Some(environment) => environment,
        None => read_again(),
    }
}

static READ: AtomicPtr<Environment> = AtomicPtr::new(null_mut());

#[cold]
fn read_again() -> &'static Environment {
    // A process reads them once or twice, so what is never freed is a few hundred bytes.
    let environment = Box::leak(Box::new(Environment {
        config: path("TROMPE_CONFIG"),
        trace_dir: path("TROMPE_TRACE_DIR"),
        kernel_db: path("TROMPE_KERNEL_DB"),
        log: variable("TROMPE_LOG").and_then(|text| text.to_str()?.parse().ok()).unwrap_or(1),
    }));
    READ.store(environment, Ordering::Release);
    environment
}

/// Has the variables read again at the next question.
pub(crate) fn forget() {
    READ.store(null_mut(), Ordering::Release);
}

/// `CUDA_VISIBLE_DEVICES`, where it is set. Read when the devices are made, not with the library's settings: programs
/// set it after they have loaded CUDA's libraries and before they use them.
#[expect(clippy::disallowed_methods, reason = "CUDA's own variable")]
pub(crate) fn visible_devices() -> Option<String> {
    std::env::var("CUDA_VISIBLE_DEVICES").ok()
}

/// Of a rank of a distributed job: the folder for messages, its rank, the ranks that exist, and the number of ranks.
pub(crate) fn ranks() -> Option<(PathBuf, u32, Vec<u32>, u32)> {
    let number = |name| variable(name)?.to_str()?.parse().ok();
    let present = variable("TROMPE_RANKS")?;
    let present = present.to_str()?.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
    Some((path("TROMPE_BOARD")?, number("TROMPE_RANK")?, present, number("TROMPE_WORLD_SIZE")?))
}

/// NCCL's own settings that change how much memory it takes: bytes of a queue (`NCCL_BUFFSIZE`), and whether NVLink
/// SHARP may be used (`NCCL_NVLS_ENABLE`).
pub(crate) fn nccl() -> (Option<u64>, bool) {
    let buffer = variable("NCCL_BUFFSIZE").and_then(|text| text.to_str()?.parse().ok());
    (buffer, variable("NCCL_NVLS_ENABLE").is_none_or(|text| text != "0"))
}

fn path(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from)
}

#[expect(clippy::disallowed_methods, reason = "the one place where the library reads the environment")]
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

//! Space in the record file: taken from the disk in batches, handed to threads in chunks.

#![expect(unsafe_code, reason = "maps the record file")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trompe_trace::writer::{CHUNK, FILE_HEADER, write_file_header};

use crate::environment;

/// Chunks taken from the disk at once.
const CHUNKS: usize = 16;

/// A chunk for one thread.
pub(super) struct Taken {
    pub(super) chunk: *mut u8,
    pub(super) sequence: u32,
}

/// Why no chunk could be had.
#[derive(Debug)]
pub(super) struct NoSpace {
    path: PathBuf,
    error: io::Error,
}

impl std::fmt::Display for NoSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`: {}", self.path.display(), self.error)
    }
}

struct Space {
    path: Option<PathBuf>,
    /// The process that made the file.
    process: u32,
    mapped: usize,
    left: usize,
    sequence: u32,
    /// Rests of chunks that no thread owns: address and offset of the next record.
    rests: Vec<(usize, usize)>,
}

static SPACE: Mutex<Space> = Mutex::new(Space::EMPTY);

impl Space {
    const EMPTY: Self = Self { path: None, process: 0, mapped: 0, left: 0, sequence: 0, rests: Vec::new() };
}

fn space() -> MutexGuard<'static, Space> {
    SPACE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the next chunk, opening the file at the first.
pub(super) fn take() -> Result<Taken, NoSpace> {
    let mut space = space();
    let folder = environment::get().trace_dir.clone().unwrap_or_default();
    if space.path.is_none() {
        let path = create(&folder).map_err(|error| NoSpace { path: folder.clone(), error })?;
        space.path = Some(path);
        space.process = std::process::id();
    }
    let path = space.path.clone().unwrap_or(folder);
    if space.left == 0 {
        let offset = FILE_HEADER + space.sequence as usize * CHUNK;
        space.mapped = map(&path, offset).map_err(|error| NoSpace { path: path.clone(), error })?;
        space.left = CHUNKS;
    }
    let chunk = space.mapped + (CHUNKS - space.left) * CHUNK;
    // Fetches the pages at once instead of by a fault each, and answers an error where a write would be a signal.
    // SAFETY: the chunk lies inside the mapping. Kernels before 5.14 do not know the advice, which is harmless.
    let advised = unsafe { libc::madvise(chunk as *mut libc::c_void, CHUNK, libc::MADV_POPULATE_WRITE) };
    if advised != 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(NoSpace { path, error });
        }
    }
    space.left -= 1;
    let sequence = space.sequence;
    space.sequence += 1;
    Ok(Taken { chunk: chunk as *mut u8, sequence })
}

/// Takes the rest of a chunk that a thread left: its address, and where the next record goes.
pub(super) fn take_rest() -> Option<(*mut u8, usize)> {
    space().rests.pop().map(|(chunk, next)| (chunk as *mut u8, next))
}

/// Keeps the rest of a chunk for another thread, if there is enough of it for a large record.
pub(super) fn give(chunk: *mut u8, next: usize) {
    if CHUNK - next >= CHUNK / 8 {
        space().rests.push((chunk as usize, next));
    } else {
        retire(chunk);
    }
}

/// A full chunk: its pages need not stay in this process.
pub(super) fn retire(chunk: *mut u8) {
    // SAFETY: a shared file mapping: the content stays in the file, and the pages come back if touched.
    unsafe { libc::madvise(chunk.cast(), CHUNK, libc::MADV_DONTNEED) };
}

/// Whether this process has a file.
pub(super) fn opened() -> bool {
    space().path.is_some()
}

/// Whether this process made the file. A child of `vfork`, which shares its parent's memory, did not; nor is it known while
/// another thread holds the file.
pub(super) fn is_ours() -> bool {
    SPACE.try_lock().is_ok_and(|space| space.path.is_some() && space.process == std::process::id())
}

/// Gives back the space that no thread took.
pub(super) fn trim() {
    let space = space();
    if let Some(path) = &space.path
        && let Ok(file) = OpenOptions::new().write(true).open(path)
    {
        // No thread has a chunk beyond this length, and none is handed out any more.
        let _ = file.set_len((FILE_HEADER + space.sequence as usize * CHUNK) as u64);
    }
}

/// Keeps other threads out of the file's state while the process forks.
pub(crate) struct ForkLock(#[expect(dead_code, reason = "held for its lock")] MutexGuard<'static, Space>);

impl ForkLock {
    pub(crate) fn take() -> Self {
        Self(space())
    }
}

/// In a forked child: forgets the parent's file.
pub(crate) fn forked_child() {
    *space() = Space::EMPTY;
    super::next_generation();
}

fn create(folder: &std::path::Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let pid = std::process::id();
    let mut path = folder.join(format!("{pid}.trompe"));
    let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
    // A number used twice: another process with the same id wrote here before (containers, long jobs).
    for again in 1..1000 {
        if !matches!(&file, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
        path = folder.join(format!("{pid}-{again}.trompe"));
        file = OpenOptions::new().read(true).write(true).create_new(true).open(&path);
    }
    let mut page = [0; FILE_HEADER];
    write_file_header(&mut page, pid);
    io::Write::write_all(&mut file?, &page)?;
    std::path::absolute(path)
}

fn map(path: &std::path::Path, offset: usize) -> io::Result<usize> {
    let length = CHUNKS * CHUNK;
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    allocate(&file, offset, length)?;
    // SAFETY: a new shared mapping of space that the file has.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset as libc::off_t,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // A forked child must not write into its parent's chunks.
    // SAFETY: the mapping made just now.
    unsafe { libc::madvise(mapped, length, libc::MADV_DONTFORK) };
    Ok(mapped as usize)
}

fn allocate(file: &File, offset: usize, length: usize) -> io::Result<()> {
    // SAFETY: an open descriptor; returns an error number instead of setting `errno`.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), offset as libc::off_t, length as libc::off_t) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

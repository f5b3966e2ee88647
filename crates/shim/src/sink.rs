//! The record file of this process.
//!
//! Each thread writes into a chunk of its own inside one growing file, mapped shared, so what was written survives a
//! killed process. Space is taken from the disk before it is mapped, so a full disk is an error answer here and never a
//! signal in the middle of a job: one line is said, recording stops, the job goes on. The file is opened anew for each
//! batch of chunks, because programs close descriptors that they do not know.
//!
//! A thread that ends hands the rest of its chunk to the next new one, so programs that start threads by the thousand do
//! not fill the disk. Their records then bear the id of the chunk's first thread; threads whose lives do not overlap
//! look like one.
//!
//! A forked child inherits neither mapping nor file: a new generation begins, and with it a file of its own at the
//! child's first record.

mod batch;

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use trompe_cuda_abi::tables::{self, COUNT, LIBRARIES};
use trompe_cuda_abi::{ApiId, Class};
use trompe_trace::record::{NameTable, Record, Stamp};
use trompe_trace::writer::{self, CHUNK, NoRoom};

use crate::log::{Level, say};
use crate::thread::Thread;
use crate::{clock, door, environment};

pub(crate) use batch::{ForkLock, forked_child};

const UNDECIDED: u8 = 0;
const ON: u8 = 1;
const OFF: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNDECIDED);
/// Grows with each fork; records and announcements of an older generation do not count.
static GENERATION: AtomicU32 = AtomicU32::new(1);
static ANNOUNCED: [AtomicU32; COUNT] = [const { AtomicU32::new(0) }; COUNT];
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Where one thread writes.
#[derive(Debug)]
pub(crate) struct Cursor {
    chunk: Cell<*mut u8>,
    next: Cell<usize>,
    generation: Cell<u32>,
    /// The thread is ending: it keeps no chunk from one record to the next.
    ending: Cell<bool>,
    /// Ticks at which the clocks were last compared.
    compared: Cell<u64>,
    /// Ticks after which they are compared again.
    compare_after: Cell<u64>,
}

/// The clocks are first compared again after about a millisecond, so that even a process killed early leaves the two
/// pairs by which its ticks become seconds; then after twice as long each time, up to about a tenth of a second.
const COMPARE_FIRST: u64 = 1 << 21;
const COMPARE_LAST: u64 = 1 << 28;

impl Cursor {
    pub(crate) const fn new() -> Self {
        Self {
            chunk: Cell::new(null_mut()),
            next: Cell::new(0),
            generation: Cell::new(0),
            ending: Cell::new(false),
            compared: Cell::new(0),
            compare_after: Cell::new(COMPARE_FIRST),
        }
    }
}

/// A record in the file whose length in time is still open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame(*mut u8);

/// The current generation of records; see the module's text on forks.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether records are taken.
#[inline]
pub(crate) fn active() -> bool {
    match STATE.load(Ordering::Relaxed) {
        ON => true,
        UNDECIDED => decide(),
        _ => false,
    }
}

#[cold]
fn decide() -> bool {
    let on = environment::get().trace_dir.is_some();
    STATE.store(if on { ON } else { OFF }, Ordering::Relaxed);
    if on {
        crate::fork::watch();
    }
    on
}

/// Writes one record with the calling thread's cursor. `None` when it is not in the file.
#[inline]
pub(crate) fn write(thread: &Thread, stamp: Stamp, record: &Record<'_>) -> Option<Frame> {
    if !active() {
        return None;
    }
    let cursor = &thread.cursor;
    for attempt in 0..2 {
        let missing = cursor.chunk.get().is_null() || cursor.generation.get() != generation();
        // After a chunk without room only an empty one will do.
        if missing && !take_chunk(thread, attempt > 0) {
            break;
        }
        let at = cursor.next.get();
        // SAFETY: the chunk is mapped writable, belongs to this thread alone, and stays mapped for the process's life.
        #[expect(unsafe_code, reason = "the thread's own chunk of the mapped file")]
        let chunk = unsafe { std::slice::from_raw_parts_mut(cursor.chunk.get(), CHUNK) };
        match writer::append(chunk, at, stamp, record) {
            Ok(next) => {
                let frame = Frame(cursor.chunk.get().wrapping_add(at));
                cursor.next.set(next);
                if cursor.ending.get() {
                    hand_on(cursor);
                }
                return Some(frame);
            }
            Err(NoRoom::Record) => {
                // What was tried must not be taken for a record later.
                chunk[at..].fill(0);
                break;
            }
            Err(NoRoom::Chunk) => {
                batch::retire(cursor.chunk.get());
                cursor.chunk.set(null_mut());
            }
        }
    }
    DROPPED.fetch_add(1, Ordering::Relaxed);
    None
}

/// Completes the record of a call that began at `begin` with the ticks until now.
#[inline]
pub(crate) fn finish(thread: &Thread, frame: Frame, begin: u64) {
    let cursor = &thread.cursor;
    let now = clock::ticks();
    let ticks = u32::try_from(now.wrapping_sub(begin)).unwrap_or(u32::MAX).to_le_bytes();
    // SAFETY: a whole frame that this thread wrote into a chunk of its own, which stays mapped; its ticks are at byte 4.
    #[expect(unsafe_code, reason = "the thread's own chunk of the mapped file")]
    unsafe {
        std::ptr::copy_nonoverlapping(ticks.as_ptr(), frame.0.add(4), 4);
    }
    if now.wrapping_sub(cursor.compared.get()) > cursor.compare_after.get() {
        cursor.compare_after.set((cursor.compare_after.get() * 2).min(COMPARE_LAST));
        write_clock(thread);
    }
}

/// Names a function in the file, once.
#[inline]
pub(crate) fn announce_api(thread: &Thread, api: ApiId) {
    let now = generation();
    if ANNOUNCED[api.index()].load(Ordering::Relaxed) != now {
        announce(thread, api, now);
    }
}

#[cold]
fn announce(thread: &Thread, api: ApiId, now: u32) {
    ANNOUNCED[api.index()].store(now, Ordering::Relaxed);
    let (library, row) = tables::row(api);
    let class = match row.class {
        Class::Recorded | Class::Quiet => "emulated",
        Class::Accepted | Class::Data => "accepted",
        Class::Unsupported => "unsupported",
    };
    let name = format!("{}/{}/{class}", library.name, row.symbol);
    let record = Record::Name { table: NameTable::Api, id: u32::from(api.0), name: &name };
    write(thread, Stamp { begin: clock::ticks(), ticks: 0 }, &record);
}

/// Gives the rest of the thread's chunk to whichever thread asks next.
fn hand_on(cursor: &Cursor) {
    let chunk = cursor.chunk.replace(null_mut());
    if !chunk.is_null() && cursor.generation.get() == generation() {
        batch::give(chunk, cursor.next.get());
    }
}

/// Runs when its thread ends.
struct AtThreadEnd;

impl Drop for AtThreadEnd {
    fn drop(&mut self) {
        Thread::with(|thread| {
            thread.cursor.ending.set(true);
            hand_on(&thread.cursor);
        });
    }
}

thread_local! {
    static AT_THREAD_END: AtThreadEnd = const { AtThreadEnd };
}

#[cold]
fn take_chunk(thread: &Thread, empty: bool) -> bool {
    let cursor = &thread.cursor;
    // Has the thread watched for its end, unless that has come already.
    cursor.ending.set(AT_THREAD_END.try_with(|_| ()).is_err());
    cursor.generation.set(generation());
    if !empty && let Some((chunk, next)) = batch::take_rest() {
        cursor.chunk.set(chunk);
        cursor.next.set(next);
        return true;
    }
    let taken = match batch::take() {
        Ok(taken) => taken,
        Err(reason) => {
            STATE.store(OFF, Ordering::Relaxed);
            say(
                Level::Warning,
                &format!("recording stopped: {reason}; the job goes on, its trace ends here"),
            );
            return false;
        }
    };
    // SAFETY: the chunk was mapped writable just now and given to this thread alone.
    #[expect(unsafe_code, reason = "the thread's own chunk of the mapped file")]
    let chunk = unsafe { std::slice::from_raw_parts_mut(taken.chunk, CHUNK) };
    let first = writer::begin_chunk(chunk, thread_id(), taken.sequence);
    cursor.chunk.set(taken.chunk);
    cursor.next.set(first);
    write_clock(thread);
    if taken.sequence == 0 {
        write_process_facts(thread);
    }
    // An ending thread handed the chunk on after these records; it is taken again.
    !cursor.chunk.get().is_null() || take_chunk(thread, false)
}

#[cold]
fn write_clock(thread: &Thread) {
    thread.cursor.compared.set(clock::ticks());
    let monotonic_ns = clock::monotonic_ns();
    let stamp = Stamp { begin: clock::ticks(), ticks: 0 };
    write(thread, stamp, &Record::Clock { monotonic_ns, unix_ns: clock::unix_ns() });
}

fn write_process_facts(thread: &Thread) {
    let stamp = Stamp { begin: clock::ticks(), ticks: 0 };
    let meta = |key, value: &str| {
        write(thread, stamp, &Record::Meta { key, value });
    };
    meta("shim.version", env!("CARGO_PKG_VERSION"));
    meta("process.id", &std::process::id().to_string());
    if let Ok(command) = std::fs::read("/proc/self/cmdline") {
        let command = String::from_utf8_lossy(&command).trim_end_matches('\0').replace('\0', " ");
        meta("process.command", &command);
    }
    if let Some(config) =
        environment::get().config.as_ref().and_then(|path| std::fs::read_to_string(path).ok())
    {
        meta("node", &config);
    }
}

/// Writes the last records of the process.
pub(crate) fn end() {
    if STATE.load(Ordering::Relaxed) != ON || !batch::opened() {
        return;
    }
    Thread::with(|thread| {
        let stamp = || Stamp { begin: clock::ticks(), ticks: 0 };
        for library in LIBRARIES {
            for index in 0..library.rows.len() as u16 {
                let api = ApiId(library.base + index);
                let calls = door::quiet_calls(api);
                if calls > 0 {
                    announce_api(thread, api);
                    write(thread, stamp(), &Record::ApiCount { api: api.0, calls });
                }
            }
        }
        let records = DROPPED.load(Ordering::Relaxed);
        if records > 0 {
            write(thread, stamp(), &Record::Dropped { records, reason: "no room in the record file" });
        }
        write_clock(thread);
        write(thread, stamp(), &Record::End);
    });
    STATE.store(OFF, Ordering::Relaxed);
    batch::trim();
}

/// Asks the environment again whether records are taken: a rank begins in a fork of a process that took none.
pub(crate) fn begin_again() {
    forked_child();
    STATE.store(UNDECIDED, Ordering::Relaxed);
}

/// Writes the last records of a process that ends without its destructors, if this process has a file and no other
/// thread holds it.
pub(crate) fn end_in_haste() {
    if STATE.load(Ordering::Relaxed) == ON && batch::is_ours() {
        end();
    }
}

fn next_generation() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    DROPPED.store(0, Ordering::Relaxed);
    door::forget_quiet_calls();
}

fn thread_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    #[expect(unsafe_code, reason = "a plain system call")]
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    id as u32
}

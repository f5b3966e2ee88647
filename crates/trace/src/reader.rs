//! Reading of worker traces: complete, cut off by a kill, or damaged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trompe_base::KernelId;

use crate::record::{FORMAT_VERSION, NameTable, Record, Stamp};
use crate::writer::{CHUNK_HEADER, CHUNK_MAGIC, FILE_HEADER, FRAME_HEADER, MAGIC};

/// Why a file is no worker trace.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("cannot read the worker trace `{path}`: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It does not begin like a worker trace.
    #[error("`{path}` is not a worker trace: it does not begin with the trace's magic bytes")]
    NotATrace {
        /// The file.
        path: PathBuf,
    },
    /// It was written by another version.
    #[error(
        "`{path}` has trace format {found}, this trompe reads format {FORMAT_VERSION}; record the job again with this version"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

/// A worker trace in memory.
#[derive(Debug)]
pub struct WorkerTrace {
    bytes: Vec<u8>,
    pid: u32,
    chunk: usize,
}

/// A record with its thread and time.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// Operating system thread id.
    pub thread: u32,
    /// Begin and end in ticks.
    pub stamp: Stamp,
    /// What happened.
    pub record: Record<'a>,
}

impl WorkerTrace {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let bytes = std::fs::read(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        Self::from_bytes(bytes, path)
    }

    /// Takes a file's content; `path` is used in errors only.
    pub fn from_bytes(bytes: Vec<u8>, path: &Path) -> Result<Self, ReadError> {
        if bytes.len() < FILE_HEADER || bytes[..8] != MAGIC {
            return Err(ReadError::NotATrace { path: path.to_owned() });
        }
        let found = word(&bytes, 8);
        if found != FORMAT_VERSION {
            return Err(ReadError::Version { path: path.to_owned(), found });
        }
        let chunk = word(&bytes, 12) as usize;
        if chunk <= CHUNK_HEADER + FRAME_HEADER {
            return Err(ReadError::NotATrace { path: path.to_owned() });
        }
        Ok(Self { pid: word(&bytes, 16), chunk, bytes })
    }

    /// The process that wrote it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Size in bytes, as read.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing follows the header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == FILE_HEADER
    }

    /// All records in file order: ordered per thread, not between threads.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.bytes[FILE_HEADER..].chunks(self.chunk).flat_map(Chunk::new)
    }

    /// All records of all threads, ordered by begin time; ties keep file order.
    #[must_use]
    pub fn sorted(&self) -> Vec<Entry<'_>> {
        let mut entries: Vec<_> = self.entries().collect();
        entries.sort_by_key(|entry| entry.stamp.begin);
        entries
    }
}

/// The frames in `bytes`, which begin with one, of a thread's chunk.
pub(crate) const fn frames(bytes: &[u8], thread: u32) -> Chunk<'_> {
    Chunk { bytes, thread, at: 0 }
}

/// Frames of one chunk; ends at the first frame that was not finished or does not decode.
pub(crate) struct Chunk<'a> {
    bytes: &'a [u8],
    thread: u32,
    at: usize,
}

impl<'a> Chunk<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let used = bytes.len() >= CHUNK_HEADER && bytes[..4] == CHUNK_MAGIC;
        let thread = if used { word(bytes, 4) } else { 0 };
        Self { bytes, thread, at: if used { CHUNK_HEADER } else { bytes.len() } }
    }

    /// Where the next frame would begin.
    pub(crate) fn at(&self) -> usize {
        self.at.min(self.bytes.len())
    }
}

impl<'a> Iterator for Chunk<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let header = self.bytes.get(self.at..self.at.checked_add(FRAME_HEADER)?)?;
        let len = word(header, 0) as usize;
        let end = self.at.checked_add(len)?;
        let body = self.bytes.get(self.at + FRAME_HEADER..end)?;
        let record = postcard::from_bytes(body).ok()?;
        let begin = u64::from_le_bytes(header[8..16].try_into().ok()?);
        let stamp = Stamp { begin, ticks: word(header, 4) };
        self.at = end.next_multiple_of(8);
        Some(Entry { thread: self.thread, stamp, record })
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// What a kernel id stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelName<'a> {
    /// Mangled name.
    pub name: &'a str,
    /// Registers per thread; zero when unknown.
    pub registers: u32,
    /// Static shared memory in bytes.
    pub static_shared: u32,
    /// Parameter sizes in bytes, in order.
    pub parameters: Vec<u16>,
    /// Came from a module loaded at run time.
    pub from_module: bool,
}

/// Every announcement of a trace: names, kernels, facts, and the clock.
#[derive(Debug, Default)]
pub struct Names<'a> {
    /// API functions by id: `library/symbol/class`.
    pub apis: BTreeMap<u32, &'a str>,
    /// Framework operators by id.
    pub operators: BTreeMap<u32, &'a str>,
    /// Places in the program by id.
    pub places: BTreeMap<u32, &'a str>,
    /// Kernels by id.
    pub kernels: BTreeMap<KernelId, KernelName<'a>>,
    /// Facts; the last value of a key counts.
    pub meta: BTreeMap<&'a str, &'a str>,
    /// How ticks become nanoseconds.
    pub clock: Clock,
    /// Whether the process ended in an orderly way.
    pub ended: bool,
}

impl<'a> Names<'a> {
    /// Collects the announcements of a whole file.
    #[must_use]
    pub fn collect(trace: &'a WorkerTrace) -> Self {
        let mut names = Self::default();
        let mut pairs = Vec::new();
        for entry in trace.entries() {
            match entry.record {
                Record::Clock { monotonic_ns, .. } => pairs.push((entry.stamp.begin, monotonic_ns)),
                Record::Meta { key, value } => {
                    names.meta.insert(key, value);
                }
                Record::Name { table, id, name } => {
                    let table = match table {
                        NameTable::Api => &mut names.apis,
                        NameTable::Operator => &mut names.operators,
                        NameTable::Place => &mut names.places,
                    };
                    table.insert(id, name);
                }
                Record::Kernel { id, name, registers, static_shared, parameters, from_module } => {
                    let parameters =
                        parameters.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
                    let kernel = KernelName { name, registers, static_shared, parameters, from_module };
                    names.kernels.insert(id, kernel);
                }
                Record::End => names.ended = true,
                _ => {}
            }
        }
        pairs.sort_unstable();
        names.clock = Clock::from_pairs(&pairs);
        names
    }
}

/// Converts ticks into nanoseconds since the first clock record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    origin_ticks: u64,
    ns_per_tick: f64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { origin_ticks: 0, ns_per_tick: 1.0 }
    }
}

impl Clock {
    /// Fits the clock through (ticks, nanoseconds) pairs in order of time; with fewer than two distinct pairs a tick
    /// is taken to be a nanosecond.
    #[must_use]
    pub fn from_pairs(pairs: &[(u64, u64)]) -> Self {
        let (Some(first), Some(last)) = (pairs.first(), pairs.last()) else { return Self::default() };
        let ticks = last.0.saturating_sub(first.0);
        let ns = last.1.saturating_sub(first.1);
        let ns_per_tick = if ticks > 0 && ns > 0 { ns as f64 / ticks as f64 } else { 1.0 };
        Self { origin_ticks: first.0, ns_per_tick }
    }

    /// Nanoseconds from the first clock record to `ticks`; zero before it.
    #[must_use]
    pub fn nanos(&self, ticks: u64) -> u64 {
        (ticks.saturating_sub(self.origin_ticks) as f64 * self.ns_per_tick) as u64
    }

    /// A length in ticks as nanoseconds.
    #[must_use]
    pub fn length_nanos(&self, ticks: u64) -> f64 {
        ticks as f64 * self.ns_per_tick
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::writer::{CHUNK, NoRoom, append, begin_chunk, write_file_header};

    /// A file with one chunk per thread holding `records` copies of a marker.
    fn file(threads: u32, records: usize) -> Vec<u8> {
        let mut bytes = vec![0; FILE_HEADER + CHUNK * threads as usize];
        write_file_header(&mut bytes, 42);
        for thread in 0..threads {
            let start = FILE_HEADER + CHUNK * thread as usize;
            let chunk = &mut bytes[start..start + CHUNK];
            let mut at = begin_chunk(chunk, 100 + thread, 0);
            for i in 0..records {
                let stamp = Stamp { begin: i as u64 * 10 + u64::from(thread), ticks: 3 };
                let record = Record::Meta { key: "step", value: "some value" };
                at = append(chunk, at, stamp, &record).unwrap();
            }
        }
        bytes
    }

    #[test]
    fn what_was_written_is_read_back_in_time_order() {
        let trace = WorkerTrace::from_bytes(file(2, 5), Path::new("x")).unwrap();
        assert_eq!(trace.pid(), 42);
        let times: Vec<_> = trace.sorted().iter().map(|e| (e.stamp.begin, e.thread)).collect();
        assert_eq!(times[..4], [(0, 100), (1, 101), (10, 100), (11, 101)]);
        assert_eq!(times.len(), 10);
    }

    #[test]
    fn a_record_larger_than_a_chunk_is_refused_for_good_and_a_full_chunk_for_now() {
        let mut chunk = vec![0; CHUNK];
        let first = begin_chunk(&mut chunk, 1, 0);
        let text = "x".repeat(CHUNK);
        let record = Record::Meta { key: "k", value: &text };
        assert_eq!(append(&mut chunk, first, Stamp::default(), &record), Err(NoRoom::Record));
        let record = Record::Meta { key: "k", value: "v" };
        assert_eq!(append(&mut chunk, CHUNK - 16, Stamp::default(), &record), Err(NoRoom::Chunk));
    }

    #[test]
    fn a_cut_file_gives_the_records_before_the_cut() {
        let whole = file(1, 50);
        let mut cut = whole.clone();
        cut.truncate(FILE_HEADER + 1000);
        let trace = WorkerTrace::from_bytes(cut, Path::new("x")).unwrap();
        let n = trace.entries().count();
        assert!(n > 10 && n < 50, "{n} records");
    }

    #[test]
    fn other_files_are_named() {
        let error = WorkerTrace::from_bytes(vec![0; 5000], Path::new("a/b")).unwrap_err();
        assert!(error.to_string().contains("`a/b` is not a worker trace"), "{error}");
        let mut newer = file(1, 1);
        newer[8] = 99;
        let error = WorkerTrace::from_bytes(newer, Path::new("a/b")).unwrap_err();
        assert!(error.to_string().contains("format 99"), "{error}");
    }

    #[test]
    fn the_clock_is_fitted_through_its_first_and_last_pair() {
        let clock = Clock::from_pairs(&[(1000, 5_000), (1300, 5_100), (3000, 6_000)]);
        assert_eq!(clock.nanos(1000), 0);
        assert_eq!(clock.nanos(3000), 1000);
        assert_eq!(clock.nanos(0), 0);
        assert_eq!(Clock::from_pairs(&[]).nanos(7), 7);
    }

    proptest! {
        #[test]
        fn damaged_files_never_panic(at in 0usize..2000, value: u8, cut in 0usize..3000) {
            let mut bytes = file(1, 40);
            bytes[FILE_HEADER + at] = value;
            bytes.truncate(bytes.len() - cut);
            let trace = WorkerTrace::from_bytes(bytes, Path::new("x")).unwrap();
            prop_assert!(trace.entries().count() <= CHUNK / FRAME_HEADER);
            let _ = Names::collect(&trace);
        }
    }
}

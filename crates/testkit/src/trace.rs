//! A worker trace, written record by record into memory.

use std::collections::BTreeMap;
use std::path::Path;

use trompe_base::{KernelId, StreamId};
use trompe_trace::reader::WorkerTrace;
use trompe_trace::record::{MarkerKind, NameTable, Record, Stamp};
use trompe_trace::values::Value;
use trompe_trace::writer::{CHUNK, FILE_HEADER, NoRoom, append, begin_chunk, write_file_header};

use crate::values::encode;

/// A kernel launch for [`TraceBuilder::launch`].
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// Mangled name.
    pub name: &'a str,
    /// Parameter values, each as its bytes.
    pub parameters: &'a [&'a [u8]],
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads per block in x, y, z.
    pub block: [u32; 3],
    /// From a module loaded at run time.
    pub from_module: bool,
}

impl Default for Launch<'_> {
    fn default() -> Self {
        Self { name: "kernel", parameters: &[], grid: [1; 3], block: [128, 1, 1], from_module: false }
    }
}

/// Writes a worker trace. Ticks are nanoseconds; every record takes [`TraceBuilder::CALL`] ticks and
/// [`TraceBuilder::PAUSE`] ticks pass before each.
#[derive(Debug)]
pub struct TraceBuilder {
    bytes: Vec<u8>,
    /// Thread → offset of its chunk and of the next frame in it.
    chunks: BTreeMap<u32, (usize, usize)>,
    names: BTreeMap<(NameTable, String), u32>,
    kernels: BTreeMap<String, KernelId>,
    thread: u32,
    now: u64,
}

impl Default for TraceBuilder {
    fn default() -> Self {
        Self::new(1)
    }
}

impl TraceBuilder {
    /// Ticks that a record takes.
    pub const CALL: u64 = 100;
    /// Ticks between records.
    pub const PAUSE: u64 = 1000;

    /// An empty trace of process `pid`.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        let mut bytes = vec![0; FILE_HEADER];
        write_file_header(&mut bytes, pid);
        let mut builder = Self {
            bytes,
            chunks: BTreeMap::new(),
            names: BTreeMap::new(),
            kernels: BTreeMap::new(),
            thread: pid,
            now: 1_000_000,
        };
        builder.record(&Record::Clock { monotonic_ns: 0, unix_ns: 0 });
        builder
    }

    /// Makes another thread the writer of what follows.
    pub fn on_thread(&mut self, thread: u32) -> &mut Self {
        self.thread = thread;
        self
    }

    /// Lets `ticks` pass.
    pub fn pass(&mut self, ticks: u64) -> &mut Self {
        self.now += ticks;
        self
    }

    /// Writes a record, [`Self::PAUSE`] ticks after the one before.
    ///
    /// # Panics
    /// When the record is larger than a chunk.
    pub fn record(&mut self, record: &Record<'_>) -> &mut Self {
        self.now += Self::PAUSE;
        self.write(record, Self::CALL);
        self.now += Self::CALL;
        self
    }

    /// Writes a record without letting time pass: announcements.
    fn announce(&mut self, record: &Record<'_>) {
        self.write(record, 0);
    }

    fn write(&mut self, record: &Record<'_>, ticks: u64) {
        let stamp = Stamp { begin: self.now, ticks: ticks as u32 };
        for _ in 0..2 {
            if let Some((start, at)) = self.chunks.get(&self.thread).copied() {
                match append(&mut self.bytes[start..start + CHUNK], at, stamp, record) {
                    Ok(next) => {
                        self.chunks.insert(self.thread, (start, next));
                        return;
                    }
                    Err(NoRoom::Record) => panic!("a record larger than a chunk: {record:?}"),
                    Err(NoRoom::Chunk) => {
                        let end = (at + 16).min(CHUNK);
                        self.bytes[start + at..start + end].fill(0);
                    }
                }
            }
            let start = self.bytes.len();
            self.bytes.resize(start + CHUNK, 0);
            let first = begin_chunk(&mut self.bytes[start..], self.thread, 0);
            self.chunks.insert(self.thread, (start, first));
        }
    }

    /// The id of an API function, for example `cudart/cudaMalloc/emulated`.
    pub fn api(&mut self, name: &str) -> u16 {
        self.name(NameTable::Api, name) as u16
    }

    fn name(&mut self, table: NameTable, name: &str) -> u32 {
        if let Some(id) = self.names.get(&(table, name.to_owned())) {
            return *id;
        }
        let id = self.names.len() as u32;
        self.announce(&Record::Name { table, id, name });
        self.names.insert((table, name.to_owned()), id);
        id
    }

    /// A fact.
    pub fn meta(&mut self, key: &str, value: &str) -> &mut Self {
        self.record(&Record::Meta { key, value })
    }

    /// An operator with its inputs; `body` writes what happens inside and returns the outputs.
    pub fn operator(
        &mut self,
        name: &str,
        inputs: &[Value],
        body: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> &mut Self {
        self.scope((0, name, -1), inputs, body)
    }

    /// A range that PyTorch or the program marks (`Optimizer.step#AdamW.step`).
    pub fn range(&mut self, name: &str, body: impl FnOnce(&mut Self)) -> &mut Self {
        self.scope((6, name, -1), &[], |builder| {
            body(builder);
            Vec::new()
        })
    }

    /// An autograd node.
    pub fn node(&mut self, name: &str, body: impl FnOnce(&mut Self)) -> &mut Self {
        self.scope((1, name, 0), &[], |builder| {
            body(builder);
            Vec::new()
        })
    }

    /// A frame with every detail.
    pub fn scope(
        &mut self,
        (scope, name, sequence): (u8, &str, i64),
        inputs: &[Value],
        body: impl FnOnce(&mut Self) -> Vec<Value>,
    ) -> &mut Self {
        let name = self.name(NameTable::Operator, name);
        let values = encode(inputs);
        self.record(&Record::OperatorBegin { name, scope, sequence, forward_thread: 0, values: &values });
        let outputs = encode(&body(self));
        self.record(&Record::OperatorEnd { values: &outputs })
    }

    /// A kernel launch on stream 0.
    pub fn launch(&mut self, launch: Launch<'_>) -> &mut Self {
        let api = self.api("cudart/cudaLaunchKernel/emulated");
        let kernel = self.kernel(&launch);
        let parameters = launch.parameters.concat();
        let Launch { grid, block, .. } = launch;
        self.record(&Record::Launch {
            api,
            kernel,
            stream: StreamId(0),
            grid,
            block,
            shared: 0,
            parameters: &parameters,
        })
    }

    fn kernel(&mut self, launch: &Launch<'_>) -> KernelId {
        if let Some(id) = self.kernels.get(launch.name) {
            return *id;
        }
        let id = KernelId(self.kernels.len() as u32);
        let sizes: Vec<u8> = launch.parameters.iter().flat_map(|p| (p.len() as u16).to_le_bytes()).collect();
        self.announce(&Record::Kernel {
            id,
            name: launch.name,
            registers: 32,
            static_shared: 0,
            parameters: &sizes,
            from_module: launch.from_module,
        });
        self.kernels.insert(launch.name.to_owned(), id);
        id
    }

    /// A mark of the program; text as `None` ends the innermost range.
    pub fn mark(&mut self, text: Option<&str>) -> &mut Self {
        let (kind, text) = text.map_or((MarkerKind::Pop, ""), |text| (MarkerKind::Push, text));
        self.record(&Record::Marker { kind, text })
    }

    /// An allocator event.
    pub fn allocator(&mut self, action: u8, address: u64, bytes: u64) -> &mut Self {
        self.record(&Record::Allocator { action, address, bytes, stream: 0 })
    }

    /// The trace, ended in an orderly way.
    ///
    /// # Panics
    /// Never: what was written is a trace.
    #[must_use]
    pub fn finish(mut self) -> WorkerTrace {
        self.end();
        self.cut()
    }

    /// The same as a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish_to(mut self, path: &Path) -> std::io::Result<()> {
        self.end();
        std::fs::write(path, self.bytes)
    }

    fn end(&mut self) {
        let monotonic_ns = self.now - 1_000_000;
        self.record(&Record::Clock { monotonic_ns, unix_ns: 0 });
        self.record(&Record::End);
    }

    /// The trace as a killed process leaves it.
    ///
    /// # Panics
    /// Never: what was written is a trace.
    #[must_use]
    pub fn cut(self) -> WorkerTrace {
        WorkerTrace::from_bytes(self.bytes, Path::new("built")).expect("a trace")
    }
}

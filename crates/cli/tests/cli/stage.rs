//! A stage for the program: a fake Python that answers what a real one would, a fake preloaded library, and worker
//! traces as the real library would write them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use trompe_base::{DType, KernelId, StreamId};
use trompe_trace::descriptor::{Epilogue, Gemm};
use trompe_trace::record::{MarkerKind, NameTable, Record, Stamp, StreamKind};
use trompe_trace::writer::{CHUNK, FILE_HEADER, append, begin_chunk, write_file_header};

/// What the fake Python says about PyTorch.
pub(crate) const TORCH: &str = r#"{"version":"2.15.0+cu132","cuda":"13.2","hip":null,"folder":"/nowhere"}"#;

/// Folders of one test; removed at its end.
pub(crate) struct Stage {
    root: tempfile::TempDir,
}

impl Stage {
    /// A stage whose Python has this PyTorch (JSON, or `null`) and runs `body` (shell) instead of a script.
    pub(crate) fn new(torch: &str, body: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let stage = Self { root };
        for folder in ["bin", "lib", "work"] {
            fs::create_dir(stage.path(folder)).unwrap();
        }
        let trace = stage.path("recorded.trompe");
        fs::write(&trace, worker_trace(4)).unwrap();
        let answer = format!(
            r#"{{"executable":"{}","version":"3.11.7","headers":true,"torch":{torch},"triton":null,"nvidia":[]}}"#,
            stage.path("bin/python").display()
        );
        let python = format!(
            "#!/bin/sh\ncase $2 in *trompe:*) echo 'trompe:{answer}'; exit 0 ;; esac\n\
             record() {{ cp '{}' \"$TROMPE_TRACE_DIR/$$.trompe\"; }}\n{body}\n",
            trace.display()
        );
        stage.program("bin/python", &python);
        fs::copy(some_library(), stage.path("lib/libtrompe_shim.so")).unwrap();
        stage
    }

    /// An executable file.
    pub(crate) fn program(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A path on the stage.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The program with these arguments, ready to be started in the folder `work`.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_trompe"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()))
            .env("TROMPE_LIB", self.path("lib"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_DATA_HOME", self.path("data"))
            .env_remove("PYTHONPATH")
            .stdin(Stdio::null());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn trompe<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }
}

/// What a finished program printed.
#[derive(Clone, Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Exit code and texts that must occur in what was printed.
    #[track_caller]
    pub(crate) fn check(&self, code: i32, texts: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        for text in texts {
            assert!(self.out.contains(text) || self.err.contains(text), "no `{text}` in {self:#?}");
        }
        self
    }
}

/// The report of an output folder.
pub(crate) fn report(folder: &Path) -> trompe_results::Report {
    serde_json::from_str(&fs::read_to_string(folder.join("report.json")).unwrap()).unwrap()
}

/// A library that every process can load: one that this process has loaded.
fn some_library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().last());
    paths.find(|path| path.contains("libgcc_s.so")).expect("tests are linked with libgcc_s").into()
}

/// A worker trace of a process that made `steps` equal steps: three matrix products and a kernel inside a range
/// `step`, then a wait.
fn worker_trace(steps: u64) -> Vec<u8> {
    let mut bytes = vec![0; FILE_HEADER + CHUNK];
    write_file_header(&mut bytes, 42);
    let chunk = &mut bytes[FILE_HEADER..];
    let mut at = begin_chunk(chunk, 42, 0);
    let mut now = 1_000;
    let mut put = |record: &Record<'_>| {
        at = append(chunk, at, Stamp { begin: now, ticks: 100 }, record).unwrap();
        now += 20_000;
    };
    let stream = StreamId(0);
    put(&Record::Clock { monotonic_ns: 1_000, unix_ns: 1_000 });
    put(&Record::Meta { key: "torch.version", value: "2.15.0+cu132" });
    put(&Record::Meta { key: "device.capacity_bytes", value: "85000000000" });
    for (id, name) in [(0, "cublas/cublasGemmEx/emulated"), (1, "cudart/cudaLaunchKernel/emulated")] {
        put(&Record::Name { table: NameTable::Api, id, name });
    }
    put(&Record::Name { table: NameTable::Api, id: 2, name: "cudart/cudaDeviceSynchronize/emulated" });
    put(&Record::Stream {
        id: stream,
        device: trompe_base::DeviceIndex(0),
        priority: 0,
        kind: StreamKind::Legacy,
    });
    let parameters = [8_u16, 8, 8].map(u16::to_le_bytes).concat();
    put(&Record::Kernel {
        id: KernelId(0),
        name: "_Z7my_gelulPfS_",
        registers: 32,
        static_shared: 0,
        parameters: &parameters,
        from_module: false,
    });
    let gemm = Gemm {
        m: 1024,
        n: 1024,
        k: 1024,
        batch: 1,
        transpose_a: true,
        transpose_b: false,
        a: DType::Bf16,
        b: DType::Bf16,
        c: DType::Bf16,
        compute: DType::F32,
        epilogue: Epilogue::None,
        accumulate: false,
        leading: [1024; 3],
        strides: [0; 3],
    };
    for _ in 0..steps {
        put(&Record::Marker { kind: MarkerKind::Push, text: "step" });
        for _ in 0..3 {
            put(&Record::Gemm { api: 0, stream, gemm: gemm.clone() });
        }
        put(&Record::Launch {
            api: 1,
            kernel: KernelId(0),
            stream,
            grid: [256, 1, 1],
            block: [256, 1, 1],
            shared: 0,
            parameters: &[0; 24],
        });
        put(&Record::DeviceSynchronize { api: 2, device: trompe_base::DeviceIndex(0) });
        put(&Record::Marker { kind: MarkerKind::Pop, text: "" });
    }
    put(&Record::Clock { monotonic_ns: 1_000_000_000, unix_ns: 1_000_000_000 });
    put(&Record::End);
    bytes
}

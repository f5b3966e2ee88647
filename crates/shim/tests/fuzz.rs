//! Every exported function is called with hostile arguments: null, freed, foreign, huge and unaligned ones.
//!
//! Calls run in child processes. A child that dies or hangs, or a call that answers a code which its library does not
//! have, fails the test and names the call. Ten thousand calls are part of the ordinary tests, a million are
//! `make fuzz`.
//!
//! Addresses that earlier calls gave out, most of them freed since, go to the functions that are documented to know them
//! or to answer an error (those that free, unmap, unregister, describe); functions that the library is to call are null
//! or harmless ones, on any stream.
//!
//! What a caller cannot do wrong without crashing real libraries too is left out: pointers into memory that is not
//! there (but for the first pages and the upper half of the address space), pointers inside of structures, and
//! copies from and to host memory that is gone.

#![expect(unsafe_code, reason = "calls exported C functions")]

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{cudaFree, cudaMalloc, node};
use trompe_cuda_abi::libraries::NcclUniqueId;
use trompe_cuda_abi::pointer::{In, Out, Text};
use trompe_cuda_abi::runtime::{Dim3, IpcHandle};
use trompe_cuda_abi::tables::{self, LIBRARIES};

/// Calls in one child.
const PER_CHILD: u64 = 2_000;
/// How long a child may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of the buffers that pointers lead to.
const BUFFER: usize = 64 << 20;

/// SplitMix64, and what earlier calls left.
struct Source {
    state: u64,
    /// Handles that calls wrote, many of them freed since.
    seen: Vec<u64>,
    /// Addresses that calls wrote, many of them freed since.
    given: Vec<u64>,
    /// Whether the next function may have them.
    knows_addresses: bool,
    buffer: usize,
    device: [u64; 2],
}

impl Source {
    fn new(seed: u64) -> Self {
        let buffer = Box::leak(vec![0_u8; BUFFER].into_boxed_slice()).as_ptr() as usize;
        let mut device = [0; 2];
        for address in &mut device {
            // SAFETY: a valid place for the answer.
            assert_eq!(unsafe { cudaMalloc(address, 1 << 20) }, 0);
        }
        // SAFETY: an address that was given out just now.
        assert_eq!(unsafe { cudaFree(device[1]) }, 0);
        Self { state: seed, seen: Vec::new(), given: Vec::new(), knows_addresses: false, buffer, device }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.state;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next() as usize % from.len()]
    }

    /// Null, nonsense, or somewhere in the zeroed buffer, aligned or not.
    fn pointer(&mut self) -> usize {
        let place = self.buffer + (self.next() as usize % 64) * 64;
        self.pick(&[
            0,
            1,
            40,
            place,
            place + 1,
            place + 3,
            place,
            place,
            usize::MAX,
            1 << 63,
            usize::MAX - 100,
        ])
    }

    /// A handle, address, size or count.
    fn number(&mut self) -> u64 {
        let small = self.next() % 17;
        let place = self.pointer() as u64;
        let handle = (0x11 + self.next() % 0x50) << 48 | (self.next() % 3) << 28 | (self.next() % 6) << 4;
        let old = self.next() as usize;
        let seen = if self.seen.is_empty() { 0 } else { self.seen[old % self.seen.len()] };
        let [live, freed] = self.device;
        let few =
            [0, small, 4096, 1 << 48, 1 << 62, u64::MAX, i64::MIN as u64, handle, live, live + 1, freed];
        let other = self.pick(&few);
        if self.knows_addresses && !self.given.is_empty() && self.next().is_multiple_of(2) {
            let old = self.next() as usize % self.given.len();
            return self.given[old] + self.pick(&[0, 0, 0, 1, 4096]);
        }
        self.pick(&[other, seen, seen, place, small])
    }

    /// Keeps what a call wrote, and clears the buffer for the next one.
    fn learn(&mut self) {
        // SAFETY: the leaked buffer of this process; only the calls wrote there.
        let words = unsafe { std::slice::from_raw_parts_mut(self.buffer as *mut u64, 1024) };
        for word in words.iter_mut().filter(|word| **word != 0) {
            if (1 << 40..1 << 47).contains(word) {
                let place = (*word as usize >> 12) % 64;
                self.given.resize(64, self.device[1]);
                self.given[place] = *word;
            }
            if *word >> 48 != 0 && *word >> 48 < 0x80 {
                if self.seen.len() < 256 {
                    self.seen.push(*word);
                } else {
                    self.seen[(*word as usize >> 4) % 256] = *word;
                }
            }
            *word = 0;
        }
    }
}

/// A hostile argument of a type.
trait Hostile: Sized {
    fn draw(source: &mut Source) -> Self;
    fn show(&self) -> String;
}

macro_rules! hostile {
    ($($ty:ty: |$source:ident| $draw:expr, |$value:ident| $show:expr;)*) => {
        $(impl Hostile for $ty {
            fn draw($source: &mut Source) -> Self {
                $draw
            }
            fn show(&self) -> String {
                let $value = self;
                format!("{:#x}", $show)
            }
        })*
    };
}

hostile! {
    u64: |source| source.number(), |value| value;
    usize: |source| source.number() as usize, |value| value;
    i64: |source| source.number() as i64, |value| value;
    u32: |source| source.number() as u32, |value| value;
    i32: |source| { let number = source.number() as i32; source.pick(&[number, 0, 1, 2, -1, i32::MAX, i32::MIN]) }, |value| value;
    u8: |source| source.number() as u8, |value| value;
    i8: |source| source.number() as i8, |value| value;
    u16: |source| source.number() as u16, |value| value;
    f32: |source| source.pick(&[0.0, -1.0, f32::NAN, f32::INFINITY, 1.0]), |value| value.to_bits();
    f64: |source| source.pick(&[0.0, -1.0, f64::NAN, f64::INFINITY, 1.0]), |value| value.to_bits();
    Text: |source| Text::new(source.pointer()), |value| value.address();
    Dim3: |source| Dim3 { x: u32::draw(source), y: u32::draw(source), z: u32::draw(source) }, |value| value.x;
    NcclUniqueId: |source| NcclUniqueId { bytes: [source.next() as u8; 128] }, |value| value.bytes[0];
    IpcHandle: |source| IpcHandle { bytes: [source.next() as u8; 64] }, |value| value.bytes[0];
}

impl<T: trompe_cuda_abi::pointer::Plain> Hostile for Out<T> {
    fn draw(source: &mut Source) -> Self {
        Self::new(source.pointer())
    }
    fn show(&self) -> String {
        format!("{:#x}", self.address())
    }
}

impl<T: trompe_cuda_abi::pointer::Plain> Hostile for In<T> {
    fn draw(source: &mut Source) -> Self {
        Self::new(source.pointer())
    }
    fn show(&self) -> String {
        format!("{:#x}", self.address())
    }
}

/// Draws arguments, says them to the journal, and calls.
type Caller = fn(&mut Source, &mut String) -> Option<i64>;

macro_rules! draw {
    ($source:ident, $journal:ident, $arg:ident: $ty:ty) => {
        let $arg = <$ty as Hostile>::draw($source);
        let _ = write!($journal, "{} ", $arg.show());
    };
}

macro_rules! caller {
    ($class:ident $name:ident ($($arg:ident : $ty:ty),*) -> () => $handler:path) => {
        #[allow(unused_variables, reason = "some functions take nothing")]
        |source: &mut Source, journal: &mut String| {
            unsafe extern "C" {
                fn $name($($arg: $ty),*);
            }
            $(draw!(source, journal, $arg: $ty);)*
            super::note(journal);
            // SAFETY: what the arguments lead to is there; see the head of this file.
            unsafe { $name($($arg),*) };
            None
        }
    };
    ($class:ident $name:ident ($($arg:ident : $ty:ty),*) -> $ret:ty => $handler:path) => {
        #[allow(unused_variables, reason = "some functions take nothing")]
        |source: &mut Source, journal: &mut String| {
            unsafe extern "C" {
                fn $name($($arg: $ty),*) -> $ret;
            }
            $(draw!(source, journal, $arg: $ty);)*
            super::note(journal);
            // SAFETY: what the arguments lead to is there; see the head of this file.
            let _ = unsafe { $name($($arg),*) };
            None
        }
    };
    ($class:ident $name:ident ($($arg:ident : $ty:ty),*) => $handler:path) => {
        #[allow(unused_variables, reason = "some functions take nothing")]
        |source: &mut Source, journal: &mut String| {
            unsafe extern "C" {
                fn $name($($arg: $ty),*) -> i32;
            }
            $(draw!(source, journal, $arg: $ty);)*
            super::note(journal);
            // SAFETY: what the arguments lead to is there; see the head of this file.
            Some(i64::from(unsafe { $name($($arg),*) }))
        }
    };
    (data $name:ident) => {
        |_: &mut Source, _: &mut String| None
    };
    // Functions without declared arguments: some read places for answers, which are pointers or null here.
    ($class:ident $name:ident) => {
        #[allow(unused_variables, reason = "some functions take nothing")]
        |source: &mut Source, journal: &mut String| {
            unsafe extern "C" {
                #[rustfmt::skip]
                fn $name(
                    a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize, h: usize, i: usize, j: usize,
                    k: usize, l: usize, m: usize, n: usize, o: usize, p: usize, q: usize, r: usize, s: usize, t: usize,
                ) -> i32;
            }
            let a: [usize; 20] = std::array::from_fn(|_| source.pointer());
            let _ = write!(journal, "{a:x?}");
            super::note(journal);
            // SAFETY: answers are only written to pointers, and those lead to the buffer.
            Some(i64::from(unsafe {
                $name(
                    a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
                    a[15], a[16], a[17], a[18], a[19],
                )
            }))
        }
    };
}

macro_rules! callers {
    ($(
        $class:ident $name:ident
        $(( $($arg:ident : $ty:ty),* $(,)? ))?
        $(-> $ret:ty)?
        $(=> $handler:path)?
        $([ $($index:literal : $action:ident),* $(,)? ])?
        ;
    )*) => {
        #[allow(clashing_extern_declarations, reason = "only numbers pass")]
        pub(super) static CALLERS: &[(&str, Caller)] = &[
            $((stringify!($name), caller!($class $name $(($($arg: $ty),*))? $(-> $ret)? $(=> $handler)?)),)*
        ];
    };
}

macro_rules! libraries {
    ($($library:ident $with:ident { $($import:item)* })*) => {
        $(
            #[allow(unused_imports, clashing_extern_declarations, improper_ctypes, non_snake_case,
                reason = "the library's own names and signatures; not every table has each type")]
            mod $library {
                use std::fmt::Write as _;
                use trompe_cuda_abi::pointer::{In, Out, Text};
                use trompe_cuda_abi::runtime::Address;
                use super::{Caller, Hostile, Source};
                $($import)*

                trompe_cuda_abi::$with!(callers);
            }
        )*

        fn callers() -> Vec<(&'static str, &'static [(&'static str, Caller)])> {
            vec![$((stringify!($library), $library::CALLERS)),*]
        }
    };
}

libraries! {
    cudart for_each_cudart {
        use trompe_cuda_abi::runtime::{DeviceProperties, DeviceProperties12, Dim3, FunctionAttributes, IpcHandle, LaunchConfig, PointerAttributes};
    }
    cuda for_each_cuda {
        use trompe_cuda_abi::driver::{AllocationProperties, DriverLaunchConfig};
        use trompe_cuda_abi::runtime::IpcHandle;
    }
    cublas for_each_cublas {}
    cublaslt for_each_cublaslt {}
    cudnn for_each_cudnn {}
    cufft for_each_cufft {}
    curand for_each_curand {}
    cusolver for_each_cusolver {}
    cusparse for_each_cusparse {}
    cusparselt for_each_cusparselt {}
    nccl for_each_nccl {
        use trompe_cuda_abi::libraries::NcclUniqueId;
    }
    nvrtc for_each_nvrtc {}
    cupti for_each_cupti {}
    cufile for_each_cufile {}
    nvshmem for_each_nvshmem {}
    nvml for_each_nvml {}
    nvtx for_each_nvtx {}
}

/// Functions that end the test's own memory, which is the device's.
const LEFT_OUT: &[&str] = &["cudaDeviceReset"];

/// Parts of the names of functions that answer an error for an address that they do not know, or not any more. (What
/// cuBLASLt is given are structures of the caller's, which it follows.)
const KNOW_ADDRESSES: &[&str] = &[
    "Free",
    "Unregister",
    "Unmap",
    "Release",
    "GetFlags",
    "GetDevicePointer",
    "AddressRange",
    "Deregister",
    "Destroy",
    "Close",
    "GetMemHandle",
    "ExportToShareable",
    "GetAccess",
];

/// What libraries may call back.
extern "C" fn harmless(_: u64, _: u64, _: u64) {}

/// A function for a library to call.
fn callable(source: &mut Source) -> u64 {
    source.pick(&[0, harmless as *const () as u64])
}

macro_rules! calling_back {
    ($($library:literal $name:ident ($($arg:ident: $draw:ident),*);)*) => {
        /// Functions that call the program back: an argument is a function that they may call.
        #[allow(clashing_extern_declarations, reason = "only numbers pass")]
        const CALLING_BACK: &[(&str, &str, Caller)] = &[$(
            ($library, stringify!($name), |source, journal| {
                use std::fmt::Write as _;
                unsafe extern "C" {
                    fn $name($($arg: u64),*) -> i32;
                }
                $(let $arg = calling_back!(@ source $draw);
                let _ = write!(journal, "{:#x} ", $arg);)*
                note(journal);
                // SAFETY: places for answers lead to the buffer, functions are null or harmless.
                Some(i64::from(unsafe { $name($($arg),*) }))
            }),
        )*];
    };
    (@ $source:ident function) => { callable($source) };
    (@ $source:ident place) => { $source.pointer() as u64 };
    (@ $source:ident number) => { $source.number() };
}

calling_back! {
    "cudart" cudaLaunchHostFunc(stream: number, function: function, data: number);
    "cudart" cudaStreamAddCallback(stream: number, function: function, data: number, flags: number);
    "cudart" cudaUserObjectCreate(object: place, data: number, function: function, count: number, flags: number);
    "cuda" cuLaunchHostFunc(stream: number, function: function, data: number);
    "cuda" cuStreamAddCallback(stream: number, function: function, data: number, flags: number);
    "cuda" cuUserObjectCreate(object: place, data: number, function: function, count: number, flags: number);
}

/// The highest code that a library has.
fn highest_code(library: &str) -> i64 {
    match library {
        "cudart" | "cuda" | "nvml" | "cupti" => 999,
        "cudnn" => 5_999,
        "cufile" => 6_000,
        _ => 299,
    }
}

const JOURNAL: &str = "TROMPE_FUZZ_JOURNAL";

/// Writes the journal where the parent finds it when this process dies.
fn note(text: &str) {
    use std::os::unix::fs::FileExt as _;
    static FILE: std::sync::OnceLock<Option<std::fs::File>> = std::sync::OnceLock::new();
    #[expect(clippy::disallowed_methods, reason = "the parent names the file")]
    let open =
        || std::env::var_os(JOURNAL).and_then(|path| std::fs::OpenOptions::new().write(true).open(path).ok());
    if let Some(file) = FILE.get_or_init(open) {
        let line = format!("{text:<400}");
        let _ = file.write_at(line.as_bytes(), 0);
    }
}

/// Makes `count` calls; the process may die.
fn hostile_calls(seed: u64, count: u64) {
    node();
    let mut source = Source::new(seed);
    let all: Vec<(&str, &str, Caller)> = callers()
        .into_iter()
        .flat_map(|(library, rows)| rows.iter().map(move |(name, caller)| (library, *name, *caller)))
        .filter(|(_, name, _)| !LEFT_OUT.contains(name))
        .map(|own| *CALLING_BACK.iter().find(|(_, name, _)| *name == own.1).unwrap_or(&own))
        .collect();
    for number in 0..count {
        // All functions in turn from some place on, so that few calls reach many.
        let (library, name, caller) = all[(seed.wrapping_mul(PER_CHILD) + number) as usize % all.len()];
        source.knows_addresses =
            library != "cublaslt" && KNOW_ADDRESSES.iter().any(|part| name.contains(part));
        let mut journal = format!("seed {seed} call {number}: {library} {name} ");
        if let Some(code) = caller(&mut source, &mut journal) {
            assert!((-1..=highest_code(library)).contains(&code), "{journal} answered {code}");
        }
        source.learn();
    }
}

/// Runs children until `calls` calls were made; gives what went wrong.
#[expect(clippy::disallowed_methods, reason = "a child that hangs is told by the clock")]
fn run(calls: u64) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut wrong = Vec::new();
    for seed in 0..calls.div_ceil(PER_CHILD) {
        let journal = folder.path().join(format!("{seed}"));
        std::fs::write(&journal, "").expect("a journal");
        let log = folder.path().join("log");
        let file = std::fs::File::create(&log).expect("a log");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "child", "--ignored", "--nocapture"])
            .env("TROMPE_FUZZ_SEED", seed.to_string())
            .env(JOURNAL, &journal)
            .env("TROMPE_LOG", "0")
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a log"))
            .stderr(file)
            .spawn()
            .expect("a child");
        let begun = Instant::now();
        let status = loop {
            match child.try_wait().expect("a child") {
                Some(status) => break Some(status),
                None if begun.elapsed() > PATIENCE => {
                    let _ = child.kill();
                    let _ = child.wait();
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if !status.is_some_and(|status| status.success()) {
            let how = status.map_or("hangs".to_owned(), |status| status.to_string());
            let last = std::fs::read_to_string(&journal).unwrap_or_default();
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            let panic = said
                .lines()
                .skip_while(|line| !line.contains("panicked"))
                .take(2)
                .collect::<Vec<_>>()
                .join(" ");
            wrong.push(format!("{how}: {} {panic}", last.trim_end()));
        }
    }
    wrong
}

#[test]
#[ignore = "what a child process runs"]
#[expect(clippy::disallowed_methods, reason = "the parent gives the seed")]
fn child() {
    let seed = std::env::var("TROMPE_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    if let Some(seed) = seed {
        hostile_calls(seed, PER_CHILD);
    }
}

#[test]
fn every_function_is_called() {
    let called: usize = callers().iter().map(|(_, rows)| rows.len()).sum();
    assert_eq!(called, tables::COUNT);
    assert_eq!(callers().len(), LIBRARIES.len());
}

#[test]
fn ten_thousand_hostile_calls() {
    let wrong = run(10_000);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "minutes: `make fuzz`"]
fn a_million_hostile_calls() {
    let wrong = run(1_000_000);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

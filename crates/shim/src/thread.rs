//! What the libraries keep per thread.
//!
//! Nothing here has a destructor, so calls from other thread-local destructors and from `atexit` find it intact.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;

use trompe_cuda_abi::runtime::Dim3;

use crate::sink::Cursor;

/// Geometry pushed by `kernel<<<…>>>` until its launch stub takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallConfiguration {
    pub(crate) grid: Dim3,
    pub(crate) block: Dim3,
    pub(crate) shared: usize,
    pub(crate) stream: u64,
}

/// State of one host thread.
#[derive(Debug)]
pub(crate) struct Thread {
    /// Current device.
    pub(crate) device: Cell<u32>,
    /// The runtime's last error.
    pub(crate) last_error: Cell<i32>,
    /// How many doors the thread is inside of.
    pub(crate) depth: Cell<u32>,
    /// `cudaThreadExchangeStreamCaptureMode`.
    pub(crate) capture_mode: Cell<i32>,
    /// Where the thread writes records.
    pub(crate) cursor: Cursor,
    /// Bytes collected for a record.
    pub(crate) scratch: RefCell<ManuallyDrop<Vec<u8>>>,
    /// Geometry of launches under way.
    pub(crate) configurations: RefCell<ManuallyDrop<Vec<CallConfiguration>>>,
    /// Contexts pushed by `cuCtxPushCurrent`, as device numbers.
    pub(crate) contexts: RefCell<ManuallyDrop<Vec<u32>>>,
}

impl Thread {
    const fn new() -> Self {
        Self {
            device: Cell::new(0),
            last_error: Cell::new(0),
            depth: Cell::new(0),
            capture_mode: Cell::new(0),
            cursor: Cursor::new(),
            scratch: RefCell::new(ManuallyDrop::new(Vec::new())),
            configurations: RefCell::new(ManuallyDrop::new(Vec::new())),
            contexts: RefCell::new(ManuallyDrop::new(Vec::new())),
        }
    }

    /// Runs `body` with the calling thread's state.
    #[inline(always)]
    pub(crate) fn with<R>(body: impl FnOnce(&Self) -> R) -> R {
        thread_local! {
            static THREAD: Thread = const { Thread::new() };
        }
        THREAD.with(body)
    }
}

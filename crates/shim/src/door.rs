//! The one way into the library.
//!
//! Every exported function calls one of the `enter*` functions with its id and a closure. The door takes the time of
//! entry and exit, runs the closure, turns its outcome into the library's status code, keeps the runtime's last error,
//! writes the record, and turns a panic into the library's internal-error code: no panic crosses into the caller.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use trompe_base::DeviceIndex;
use trompe_cuda_abi::pointer::{NullPointer, Out};
use trompe_cuda_abi::status::Status;
use trompe_cuda_abi::tables::{self, COUNT};
use trompe_cuda_abi::{Action, ApiId};
use trompe_device::{Handle, HandleTable, Kind};
use trompe_trace::record::{Record, Stamp};

use crate::clock;
use crate::failure::Failure;
use crate::log::{Level, enabled, say};
use crate::process::{HostMachine, machine};
use crate::sink::{self, Frame};
use crate::thread::Thread;

/// One call under way, as a handler sees it.
pub(crate) struct Call<'a> {
    /// The function.
    pub(crate) api: ApiId,
    /// The calling thread.
    pub(crate) thread: &'a Thread,
    /// What a plain record of the call says about its arguments.
    pub(crate) arguments: [u64; 4],
    begin: u64,
    /// The call's record, until its time is complete.
    frame: Option<Frame>,
    recorded: bool,
}

impl Call<'_> {
    /// The emulated node, locked.
    pub(crate) fn machine(&self) -> MutexGuard<'static, HostMachine> {
        machine()
    }

    /// The thread's current device.
    pub(crate) fn device(&self) -> DeviceIndex {
        DeviceIndex(self.thread.device.get())
    }

    /// The device numbered `device`.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn checked_device(&self, device: i32) -> Result<DeviceIndex, Failure> {
        let count = self.machine().device_count();
        match u32::try_from(device) {
            Ok(index) if index < count => Ok(DeviceIndex(index)),
            _ if count == 0 => Err(Failure::NoDevice),
            _ => Err(Failure::InvalidDevice(device)),
        }
    }

    /// Gives a device its context, if it has none yet, and charges its memory.
    ///
    /// # Errors
    /// When there is no such device, or no room on it.
    pub(crate) fn activate(&mut self, device: DeviceIndex) -> Result<(), Failure> {
        self.checked_device(device.0 as i32)?;
        let charged = self.machine().activate(device)?;
        if let Some(bytes) = charged {
            let stamp = Stamp { begin: self.begin, ticks: 0 };
            let owner = "cuda_context";
            sink::write(self.thread, stamp, &Record::Charge { device, owner, bytes: bytes as i64 });
        }
        Ok(())
    }

    /// Whether records are being taken.
    pub(crate) fn recording(&self) -> bool {
        sink::active()
    }

    /// Writes the record of this call, in place of the plain one. Announcements come before it.
    pub(crate) fn record(&mut self, record: &Record<'_>) {
        self.frame = sink::write(self.thread, Stamp { begin: self.begin, ticks: 0 }, record);
        self.recorded |= self.frame.is_some();
    }

    /// Writes a record that names something (a stream, a kernel) or notes a side effect; the call keeps its own record.
    pub(crate) fn announce(&mut self, record: &Record<'_>) {
        let begin = if self.begin == 0 { clock::ticks() } else { self.begin };
        sink::write(self.thread, Stamp { begin, ticks: 0 }, record);
    }

    /// Ends the call's record now: what follows is the program's own time, not the library's.
    pub(crate) fn settle(&mut self) {
        if let Some(frame) = self.frame.take() {
            sink::finish(self.thread, frame, self.begin);
        }
    }

    /// A number that stands for the calling thread.
    pub(crate) fn thread_key(&self) -> u64 {
        std::ptr::from_ref(self.thread) as u64
    }

    /// Charges device memory to an owner that is no allocation of the program (negative gives back), and records it.
    ///
    /// # Errors
    /// When the device is full.
    pub(crate) fn charge(&mut self, owner: &'static str, bytes: i64) -> Result<(), Failure> {
        let device = self.device();
        self.machine().memory.charge(device, owner, bytes)?;
        self.announce(&Record::Charge { device, owner, bytes });
        Ok(())
    }
}

static CALLS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];
static SAID: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

/// How often a function that is only counted was called.
pub(crate) fn quiet_calls(api: ApiId) -> u64 {
    CALLS[api.index()].load(Ordering::Relaxed)
}

/// Begins the counts anew, in a forked child.
pub(crate) fn forget_quiet_calls() {
    for calls in &CALLS {
        calls.store(0, Ordering::Relaxed);
    }
}

/// Enters a function that is recorded.
#[inline]
pub(crate) fn enter<S: Status, E: Into<S>>(
    api: ApiId,
    body: impl FnOnce(&mut Call<'_>) -> Result<(), E>,
) -> i32 {
    let begin = stamp();
    Thread::with(|thread| {
        let mut call = open(thread, api, begin);
        let code = match catch_unwind(AssertUnwindSafe(|| body(&mut call))) {
            Ok(Ok(())) => 0,
            Ok(Err(error)) => error.into().code().get(),
            Err(_) => panicked(api, S::INTERNAL.code().get()),
        };
        if S::KEPT && code != 0 {
            thread.last_error.set(code);
        }
        close(&mut call, code);
        code
    })
}

/// Enters a function that is only counted.
#[inline]
pub(crate) fn enter_quiet<S: Status, E: Into<S>>(
    api: ApiId,
    body: impl FnOnce(&mut Call<'_>) -> Result<(), E>,
) -> i32 {
    CALLS[api.index()].fetch_add(1, Ordering::Relaxed);
    Thread::with(|thread| {
        let mut call = open(thread, api, 0);
        let code = match catch_unwind(AssertUnwindSafe(|| body(&mut call))) {
            Ok(Ok(())) => 0,
            Ok(Err(error)) => error.into().code().get(),
            Err(_) => panicked(api, S::INTERNAL.code().get()),
        };
        if S::KEPT && code != 0 {
            thread.last_error.set(code);
        }
        thread.depth.set(thread.depth.get() - 1);
        code
    })
}

/// Enters a recorded function that returns something other than a status. A panic becomes the type's default.
#[inline]
pub(crate) fn enter_value<T: Default>(api: ApiId, body: impl FnOnce(&mut Call<'_>) -> T) -> T {
    let begin = stamp();
    Thread::with(|thread| {
        let mut call = open(thread, api, begin);
        let value = catch_unwind(AssertUnwindSafe(|| body(&mut call))).unwrap_or_else(|_| {
            panicked(api, 0);
            T::default()
        });
        close(&mut call, 0);
        value
    })
}

/// Enters a counted function that returns something other than a status. A panic becomes the type's default.
#[inline]
pub(crate) fn enter_quiet_value<T: Default>(api: ApiId, body: impl FnOnce(&mut Call<'_>) -> T) -> T {
    CALLS[api.index()].fetch_add(1, Ordering::Relaxed);
    Thread::with(|thread| {
        let mut call = open(thread, api, 0);
        let value = catch_unwind(AssertUnwindSafe(|| body(&mut call))).unwrap_or_else(|_| {
            panicked(api, 0);
            T::default()
        });
        thread.depth.set(thread.depth.get() - 1);
        value
    })
}

/// An accepted function: does its out-parameter actions and succeeds.
pub(crate) fn accept(api: ApiId, arguments: [u64; 4], actions: &[(u64, Action)]) -> i32 {
    enter::<NoStatus, NoStatus>(api, |call| {
        call.arguments = arguments;
        for &(address, action) in actions {
            let address = address as usize;
            match action {
                Action::ZeroUsize => Out::<u64>::new(address).write_if_given(0),
                Action::ZeroI32 => Out::<i32>::new(address).write_if_given(0),
                Action::OneI32 => Out::<i32>::new(address).write_if_given(1),
                Action::Handle => Out::<u64>::new(address).write_if_given(opaque_handle().0),
            }
        }
        Ok(())
    })
}

/// An unsupported function: says so once and answers the library's code.
pub(crate) fn refuse<S: Status>(api: ApiId) -> i32 {
    enter::<S, S>(api, |_| {
        if !SAID[api.index()].swap(true, Ordering::Relaxed) {
            let (library, row) = tables::row(api);
            let text = format!(
                "`{}` of {} is not emulated; the caller gets \"not supported\". If the job cannot go on without it, \
                 please report the name",
                row.symbol, library.soname
            );
            say(Level::Warning, &text);
        }
        Err(S::NOT_SUPPORTED)
    })
}

/// A fresh handle of nothing in particular.
pub(crate) fn opaque_handle() -> Handle {
    static OPAQUE: std::sync::Mutex<HandleTable<()>> = std::sync::Mutex::new(HandleTable::new(Kind::Opaque));
    OPAQUE.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(())
}

/// The time of entry; 0 when nothing is recorded.
#[inline]
fn stamp() -> u64 {
    if sink::active() { clock::ticks() } else { 0 }
}

#[inline]
fn open(thread: &Thread, api: ApiId, begin: u64) -> Call<'_> {
    thread.depth.set(thread.depth.get() + 1);
    if enabled(Level::Trace) {
        say(Level::Trace, tables::row(api).1.symbol);
    }
    Call { api, thread, arguments: [0; 4], begin, frame: None, recorded: false }
}

#[inline]
fn close(call: &mut Call<'_>, code: i32) {
    let thread = call.thread;
    // Calls that the library makes to itself, or that a host function makes, are part of the outer one.
    if thread.depth.get() == 1 && sink::active() {
        if !call.recorded {
            if code != 0 {
                call.arguments[3] = code as u64;
            }
            let record = Record::Call { api: call.api.0, arguments: call.arguments };
            call.record(&record);
        }
        call.settle();
        if call.recorded {
            sink::announce_api(thread, call.api);
        }
    }
    thread.depth.set(thread.depth.get() - 1);
}

#[cold]
fn panicked(api: ApiId, code: i32) -> i32 {
    let symbol = tables::row(api).1.symbol;
    say(
        Level::Warning,
        &format!("`{symbol}` failed inside the emulator; this is a bug in trompe, please report it"),
    );
    code
}

/// Status of functions that cannot fail.
#[derive(Clone, Copy, Debug)]
struct NoStatus;

impl From<NullPointer> for NoStatus {
    fn from(_: NullPointer) -> Self {
        Self
    }
}

impl Status for NoStatus {
    const NOT_SUPPORTED: Self = Self;
    const INTERNAL: Self = Self;

    fn code(self) -> std::num::NonZeroI32 {
        std::num::NonZeroI32::MIN
    }
}

#[cfg(test)]
mod tests {
    use trompe_cuda_abi::runtime::RuntimeError;
    use trompe_cuda_abi::tables::cudart::Symbol;

    use super::*;

    #[test]
    fn a_panic_becomes_the_librarys_own_code() {
        let api = Symbol::cudaMalloc.id();
        let code = enter::<RuntimeError, RuntimeError>(api, |_| panic!("on purpose"));
        assert_eq!(code, 999);
        assert_eq!(enter_quiet::<RuntimeError, RuntimeError>(api, |_| panic!("on purpose")), 999);
        assert_eq!(enter_value::<u64>(api, |_| panic!("on purpose")), 0);
        let code = enter::<RuntimeError, RuntimeError>(api, |call| {
            assert_eq!(call.thread.depth.get(), 1, "the door was closed after each panic");
            Ok(())
        });
        assert_eq!(code, 0);
    }

    #[test]
    fn an_accepted_call_sets_its_out_parameters() {
        let (mut size, mut count, mut handle) = (7u64, 7i32, 0u64);
        let places = [
            (&raw mut size as u64, Action::ZeroUsize),
            (&raw mut count as u64, Action::OneI32),
            (&raw mut handle as u64, Action::Handle),
            (0, Action::ZeroI32),
        ];
        assert_eq!(accept(Symbol::cudaMemAdvise.id(), [0; 4], &places), 0);
        assert_eq!((size, count), (0, 1));
        assert_ne!(handle, 0);
    }
}

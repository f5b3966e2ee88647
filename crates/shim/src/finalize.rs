//! The end of threads while the Python interpreter shuts down.
//!
//! Before version 3.14, CPython ends a thread that asks for the interpreter's lock during shutdown by `pthread_exit`. That
//! unwinds whatever frames lie above, and PyTorch's autograd thread asks for the lock in a destructor, which may not be
//! unwound: the process aborts ("terminate called without an active exception"). On hardware, kernels keep a script busy
//! for long enough; on a device that takes no time, a script whose last act is a backward pass meets this often. So such a
//! thread is made to wait for the end of the process instead, as newer versions of CPython do themselves.
//!
//! PyTorch's autograd engine then waits for the thread when it is taken apart, ten seconds unless
//! `TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT` says otherwise. It would wait in vain, so a tenth of a second is set there.

#![expect(unsafe_code, unreachable_pub, reason = "stands before a function of the C library")]

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// Ends the calling thread.
///
/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_exit(value: *mut c_void) -> ! {
    type Exit = unsafe extern "C-unwind" fn(*mut c_void) -> !;
    static NEXT: OnceLock<usize> = OnceLock::new();
    if interpreter_is_finalizing() {
        // SAFETY: both are C strings; a value that the user has set stays.
        unsafe { libc::setenv(c"TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT".as_ptr(), c"0.1".as_ptr(), 0) };
        loop {
            // SAFETY: waits for a signal and has no arguments.
            unsafe { libc::pause() };
        }
    }
    // SAFETY: looks a name up in the libraries after this one.
    let next =
        *NEXT.get_or_init(|| unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_exit".as_ptr()) } as usize);
    if next == 0 {
        std::process::abort();
    }
    // SAFETY: the C library's function has this type. No frame of ours with a destructor is above it.
    unsafe { std::mem::transmute::<usize, Exit>(next)(value) }
}

/// Whether this process runs a Python interpreter that is shutting down.
fn interpreter_is_finalizing() -> bool {
    // The public name exists from 3.13 on, the private one before.
    [c"Py_IsFinalizing", c"_Py_IsFinalizing"].iter().any(|name| {
        // SAFETY: looks a name up; both functions take nothing and return an int.
        unsafe {
            let function = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
            !function.is_null()
                && std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(function)() != 0
        }
    })
}

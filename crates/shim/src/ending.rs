//! The end of the process: the orderly one, and the one in haste (`os._exit`), which runs no destructor.

#![expect(
    unsafe_code,
    unreachable_pub,
    reason = "a section that the loader runs at exit; stands before `_exit`"
)]

use std::ffi::c_int;

use crate::sink;

/// Runs after the destructors of all libraries that need this one, so their last calls are still recorded.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    let _ = std::panic::catch_unwind(sink::end);
}

/// Ends the process at once, after the last records were written.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    let _ = std::panic::catch_unwind(sink::end_in_haste);
    loop {
        // SAFETY: what the C library's function of this name does; it does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// The same under its name in the C standard.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

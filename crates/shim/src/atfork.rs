//! Registration of fork handlers, seen before the C library does.
//!
//! A framework that forks workers after a CUDA call poisons itself in the child, because a real context does not survive
//! a fork. Nothing of an emulated one needs to: a child begins with fresh state. So a handler that runs in children only
//! and comes from the framework's own libraries is left out; all others are passed on.

#![expect(unsafe_code, unreachable_pub, reason = "stands before a function of the C library")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

type Handler = Option<extern "C" fn()>;
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;

/// `__register_atfork`, which `pthread_atfork` calls.
///
/// # Safety
/// As for the C library's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __register_atfork(
    prepare: Handler,
    parent: Handler,
    child: Handler,
    library: *mut c_void,
) -> c_int {
    static NEXT: OnceLock<usize> = OnceLock::new();
    // SAFETY: looks a name up in the libraries after this one.
    let next =
        *NEXT.get_or_init(|| unsafe { libc::dlsym(libc::RTLD_NEXT, c"__register_atfork".as_ptr()) } as usize);
    if next == 0 {
        return libc::ENOSYS;
    }
    if prepare.is_none() && parent.is_none() && child.is_some_and(is_of_framework) {
        return 0;
    }
    // SAFETY: the C library's function has this type.
    unsafe {
        let register: Register = std::mem::transmute(next);
        register(prepare, parent, child, library)
    }
}

/// Whether a function lies in a library of PyTorch.
fn is_of_framework(function: extern "C" fn()) -> bool {
    // SAFETY: `info` is a valid place for the answer; its name stays valid while the library is loaded.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(function as *const c_void, &raw mut info) == 0 || info.dli_fname.is_null() {
            return false;
        }
        let name = CStr::from_ptr(info.dli_fname.cast::<c_char>()).to_bytes();
        name.windows(8).any(|part| part == b"libtorch") || name.windows(6).any(|part| part == b"libc10")
    }
}

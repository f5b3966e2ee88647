//! Which library called us: for messages that name what a person has to rebuild.

#![expect(unsafe_code, reason = "walks the stack with the C library")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

/// File of the nearest library on the stack that is not this one; `None` when the stack cannot be walked.
pub(crate) fn library() -> Option<String> {
    const DEPTH: usize = 64;
    let mut frames: [*mut c_void; DEPTH] = [ptr::null_mut(); DEPTH];
    // SAFETY: there is room for as many frames as said.
    let count = unsafe { libc::backtrace(frames.as_mut_ptr(), DEPTH as c_int) };
    let own = object(library as fn() -> Option<String> as *const c_void)?;
    let count = usize::try_from(count).unwrap_or(0);
    frames.iter().take(count).filter_map(|frame| object(*frame)).find(|found| *found != own)
}

/// File of the library that holds `address`.
fn object(address: *const c_void) -> Option<String> {
    let mut info = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: any address may be asked about; `info` is valid for writing.
    let found = unsafe { libc::dladdr(address, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the linker's own copy of the name, which lives as long as the library.
    Some(unsafe { CStr::from_ptr(info.dli_fname) }.to_string_lossy().into_owned())
}
